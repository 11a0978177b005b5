package release_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/helm/chart"
	"github.com/talosop/terraform-provider-talosop/internal/helm/client"
	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

func TestMain(m *testing.M) { kubetest.Run(m) }

// pause keeps tests quick.
const pause = 50 * time.Millisecond

// lockDuration of runs that are not killed: who is kept from its processor for less loses no Lease to another run.
const lockDuration = 5 * time.Second

// testTimeout of what only ends in failure: a busy machine may take long.
const testTimeout = 3 * time.Minute

// place is a namespace of the shared cluster, and what is done in it.
type place struct {
	*release.Cluster

	real      *kubetest.Cluster
	namespace string

	mu       sync.Mutex
	reported []string
}

func newPlace(t *testing.T) *place {
	t.Helper()

	shared := kubetest.Shared(t)
	p := &place{real: shared, namespace: shared.Namespace(t)}
	p.Cluster = &release.Cluster{
		API: shared.Client(t, api.Options{}), Slots: client.NewSlots(0), Pause: pause, LockDuration: lockDuration,
		Grace: 5 * time.Second,
		Progress: func(text string, _ map[string]any) {
			p.mu.Lock()
			defer p.mu.Unlock()

			p.reported = append(p.reported, text)
		},
	}

	return p
}

// spec is a release of the place that waits for its objects.
func (p *place) spec(values map[string]any) release.Spec {
	return release.Spec{
		Name: release.Name{Namespace: p.namespace, Name: "web"}, Values: values,
		Options: release.Options{Wait: true, WaitForJobs: true, Timeout: testTimeout, MaxHistory: 10},
	}
}

// packageOf is a chart as it is fetched.
func packageOf(t *testing.T, content []byte) *chart.Package {
	t.Helper()

	path := filepath.Join(t.TempDir(), "chart.tgz")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}

	fetched, err := chart.NewStore(chart.Options{}).Fetch(t.Context(), chart.Source{Chart: path})
	if err != nil {
		t.Fatal(err)
	}

	return fetched
}

func (p *place) apply(t *testing.T, spec release.Spec, chart *chart.Package, intent release.Intent) release.Outcome {
	t.Helper()

	outcome, err := p.Apply(t.Context(), spec, chart, intent)
	if err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(p.reported, "\n"))
	}

	return outcome
}

// statuses of the release as Helm has them.
func (p *place) statuses(t *testing.T, name release.Name) string {
	t.Helper()

	have, err := p.Observe(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}

	var all []string
	for _, r := range have.History {
		all = append(all, r.Status)
	}

	return strings.Join(all, " ")
}

// configMaps of the place: their names, each with its message.
func (p *place) configMaps(t *testing.T) []string {
	t.Helper()

	list, err := p.real.API().CoreV1().ConfigMaps(p.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}

	var all []string

	for _, item := range list.Items {
		if item.Name != "kube-root-ca.crt" && item.DeletionTimestamp == nil {
			message := item.Data["message"]
			delete(item.Data, "message")
			all = append(all, item.Name+"="+strings.Join(append([]string{message}, slices.Sorted(maps.Keys(item.Data))...), " "))
		}
	}

	slices.Sort(all)

	return all
}

// configMap is a template of one that any release may have.
func configMap(name, message string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {message: \"" + message + "\"}\n"
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()

	if g, ok := got.([]string); ok {
		got = strings.Join(g, "\n")
	}

	if w, ok := want.([]string); ok {
		want = strings.Join(w, "\n")
	}

	if got != want {
		t.Errorf("%s:\n%v\nwant:\n%v", what, got, want)
	}
}

func TestApply_lifeOfRelease(t *testing.T) {
	t.Parallel()

	p, chart := newPlace(t), packageOf(t, kubetest.Simple.Package("1.0.0"))
	spec := p.spec(map[string]any{"message": "a"})

	outcome := p.apply(t, spec, chart, release.Intent{Create: true})
	same(t, "done", outcome.Done, []string{"installed revision 1"})

	last, _ := outcome.Now.Last()
	if last.Status != release.Deployed || last.ChartVersion != "1.0.0" ||
		last.Inputs != release.Inputs(spec, chart.Digest) || len(last.Objects) != 4 {
		t.Errorf("installed: %+v", last)
	}

	// A create that was killed before it could say so finds what it made; so does an update.
	for _, intent := range []release.Intent{{Create: true}, {}} {
		if outcome := p.apply(t, spec, chart, intent); len(outcome.Done) > 0 || len(outcome.Now.History) != 1 {
			t.Errorf("%+v: %v", intent, outcome.Done)
		}
	}

	spec.Values = map[string]any{"message": "b"}
	outcome = p.apply(t, spec, chart, release.Intent{})
	same(t, "done", outcome.Done, []string{"upgraded to revision 2"})
	same(t, "statuses", p.statuses(t, spec.Name), "superseded deployed")
	same(t, "objects", p.configMaps(t), []string{"web=b"})

	if outcome := p.apply(t, spec, chart, release.Intent{Repair: true}); len(outcome.Now.History) != 3 {
		t.Errorf("a repair is an upgrade: %+v", outcome)
	}

	if err := p.Remove(t.Context(), spec.Name, release.RemoveOptions{Wait: true, Timeout: testTimeout}); err != nil {
		t.Fatal(err)
	}

	same(t, "statuses", p.statuses(t, spec.Name), "")
	same(t, "objects", p.configMaps(t), []string(nil))

	if leases := p.leases(t, spec.Name); leases != 0 {
		t.Errorf("%d Leases stay", leases)
	}

	if err := p.Remove(t.Context(), spec.Name, release.RemoveOptions{}); err != nil {
		t.Errorf("again: %v", err)
	}
}

func (p *place) leases(t *testing.T, name release.Name) int {
	t.Helper()

	list, err := p.real.API().CoordinationV1().Leases("kube-system").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}

	count := 0

	for _, l := range list.Items {
		if l.Name == release.LeaseOf(name) {
			count++
		}
	}

	return count
}

func TestAdopt_createLeavesForeignReleases(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	helm := kubetest.Helm(t, p.real)
	file := filepath.Join(t.TempDir(), "chart.tgz")

	if err := os.WriteFile(file, kubetest.Simple.Package("1.0.0"), 0o600); err != nil {
		t.Fatal(err)
	}

	if _, text, err := helm("install", "web", file, "-n", p.namespace, "--set", "message=theirs"); err != nil {
		t.Fatal(text)
	}

	chart, spec := packageOf(t, kubetest.Simple.Package("1.0.0")), p.spec(map[string]any{"message": "ours"})

	_, err := p.Apply(t.Context(), spec, chart, release.Intent{Create: true})
	if !errors.Is(err, release.ErrExists) || !strings.Contains(err.Error(), "adopt = true") {
		t.Fatalf("create over another's release: %v", err)
	}

	same(t, "objects", p.configMaps(t), []string{"web=theirs"})

	outcome := p.apply(t, spec, chart, release.Intent{Create: true, Adopt: true})
	same(t, "done", outcome.Done, []string{"upgraded to revision 2"})
	same(t, "objects", p.configMaps(t), []string{"web=ours"})

	// Helm copies the labels of records to the next ones: that is no mark of ours.
	if _, text, err := helm("upgrade", "web", file, "-n", p.namespace, "--set", "message=theirs"); err != nil {
		t.Fatal(text)
	}

	outcome = p.apply(t, spec, chart, release.Intent{})
	same(t, "done", outcome.Done, []string{"upgraded to revision 4"})
	same(t, "objects", p.configMaps(t), []string{"web=ours"})

	if _, text, err := helm("rollback", "web", "1", "-n", p.namespace); err != nil {
		t.Fatal(text)
	}

	if outcome := p.apply(t, spec, chart, release.Intent{}); len(outcome.Done) != 1 {
		t.Errorf("after a rollback by hand: %v", outcome.Done)
	}
}

func TestApply_namesFailedHook(t *testing.T) {
	t.Parallel()

	p, chart := newPlace(t), packageOf(t, kubetest.WithHooks.Package("1.0.0"))
	spec := p.spec(map[string]any{"post": map[string]any{kubetest.FailAnnotation: "exit code 3: no such table"}})

	outcome, err := p.Apply(t.Context(), spec, chart, release.Intent{Create: true})

	var failed *release.FailedError
	if !errors.As(err, &failed) {
		t.Fatalf("a failing hook: %v", err)
	}

	for _, text := range []string{"install release " + spec.Name.String(), "Job " + p.namespace + "/web-post",
		"no such table", "Apply again", "set disable_hooks = true"} {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q is not in:\n%s", text, err)
		}
	}

	if last, _ := outcome.Now.Last(); last.Status != release.Failed {
		t.Errorf("the record is %s", last.Status)
	}

	// After the fix, it is installed over the existing objects.
	spec.Values = nil
	outcome = p.apply(t, spec, chart, release.Intent{Create: true})
	same(t, "done", outcome.Done, []string{"installed revision 2"})
}

// A repair runs the hooks of the chart, one of which will never end: it can be done without them.
func TestApply_repairThatHangsInAHook(t *testing.T) {
	t.Parallel()

	p, chart := newPlace(t), packageOf(t, kubetest.WithHooks.Package("1.0.0"))
	spec := p.spec(map[string]any{"pre": map[string]any{kubetest.HangAnnotation: "true"}})
	spec.Options.DisableHooks = true
	p.apply(t, spec, chart, release.Intent{Create: true})

	hangs := spec
	hangs.Options.DisableHooks, hangs.Options.Timeout = false, 2*time.Second

	maps := p.real.API().CoreV1().ConfigMaps(p.namespace)
	if err := maps.Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	_, err := p.Apply(t.Context(), hangs, chart, release.Intent{Repair: true})

	for _, text := range []string{"Job " + p.namespace + "/web-pre", "set disable_hooks = true and apply"} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%q is not in:\n%v", text, err)
		}
	}

	p.apply(t, spec, chart, release.Intent{})

	if _, err := maps.Get(t.Context(), "web", metav1.GetOptions{}); err != nil {
		t.Errorf("without hooks it is not repaired: %v", err)
	}
}

func TestApply_namesWhatIsNotReady(t *testing.T) {
	t.Parallel()

	p, chart := newPlace(t), packageOf(t, kubetest.Simple.Package("1.0.0"))
	good := p.spec(map[string]any{"message": "good"})
	p.apply(t, good, chart, release.Intent{Create: true})

	bad := p.spec(map[string]any{"message": "bad",
		"podAnnotations": map[string]any{kubetest.FailAnnotation: "exit code 1: out of cheese"}})
	bad.Options.Timeout, bad.Options.RollbackOnFailure = 10*time.Second, true

	outcome, err := p.Apply(t.Context(), bad, chart, release.Intent{})

	var failed *release.FailedError
	if !errors.As(err, &failed) {
		t.Fatalf("a pod that crashes: %v", err)
	}

	for _, text := range []string{"upgrade release", "Deployment " + p.namespace + "/web", "out of cheese",
		"rolled back to revision 1"} {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q is not in:\n%s", text, err)
		}
	}

	same(t, "done", outcome.Done, []string{"rolled back to revision 1"})
	same(t, "statuses", p.statuses(t, good.Name), "superseded failed deployed")
	same(t, "objects", p.configMaps(t), []string{"web=good"})

	// The target of the rollback is the earlier wanted state.
	if outcome := p.apply(t, good, chart, release.Intent{}); len(outcome.Done) > 0 {
		t.Errorf("after the rollback: %v", outcome.Done)
	}
}

func TestApply_interruptedLeavesNothingRunning(t *testing.T) {
	t.Parallel()

	p, chart := newPlace(t), packageOf(t, kubetest.Simple.Package("1.0.0"))
	spec := p.spec(map[string]any{"podAnnotations": map[string]any{kubetest.HangAnnotation: "true"}})
	spec.Options.RollbackOnFailure = true

	proxy := newFaultProxy(t, p.real)
	p.API = proxy.client

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()

	// What is asked after the Deployment was made is the wait.
	made := false
	proxy.fault = func(call string, _ int) fault {
		if made {
			time.AfterFunc(10*pause, cancel)
		}

		made = made || strings.HasPrefix(call, "POST ") && strings.Contains(call, "/deployments")

		return pass
	}

	begun := time.Now()
	outcome, err := p.Apply(ctx, spec, chart, release.Intent{Create: true})
	took := time.Since(begun)

	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "It was interrupted") {
		t.Fatalf("an interrupted wait: %v", err)
	}

	if took > testTimeout/2 {
		t.Errorf("it took %s", took)
	}

	if last, _ := outcome.Now.Last(); last.Status != release.Failed || last.Number != 1 {
		t.Errorf("the record is %+v", last)
	}

	same(t, "objects", p.configMaps(t), []string{"web=hello"})

	// Another run takes a while, in which whatever went on behind would ask the API again.
	calls := proxy.count()
	again := newRun(t, p)
	spec.Values = nil
	again.apply(t, spec, chart, release.Intent{Create: true})
	same(t, "statuses", again.statuses(t, spec.Name), "failed deployed")

	if more := proxy.count() - calls; more > 0 {
		t.Errorf("%d requests after the end", more)
	}
}

// newRun is the place as another process sees it.
func newRun(t *testing.T, p *place) *place {
	t.Helper()

	return &place{
		real: p.real, namespace: p.namespace,
		Cluster: &release.Cluster{API: p.real.Client(t, api.Options{}), Pause: pause, LockDuration: lockDuration},
	}
}
