package talos_test

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/role"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/secretstest"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

var (
	_ lifecycle.Machine    = (*talos.Machine)(nil)
	_ lifecycle.Kubernetes = (*kubernetes.Client)(nil)
)

// owner is the side of a cluster that holds its secrets.
type owner struct {
	bundle *secrets.Bundle
	input  *generate.Input
}

// contract is the oldest that the simulated versions share.
var contract = config.TalosVersion1_12

// Keys take a second to make, so all clusters but one of another owner share theirs.
var (
	ourSecrets   = sync.OnceValues(newSecrets)
	theirSecrets = sync.OnceValues(newSecrets)
)

func newSecrets() (*secrets.Bundle, error) {
	return secretstest.Secrets(time.Now().Add(-time.Minute))
}

func newOwner(t *testing.T, simulator *sim.Simulator) owner {
	t.Helper()

	return ownerOf(t, simulator, ourSecrets)
}

func ownerOf(t *testing.T, simulator *sim.Simulator, generated func() (*secrets.Bundle, error)) owner {
	t.Helper()

	endpoint, err := simulator.Endpoint()
	must(t, err)

	bundle, err := generated()
	must(t, err)

	input, err := generate.NewInput("test", endpoint, "1.34.1",
		generate.WithVersionContract(contract), generate.WithSecretsBundle(bundle), generate.WithInstallDisk("/dev/sda"),
		generate.WithHostDNSForwardKubeDNSToHost(true))
	must(t, err)

	return owner{bundle, input}
}

func (o owner) config(t *testing.T, kind machinetype.Type) []byte {
	t.Helper()

	provider, err := o.input.Config(kind)
	must(t, err)

	data, err := provider.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
	must(t, err)

	return data
}

func (o owner) credentials(t *testing.T) talos.Credentials {
	t.Helper()

	return o.credentialsAs(t, role.Admin)
}

func (o owner) credentialsAs(t *testing.T, roles ...role.Role) talos.Credentials {
	t.Helper()

	cert, err := o.bundle.GenerateTalosAPIClientCertificate(role.MakeSet(roles...))
	must(t, err)

	return talos.Credentials{CA: o.bundle.Certs.OS.Crt, Cert: cert.Crt, Key: cert.Key}
}

// fleet is generous with calls, because the tests share the machine, and looks for
// effects often.
func (o owner) fleet(t *testing.T, change func(*talos.Options)) *talos.Fleet {
	t.Helper()

	options := talos.Options{
		Credentials: o.credentials(t), Digest: machineconfig.Digest,
		Timeouts: patiently,
	}
	if change != nil {
		change(&options)
	}

	f, err := talos.NewFleet(options)
	must(t, err)
	t.Cleanup(f.Close)

	return f
}

// longTimeout is for events that have to come, even on a machine that is busy with other tests.
const longTimeout = 5 * time.Minute

var patiently = talos.Timeouts{
	Connect: time.Minute, Call: time.Minute, Observe: 2 * time.Minute, Change: time.Minute,
	Settle: time.Minute, Poll: 10 * time.Millisecond,
}

// shortly makes effects that never come known quickly. Effects that come may take longer than that.
func shortly(o *talos.Options) { o.Timeouts.Settle = 500 * time.Millisecond }

// shortlyUnless is shortly where an effect never comes, and longTimeout where it does.
func shortlyUnless(comes bool) func(*talos.Options) {
	if comes {
		return nil
	}

	return shortly
}

func site(t *testing.T, options sim.Options) *sim.Simulator {
	t.Helper()

	return sim.ForTest(t, options)
}

func add(t *testing.T, simulator *sim.Simulator, options sim.MachineOptions) *sim.Machine {
	t.Helper()

	m, err := simulator.AddMachine(t.Context(), options)
	must(t, err)

	return m
}

// wanted is a simulated machine in the types of the planner.
func wanted(m *sim.Machine) cluster.Machine {
	return cluster.Machine{Name: m.Name(), Wanted: cluster.Wanted{Address: m.Address().String(), UUID: m.UUID()}}
}

// member is a machine that was configured, whatever the limits of the fleet are for what comes then.
func member(
	t *testing.T, simulator *sim.Simulator, o owner, f *talos.Fleet, kind machinetype.Type,
) (*sim.Machine, *talos.Machine) {
	t.Helper()

	m := add(t, simulator, sim.MachineOptions{})

	must(t, o.fleet(t, nil).Machine(wanted(m)).ApplyConfig(t.Context(), o.config(t, kind), step.Maintenance, m.UUID()))

	return m, f.Machine(wanted(m))
}

// observed waits until the machine looks as it should.
func observed(
	t *testing.T, api *talos.Machine, what string, condition func(step.MachineState) bool,
) step.MachineState {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), longTimeout)
	defer cancel()

	var state step.MachineState

	err := wait.Until(ctx, 5*time.Millisecond, func(ctx context.Context) error {
		if state = api.Observe(ctx); condition(state) {
			return nil
		}

		return context.DeadlineExceeded
	})
	if err != nil {
		t.Fatalf("machine never %s, last seen as %+v", what, state)
	}

	return state
}

func waitsForBootstrap(s step.MachineState) bool {
	return s.Access == step.Member && s.EtcdService == step.ServicePreparing
}

func settled(s step.MachineState) bool {
	return s.Access == step.Member && s.Stage == step.StageRunning && s.Ready
}

func must(t *testing.T, err error) {
	t.Helper()

	if err != nil {
		t.Fatal(err)
	}
}

// replaced changes a configuration by one occurrence of a text.
func replaced(t *testing.T, config []byte, before, after string) []byte {
	t.Helper()

	if !bytes.Contains(config, []byte(before)) {
		t.Fatalf("the configuration does not contain %q", before)
	}

	return bytes.Replace(config, []byte(before), []byte(after), 1)
}
