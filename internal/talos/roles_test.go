package talos_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/role"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
)

// callsAs lists the requests with each set of roles: methods, and resources by their type.
func callsAs(simulator *sim.Simulator) map[string][]string {
	found := map[string][]string{}

	for _, c := range simulator.Calls() {
		what := c.Method
		if kind, _, resource := strings.Cut(c.Detail, ".talos.dev"); resource {
			what, _, _ = strings.Cut(kind, ".")
		}

		if !slices.Contains(found[c.Roles], what) {
			found[c.Roles] = append(found[c.Roles], what)
		}
	}

	return found
}

// A fleet of os:reader observes all but configurations, for which it asks with the credentials that it has for that,
// and for nothing else.
func TestObserve_withTheRolesItNeeds(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	m, admin := member(t, simulator, o, o.fleet(t, nil), machinetype.TypeControlPlane)
	observed(t, admin, "waited for its bootstrap", waitsForBootstrap)
	must(t, admin.Bootstrap(t.Context()))
	want := observed(t, admin, "settled", settled)

	as := func(change func(*talos.Options)) step.MachineState {
		simulator.ForgetCalls()

		return o.fleet(t, func(options *talos.Options) {
			options.Credentials, options.TrustNodeNames = o.credentialsAs(t, role.Reader), true

			change(options)
		}).Machine(wanted(m)).Observe(t.Context())
	}

	both := as(func(options *talos.Options) { options.ForConfigurations = o.credentialsAs(t, role.Admin) })
	if both.Access != step.Member || both.ConfigDigest != want.ConfigDigest || both.NodeName != want.NodeName {
		t.Errorf("seen %+v, want %+v", both, want)
	}

	if got := callsAs(simulator); !slices.Equal(got["os:admin"], []string{"MachineConfigs"}) ||
		slices.Contains(got["os:reader"], "MachineConfigs") || len(got) != 2 {
		t.Errorf("asked %v", got)
	}

	without := as(func(options *talos.Options) { options.Digest = nil })
	if without.Access != step.Member || without.Role != step.ControlPlane || without.NodeName != want.NodeName ||
		without.UUID != want.UUID || !settled(without) {
		t.Errorf("seen %+v, want %+v", without, want)
	}

	if got := callsAs(simulator); len(got) != 1 || len(got["os:reader"]) == 0 {
		t.Errorf("asked %v", got)
	}

	less := as(func(options *talos.Options) { options.Digest = machineconfig.Digest })
	if less.Access != step.Unreachable || !strings.Contains(less.Cause, "not authori") {
		t.Errorf("a configuration is read as os:reader: %+v", less)
	}
}

// The configuration is that of the machine that is observed, and of no other one.
func TestObserve_configurationOfAnotherMachine(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	m, admin := member(t, simulator, o, o.fleet(t, nil), machinetype.TypeControlPlane)
	observed(t, admin, "waited for its bootstrap", waitsForBootstrap)

	api := o.fleet(t, func(options *talos.Options) {
		options.ForConfigurations = ownerOf(t, simulator, theirSecrets).credentials(t)
	}).Machine(wanted(m))

	if got := api.Observe(t.Context()); got.Access == step.Member {
		t.Errorf("seen %+v", got)
	}
}

// A snapshot is for os:etcd:backup, which reads nothing else but etcd.
func TestEtcdSnapshot_roles(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	m, admin := member(t, simulator, o, o.fleet(t, nil), machinetype.TypeControlPlane)
	observed(t, admin, "waited for its bootstrap", waitsForBootstrap)
	must(t, admin.Bootstrap(t.Context()))
	observed(t, admin, "settled", settled)

	as := func(roles ...role.Role) *talos.Machine {
		return o.fleet(t, func(options *talos.Options) {
			options.Credentials, options.Digest = o.credentialsAs(t, roles...), nil
		}).Machine(cluster.Machine{Name: "cp", Wanted: cluster.Wanted{Address: m.Address().String()}})
	}

	must(t, as(role.EtcdBackup).EtcdSnapshot(t.Context(), io.Discard))

	if err := as(role.Reader).EtcdSnapshot(t.Context(), io.Discard); !errors.Is(err, talos.ErrNotAuthorized) {
		t.Errorf("os:reader takes a snapshot: %v", err)
	}

	if _, err := as(role.Reader).EtcdView(t.Context()); err != nil {
		t.Errorf("os:reader does not see etcd: %v", err)
	}

	if seen := as(role.EtcdBackup).Observe(t.Context()); seen.Access == step.Member {
		t.Errorf("os:etcd:backup observes machines: %+v", seen)
	}
}
