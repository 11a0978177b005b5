package lifecycle_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// writer creates objects through any API server that answers, and records the acknowledged ones.
type writer struct {
	t       *testing.T
	clients []typedcore.CoreV1Interface
	acked   []string
	stop    context.CancelFunc
	done    chan struct{}
	written atomic.Int64
}

// writes starts a client that writes until it is stopped.
func (s *site) writes(t *testing.T) *writer {
	t.Helper()

	client, err := s.bundle.KubernetesClient("writer", []string{"system:masters"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}

	return s.writesAs(t, client)
}

// writesAs is writes with custom credentials.
func (s *site) writesAs(t *testing.T, client pki.Credentials) *writer {
	t.Helper()

	ctx, stop := context.WithCancel(context.Background())
	w := &writer{t: t, stop: stop, done: make(chan struct{})}

	for _, m := range s.sim.Machines() {
		api, err := typedcore.NewForConfig(&rest.Config{
			Host: "https://" + net.JoinHostPort(m.Address().String(), "6443"), Timeout: 2 * time.Second,
			TLSClientConfig: rest.TLSClientConfig{CAData: client.CA, CertData: client.Certificate, KeyData: client.Key},
			// Each server has its own connection, and the client must not wait for a broken one.
			Dial: (&net.Dialer{Timeout: time.Second}).DialContext,
		})
		if err != nil {
			t.Fatal(err)
		}

		w.clients = append(w.clients, api)
	}

	go w.run(ctx)
	t.Cleanup(func() { stop(); <-w.done })

	return w
}

func (w *writer) run(ctx context.Context) {
	defer close(w.done)

	for n := 0; ctx.Err() == nil; n++ {
		name := fmt.Sprintf("key-%06d", n)
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}

		for _, api := range w.clients {
			if _, err := api.ConfigMaps("default").Create(ctx, object, metav1.CreateOptions{}); err == nil {
				w.acked = append(w.acked, name)
				w.written.Add(1)

				break
			}
		}
	}
}

// progress waits until the client has written more.
func (w *writer) progress() {
	w.t.Helper()

	ctx := bounded(w.t)
	for from := w.written.Load(); w.written.Load() < from+5; {
		select {
		case <-ctx.Done():
			w.t.Fatal("nothing can be written any more")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// lost lists acknowledged objects that are missing.
func (w *writer) lost() []string {
	w.t.Helper()
	w.stop()
	<-w.done

	have := map[string]bool{}

	for _, api := range w.clients {
		list, err := api.ConfigMaps("default").List(bounded(w.t), metav1.ListOptions{})
		if err != nil {
			continue
		}

		for _, object := range list.Items {
			have[object.Name] = true
		}

		break
	}

	return slices.DeleteFunc(slices.Clone(w.acked), func(name string) bool { return have[name] })
}

// TestScale_whileAClientWrites scales etcd from three real members to one and back while a client writes; before a
// release, from five. Nothing acknowledged is lost, and every member leaves while the others hold the remaining
// quorum.
func TestScale_whileAClientWrites(t *testing.T) {
	assets := os.Getenv("TALOSOP_TEST_ASSETS")
	if assets == "" && testenv.AssetsRequired() {
		t.Fatal("TALOSOP_TEST_ASSETS must name a folder that has kube-apiserver and etcd")
	}

	if assets == "" {
		t.Skip("TALOSOP_TEST_ASSETS is not set: no real etcd")
	}

	planes, steps := 3, [][]string{{"cp-1", "cp-2"}}
	if testenv.Everything() {
		planes, steps = 5, [][]string{{"cp-5", "cp-2"}, {"cp-1", "cp-4"}}
	}

	s := newSite(t, planes, 0, sim.Options{Assets: assets})
	s.create()
	s.guard(1)

	w := s.writes(t)

	for _, leaving := range steps {
		w.progress()
		s.remove(leaving...)
		s.converge()
		s.hasMembers(len(s.want.Machines))
	}

	w.progress()
	s.add("cp-b", 2, step.ControlPlane)
	s.converge()
	s.hasMembers(3)
	w.progress()

	if lost := w.lost(); len(lost) > 0 {
		t.Errorf("%d of %d acknowledged writes are lost, such as %s", len(lost), len(w.acked), lost[0])
	}

	t.Logf("%d writes were acknowledged", len(w.acked))
}

// TestRollout_keepsTheBudgetOfWorkers upgrades fifty workers, of which a fifth may be away.
func TestRollout_keepsTheBudgetOfWorkers(t *testing.T) {
	t.Parallel()

	const workers, share = 50, 20

	s := newSite(t, 1, workers, sim.Options{})
	s.create()

	for i := range s.want.Machines {
		if s.want.Machines[i].Role == step.Worker {
			s.want.Machines[i].Pool = "pool"
		}
	}

	s.want.Pools = map[string]cluster.Budget{"pool": {Percent: share}}
	s.guard(workers * share / 100)

	most := s.mostAway()
	s.upgrade(newerTalos)
	s.converge()
	s.runsEverywhere(newerTalos)
	s.schedulable()

	if got := most(); got > workers*share/100 {
		t.Errorf("%d workers were away at once, want at most %d", got, workers*share/100)
	}
}

// mostAway counts how many workers are not Ready at the same time.
func (s *site) mostAway() (most func() int) {
	var (
		mu    sync.Mutex
		count int
	)

	ctx, stop := context.WithCancel(context.Background())
	watcher := s.runner()

	var watching sync.WaitGroup

	watching.Go(func() {
		for ctx.Err() == nil {
			nodes := watcher.Kubernetes.Observe(ctx)
			away := 0

			for _, n := range nodes.Nodes {
				if !n.Ready || n.Unschedulable {
					away++
				}
			}

			mu.Lock()
			count = max(count, away)
			mu.Unlock()
		}
	})

	return func() int {
		stop()
		watching.Wait()
		mu.Lock()
		defer mu.Unlock()

		return count
	}
}

// TestIdentity_movedMachineKeepsItsPlace changes the address of a control plane. It is found by its UUID, nothing is
// reset, and etcd keeps its members.
func TestIdentity_movedMachineKeepsItsPlace(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 1, sim.Options{})
	s.create()

	moved := s.sim.Machine("cp-2")
	old := moved.Address().String()

	if err := moved.Move(moved.Address().Next().Next().Next().Next().Next()); err != nil {
		t.Fatal(err)
	}

	for i, m := range s.want.Machines {
		if m.Name == "cp-2" {
			s.want.Machines[i].Address, s.want.Machines[i].PreviousAddress = moved.Address().String(), old
		}
	}

	result := s.converge()
	s.hasMembers(3)

	for _, step := range result.Done {
		if strings.HasPrefix(step.String(), "reset") {
			t.Errorf("a machine that only moved got %q", step)
		}
	}
}

// TestDrain_canceledUncordonsTheNode interrupts a run while a PodDisruptionBudget blocks a drain. The node is
// uncordoned, and the machine is unchanged.
func TestDrain_canceledUncordonsTheNode(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 2, sim.Options{})
	s.create()
	s.reconfigure(needsReboot)

	runner := s.runner()
	ctx, cancel := context.WithCancel(bounded(t))
	runner.Kubernetes = stuckDrain{runner.Kubernetes, cancel}

	if _, err := runner.Converge(ctx, s.want); err == nil {
		t.Fatal("a canceled run ended without an error")
	}

	s.schedulable()

	if got := s.rebooted(); len(got) > 0 {
		t.Errorf("rebooted %v after the run was canceled", got)
	}
}

// stuckDrain is an API whose drains last until the run is interrupted, which happens at once.
type stuckDrain struct {
	lifecycle.Kubernetes

	interrupt context.CancelFunc
}

func (s stuckDrain) Drain(ctx context.Context, _ string, _ cluster.DrainPolicy, _ func(string)) error {
	s.interrupt()
	<-ctx.Done()

	return context.Cause(ctx)
}
