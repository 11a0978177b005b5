package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// rotating rotates every key for which machines accept two.
const rotating = `
resource "talosop_secrets" "this" {
  rotate = { talos_ca = "1", kubernetes_ca = "1", aggregator_ca = "1", cluster_token = "1" }
}
`

// rotation: keys are rotated while a client writes to Kubernetes. The provider process is killed in every apply that
// gives machines other keys: once when the first machine has them, and once when all but one have. Nothing reboots.
// Every write succeeds with the latest credentials or with the previous ones. In the end the former credentials are
// refused.
func (s site) rotation(t *testing.T, cli clitest.CLI) {
	s.needs(t, "reset")

	w := s.workspace(t, cli)
	s.applied(t, w, "create")

	former, boots := bundle(t, w), bootIDs(t, w)
	writer := startWriter(t, s.clientset, former)

	w.Write("rotate_override.tf", rotating)

	const most = 8

	kills, applies := 0, 0

	for ; applies < most; applies++ {
		if empty, _ := w.PlanIsEmpty(); empty {
			break
		}

		for _, machines := range []int{1, len(s.machines()) - 1} {
			if s.killedInRotation(t, w, writer, machines) {
				kills++
			}
		}

		w.MustRun("apply", "-auto-approve")
		writer.use(t, bundle(t, w))
	}

	plansNothing(t, w, "after the rotation")
	s.isUsable(t, w)

	if kills < 2 {
		t.Errorf("the provider was killed %d times in %d applies, want at least twice", kills, applies)
	}

	writer.stop(t)
	s.agrees(t, w)
	s.refuses(t, former)

	if now := bootIDs(t, w); !maps.Equal(now, boots) {
		t.Errorf("boots are %v, were %v: machines rebooted", now, boots)
	}

	t.Logf("rotation: %d applies, killed %d times, %d writes", applies, kills, writer.written)
	s.destroy(t, w)
}

// killedInRotation applies and kills the provider when the given number of machines have new keys. It returns false
// when the apply ended first, because it gives no machine keys or had few left.
func (s site) killedInRotation(t *testing.T, w *clitest.Workspace, with *writer, machines int) bool {
	t.Helper()

	with.use(t, bundle(t, w))

	var before map[string]string

	eventually(t, time.Minute, "nodes", func(ctx context.Context) (err error) {
		before, err = with.keys(ctx)

		return err
	})

	apply := w.Start("apply", "-auto-approve")
	other := func(ctx context.Context) error {
		now, err := with.keys(ctx)
		if err != nil {
			return err
		}

		maps.DeleteFunc(now, func(node, keys string) bool { return before[node] == keys })

		if len(now) < machines {
			return fmt.Errorf("%d machines have other keys", len(now))
		}

		return nil
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()

	go func() {
		<-apply.Done()
		cancel()
	}()

	if wait.Until(ctx, 20*time.Millisecond, other) != nil {
		if result := apply.Wait(); result.Exit != 0 {
			t.Fatalf("the apply ended with %d:\n%s", result.Exit, result.Output())
		}

		return false
	}

	apply.KillProvider()

	return apply.Wait().Exit != 0
}

// refuses checks that no server accepts credentials of these secrets any more.
func (s site) refuses(t *testing.T, former *pki.Bundle) {
	t.Helper()

	if _, err := s.nodes(t.Context(), former); err == nil {
		t.Error("the Kubernetes API takes the former credentials")
	}

	for _, address := range s.machines() {
		if _, err := s.client(t, former, address).Version(t.Context()); err == nil {
			t.Errorf("%s takes the former credentials", address)
		}
	}
}

// writer writes objects to Kubernetes, one after the other, and takes at most a minute for each.
type writer struct {
	connect connect

	mu sync.Mutex
	// access are its credentials: an apply that was killed may have left new ones that do not work yet.
	access  []*kubernetes.Clientset
	end     context.CancelFunc
	ended   chan error
	written int
	// slowest is how long the write took that took longest.
	slowest time.Duration
}

// connect returns the Kubernetes API of a cluster, with the credentials of a bundle.
type connect func(b *pki.Bundle) (*kubernetes.Clientset, error)

// startWriter starts to write with the credentials of a bundle.
func startWriter(t *testing.T, connect connect, b *pki.Bundle) *writer {
	t.Helper()

	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)

	w := &writer{connect: connect, end: cancel, ended: make(chan error, 1)}
	w.use(t, b)

	go func() { w.ended <- w.run(ctx) }()

	return w
}

// use switches to the credentials of another bundle, and keeps the former ones for when these do not work.
func (w *writer) use(t *testing.T, b *pki.Bundle) {
	t.Helper()

	api, err := w.connect(b)
	if err != nil {
		t.Fatal(err)
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	w.access = slices.Insert(w.access, 0, api)
}

// do calls Kubernetes with the latest credentials that are accepted.
func (w *writer) do(call func(api corev1client.CoreV1Interface) error) error {
	w.mu.Lock()
	access := slices.Clone(w.access)
	w.mu.Unlock()

	var errs []error

	for _, api := range access {
		err := call(api.CoreV1())
		if err == nil {
			return nil
		}

		errs = append(errs, err)
	}

	return errors.Join(errs...)
}

// keys are the keys of the machines, as their nodes report them.
func (w *writer) keys(ctx context.Context) (map[string]string, error) {
	keys := map[string]string{}
	err := w.do(func(api corev1client.CoreV1Interface) error {
		nodes, err := api.Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}

		for _, n := range nodes.Items {
			keys[n.Name] = n.Annotations[rotation.Annotation]
		}

		return nil
	})

	return keys, err
}

// stop ends the writing. The test fails when a write failed or is missing.
func (w *writer) stop(t *testing.T) {
	t.Helper()
	w.end()

	if err := <-w.ended; err != nil {
		t.Error(err)
	}

	var found *corev1.ConfigMapList

	if err := w.do(func(api corev1client.CoreV1Interface) (err error) {
		found, err = api.ConfigMaps(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})

		return err
	}); err != nil {
		t.Fatal(err)
	}

	for i := range w.written {
		if !slices.ContainsFunc(found.Items, func(o corev1.ConfigMap) bool { return o.Name == object(i) }) {
			t.Errorf("%s was written and is not there", object(i))
		}
	}
}

func object(i int) string { return fmt.Sprintf("written-%d", i) }

// run writes until the context ends.
func (w *writer) run(ctx context.Context) error {
	for ctx.Err() == nil {
		began := time.Now()
		limited, cancel := context.WithTimeout(ctx, time.Minute)
		err := wait.Until(limited, 200*time.Millisecond, w.write)

		cancel()

		switch {
		case err == nil:
			w.written++
			w.slowest = max(w.slowest, time.Since(began))
		case ctx.Err() == nil:
			return fmt.Errorf("write %s: %w", object(w.written), err)
		}
	}

	return nil
}

func (w *writer) write(ctx context.Context) error {
	return w.do(func(api corev1client.CoreV1Interface) error {
		_, err := api.ConfigMaps(metav1.NamespaceDefault).Create(ctx,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: object(w.written)}}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // the first answer was lost
			return nil
		}

		return err
	})
}
