package sim_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/etcd"
	"github.com/talosop/terraform-provider-talosop/internal/sim/images"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// talosctl runs Talos's own client in a folder of the test.
type talosctl struct {
	t      *testing.T
	path   string
	dir    string
	config string // --talosconfig, once there is one
}

func newTalosctl(t *testing.T) *talosctl {
	t.Helper()

	return &talosctl{t: t, path: asset(t, "talosctl"), dir: t.TempDir()}
}

// try runs a command and returns what it printed.
func (c *talosctl) try(ctx context.Context, args ...string) (string, error) {
	if c.config != "" {
		args = append([]string{"--talosconfig", c.config}, args...)
	}

	cmd := exec.CommandContext(ctx, c.path, args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "HOME="+c.dir, "TALOSCONFIG="+filepath.Join(c.dir, "none"))

	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("talosctl %s: %w: %s", strings.Join(args, " "), err, out)
	}

	return string(out), nil
}

// run is try for commands that must succeed.
func (c *talosctl) run(args ...string) string {
	c.t.Helper()

	return c.within(time.Minute, args...)
}

// within is run for commands that may take a while.
func (c *talosctl) within(limit time.Duration, args ...string) string {
	c.t.Helper()

	start := time.Now()
	out, err := c.try(within(c.t, limit), args...)
	check(c.t, err)
	c.t.Logf("%s talosctl %s", time.Since(start).Round(time.Millisecond), strings.Join(args, " "))

	return out
}

// fails is for commands that must fail with a text. A refused TLS client sometimes only
// sees the connection break, on real machines too, so the command is repeated.
func (c *talosctl) fails(want string, args ...string) {
	c.t.Helper()

	eventually(c.t, "failure of talosctl "+strings.Join(args, " "), func(ctx context.Context) error {
		out, err := c.try(ctx, args...)

		var exit *exec.ExitError

		switch {
		case !errors.As(err, &exit):
			c.t.Fatalf("talosctl %s: %v, output %q, want failure with %q", strings.Join(args, " "), err, out, want)
		case !strings.Contains(out, want):
			return fmt.Errorf("got %q, want %q: %w", out, want, err)
		}

		return nil
	})
}

// eventually repeats a command until it succeeds.
func (c *talosctl) eventually(args ...string) {
	c.t.Helper()

	eventually(c.t, "talosctl "+strings.Join(args, " "), func(ctx context.Context) error {
		_, err := c.try(ctx, args...)

		return err
	})
}

// at addresses one machine directly.
func at(m *sim.Machine, args ...string) []string {
	return append([]string{"-e", m.Address().String(), "-n", m.Address().String()}, args...)
}

// TestTalosctl_lifecycle walks a cluster's whole life with the real talosctl: what it
// does on real machines it must be able to do here, and be refused alike.
func TestTalosctl_lifecycle(t *testing.T) {
	t.Parallel()

	ctl := newTalosctl(t)

	// talosctl follows a reset by one event, that services stop, and never ends when the machine is gone before it read
	// it; real machines wipe their disks for seconds after it. It also has to notice that a machine reboots.
	delays := timing.TestDelays()
	delays.Reset = time.Second
	simulator := sim.ForTest(t, sim.Options{Log: t.Logf, Delays: &delays})
	cps := addMachines(t, simulator, "cp", 3)
	cp := cps[0]

	slow := delays
	slow.Reboot = 2 * time.Second

	worker, err := simulator.AddMachine(within(t, time.Minute), sim.MachineOptions{Name: "worker-1", Delays: &slow})
	check(t, err)

	endpoint, err := simulator.Endpoint()
	check(t, err)

	ctl.run("gen", "config", "sim", endpoint, "--install-disk", "/dev/sda", "--with-docs=false", "--with-examples=false")
	ctl.maintenance(cp)

	for _, m := range cps {
		ctl.run(at(m, "apply-config", "--insecure", "-f", "controlplane.yaml")...)
	}

	ctl.run(at(worker, "apply-config", "--insecure", "-f", "worker.yaml")...)
	ctl.config = filepath.Join(ctl.dir, "talosconfig")

	ctl.eventually(at(cp, "version")...)
	ctl.eventually(at(worker, "version")...)
	ctl.fails("tls: certificate required", at(cp, "version", "--insecure")...)
	ctl.fails("bootstrap is only available on control plane nodes", at(worker, "bootstrap")...)

	ctl.eventually(at(cp, "bootstrap")...)
	ctl.run(at(cp, "health", "--wait-timeout", "1m")...)
	ctl.fails("etcd data directory is not empty", at(cp, "bootstrap")...)
	ctl.cluster(cp, worker)
	ctl.away(cps, worker)
}

// maintenance is what a machine without an owner answers.
func (c *talosctl) maintenance(m *sim.Machine) {
	c.t.Helper()

	if out := c.run(at(m, "version", "--insecure")...); !strings.Contains(out, sim.DefaultTalosVersion) {
		c.t.Errorf("version in maintenance: %s", out)
	}

	if out := c.run(at(m, "get", "machinestatus", "--insecure")...); !strings.Contains(out, "maintenance") {
		c.t.Errorf("machine status in maintenance: %s", out)
	}

	if out := c.run(at(m, "get", "disks", "--insecure")...); !strings.Contains(out, "sda") {
		c.t.Errorf("disks in maintenance: %s", out)
	}

	c.fails("not authorized", at(m, "get", "machineconfig", "--insecure")...)
	c.fails("not registered", at(m, "get", "nosuchthing", "--insecure")...)

	c.config = filepath.Join(c.dir, "talosconfig")
	c.fails("x509: certificate signed by unknown authority", at(m, "version")...)
	c.config = ""

	c.run("gen", "config", "nodisk", "https://127.0.0.1:6443", "-o", "nodisk", "--install-disk", "")
	c.fails("install instructions are required",
		at(m, "apply-config", "--insecure", "-f", c.withoutInstall("nodisk/controlplane.yaml"))...)
}

// withoutInstall removes the install section of a configuration.
func (c *talosctl) withoutInstall(name string) string {
	c.t.Helper()

	c.run("machineconfig", "patch", name, "-p", `{"machine":{"install":{"$patch":"delete"}}}`, "-o", "noinstall.yaml")

	return "noinstall.yaml"
}

// cluster is the output for a running cluster.
func (c *talosctl) cluster(cp, worker *sim.Machine) {
	c.t.Helper()

	for _, step := range []struct {
		want []string
		args []string
	}{
		{[]string{"etcd", "Running", "OK", "kubelet"}, at(cp, "services")},
		{[]string{cp.Hostname(), worker.Hostname(), "controlplane", "worker"}, at(cp, "get", "members")},
		{[]string{"running", "true"}, at(cp, "get", "machinestatus")},
		{[]string{cp.Hostname(), "false"}, at(cp, "etcd", "members")},
		{[]string{cp.Address().String()}, at(cp, "etcd", "status")},
		{[]string{"v1alpha1", "persistent"}, at(cp, "get", "machineconfig")},
		{[]string{cp.BootID()}, at(cp, "read", "/proc/sys/kernel/random/boot_id")},
		{[]string{worker.Address().String(), sim.DefaultTalosVersion}, []string{
			"-e", cp.Address().String(), "-n", cp.Address().String() + "," + worker.Address().String(), "version",
		}},
		{[]string{"worker"}, []string{"-e", cp.Address().String(), "-n", worker.Address().String(), "get", "machinetype"}},
	} {
		out := c.run(step.args...)
		for _, want := range step.want {
			if !strings.Contains(out, want) {
				c.t.Errorf("talosctl %s lacks %q:\n%s", strings.Join(step.args, " "), want, out)
			}
		}
	}

	c.fails("no request forwarding",
		"-e", worker.Address().String(), "-n", cp.Address().String(), "version")
	c.fails("is only available on control plane nodes", at(worker, "etcd", "members")...)

	c.run(at(cp, "kubeconfig", "kubeconfig")...)

	if info, err := os.Stat(filepath.Join(c.dir, "kubeconfig")); err != nil || info.Size() == 0 {
		c.t.Errorf("kubeconfig: %v", err)
	}

	c.run(at(worker, "reboot", "--wait=true", "--timeout", "1m")...)
	c.run(at(cp, "apply-config", "-f", "controlplane.yaml", "--dry-run")...)
}

// away resets everything, the last control plane without leaving etcd.
func (c *talosctl) away(cps []*sim.Machine, worker *sim.Machine) {
	c.t.Helper()

	wipe := []string{"reset", "--reboot", "--system-labels-to-wipe", "STATE", "--system-labels-to-wipe", "EPHEMERAL",
		"--timeout", "1m"}

	for _, m := range append([]*sim.Machine{worker}, cps[1:]...) {
		c.run(at(m, wipe...)...)
		check(c.t, m.AwaitStage(within(c.t, time.Minute), sim.StageMaintenance))
	}

	c.run(at(cps[0], append(wipe, "--graceful=false")...)...)
	check(c.t, cps[0].AwaitStage(within(c.t, time.Minute), sim.StageMaintenance))
}

// TestTalosctl_upgradesAndRollsBack upgrades and rolls back a cluster with the real talosctl, which
// follows every reboot by events and checks that the boot id changed.
func TestTalosctl_upgradesAndRollsBack(t *testing.T) {
	t.Parallel()
	testenv.BeforeRelease(t, "TestTalosctl_lifecycle", "TestUpgrade_rollsMachineByMachine")

	ctl := newTalosctl(t)
	delays := timing.TestDelays()
	delays.Reboot = 2 * time.Second
	cluster, cps := upgradeSite(t, 1, sim.Options{Delays: &delays})
	cp := cps[0]
	ctl.config = cluster.talosconfig(ctl.dir)

	ctl.run(at(cp, "image", "pull", "--namespace", "system", installer+"v1.13.1")...)

	if out := ctl.run(at(cp, "image", "list", "--namespace", "system")...); !strings.Contains(out, installer+"v1.13.1") {
		t.Errorf("image list lacks the pulled image:\n%s", out)
	}

	check(t, cluster.sim.SetImage(installer+"v1.13.2", images.Image{Missing: true}))
	ctl.fails("NotFound", at(cp, "image", "pull", "--namespace", "system", installer+"v1.13.2")...)
	ctl.fails("upgrade failed with exit code 1", at(cp, "upgrade", "--drain=false", "--image", installer+"v1.16.0")...)

	ctl.upgraded(cp, newVersion, "upgrade", "--drain=false", "--image", installer+newVersion)
	ctl.upgraded(cp, newVersion, "reboot")
	ctl.upgraded(cp, "v1.13.3", "upgrade", "--image", installer+"v1.13.3") // with a drain
	ctl.upgraded(cp, "v1.13.5", "upgrade", "--legacy", "--image", installer+"v1.13.5")

	boot := cp.BootID()
	ctl.run(at(cp, "rollback")...)
	awaitBoot(t, cp, boot)

	if out := ctl.run(at(cp, "version")...); !strings.Contains(out, "v1.13.3") {
		t.Errorf("version after rollback:\n%s", out)
	}

	if out := ctl.run(at(cp, "get", "members")...); !strings.Contains(out, "Talos (v1.13.3)") {
		t.Errorf("members after rollback:\n%s", out)
	}
}

// TestTalosctl_etcdCommands uses talosctl's etcd commands on a cluster of three.
func TestTalosctl_etcdCommands(t *testing.T) {
	t.Parallel()

	ctl := newTalosctl(t)
	cluster, cps := upgradeSite(t, 3, sim.Options{})
	ctl.config = cluster.talosconfig(ctl.dir)

	check(t, cps[2].RaiseEtcdAlarm(t.Context(), etcd.NoSpace))

	for _, list := range []string{"list", "disarm"} {
		if out := ctl.run(at(cps[0], "etcd", "alarm", list)...); !strings.Contains(out, "NOSPACE") {
			t.Errorf("etcd alarm %s:\n%s", list, out)
		}
	}

	if out := ctl.run(at(cps[0], "etcd", "alarm", "list")...); strings.Contains(out, "NOSPACE") {
		t.Errorf("alarms after disarming:\n%s", out)
	}

	ctl.run(at(cps[0], "etcd", "defrag")...)

	for _, m := range cps {
		ctl.run(at(m, "etcd", "forfeit-leadership")...)
	}

	if st := etcdStatus(t, cluster.secure(cps[2])); st.GetLeader() == st.GetMemberId() {
		t.Error("the last machine that forfeited leadership has it")
	}

	ctl.run(at(cps[1], "etcd", "leave")...)
	ctl.fails("not found", at(cps[0], "etcd", "remove-member", "dead")...)
}

// TestTalosctl_recoversEtcd backs an etcd up and bootstraps from that with the real talosctl,
// which looks into the snapshot itself.
func TestTalosctl_recoversEtcd(t *testing.T) {
	t.Parallel()

	ctl := newTalosctl(t)
	cluster, cps := upgradeSite(t, 1, sim.Options{})
	cp := cps[0]
	ctl.config = cluster.talosconfig(ctl.dir)
	keys := manyKeys(500)
	check(t, cp.PutEtcdKeys(t.Context(), keys))

	if out := ctl.run(at(cp, "etcd", "snapshot", "db.snapshot")...); !strings.Contains(out, "etcd snapshot saved") ||
		!strings.Contains(out, "total keys") {
		t.Errorf("etcd snapshot:\n%s", out)
	}

	ctl.fails("etcd data directory is not empty", at(cp, "bootstrap", "--recover-from", "db.snapshot")...)
	cluster.blank(cp)
	ctl.run(at(cp, "bootstrap", "--recover-from", "db.snapshot")...)
	check(t, cp.AwaitReady(within(t, time.Minute)))

	got, err := cp.EtcdKeys(t.Context(), "/test/")
	if err != nil || !maps.Equal(got, keys) {
		t.Errorf("%d of %d keys are back (%v)", len(got), len(keys), err)
	}

	// A file without its sum is refused, but not by the call.
	snapshot, err := os.ReadFile(filepath.Join(ctl.dir, "db.snapshot"))
	check(t, err)
	check(t, os.WriteFile(filepath.Join(ctl.dir, "db"), snapshot[:len(snapshot)-32], 0o600))
	cluster.blank(cp)
	ctl.run(at(cp, "bootstrap", "--recover-from", "db")...)
	cluster.awaitEtcd(cp, "Failed", "snapshot missing hash")

	if out := ctl.run(at(cp, "service", "etcd")...); !strings.Contains(out,
		"snapshot missing hash but --skip-hash-check=false") {
		t.Errorf("service etcd:\n%s", out)
	}

	cluster.blank(cp)
	ctl.run(at(cp, "bootstrap", "--recover-from", "db", "--recover-skip-hash-check")...)
	check(t, cp.AwaitReady(within(t, time.Minute)))
}

// upgraded runs a command that reboots the machine and waits for it.
func (c *talosctl) upgraded(m *sim.Machine, want string, args ...string) {
	c.t.Helper()

	boot := m.BootID()
	c.run(at(m, append(args, "--timeout", "1m")...)...)

	if m.BootID() == boot {
		c.t.Errorf("talosctl %s: no reboot", strings.Join(args, " "))
	}

	if out := c.run(at(m, "version")...); !strings.Contains(out, want) {
		c.t.Errorf("version after talosctl %s lacks %s:\n%s", strings.Join(args, " "), want, out)
	}
}
