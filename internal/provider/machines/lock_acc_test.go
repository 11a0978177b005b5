package machines_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// tenure is one version of the Lease, with the time of the API's report.
type tenure struct {
	holder string
	at     time.Time
	lasts  time.Duration
}

// lockHistory records every version of the Lease of a cluster, and its holder at each reboot of a machine.
type lockHistory struct {
	mu      sync.Mutex
	tenures []tenure
	// rebooted are the lease holders at reboot requests, by machine.
	rebooted map[string][]string
}

// record watches the Lease until the test ends.
func (h *lockHistory) record(t *testing.T, s *sitetest.Site, api *kubernetes.Client) {
	t.Helper()

	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	leases := api.CoordinationV1().Leases("kube-system")

	versions, err := leases.Watch(ctx, metav1.ListOptions{})
	tftest.Must(t, err)

	var watching sync.WaitGroup

	watching.Go(func() {
		for version := range versions.ResultChan() {
			lease, ok := version.Object.(*coordinationv1.Lease)
			if !ok || lease.Name != "talosop" {
				continue
			}

			one := tenure{at: time.Now()}
			if lease.Spec.HolderIdentity != nil {
				one.holder, one.lasts = *lease.Spec.HolderIdentity, time.Duration(*lease.Spec.LeaseDurationSeconds)*time.Second
			}

			h.mu.Lock()
			h.tenures = append(h.tenures, one)
			h.mu.Unlock()
		}
	})
	t.Cleanup(func() {
		cancel()
		versions.Stop()
		watching.Wait()
	})

	s.SetOnCall(func(c fault.Call) error {
		if c.Method != "Reboot" {
			return nil
		}

		lease, err := leases.Get(ctx, "talosop", metav1.GetOptions{})
		if err != nil || lease.Spec.HolderIdentity == nil {
			return fmt.Errorf("%s is rebooted without a known holder of the lock: %w", c.Machine, err)
		}

		h.mu.Lock()
		defer h.mu.Unlock()

		h.rebooted[c.Machine] = append(h.rebooted[c.Machine], *lease.Spec.HolderIdentity)

		return nil
	})
}

// takenOver checks that no run took the Lease from a holder, and returns the holders whose expired Lease was taken
// over: the killed ones.
func (h *lockHistory) takenOver(t *testing.T) (from []string) {
	t.Helper()

	h.mu.Lock()
	defer h.mu.Unlock()

	for i, now := range h.tenures[1:] {
		before := h.tenures[i]
		if before.holder == "" || now.holder == "" || now.holder == before.holder {
			continue
		}

		// The API server and the waiting runs share a clock; the test sees both a little later.
		if held := now.at.Sub(before.at); held < before.lasts-time.Second {
			t.Errorf("%s took the lock from %s, who held it for %s more", now.holder, before.holder, before.lasts-held)
		}

		from = append(from, before.holder)

		if slices.ContainsFunc(h.tenures[i+1:], func(later tenure) bool { return later.holder == before.holder }) {
			t.Errorf("%s has the lock again after %s took it", before.holder, now.holder)
		}
	}

	return from
}

// Two runs disrupt machines of one cluster, and a third was killed with the lock. The lock has one holder at any
// time, only the lease holder reboots machines, and the killed run's work is finished.
func TestAccLock_killedHolderAndTwoApplies(t *testing.T) {
	testenv.BeforeRelease(t, "TestLock_runsSideBySideTakeTurns", "TestLock_onClusters", "TestAccMachines_takeTurns")
	t.Parallel()

	cli := clitest.One(t)
	s := sitetest.New(t, 1, 4)
	plane := sitetest.Applied(t, cli, sitetest.ProviderHCL+sitetest.SecretsHCL+s.ControlPlaneHCL(""))
	bundle, _ := plane.Attribute("talosop_secrets.this", "bundle").(string)
	handle := tftest.JSON(t, plane.Attribute(sitetest.ThePlane, "cluster"))

	pool := func(name string, machines []*sim.Machine) (w *clitest.Workspace, change func()) {
		w = clitest.NewWorkspace(t, cli)
		w.Write("cluster.json", handle)

		write := func(content string) {
			w.Write("main.tf", sitetest.ProviderHCL+strings.Replace(s.WorkersOf(machines, fmt.Sprintf(`  name = %q
  config_patches = [yamlencode({ machine = { files = [{ path = "/var/a", op = "create", permissions = 420, content = %q }] } })]`,
				name, content)), "talosop_control_plane.this.cluster", `jsondecode(file("cluster.json"))`, 1))
		}
		write("before")
		w.Init()
		w.MustRun("apply", "-auto-approve")

		return w, func() { write("after") }
	}

	a, changeA := pool("a", s.Workers[:2])
	b, changeB := pool("b", s.Workers[2:])
	history := &lockHistory{rebooted: map[string][]string{}}
	history.record(t, s, s.Kubernetes(t, bundle))
	changeA()
	changeB()

	s.Workers[0].HangNextReboot()

	killed := a.Start("apply", "-auto-approve")
	sitetest.AwaitReboot(t, s, s.Workers[0])
	killed.KillProvider()

	if result := killed.Wait(); result.Exit == 0 {
		t.Fatalf("the apply was not killed:\n%s", result.Output())
	}

	s.Workers[0].PowerOff()
	s.Workers[0].PowerOn()

	runs := []*clitest.Process{a.Start("apply", "-auto-approve"), b.Start("apply", "-auto-approve")}
	for _, run := range runs {
		if result := run.Wait(); result.Exit != 0 {
			t.Errorf("an apply beside another one ended with %d:\n%s", result.Exit, result.Output())
		}
	}

	sitetest.ExpectNoChanges(t, a, "after the run that was killed")
	sitetest.ExpectNoChanges(t, b, "after a run beside others")

	from := history.takenOver(t)
	if first := history.rebooted["w-1"]; len(first) == 0 || !slices.Equal(from, first[:1]) {
		t.Errorf("the lock was taken from %v, want the one who was killed, %v", from, first)
	}

	if first := history.rebooted["w-1"]; len(first) > 0 && !strings.HasPrefix(first[0], "workers w-1 and w-2@") {
		t.Errorf("who holds the lock is called %s", first[0])
	}

	others := slices.Concat(history.rebooted["w-1"], history.rebooted["w-2"])

	for _, m := range s.Workers {
		holders := history.rebooted[m.Name()]
		if len(holders) == 0 || !strings.Contains(string(m.Config()), "after") {
			t.Errorf("%s was not changed: rebooted by %v", m.Name(), holders)
		}
	}

	for _, holder := range slices.Concat(history.rebooted["w-3"], history.rebooted["w-4"]) {
		if slices.Contains(others, holder) {
			t.Errorf("machines of both pools were rebooted while %s held the lock", holder)
		}
	}
}
