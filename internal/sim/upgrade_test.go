package sim_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/meta"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/images"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

const (
	installer    = "ghcr.io/siderolabs/installer:"
	oldVersion   = "v1.13.0"
	newVersion   = "v1.13.4"
	newSchematic = "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"
)

var systemNamespace = &common.ContainerdInstance{
	Driver: common.ContainerDriver_CRI, Namespace: common.ContainerdNamespace_NS_SYSTEM,
}

// upgradeSite is a ready cluster that runs oldVersion.
func upgradeSite(t *testing.T, controlPlanes int, opts sim.Options) (*testCluster, []*sim.Machine) {
	t.Helper()

	if opts.TalosVersion == "" {
		opts.TalosVersion = oldVersion
	}

	opts.Log = t.Logf
	simulator := sim.ForTest(t, opts)
	cps := addMachines(t, simulator, "cp", controlPlanes)
	cluster := newTestCluster(t, simulator)
	cluster.input.Options.InstallImage = installer + opts.TalosVersion
	cluster.create(cps, nil)

	return cluster, cps
}

// pull returns the pinned name of an image.
func pull(ctx context.Context, c *client.Client, reference string) (name string, err error) {
	stream, err := c.ImageClient.Pull(ctx,
		&machine.ImageServicePullRequest{Containerd: systemNamespace, ImageRef: reference})
	if err != nil {
		return "", err
	}

	for {
		msg, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return name, nil
		}

		if err != nil {
			return "", err
		}

		if name != "" {
			return "", fmt.Errorf("message %v after the name", msg)
		}

		name = msg.GetName()
	}
}

// install runs LifecycleService.Upgrade and returns its output and exit code.
func install(ctx context.Context, c *client.Client, name string) (output string, exitCode int32, err error) {
	stream, err := c.LifecycleClient.Upgrade(ctx, &machine.LifecycleServiceUpgradeRequest{
		Containerd: systemNamespace, Source: &machine.InstallArtifactsSource{ImageName: name},
	})
	if err != nil {
		return "", 0, err
	}

	exitCode, last := -1, false

	for {
		msg, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return output, exitCode, nil
		}

		if err != nil {
			return output, 0, err
		}

		if last {
			return output, 0, fmt.Errorf("message %v after the exit code", msg)
		}

		output += msg.GetProgress().GetMessage()

		if code, ok := msg.GetProgress().GetResponse().(*machine.LifecycleServiceInstallProgress_ExitCode); ok {
			exitCode, last = code.ExitCode, true
		}
	}
}

// legacyUpgrade is the call of Talos before 1.13.
func legacyUpgrade(
	ctx context.Context, c *client.Client, req *machine.UpgradeRequest,
) (*machine.UpgradeResponse, error) {
	return c.MachineClient.Upgrade(ctx, req)
}

// installed pulls and installs an image that must go well.
func installed(t *testing.T, c *client.Client, reference string) {
	t.Helper()

	ctx := within(t, time.Minute)

	name, err := pull(ctx, c, reference)
	check(t, err)

	output, code, err := install(ctx, c, name)
	check(t, err)

	if code != 0 {
		t.Fatalf("installation of %s: exit code %d: %s", reference, code, output)
	}
}

func reboot(t *testing.T, cluster *testCluster, m *sim.Machine) {
	t.Helper()

	boot := m.BootID()
	check(t, cluster.secure(m).Reboot(t.Context()))
	awaitBoot(t, m, boot)
}

// awaitBoot returns when the machine is ready in another boot.
func awaitBoot(t *testing.T, m *sim.Machine, before string) {
	t.Helper()

	eventually(t, "another boot of "+m.Name(), func(context.Context) error {
		ready, unmet := m.Ready()
		if m.BootID() == before || !ready || m.Stage() != sim.StageRunning {
			return fmt.Errorf("%s, %v", m.Stage(), unmet)
		}

		return nil
	})
}

// reported is the release as clients see it.
func (c *testCluster) reported(m *sim.Machine) string {
	c.t.Helper()

	resp, err := c.secure(m).Version(within(c.t, time.Minute))
	check(c.t, err)

	return resp.GetMessages()[0].GetVersion().GetTag()
}

func (c *testCluster) schematic(m *sim.Machine) string {
	c.t.Helper()

	list, err := safe.StateListAll[*runtime.ExtensionStatus](within(c.t, time.Minute), c.secure(m).COSI)
	check(c.t, err)

	for status := range list.All() {
		if status.TypedSpec().Metadata.Name == "schematic" {
			return status.TypedSpec().Metadata.Version
		}
	}

	return ""
}

func TestUpgrade_takesEffectAtTheNextReboot(t *testing.T) {
	cluster, cps := upgradeSite(t, 1, sim.Options{})
	cp := cps[0]
	talos, boot, config, hostname := cluster.secure(cp), cp.BootID(), cp.Config(), cp.Hostname()

	installed(t, talos, "factory.talos.dev/metal-installer/"+newSchematic+":"+newVersion)

	if ready, unmet := cp.Ready(); !ready || cp.Stage() != sim.StageRunning || cp.BootID() != boot {
		t.Fatalf("after the installation: %s, %v, boot changed %v; want nothing to have happened", cp.Stage(), unmet,
			cp.BootID() != boot)
	}

	if got := cluster.reported(cp); got != oldVersion {
		t.Fatalf("version %s before the reboot, want %s", got, oldVersion)
	}

	reboot(t, cluster, cp)

	for range 2 {
		if got := cluster.reported(cp); got != newVersion {
			t.Errorf("version %s after the reboot, want %s", got, newVersion)
		}

		if got := cluster.schematic(cp); got != newSchematic {
			t.Errorf("schematic %q after the reboot, want %s", got, newSchematic)
		}

		node, err := cluster.kubernetes(cp).CoreV1().Nodes().Get(t.Context(), cp.Hostname(), metav1.GetOptions{})
		check(t, err)

		if want := "Talos (" + newVersion + ")"; node.Status.NodeInfo.OSImage != want {
			t.Errorf("node's OS image %q, want %q", node.Status.NodeInfo.OSImage, want)
		}

		if string(cp.Config()) != string(config) || cp.Hostname() != hostname || cluster.sim.EtcdClusters() != 1 {
			t.Errorf("configuration, hostname or etcd did not survive")
		}

		reboot(t, cluster, cp)
	}
}

func TestUpgrade_forgetsTheFallbackOnceReady(t *testing.T) {
	cluster, cps := upgradeSite(t, 1, sim.Options{})
	cp := cps[0]
	talos := cluster.secure(cp)

	installed(t, talos, installer+newVersion)

	if label := cp.Meta()[meta.Upgrade]; label == "" {
		t.Error("META has no fallback after the installation")
	}

	reboot(t, cluster, cp)

	eventually(t, "fallback dropped", func(context.Context) error {
		if label, ok := cp.Meta()[meta.Upgrade]; ok {
			return fmt.Errorf("META still has fallback %s", label)
		}

		return nil
	})

	boot := cp.BootID()
	cp.Panic()
	awaitBoot(t, cp, boot)

	if got := cluster.reported(cp); got != newVersion {
		t.Errorf("version %s after a crash of a confirmed upgrade, want %s", got, newVersion)
	}
}

func TestUpgrade_fallsBackAfterCrashBeforeReady(t *testing.T) {
	cluster, cps := upgradeSite(t, 1, sim.Options{})
	cp := cps[0]

	installed(t, cluster.secure(cp), installer+newVersion)
	cp.BreakComponent("kubelet", "v1.35.2") // keeps it from being ready
	boot := cp.BootID()
	check(t, cluster.secure(cp).Reboot(t.Context()))

	eventually(t, "boot of the new version", func(context.Context) error {
		if now := cp.BootID(); now == boot || now == "" || cp.TalosVersion() != newVersion {
			return fmt.Errorf("runs %s", cp.TalosVersion())
		}

		return nil
	})

	boot = cp.BootID()
	cp.Panic()
	cp.RepairComponent("kubelet", "v1.35.2")
	awaitBoot(t, cp, boot)

	if got := cluster.reported(cp); got != oldVersion {
		t.Errorf("version %s after a crash of an unproved upgrade, want %s", got, oldVersion)
	}
}

func TestUpgrade_rollsBackABadSystem(t *testing.T) {
	for name, upgrade := range map[string]func(*testCluster, *sim.Machine) error{
		"lifecycle": func(c *testCluster, m *sim.Machine) error {
			installed(c.t, c.secure(m), installer+newVersion)

			return c.secure(m).Reboot(c.t.Context())
		},
		"legacy": func(c *testCluster, m *sim.Machine) error {
			_, err := legacyUpgrade(c.t.Context(), c.secure(m), &machine.UpgradeRequest{Image: installer + newVersion})

			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, cps := upgradeSite(t, 1, sim.Options{})
			cp := cps[0]
			check(t, cluster.sim.SetImage(installer+newVersion, images.Image{BootFails: true}))

			boot, boots := cp.BootID(), cp.Boots()

			check(t, upgrade(cluster, cp))
			awaitBoot(t, cp, boot)

			if got := cluster.reported(cp); got != oldVersion {
				t.Errorf("version %s, want %s back", got, oldVersion)
			}

			if got := cp.Boots() - boots; got != 2 {
				t.Errorf("%d boots, want the failed one and the one back", got)
			}

			if _, ok := cp.Meta()[meta.Upgrade]; ok {
				t.Error("META still has a fallback")
			}
		})
	}
}

func TestRollback_backAndForth(t *testing.T) {
	cluster, cps := upgradeSite(t, 1, sim.Options{})
	cp := cps[0]

	if _, err := cluster.secure(cp).MachineClient.Rollback(t.Context(),
		&machine.RollbackRequest{}); status.Code(err) != codes.Unknown {
		t.Errorf("rollback without another boot entry: %v, want Unknown", err)
	}

	installed(t, cluster.secure(cp), installer+newVersion)
	reboot(t, cluster, cp)

	for _, want := range []string{oldVersion, newVersion} {
		boot := cp.BootID()
		check(t, cluster.secure(cp).Rollback(t.Context()))
		awaitBoot(t, cp, boot)

		if got := cluster.reported(cp); got != want {
			t.Errorf("version %s after rollback, want %s", got, want)
		}
	}
}

func TestInstaller_decidesWhatMayBeInstalled(t *testing.T) {
	cluster, cps := upgradeSite(t, 1, sim.Options{})
	ctx, talos := within(t, time.Minute), cluster.secure(cps[0])

	for _, test := range []struct{ to, refused string }{
		{"v1.12.6", ""},
		{"v1.14.0", ""},
		{"v1.15.1", ""},
		{"v1.16.0", "pre-flight checks failed: host version 1.13.0 is too old to upgrade to Talos 1.16.0"},
		{"v1.11.0", "pre-flight checks failed: host version 1.13.0 is too new to downgrade to Talos 1.11.0"},
	} {
		name, err := pull(ctx, talos, installer+test.to)
		check(t, err)

		output, code, err := install(ctx, talos, name)
		check(t, err)

		if (code != 0) != (test.refused != "") || !strings.Contains(output, test.refused) {
			t.Errorf("upgrade to %s: exit code %d, want refusal %q:\n%s", test.to, code, test.refused, output)
		}
	}

	reboot(t, cluster, cps[0])

	if got := cluster.reported(cps[0]); got != "v1.15.1" {
		t.Errorf("version %s after the reboot, want the last one that was installed", got)
	}
}

func TestUpgrade_refused(t *testing.T) {
	cluster, cps := upgradeSite(t, 1, sim.Options{})
	ctx, talos, simulator := within(t, time.Minute), cluster.secure(cps[0]), cluster.sim

	check(t, simulator.SetImage(installer+"v1.13.1", images.Image{Missing: true}))
	check(t, simulator.SetImage(installer+"v1.13.2", images.Image{Unavailable: true}))
	check(t, simulator.SetImage(installer+"v1.13.3", images.Image{InstallFails: true}))

	for _, test := range []struct {
		reference string
		code      codes.Code
	}{
		{installer + "v1.13.1", codes.NotFound},
		{installer + "v1.13.2", codes.Unknown},
		{"not an image", codes.Unknown},
		{"ghcr.io/siderolabs/installer@sha256:" + newSchematic, codes.NotFound},
	} {
		if name, err := pull(ctx, talos, test.reference); status.Code(err) != test.code {
			t.Errorf("pull of %s: %q, %v, want code %s", test.reference, name, err, test.code)
		}
	}

	for _, test := range []struct {
		name string
		code codes.Code
		text string
	}{
		{"", codes.InvalidArgument, "installer image name is required"},
		{installer + newVersion, codes.Internal, "not found in containerd store"},
	} {
		if _, _, err := install(ctx, talos, test.name); status.Code(err) != test.code ||
			!strings.Contains(err.Error(), test.text) {
			t.Errorf("upgrade to %q: %v, want %s with %q", test.name, err, test.code, test.text)
		}
	}

	_, err := pull(ctx, talos, installer+"v1.13.3")
	check(t, err)

	// The tag is as good a name as the pinned one.
	if output, code, err := install(ctx, talos, installer+"v1.13.3"); err != nil || code != 1 {
		t.Errorf("failing installer: exit code %d, %v:\n%s", code, err, output)
	}

	_, err = pull(ctx, talos, "registry.k8s.io/pause:3.10")
	check(t, err)

	if _, _, err := install(ctx, talos, "registry.k8s.io/pause:3.10"); status.Code(err) != codes.Internal {
		t.Errorf("upgrade to an image without installer: %v, want Internal", err)
	}

	if want := []string{installer + "v1.13.3", "registry.k8s.io/pause:3.10"}; !slices.Equal(cps[0].PulledImages(), want) {
		t.Errorf("pulled %v, want %v", cps[0].PulledImages(), want)
	}
}

func TestUpgrade_oneInstallationAtATime(t *testing.T) {
	delays := timing.TestDelays()
	delays.Upgrade = time.Hour
	cluster, cps := upgradeSite(t, 1, sim.Options{Delays: &delays})
	talos := cluster.secure(cps[0])

	name, err := pull(within(t, time.Minute), talos, installer+newVersion)
	check(t, err)

	ctx, cancel := context.WithCancel(within(t, time.Minute))
	defer cancel()

	first, err := talos.LifecycleClient.Upgrade(ctx, &machine.LifecycleServiceUpgradeRequest{
		Containerd: systemNamespace, Source: &machine.InstallArtifactsSource{ImageName: name},
	})
	check(t, err)

	// From its first message on the installer runs.
	_, err = first.Recv()
	check(t, err)

	if _, _, err := install(within(t, time.Minute), talos, name); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("second installation: %v, want FailedPrecondition", err)
	}

	cancel()

	for err == nil {
		_, err = first.Recv()
	}

	if status.Code(err) != codes.Canceled {
		t.Errorf("canceled installation: %v", err)
	}
}

func TestUpgrade_servicesThatOlderMachinesDoNotHave(t *testing.T) {
	cluster, cps := upgradeSite(t, 1, sim.Options{TalosVersion: "v1.12.6"})
	ctx, talos := within(t, time.Minute), cluster.secure(cps[0])

	if _, err := pull(ctx, talos, installer+newVersion); status.Code(err) != codes.Unimplemented ||
		!strings.Contains(err.Error(), "unknown service machine.ImageService") {
		t.Errorf("ImageService.Pull: %v", err)
	}

	if _, _, err := install(ctx, talos, installer+newVersion); status.Code(err) != codes.Unimplemented ||
		!strings.Contains(err.Error(), "unknown service machine.LifecycleService") {
		t.Errorf("LifecycleService.Upgrade: %v", err)
	}

	boot := cps[0].BootID()
	_, err := legacyUpgrade(ctx, talos, &machine.UpgradeRequest{Image: installer + newVersion})
	check(t, err)
	awaitBoot(t, cps[0], boot)

	if got := cluster.reported(cps[0]); got != newVersion {
		t.Errorf("version %s after the legacy upgrade, want %s", got, newVersion)
	}

	_, err = pull(ctx, cluster.secure(cps[0]), installer+newVersion)
	check(t, err)
}

func TestContainer_isNotUpgraded(t *testing.T) {
	simulator := sim.ForTest(t, sim.Options{})
	m, err := simulator.AddMachine(within(t, time.Minute), sim.MachineOptions{Platform: machined.Container})
	check(t, err)

	cluster := newTestCluster(t, simulator)
	cluster.create([]*sim.Machine{m}, nil)
	ctx, talos := within(t, time.Minute), cluster.secure(m)

	_, _, lifecycle := install(ctx, talos, installer+newVersion)
	_, legacy := legacyUpgrade(ctx, talos, &machine.UpgradeRequest{Image: installer + newVersion})
	rollback := talos.Rollback(ctx)

	for name, err := range map[string]error{"lifecycle": lifecycle, "legacy": legacy, "rollback": rollback} {
		if status.Code(err) != codes.FailedPrecondition ||
			!strings.Contains(err.Error(), "method is not supported in container mode") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestInstaller_takesTheConfiguredImage(t *testing.T) {
	simulator := sim.ForTest(t, sim.Options{TalosVersion: "v1.13.1"})
	m := addMachines(t, simulator, "cp", 1)[0]
	cluster := newTestCluster(t, simulator)
	cluster.input.Options.InstallImage = "factory.talos.dev/metal-installer/" + newSchematic + ":" + newVersion
	cluster.create([]*sim.Machine{m}, nil)

	if cluster.reported(m) != newVersion || cluster.schematic(m) != newSchematic {
		t.Errorf("runs %s with schematic %q, want what the configuration installs", cluster.reported(m), cluster.schematic(m))
	}

	// The disk keeps it, without a configuration too.
	cluster.reset(m, false)
	check(t, m.AwaitStage(within(t, time.Minute), sim.StageMaintenance))

	if m.TalosVersion() != newVersion || m.Schematic() != newSchematic {
		t.Errorf("runs %s with schematic %q after a reset, want what is installed", m.TalosVersion(), m.Schematic())
	}
}
