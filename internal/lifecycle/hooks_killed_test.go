package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/hook"
	"github.com/talosop/terraform-provider-talosop/internal/hook/execute"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/diagnose"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/lock"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// executor runs the hooks of a process, which can be killed at a call.
type executor struct {
	api   *kubernetes.Client
	lease *lock.Lock
	p     *process
	// at is the call at which the process is killed, before or after it is served; 0 for none. struck ends the run.
	at     int
	served bool
	struck func()

	mu    sync.Mutex
	calls int
}

func (e *executor) call(do func() error) error {
	e.mu.Lock()
	e.calls++
	strikes := e.calls == e.at
	e.mu.Unlock()

	switch {
	case e.p != nil && e.p.killed():
		return wait.Permanent(errKilled)
	case strikes && !e.served:
		e.strike()

		return wait.Permanent(errKilled)
	}

	err := do()
	if strikes {
		e.strike()

		return wait.Permanent(errKilled)
	}

	return err
}

func (e *executor) strike() {
	e.p.kill()
	e.struck()
}

func (e *executor) GetObject(ctx context.Context, ref objects.Reference) (out map[string]any, err error) {
	return out, e.call(func() error { out, err = e.api.GetObject(ctx, ref); return err })
}

func (e *executor) ListObjects(
	ctx context.Context, ref objects.Reference, selector string,
) (out []map[string]any, err error) {
	return out, e.call(func() error { out, err = e.api.ListObjects(ctx, ref, selector); return err })
}

func (e *executor) CreateObject(ctx context.Context, object map[string]any) (out map[string]any, err error) {
	return out, e.call(func() error { out, err = e.api.CreateObject(ctx, object); return err })
}

func (e *executor) Job(ctx context.Context, namespace, job string) (found []diagnose.NotReady, err error) {
	return found, e.call(func() error { found, err = e.api.Job(ctx, namespace, job); return err })
}

func (e *executor) RequestDeletion(ctx context.Context, ref objects.Reference, uid string) error {
	return e.call(func() error { return e.api.RequestDeletion(ctx, ref, uid) })
}

func (e *executor) PatchObject(ctx context.Context, ref objects.Reference, patch []byte) error {
	return e.call(func() error { return e.api.PatchObject(ctx, ref, patch) })
}

func (e *executor) Held(ctx context.Context) error {
	return e.call(func() error { return e.lease.Held(ctx) })
}

func (e *executor) Annotation(ctx context.Context, key string) (out string, err error) {
	err = e.call(func() error { out, err = e.lease.Annotation(ctx, key); return err })

	return out, err
}

func (e *executor) Annotate(ctx context.Context, key string, change func(string) (string, error)) error {
	return e.call(func() error { return e.lease.Annotate(ctx, key, change) })
}

// flagged is a cluster with a ConfigMap whose flag hooks set.
type flagged struct {
	*site

	api *kubernetes.Client
}

const flags = "flags"

func newFlagged(t *testing.T) flagged {
	t.Helper()

	opts := sim.Options{}

	if testenv.Everything() {
		opts.Assets = os.Getenv("TALOSOP_TEST_ASSETS")
	}

	s := newSite(t, 1, 2, opts)
	s.create()

	runner := s.runner()
	api, ok := runner.Kubernetes.(*kubernetes.Client)
	if !ok {
		t.Fatalf("the API is a %T", runner.Kubernetes)
	}

	_, err := api.CoreV1().ConfigMaps("kube-system").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: flags}, Data: map[string]string{"noout": "false", "evict": "false"}},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	return flagged{s, api}
}

// set patches a flag.
func (f flagged) set(name, value string) *hook.Action {
	return &hook.Action{Patch: &hook.Patch{APIVersion: "v1", Kind: "ConfigMap", Namespace: "kube-system", Name: flags,
		Patch: fmt.Sprintf("data: { %s: %q }", name, value)}}
}

// flag is the value of a flag.
func (f flagged) flag(ctx context.Context, name string) string {
	f.t.Helper()

	found, err := f.api.CoreV1().ConfigMaps("kube-system").Get(ctx, flags, metav1.GetOptions{})
	if err != nil {
		f.t.Error(err)

		return ""
	}

	return found.Data[name]
}

// runnerWith has the hooks.
func (f flagged) runnerWith(p *process) (*lifecycle.Runner, *executor) {
	f.t.Helper()

	r := f.runnerIn(p)
	api, _ := r.Kubernetes.(*kubernetes.Client)
	lease, _ := r.Lock.(*lock.Lock)
	e := &executor{api: api, lease: lease, p: p, struck: func() {}}

	r.Hooks = &execute.Executor{Cluster: e, Lease: e, Owner: "owner", Interval: 50 * time.Millisecond, Hooks: []hook.Hook{
		{Name: "noout", Scope: hook.Rollout, Before: f.set("noout", "true"), After: f.set("noout", "false")},
		{Name: "evict", Scope: hook.Machine, Before: f.set("evict", "{{node}}"), After: f.set("evict", "false")},
	}}

	return r, e
}

// reboots plans a reboot of the workers.
func (f flagged) reboots(n int) {
	for i, m := range f.want.Machines {
		if m.Role == step.Worker {
			config := f.render(m.Role, fmt.Sprintf("machine: {env: {CHANGED: \"%d\"}}", n))
			f.configs[m.Name], f.want.Machines[i].ConfigDigest = config.Bytes, config.Digest
		}
	}
}

// expectClean checks that nothing is left of any hook.
func (f flagged) expectClean(when string) {
	f.t.Helper()

	for _, name := range []string{"noout", "evict"} {
		if got := f.flag(f.t.Context(), name); got != "false" {
			f.t.Errorf("%s: %s is %q", when, name, got)
		}
	}

	lease, err := f.api.CoordinationV1().Leases("kube-system").Get(f.t.Context(), "talosop", metav1.GetOptions{})
	if err != nil || lease.Annotations["talosop.dev/hooks"] != "" {
		f.t.Errorf("%s: the records are %v (%v)", when, lease.Annotations, err)
	}
}

// Flags are set while machines are away, and unset afterward: after a success, after a failure, and by the next run
// after the process was killed at any call. Before a release, the API server is a real one.
func TestHooks_killedAtEveryCall(t *testing.T) {
	t.Parallel()

	f := newFlagged(t)

	// In an undisturbed run, the flags are set at every reboot.
	f.reboots(0)
	f.sim.SetOnCall(func(c fault.Call) error {
		if noout, evict := f.flag(context.Background(), "noout"), f.flag(context.Background(), "evict"); c.Method == "Reboot" &&
			(noout != "true" || !strings.HasPrefix(evict, "talos-") && evict != c.Machine) {
			t.Errorf("at the reboot of %s, the flags are %s and %s", c.Machine, noout, evict)
		}

		return nil
	})

	r, e := f.runnerWith(nil)
	if _, err := r.Converge(bounded(t), f.want); err != nil {
		t.Fatal(err)
	}

	f.sim.SetOnCall(nil)
	f.expectClean("after a rollout")

	calls, every := e.calls, 1
	if !testenv.Everything() {
		every = calls/2 + 1
	}

	for n := 1; n <= calls; n += every {
		for _, served := range []bool{false, true} {
			f.reboots(2*n + map[bool]int{true: 1}[served])
			f.killedAt(n, served)

			r, _ := f.runnerWith(nil)
			if have := r.Refresh(bounded(t), f.want); have.Hooks == nil {
				t.Error("a refresh cannot read the records")
			}

			if _, err := r.Converge(bounded(t), f.want); err != nil {
				t.Fatalf("after a kill at call %d (served: %t): %v", n, served, err)
			}

			f.expectClean(fmt.Sprintf("after a kill at call %d (served: %t)", n, served))
		}
	}
}

// killedAt runs in a process that is killed at a call of its hooks. The test does not wait for the rest of it.
func (f flagged) killedAt(n int, served bool) {
	f.t.Helper()

	p := &process{conns: map[net.Conn]bool{}}
	ctx, cancel := context.WithCancel(bounded(f.t))
	reached, ended := make(chan struct{}), make(chan error, 1)

	r, e := f.runnerWith(p)
	tell := r.Events
	r.Events = func(e lifecycle.Event) {
		if !p.killed() {
			tell(e)
		}
	}
	e.at, e.served, e.struck = n, served, func() { cancel(); close(reached) }

	want := f.want
	want.Machines = slices.Clone(want.Machines)

	go func() {
		_, err := r.Converge(ctx, want)
		ended <- err
	}()

	select {
	case <-reached:
	case err := <-ended:
		f.t.Fatalf("the run ended before call %d: %v", n, err)
	}

	f.t.Cleanup(func() { <-ended })
}

// A run whose step fails for good unsets its flags, and the next one sets them again.
func TestHooks_undoneAfterAFailure(t *testing.T) {
	t.Parallel()

	f := newFlagged(t)
	f.reboots(0)

	broken := errors.New("no")
	f.sim.SetOnCall(func(c fault.Call) error {
		if c.Method == "Reboot" {
			return broken
		}

		return nil
	})

	ctx, cancel := context.WithTimeout(bounded(t), 5*time.Second)
	defer cancel()

	r, _ := f.runnerWith(nil)
	if _, err := r.Converge(ctx, f.want); err == nil {
		t.Error("it succeeded")
	}

	f.sim.SetOnCall(nil)
	f.expectClean("after a failure")

	r, _ = f.runnerWith(nil)
	if _, err := r.Converge(bounded(t), f.want); err != nil {
		t.Error(err)
	}

	f.expectClean("after the next run")
}
