package sim_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/images"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
)

// pod is a running cluster of one container, and the cluster.
func pod(t *testing.T) (*sim.Machine, *testCluster) {
	t.Helper()

	simulator := sim.ForTest(t, sim.Options{})
	cluster := newTestCluster(t, simulator, generate.WithHostDNSForwardKubeDNSToHost(true))

	m, err := simulator.AddMachine(within(t, time.Minute),
		sim.MachineOptions{Platform: machined.Container, Hostname: "dev-cp-0-0", BootID: "host"})
	check(t, err)
	cluster.create([]*sim.Machine{m}, nil)

	return m, cluster
}

func bootIDOf(t *testing.T, c *client.Client) string {
	t.Helper()

	r, err := c.Read(t.Context(), "/proc/sys/kernel/random/boot_id")
	check(t, err)

	content, err := io.ReadAll(r)
	check(t, err)
	check(t, r.Close())

	return string(bytes.TrimSpace(content))
}

// TestContainer_exitsInsteadOfRebooting holds what a container does where a machine would reboot: its process ends, and
// it has everything but a boot id of its own when it is started again.
func TestContainer_exitsInsteadOfRebooting(t *testing.T) {
	t.Parallel()

	m, cluster := pod(t)

	before := m.Config()
	check(t, second(cluster.secure(m).ApplyConfiguration(t.Context(), &machine.ApplyConfigurationRequest{
		Data: before, Mode: machine.ApplyConfigurationRequest_REBOOT,
	})))
	<-m.Off()

	if m.ExitCode() != 129 || m.Boots() != 1 {
		t.Errorf("exit code %d after %d boots", m.ExitCode(), m.Boots())
	}

	m.PowerOn()
	check(t, m.AwaitReady(within(t, time.Minute)))

	if id := bootIDOf(t, cluster.secure(m)); id != "host" || m.BootID() != id {
		t.Errorf("boot id %q", id)
	}

	if !bytes.Equal(m.Config(), before) || m.Boots() != 2 {
		t.Errorf("%d boots, configuration %d bytes", m.Boots(), len(m.Config()))
	}

	m.Terminate()
	<-m.Off()

	if m.ExitCode() != 130 {
		t.Errorf("exit code %d of a container that was stopped", m.ExitCode())
	}

	m.PowerOn()
	m.PowerOff()

	if m.ExitCode() != 137 {
		t.Errorf("exit code %d of a container that was killed", m.ExitCode())
	}
}

// TestContainer_isReplaced: another container with the same volumes is the same machine with another release.
func TestContainer_isReplaced(t *testing.T) {
	t.Parallel()

	m, cluster := pod(t)
	address := m.Address()

	if err := m.Place(sim.Placement{}); err == nil {
		t.Error("a container that runs was replaced")
	}

	m.Terminate()
	<-m.Off()
	check(t, m.Place(sim.Placement{TalosVersion: "v1.13.1", BootID: "other host"}))
	m.PowerOn()
	check(t, m.AwaitReady(within(t, time.Minute)))

	if m.TalosVersion() != "v1.13.1" || m.BootID() != "other host" || m.Hostname() != "dev-cp-0-0" ||
		m.Address() == address {
		t.Errorf("%s with boot id %q, name %s at %s", m.TalosVersion(), m.BootID(), m.Hostname(), m.Address())
	}

	members, err := cluster.secure(m).EtcdMemberList(t.Context(), &machine.EtcdMemberListRequest{})
	check(t, err)

	if n := len(members.GetMessages()[0].GetMembers()); n != 1 {
		t.Errorf("%d members of etcd", n)
	}
}

// TestContainer_takesWhatWasStaged: a configuration that was staged holds from the next start on.
func TestContainer_takesWhatWasStaged(t *testing.T) {
	t.Parallel()

	m, cluster := pod(t)
	before := m.Config()
	staged := append(bytes.Clone(before), "# staged\n"...)

	check(t, second(cluster.secure(m).ApplyConfiguration(t.Context(), &machine.ApplyConfigurationRequest{
		Data: staged, Mode: machine.ApplyConfigurationRequest_STAGED,
	})))

	if !bytes.Equal(m.Config(), before) {
		t.Error("what was staged holds at once")
	}

	m.PowerOff()
	m.PowerOn()
	check(t, m.AwaitReady(within(t, time.Minute)))

	if !bytes.Equal(m.Config(), staged) {
		t.Error("what was staged does not hold after a start")
	}
}

// TestContainer_ofABrokenImage ends while it boots, every time.
func TestContainer_ofABrokenImage(t *testing.T) {
	t.Parallel()

	m, _ := pod(t)

	m.Terminate()
	<-m.Off()
	check(t, m.Place(sim.Placement{TalosVersion: "v1.13.1", BootFails: true}))

	for range 2 {
		m.PowerOn()
		<-m.Off()

		if m.ExitCode() != 129 {
			t.Errorf("exit code %d", m.ExitCode())
		}
	}
}

func TestTalosImage_references(t *testing.T) {
	t.Parallel()

	const repository = "registry.example/mirror/talos"

	simulator := sim.ForTest(t, sim.Options{})
	check(t, simulator.SetImage(repository+":v1.13.2", images.Image{Missing: true}))
	check(t, simulator.SetImage(repository+":v1.13.3", images.Image{Unavailable: true}))
	check(t, simulator.SetImage(repository+":mine", images.Image{Version: "v1.13.4"}))

	for reference, want := range map[string]struct {
		version string
		err     error
	}{
		repository + ":v1.13.1":              {version: "v1.13.1"},
		repository + ":mine":                 {version: "v1.13.4"},
		repository + ":v1.13.2":              {err: sim.ErrNoImage},
		repository + ":v1.13.3":              {err: sim.ErrNoRegistry},
		repository + ":latest":               {err: sim.ErrNoImage},
		repository + ":1.13.1":               {err: sim.ErrNoImage},
		repository:                           {err: sim.ErrNoImage},
		"registry.example/installer:v1.13.1": {err: sim.ErrNoImage},
	} {
		if got, err := simulator.TalosImage(reference); !errors.Is(err, want.err) || err == nil &&
			got.Version != want.version {
			t.Errorf("%s: %+v, %v", reference, got, err)
		}
	}
}

// TestContainer_volumes: each volume holds its own data, and the rest of the machine continues beside a new one.
func TestContainer_volumes(t *testing.T) {
	t.Parallel()

	m, cluster := pod(t)

	m.WipeVolumes(sim.VolumeEphemeral)
	m.PowerOn()
	check(t, m.AwaitStage(within(t, time.Minute), sim.StageBooting)) // with its configuration, for an etcd to join

	if !m.Configured() {
		t.Error("the configuration is lost with /var")
	}

	cluster.bootstrap(m)
	check(t, m.AwaitReady(within(t, time.Minute)))

	m.WipeVolumes(sim.VolumeState)
	m.PowerOn()
	check(t, m.AwaitStage(within(t, time.Minute), sim.StageMaintenance))

	// the answer is lost when the API of the configuration begins first
	eventually(t, "apply", func(ctx context.Context) error {
		_, err := insecure(t, m).ApplyConfiguration(ctx,
			&machine.ApplyConfigurationRequest{Data: cluster.config(machinetype.TypeControlPlane)})
		if m.Configured() {
			return nil
		}

		return err
	})
	check(t, m.AwaitReady(within(t, time.Minute))) // without a bootstrap of etcd: its data was there
}
