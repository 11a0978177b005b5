package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// rotating turns over every key that machines accept two of.
const rotating = `
resource "talosop_secrets" "this" {
  rotate = { talos_ca = "1", kubernetes_ca = "1", aggregator_ca = "1", cluster_token = "1" }
}
`

// rotation: keys are turned over while somebody writes to Kubernetes with the credentials of the day. The provider
// process is killed in every apply that gives machines other keys, once when the first of them has them, and once when
// all but one have. Nothing reboots, every write succeeds, and the former credentials are refused in the end.
func (s site) rotation(t *testing.T, cli clitest.CLI) {
	s.needs(t, "reset")

	w := s.workspace(t, cli)
	s.applied(t, w, "create")

	former, boots := bundle(t, w), bootIDs(t, w)
	writer := s.startWriter(t, former)

	w.Write("rotate_override.tf", rotating)

	const most = 8

	kills, applies := 0, 0

	for ; applies < most; applies++ {
		if empty, _ := w.PlanIsEmpty(); empty {
			break
		}

		for _, machines := range []int{1, len(s.machines()) - 1} {
			if s.killedInRotation(t, w, machines) {
				kills++
			}
		}

		w.MustRun("apply", "-auto-approve")
		s.isUsable(t, w)
		writer.use(bundle(t, w))
	}

	plansNothing(t, w, "after the rotation")

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

// killedInRotation applies and kills the provider when so many machines have other keys than before. It is false when
// the apply ended first, because it gives machines none or had few left.
func (s site) killedInRotation(t *testing.T, w *clitest.Workspace, machines int) bool {
	t.Helper()

	var before map[string]string

	b := bundle(t, w)

	eventually(t, time.Minute, "nodes", func(ctx context.Context) (err error) {
		before, err = s.keys(ctx, b)

		return err
	})

	apply := w.Start("apply", "-auto-approve")
	other := func(ctx context.Context) error {
		now, err := s.keys(ctx, b)
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

// keys are what nodes say that their machines carry.
func (s site) keys(ctx context.Context, b *pki.Bundle) (map[string]string, error) {
	api, err := s.clientset(b)
	if err != nil {
		return nil, err
	}

	nodes, err := api.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}

	keys := map[string]string{}
	for _, n := range nodes.Items {
		keys[n.Name] = n.Annotations[rotation.Annotation]
	}

	return keys, nil
}

// refuses checks that nobody takes credentials of these secrets any more.
func (s site) refuses(t *testing.T, former *pki.Bundle) {
	t.Helper()

	if _, err := s.keys(t.Context(), former); err == nil {
		t.Error("the Kubernetes API takes the former credentials")
	}

	for _, address := range s.machines() {
		if _, err := s.client(t, former, address).Version(t.Context()); err == nil {
			t.Errorf("%s takes the former credentials", address)
		}
	}
}

// writer writes objects to Kubernetes, one after the other, and takes a minute for each at most.
type writer struct {
	site

	mu      sync.Mutex
	bundle  *pki.Bundle
	end     context.CancelFunc
	ended   chan error
	written int
}

// startWriter begins to write with the credentials of a bundle.
func (s site) startWriter(t *testing.T, b *pki.Bundle) *writer {
	t.Helper()

	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)

	w := &writer{site: s, bundle: b, end: cancel, ended: make(chan error, 1)}
	go func() { w.ended <- w.run(ctx) }()

	return w
}

// use takes other credentials from now on.
func (w *writer) use(b *pki.Bundle) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.bundle = b
}

// stop ends the writing. The test fails when a write failed or is missing.
func (w *writer) stop(t *testing.T) {
	t.Helper()
	w.end()

	if err := <-w.ended; err != nil {
		t.Error(err)
	}

	api, err := w.clientset(w.bundle)
	if err != nil {
		t.Fatal(err)
	}

	found, err := api.CoreV1().ConfigMaps(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
	if err != nil {
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
		limited, cancel := context.WithTimeout(ctx, time.Minute)
		err := wait.Until(limited, 200*time.Millisecond, w.write)

		cancel()

		if ctx.Err() != nil {
			return nil
		}

		if err != nil {
			return fmt.Errorf("write %s: %w", object(w.written), err)
		}

		w.written++
	}

	return nil
}

func (w *writer) write(ctx context.Context) error {
	w.mu.Lock()
	b := w.bundle
	w.mu.Unlock()

	api, err := w.clientset(b)
	if err != nil {
		return err
	}

	// A write whose answer was lost is there when it is tried again.
	_, err = api.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: object(w.written)}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}

	return err
}
