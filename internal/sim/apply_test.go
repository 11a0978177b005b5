package sim_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	configres "github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/hardware"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
)

func applyMode(
	t *testing.T, c *client.Client, data []byte, mode machine.ApplyConfigurationRequest_Mode,
) (*machine.ApplyConfiguration, error) {
	t.Helper()

	resp, err := c.ApplyConfiguration(t.Context(), &machine.ApplyConfigurationRequest{Data: data, Mode: mode})
	if err != nil {
		return nil, err
	}

	return resp.GetMessages()[0], nil
}

func TestApplyConfiguration_refusesWhatTalosRefuses(t *testing.T) {
	simulator, m, talos := newMaintenanceMachine(t, sim.Options{})
	good := newTestCluster(t, simulator).config(machinetype.TypeControlPlane)

	for name, test := range map[string]struct {
		data []byte
		want string
	}{
		"empty":       {nil, "config not found"},
		"unknown key": {[]byte("version: v1alpha1\nmachine:\n  foo: bar\n"), "unknown keys found during decoding"},
		"unknown document": {[]byte("apiVersion: v1alpha1\nkind: NoSuchConfig\n"),
			`"NoSuchConfig" "v1alpha1": not registered`},
		"no disk": {bytes.Replace(good, []byte("disk: /dev/sda"), nil, 1),
			"either install disk or diskSelector should be defined"},
		"two documents": {append(append([]byte{}, good...), append([]byte("---\n"), good...)...), "is not allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := applyMode(t, talos, test.data, machine.ApplyConfigurationRequest_AUTO)
			if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want InvalidArgument with %q", err, test.want)
			}
		})
	}

	if m.Stage() != sim.StageMaintenance {
		t.Errorf("stage %s after refused configurations", m.Stage())
	}
}

func TestApplyConfiguration_modesOfAConfiguredMachine(t *testing.T) {
	simulator := sim.ForTest(t, sim.Options{})
	m := addMachines(t, simulator, "cp", 1)[0]
	cluster := newTestCluster(t, simulator)
	cluster.create([]*sim.Machine{m}, nil)

	talos := cluster.secure(m)
	data := cluster.config(machinetype.TypeControlPlane)
	label := bytes.Replace(data, []byte("type: controlplane"),
		[]byte("type: controlplane\n    sysctls:\n        net.core.somaxconn: \"65535\""), 1)
	files := bytes.Replace(data, []byte("type: controlplane"), []byte("type: controlplane\n    env:\n        A: b"), 1)

	same, err := applyMode(t, talos, data, machine.ApplyConfigurationRequest_AUTO)
	check(t, err)

	if same.GetMode() != machine.ApplyConfigurationRequest_NO_REBOOT {
		t.Errorf("equal configuration in AUTO: effective mode %s", same.GetMode())
	}

	if _, err := applyMode(t, talos, files,
		machine.ApplyConfigurationRequest_NO_REBOOT); status.Code(err) != codes.InvalidArgument {
		t.Errorf("NO_REBOOT of a change that needs one: %v", err)
	}

	stageAndTry(t, m, talos, data, label)
	rebootInto(t, m, talos, files)
}

// stageAndTry stages a configuration, then tries it and waits for the rollback.
func stageAndTry(t *testing.T, m *sim.Machine, talos *client.Client, data, label []byte) {
	t.Helper()

	check(t, second(applyMode(t, talos, label, machine.ApplyConfigurationRequest_STAGED)))
	active, persistent := readConfigs(t, talos)

	if !bytes.Equal(active, data) || !bytes.Equal(persistent, label) {
		t.Error("a staged configuration must be persistent and not active, byte for byte")
	}

	resp, err := talos.ApplyConfiguration(t.Context(), &machine.ApplyConfigurationRequest{
		Data: label, Mode: machine.ApplyConfigurationRequest_TRY, TryModeTimeout: durationpb.New(20 * time.Millisecond),
	})
	check(t, err)

	if got := resp.GetMessages()[0].GetModeDetails(); !strings.Contains(got, "automatically reverted back in 20ms") {
		t.Errorf("details of a try: %q", got)
	}

	eventually(t, "rollback of a try", func(ctx context.Context) error {
		if !bytes.Equal(m.Config(), data) {
			return errors.New("the tried configuration is still active")
		}

		return nil
	})
}

// TestApplyConfiguration_since114NeverReboots: what costs a reboot before waits for the next one.
func TestApplyConfiguration_since114NeverReboots(t *testing.T) {
	cluster, cps := upgradeSite(t, 1, sim.Options{TalosVersion: "v1.14.0"})
	talos, boot := cluster.secure(cps[0]), cps[0].BootID()
	env := bytes.Replace(cps[0].Config(), []byte("machine:\n"), []byte("machine:\n    env:\n        NAME: value\n"), 1)

	if _, err := applyMode(t, talos, env,
		machine.ApplyConfigurationRequest_REBOOT); status.Code(err) != codes.Unimplemented {
		t.Errorf("REBOOT: %v, want Unimplemented", err)
	}

	applied, err := applyMode(t, talos, env, machine.ApplyConfigurationRequest_AUTO)
	check(t, err)

	if applied.GetMode() != machine.ApplyConfigurationRequest_NO_REBOOT || cps[0].BootID() != boot ||
		!bytes.Equal(cps[0].Config(), env) {
		t.Errorf("AUTO: effective mode %s, boot changed %v", applied.GetMode(), cps[0].BootID() != boot)
	}
}

// rebootInto applies a configuration that costs a reboot.
func rebootInto(t *testing.T, m *sim.Machine, talos *client.Client, files []byte) {
	t.Helper()

	before := m.BootID()
	reboot, err := applyMode(t, talos, files, machine.ApplyConfigurationRequest_AUTO)
	check(t, err)

	if reboot.GetMode() != machine.ApplyConfigurationRequest_REBOOT {
		t.Errorf("env in AUTO: effective mode %s, want REBOOT", reboot.GetMode())
	}

	eventually(t, "reboot", func(context.Context) error {
		if id := m.BootID(); id == "" || id == before {
			return errors.New("not yet")
		}

		return nil
	})
	check(t, m.AwaitReady(within(t, time.Minute)))

	if !bytes.Equal(m.Config(), files) {
		t.Error("the configuration that needed a reboot is not active after it")
	}
}

func second[T any](_ T, err error) error { return err }

func readConfigs(t *testing.T, c *client.Client) (active, persistent []byte) {
	t.Helper()

	for id, to := range map[string]*[]byte{configres.ActiveID: &active, configres.PersistentID: &persistent} {
		r, err := safe.StateGetByID[*configres.MachineConfig](t.Context(), c.COSI, id)
		check(t, err)

		*to, err = r.Provider().Bytes()
		check(t, err)
	}

	return active, persistent
}

func TestRoles_decideWhatAClientMay(t *testing.T) {
	simulator := sim.ForTest(t, sim.Options{})
	m := addMachines(t, simulator, "cp", 1)[0]
	cluster := newTestCluster(t, simulator)
	cluster.create([]*sim.Machine{m}, nil)

	calls := map[string]func(*client.Client) error{
		"Version": func(c *client.Client) error { return second(c.Version(t.Context())) },
		"EtcdMembers": func(c *client.Client) error {
			return second(c.EtcdMemberList(t.Context(), &machine.EtcdMemberListRequest{}))
		},
		"Reboot": func(c *client.Client) error {
			return second(c.MachineClient.Reset(t.Context(), &machine.ResetRequest{Mode: 9}))
		},
		"MachineConfig": func(c *client.Client) error {
			return second(safe.StateGetByID[*configres.MachineConfig](t.Context(), c.COSI, configres.ActiveID))
		},
		"write": func(c *client.Client) error {
			err := c.COSI.Destroy(t.Context(), hardware.NewSystemInformation(hardware.SystemInformationID).Metadata())
			if state.IsOwnerConflictError(err) { // how the client shows PermissionDenied
				return status.Error(codes.PermissionDenied, err.Error())
			}

			return err
		},
		"ApplyConfiguration": func(c *client.Client) error {
			return second(applyMode(t, c, []byte("{"), machine.ApplyConfigurationRequest_AUTO))
		},
	}
	denied := codes.PermissionDenied

	for r, want := range map[role.Role]map[string]codes.Code{
		role.Reader: {
			"Version": codes.OK, "EtcdMembers": codes.OK, "Reboot": denied, "MachineConfig": denied, "write": denied,
			"ApplyConfiguration": denied,
		},
		role.EtcdBackup: {
			"Version": denied, "EtcdMembers": codes.OK, "Reboot": denied, "MachineConfig": denied, "write": denied,
			"ApplyConfiguration": denied,
		},
		role.Operator: {
			"Version": codes.OK, "EtcdMembers": codes.OK, "Reboot": denied, "MachineConfig": denied, "write": denied,
			"ApplyConfiguration": denied,
		},
		role.Admin: {"Version": codes.OK, "MachineConfig": codes.OK, "write": denied,
			"ApplyConfiguration": codes.InvalidArgument},
	} {
		talos := cluster.secure(m, r)

		for name, code := range want {
			if got := status.Code(calls[name](talos)); got != code {
				t.Errorf("%s as %s: %s, want %s", name, r, got, code)
			}
		}
	}
}

func TestMaintenance_before113ServesLittle(t *testing.T) {
	_, m, talos := newMaintenanceMachine(t, sim.Options{TalosVersion: "v1.12.6"})

	for name, call := range map[string]func() error{
		"Version":   func() error { return second(talos.Version(t.Context())) },
		"Hostname":  func() error { return second(talos.MachineClient.Hostname(t.Context(), &emptypb.Empty{})) },
		"Bootstrap": func() error { return talos.Bootstrap(t.Context(), &machine.BootstrapRequest{}) },
	} {
		if err := call(); status.Code(err) != codes.Unimplemented {
			t.Errorf("%s: %v, want Unimplemented", name, err)
		}
	}

	info, err := safe.StateGetByID[*hardware.SystemInformation](t.Context(), talos.COSI, hardware.SystemInformationID)
	check(t, err)

	if diff := cmp.Diff(m.UUID(), info.TypedSpec().UUID); diff != "" {
		t.Errorf("UUID (-want +got):\n%s", diff)
	}
}

func TestContainer_doesNotInstallRebootOrWipe(t *testing.T) {
	simulator := sim.ForTest(t, sim.Options{})
	cluster := newTestCluster(t, simulator, generate.WithHostDNSForwardKubeDNSToHost(true))

	m, err := simulator.AddMachine(within(t, time.Minute),
		sim.MachineOptions{Name: "pod", Platform: machined.Container, Hostname: "pod-0"})
	check(t, err)

	_, err = safe.StateGetByID[*hardware.SystemInformation](t.Context(), insecure(t, m).COSI, hardware.SystemInformationID)
	if !state.IsNotFoundError(err) {
		t.Errorf("system information of a container: %v", err)
	}

	cluster.create([]*sim.Machine{m}, nil)

	if m.Boots() != 1 || m.Hostname() != "pod-0" {
		t.Errorf("%d boots as %q, want one as pod-0", m.Boots(), m.Hostname())
	}

	talos := cluster.secure(m)

	if err := talos.Reboot(t.Context()); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("reboot of a container: %v", err)
	}

	err = second(talos.MachineClient.Reset(t.Context(), &machine.ResetRequest{
		Reboot: true, SystemPartitionsToWipe: []*machine.ResetPartitionSpec{{Label: "STATE", Wipe: true}},
	}))
	if status.Code(err) != codes.Unknown || !strings.Contains(err.Error(), `volume "STATE" is not located`) {
		t.Errorf("reset of STATE in a container: %v", err)
	}

	check(t, second(talos.MachineClient.Reset(t.Context(), &machine.ResetRequest{Reboot: true})))
	check(t, m.AwaitStage(within(t, time.Minute), sim.StageUnknown))

	if !m.Configured() {
		t.Error("the reset of a container wiped its configuration")
	}
}

// TestApplyConfiguration_withoutKubernetes: what is not simulated is refused, and ends no test.
func TestApplyConfiguration_withoutKubernetes(t *testing.T) {
	t.Parallel()

	simulator := sim.ForTest(t, sim.Options{TalosVersion: "v1.14.1"})
	m := addMachines(t, simulator, "cp", 1)[0]
	cluster := newTestCluster(t, simulator, generate.WithVersionContract(config.TalosVersion1_14.DisableKubernetes()))

	err := second(insecure(t, m).ApplyConfiguration(t.Context(),
		&machine.ApplyConfigurationRequest{Data: cluster.config(machinetype.TypeControlPlane)}))
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("apply: %v", err)
	}
}
