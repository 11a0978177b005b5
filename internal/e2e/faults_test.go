package e2e

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// standIn is a site of simulated machines with the etcd and Kubernetes API of the simulator, for tests that create
// many clusters.
func standIn(t *testing.T, controlPlanes, workers int) (site, *sim.Simulator) {
	t.Helper()

	simulator := sim.ForTest(t, sim.Options{})

	endpoint, err := simulator.Endpoint()
	if err != nil {
		t.Fatal(err)
	}

	return site{
		controlPlanes: start(t, simulator, "cp", controlPlanes),
		workers:       start(t, simulator, "worker", workers),
		endpoint:      endpoint,
		talosVersion:  sim.DefaultTalosVersion,
		kubernetes:    "v1.35.2",
		disk:          "/dev/sda",
		boot:          5 * time.Minute,
	}, simulator
}

// TestAccCreateAndDestroy_killedAtEveryChange kills the provider process with SIGKILL at the n-th call that changes
// a machine. It does so for every such call of a create and of a destroy, before and after the machine executes it
// (on every change of the provider: at the second call, after). The next apply ends in the same cluster, with one
// etcd and an empty plan; the next destroy ends with blank machines.
func TestAccCreateAndDestroy_killedAtEveryChange(t *testing.T) {
	const changes = 4 // three configurations and a bootstrap; the destroy has three resets

	clis := clitest.All(t)

	for n := 1; n <= changes; n++ {
		for _, served := range []bool{false, true} {
			if (n != 2 || !served) && !testenv.Everything() {
				continue
			}

			t.Run(fmt.Sprintf("%d served=%t", n, served), func(t *testing.T) {
				t.Parallel()

				cli := clis[n/2%len(clis)]
				if served {
					cli = clis[(n/2+1)%len(clis)]
				}

				killedAt(t, cli, n, served)
			})
		}
	}
}

func killedAt(t *testing.T, cli clitest.CLI, n int, served bool) {
	t.Helper()

	s, simulator := standIn(t, 2, 1)
	w := s.workspace(t, cli)

	kill(t, simulator, w, n, served, "apply", "-auto-approve")
	applyAfterKill(t, w)

	if etcds := simulator.EtcdClusters(); etcds != 1 {
		t.Errorf("%d etcd clusters, want 1", etcds)
	}

	s.isUsable(t, w)
	plansNothing(t, w, "after the create that was killed")

	kill(t, simulator, w, min(n, len(s.machines())), served, "destroy", "-auto-approve")
	s.destroy(t, w)
}

// consenting allows a bootstrap with the secrets of the apply that was killed.
const consenting = `
resource "talosop_control_plane" "this" {
  allow_bootstrap = true
}
`

// applyAfterKill applies again after a create that was killed. Its secrets are in state and its control plane is
// not. The plan therefore asks for consent until etcd has started: the machines do not prove that the secrets have
// no other cluster.
func applyAfterKill(t *testing.T, w *clitest.Workspace) {
	t.Helper()

	again := w.Run("apply", "-auto-approve")
	if again.Exit == 0 {
		return
	}

	if !strings.Contains(again.Output(), "allow_bootstrap = true") {
		t.Fatalf("the apply after the kill fails, and does not ask for consent:\n%s", again.Output())
	}

	w.Write("consent_override.tf", consenting)
	w.MustRun("apply", "-auto-approve")
	w.Write("consent_override.tf", "")
	w.MustRun("apply", "-auto-approve")
}

// kill runs a command and kills its provider at the n-th call that changes a machine.
func kill(t *testing.T, simulator *sim.Simulator, w *clitest.Workspace, n int, served bool, command ...string) {
	t.Helper()

	var (
		mu    sync.Mutex
		count int
	)

	reached, killed := make(chan struct{}), make(chan struct{})

	simulator.SetOnCall(func(c fault.Call) error {
		if !c.Mutates() {
			return nil
		}

		mu.Lock()
		count++
		now := count
		mu.Unlock()

		if now == n {
			close(reached)
		}

		if now < n {
			return nil
		}

		// Nothing changes until the process is dead.
		<-killed

		if now == n && served {
			return nil
		}

		return status.Error(codes.Unavailable, "the client is gone")
	})
	defer simulator.SetOnCall(nil)
	defer close(killed)

	p := w.Start(command...)

	select {
	case <-reached:
	case <-p.Done():
		t.Fatalf("%s ended before change %d\n%s", strings.Join(command, " "), n, p.Output())
	}

	p.KillProvider()

	if result := p.Wait(); result.Exit == 0 {
		t.Fatalf("%s succeeded although its provider was killed\n%s", strings.Join(command, " "), result.Output())
	}
}
