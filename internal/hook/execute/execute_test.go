package execute_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/healthcheck"
	"github.com/talosop/terraform-provider-talosop/internal/hook"
	"github.com/talosop/terraform-provider-talosop/internal/hook/execute"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/lock"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

var _ lifecycle.Hooks = (*execute.Executor)(nil)

func TestMain(m *testing.M) { kubetest.Run(m) }

func must(t *testing.T, err error) {
	t.Helper()

	if err != nil {
		t.Fatal(err)
	}
}

// site is a namespace of a real API server, and a Lease of its own.
type site struct {
	*kubetest.Cluster

	t         *testing.T
	namespace string
}

func newSite(t *testing.T) *site {
	t.Helper()

	cluster := kubetest.Shared(t)

	return &site{cluster, t, cluster.Namespace(t)}
}

// process counts the processes that tests pretend to be.
var process atomic.Int32

// executor is that of a process. It has the lock until it is released.
func (s *site) executor(hooks ...hook.Hook) (e *execute.Executor, release func()) {
	s.t.Helper()

	client := s.Client(s.t, api.Options{})
	lease := client.Lock(lock.Options{Cluster: fmt.Sprintf("%s %d", s.namespace, process.Add(1)), Lease: s.namespace,
		Duration: time.Second})
	_, release, err := lease.Acquire(s.t.Context(), nil)
	must(s.t, err)

	return &execute.Executor{Hooks: hooks, Cluster: client, Lease: lease, Owner: "owner",
		Interval: 20 * time.Millisecond}, release
}

// flag is the value of a flag in a ConfigMap.
func (s *site) flag() string {
	s.t.Helper()

	found, err := s.API().CoreV1().ConfigMaps(s.namespace).Get(s.t.Context(), "flags", metav1.GetOptions{})
	must(s.t, err)

	return found.Data["noout"]
}

func (s *site) records() string {
	s.t.Helper()

	lease, err := s.API().CoordinationV1().Leases("kube-system").Get(s.t.Context(), s.namespace, metav1.GetOptions{})
	must(s.t, err)

	return lease.Annotations["talosop.dev/hooks"]
}

// patch patches the flags.
func (s *site) patch(text string) *hook.Action {
	return &hook.Action{Patch: &hook.Patch{APIVersion: "v1", Kind: "ConfigMap", Namespace: s.namespace, Name: "flags",
		Patch: text}}
}

func (s *site) withFlags() {
	s.t.Helper()

	_, err := s.API().CoreV1().ConfigMaps(s.namespace).Create(s.t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "flags"}, Data: map[string]string{"noout": "false"}}, metav1.CreateOptions{})
	must(s.t, err)
}

var worker = cluster.Machine{Name: "storage/w-1", Role: step.Worker, Pool: "storage"}

func quiet(string) {}

// A patch is recorded before it is made, with its node. Another process undoes it from the record, even if the hook is
// not configured any more.
func TestExecutor_patches(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	s.withFlags()

	noout := hook.Hook{Name: "noout", Scope: hook.Machine, Before: s.patch(`data: { noout: "on {{node}}" }`),
		After: s.patch(`[{ op: replace, path: /data/noout, value: "off {{node}}" }]`)}

	first, release := s.executor(noout)
	started := first.Of(worker, "node-1")

	if len(started) != 1 || started[0].String() != "hook noout for storage/w-1" {
		t.Fatalf("it has %v", started)
	}

	must(t, first.Begin(t.Context(), started[0], quiet))

	if got := s.flag(); got != "on node-1" || !strings.Contains(s.records(), `"name":"noout"`) {
		t.Errorf("the flag is %q, and the records are %s", got, s.records())
	}

	release()

	for _, hooks := range [][]hook.Hook{nil, {noout}} {
		second, release := s.executor(hooks...)
		found, err := second.Recorded(t.Context())
		must(t, err)

		if len(found) != 1 || found[0].Key != started[0].Key || found[0].Machine != "storage/w-1" {
			t.Fatalf("it found %v", found)
		}

		must(t, second.End(t.Context(), found[0], quiet))

		if got := s.flag(); got != "off node-1" || s.records() != "" {
			t.Errorf("the flag is %q, and the records are %s", got, s.records())
		}

		must(t, second.Begin(t.Context(), started[0], quiet))
		release()
	}

	// Records of other resources stay.
	other, release := s.executor(noout)
	defer release()

	other.Owner = "other"

	if found, err := other.Recorded(t.Context()); err != nil || len(found) > 0 {
		t.Errorf("another resource found %v (%v)", found, err)
	}

	// A hook that was corrected is ended as it is configured now.
	noout.After = s.patch(`data: { noout: corrected }`)
	corrected := with(other, noout)

	found, err := corrected.Recorded(t.Context())
	must(t, err)
	must(t, corrected.End(t.Context(), found[0], quiet))

	if got := s.flag(); got != "corrected" {
		t.Errorf("the flag is %q", got)
	}
}

// with is an executor of the same process with other hooks.
func with(e *execute.Executor, hooks ...hook.Hook) *execute.Executor {
	out := *e
	out.Hooks, out.Owner = hooks, "owner"

	return &out
}

// Pools select the machines of a hook.
func TestExecutor_selectsPools(t *testing.T) {
	t.Parallel()

	e := execute.Executor{Hooks: []hook.Hook{{Name: "all"}, {Name: "planes", Pools: []string{"control_plane"}},
		{Name: "storage", Pools: []string{"batch", "storage"}}}}

	for want, m := range map[string]cluster.Machine{
		"all storage": worker, "all planes": {Name: "cp-1", Role: step.ControlPlane}, "all": {Name: "x", Role: step.Worker},
	} {
		var names []string
		for _, h := range e.Of(m, m.Name) {
			names = append(names, h.Name)
		}

		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s has the hooks %s, want %s", m.Name, got, want)
		}
	}
}

// A run without the lock neither records nor undoes a hook: the holder does that.
func TestExecutor_needsTheLock(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	s.withFlags()

	noout := hook.Hook{Name: "noout", Scope: hook.Rollout, Timeout: time.Minute, Before: s.patch(`data: { noout: "true" }`),
		After: s.patch(`data: { noout: "false" }`)}
	e, release := s.executor(noout)
	started := e.Of(worker, "node-1")[0]

	must(t, e.Begin(t.Context(), started, quiet))
	release()

	if err := e.Begin(t.Context(), started, quiet); err == nil || !strings.Contains(err.Error(), "lock of the cluster is not held") {
		t.Errorf("begin without the lock: %v", err)
	}

	if err := e.End(t.Context(), started, quiet); err == nil || s.flag() != "true" {
		t.Errorf("end without the lock: %v; the flag is %s", err, s.flag())
	}
}

// A failure names the part and its cause, and leaves the record.
func TestExecutor_fails(t *testing.T) {
	t.Parallel()

	s := newSite(t) // without the object
	e, release := s.executor(hook.Hook{Name: "noout", Scope: hook.Rollout, Timeout: 3 * time.Second,
		Before: s.patch(`data: { noout: "true" }`), After: s.patch(`data: { noout: "false" }`)})

	defer release()

	started := e.Of(worker, "node-1")[0]

	var waited atomic.Value

	err := e.Begin(t.Context(), started, func(reason string) { waited.Store(reason) })
	if err == nil || !strings.Contains(err.Error(), "its `before` did not succeed within 3s") ||
		!strings.Contains(err.Error(), `configmaps "flags" not found`) {
		t.Error(err)
	}

	if reason, _ := waited.Load().(string); !strings.Contains(reason, "not found") {
		t.Errorf("it waited for %q", reason)
	}

	if err := e.End(t.Context(), started, quiet); err == nil || s.records() == "" {
		t.Errorf("%v; the records are %q", err, s.records())
	}
}

// A request has its method, headers and body, and none of them is recorded. A removed hook with a request cannot be
// undone, and says what to do.
func TestExecutor_requests(t *testing.T) {
	t.Parallel()

	var calls []string

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		calls = append(calls, r.Method+" "+r.Header.Get("Authorization")+" "+string(body))

		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(server.Close)

	const secret = "TOKEN-OF-THE-WEBHOOK"

	s := newSite(t)
	call := func(method, body string) *hook.Action {
		return &hook.Action{HTTP: &healthcheck.HTTP{URL: server.URL, Method: method, Body: body,
			Headers: map[string]string{"Authorization": secret}}}
	}
	silence := hook.Hook{Name: "silence", Scope: hook.Machine, Before: call("POST", "{{machine}} goes"),
		After: call("DELETE", "")}
	e, release := s.executor(silence)

	defer release()

	started := e.Of(worker, "node-1")[0]
	must(t, e.Begin(t.Context(), started, quiet))

	if records := s.records(); records == "" || strings.Contains(records, secret) || strings.Contains(records, server.URL) {
		t.Errorf("the records are %s", records)
	}

	without := with(e)
	found, err := without.Recorded(t.Context())
	must(t, err)

	if err := without.End(t.Context(), found[0], quiet); err == nil || !found[0].Continue ||
		!strings.Contains(err.Error(), "remove the annotation talosop.dev/hooks") {
		t.Errorf("without its configuration: %v", err)
	}

	must(t, e.End(t.Context(), started, quiet))

	if want := []string{"POST " + secret + " storage/w-1 goes", "DELETE " + secret + " "}; !slices.Equal(calls, want) {
		t.Errorf("it called %q, want %q", calls, want)
	}
}

// job is an action that runs a Job.
func (s *site) job(annotations string) *hook.Action {
	return &hook.Action{Job: fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: { name: noout, namespace: %s }
spec:
  backoffLimit: 0
  template:
    metadata: { annotations: { %s } }
    spec: { restartPolicy: Never, containers: [{ name: main, image: example.org/ceph }] }
`, s.namespace, annotations)}
}

// undeletable is a cluster in which a process cannot remove its jobs, because it was killed.
type undeletable struct{ execute.Cluster }

func (undeletable) RequestDeletion(context.Context, objects.Reference, string) error { return nil }

// jobs are those that are not being removed, with their pods.
func (s *site) jobs() (names []string) {
	s.t.Helper()

	list, err := s.API().BatchV1().Jobs(s.namespace).List(s.t.Context(), metav1.ListOptions{LabelSelector: "talosop.dev/hook"})
	must(s.t, err)

	for _, job := range list.Items {
		if job.DeletionTimestamp == nil {
			names = append(names, job.Name)
		}
	}

	return names
}

// Jobs of a hook run to their end and are removed. One that a killed run left is removed before `after` runs: it must
// not redo what that undoes.
func TestExecutor_jobs(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	e, release := s.executor(hook.Hook{Name: "noout", Scope: hook.Rollout, Timeout: time.Minute,
		Before: s.job("kubetest/hang: \"yes\""), After: s.job("")})

	defer release()

	started := e.Of(worker, "node-1")[0]
	killed := *e
	killed.Cluster = undeletable{e.Cluster}
	ctx, kill := context.WithCancel(t.Context())
	ended := make(chan error, 1)

	go func() { ended <- killed.Begin(ctx, started, quiet) }()

	must(t, wait.Until(t.Context(), 20*time.Millisecond, func(ctx context.Context) error {
		pods, err := s.API().CoreV1().Pods(s.namespace).List(ctx, metav1.ListOptions{LabelSelector: "talosop.dev/hook"})
		if err == nil && len(pods.Items) == 0 {
			err = errors.New("the job has no pod")
		}

		return err
	}))
	kill()

	if err := <-ended; !errors.Is(err, context.Canceled) || len(s.jobs()) != 1 {
		t.Fatalf("ended with %v; jobs: %v", err, s.jobs())
	}

	must(t, e.End(t.Context(), started, quiet))

	if left := s.jobs(); len(left) > 0 || s.records() != "" {
		t.Errorf("jobs %v and records %q are left", left, s.records())
	}
}

// Patches that no API accepts are mistakes of the configuration.
func TestParsePatch(t *testing.T) {
	t.Parallel()

	for text, says := range map[string]string{
		`spec: { suspend: true }`:                         "",
		`[{ op: add, path: /spec/suspend, value: true }]`: "",
		``:                           "expected a mapping",
		`text`:                       "expected a mapping",
		`{}`:                         "it changes nothing",
		`[]`:                         "it changes nothing",
		`[{ op: put, path: /spec }]`: "operation 1 needs op",
		`[{ op: add, path: spec }]`:  "operation 1 needs op",
		`a: 1
a: 2`: "already",
		`a: [`: "did not find",
	} {
		patch, err := execute.ParsePatch(text)
		if says == "" && (err != nil || len(patch) == 0) || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%q: %s, %v, want %q", text, patch, err, says)
		}
	}
}
