package kubernetes_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// patient is a policy that leaves time enough on a loaded machine.
var patient = cluster.DrainPolicy{Timeout: time.Minute, OnTimeout: cluster.DrainFail}

func hasty(then cluster.DrainTimeout) cluster.DrainPolicy {
	return cluster.DrainPolicy{Timeout: 4 * time.Second, OnTimeout: then}
}

func TestDrain_onClusters(t *testing.T) {
	t.Parallel()
	onClusters(t, func(t *testing.T, l *living) {
		t.Helper()

		tests := map[string]func(*testing.T, *living){
			"takes what kubectl drain takes": testDrainTakes,
			"within budgets":                 testDrainWithinBudgets,
			"waits for a budget":             testDrainWaitsForABudget,
			"waits for the kubelet":          testDrainWaitsForTheKubelet,
			"when time runs out":             testDrainOutOfTime,
			"names what blocks it":           testDrainNamesBlockers,
			"by force leaves who takes long": testDrainByForceLeavesWhoTakesLong,
		}
		for name, test := range tests {
			t.Run(name, func(t *testing.T) { test(t, l) })
		}
	})
}

func testDrainTakes(t *testing.T, l *living) {
	t.Helper()
	l.node(t, "takes", nil)
	l.node(t, "other", nil)

	owner := l.daemonSet(t, "daemon")
	daemonOf := func(name string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{owner}
			p.OwnerReferences[0].Name = name
		}
	}

	l.pod(t, "other", "elsewhere", nil)
	l.pod(t, "takes", "bare", nil)
	l.pod(t, "takes", "daemon", daemonOf("daemon"))
	l.pod(t, "takes", "orphan", daemonOf("gone"))
	l.pod(t, "takes", "scratch", func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{
			{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	})
	l.pod(t, "takes", "static", func(p *corev1.Pod) {
		p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "its-hash"}
	})

	for range 2 {
		check(t, l.client(t).Drain(t.Context(), "takes", patient, unheard))

		if got := l.pods(t, "takes"); got != "daemon static" {
			t.Errorf("left on the node: %q, want the daemon set's and the static one", got)
		}
	}

	if got := l.pods(t, "other"); got != "elsewhere" {
		t.Errorf("on the other node: %q", got)
	}
}

// daemonSet makes a DaemonSet, and returns what its pods are owned by.
func (l *living) daemonSet(t *testing.T, name string) metav1.OwnerReference {
	t.Helper()

	labels := map[string]string{"app": name}
	set, err := l.api.AppsV1().DaemonSets("default").Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.org/" + name}}},
			},
		},
	}, metav1.CreateOptions{})
	check(t, err)

	return metav1.OwnerReference{APIVersion: "apps/v1", Kind: "DaemonSet", Name: name, UID: set.UID,
		Controller: new(true)}
}

func testDrainWithinBudgets(t *testing.T, l *living) {
	t.Helper()
	l.node(t, "budgeted", nil)
	l.pod(t, "budgeted", "allowed", nil)
	l.budget(t, "allowed", 1)

	check(t, l.client(t).Drain(t.Context(), "budgeted", patient, unheard))

	b, err := l.api.PolicyV1().PodDisruptionBudgets("default").Get(t.Context(), "allowed", metav1.GetOptions{})
	check(t, err)

	if b.Status.DisruptionsAllowed != 0 {
		t.Errorf("%d disruptions are still allowed: the pod was not evicted but deleted", b.Status.DisruptionsAllowed)
	}
}

func testDrainWaitsForABudget(t *testing.T, l *living) {
	t.Helper()
	l.node(t, "waits", nil)
	l.pod(t, "waits", "late", nil)
	l.pod(t, "waits", "early", nil)
	l.budget(t, "late", 0)

	done := make(chan error, 1)
	client := l.client(t)

	go func() { done <- client.Drain(t.Context(), "waits", patient, unheard) }()

	check(t, wait.Until(within(t, time.Minute), 10*time.Millisecond, func(context.Context) error {
		if got := l.pods(t, "waits"); got != "late" {
			return errors.New("on the node: " + got)
		}

		return nil
	}))
	l.budget(t, "late", 1)
	check(t, <-done)
}

func testDrainWaitsForTheKubelet(t *testing.T, l *living) {
	t.Helper()

	node := l.machine.Hostname()
	l.pod(t, node, "graceful", func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(30)) })
	check(t, l.client(t).Drain(t.Context(), node, patient, unheard))

	// The machine runs a separate control plane.
	if got := l.pods(t, node); strings.Contains(got, "graceful") {
		t.Errorf("left on the node: %q", got)
	}
}

func testDrainOutOfTime(t *testing.T, l *living) {
	t.Helper()

	const left = "1 pod remains: default/NODE (PodDisruptionBudget default/NODE: allowed disruptions 0, 1 of 1 " +
		"healthy, 1 needed)"

	tests := map[cluster.DrainTimeout]struct {
		wantErr, wantReported string
		wantPods              string
	}{
		cluster.DrainFail:  {wantErr: "drain node NODE: timed out after 4s: " + left, wantPods: "NODE"},
		cluster.DrainSkip:  {wantReported: "drain node NODE: continuing although " + left, wantPods: "NODE"},
		cluster.DrainForce: {},
	}
	for then, test := range tests {
		t.Run(string(then), func(t *testing.T) {
			node := "out-of-time-" + string(then)
			named := func(s string) string { return strings.ReplaceAll(s, "NODE", node) }

			l.node(t, node, nil)
			l.pod(t, node, node, nil)
			l.budget(t, node, 0)

			reported, tell := heard()

			err := l.client(t).Drain(t.Context(), node, hasty(then), tell)
			if (err == nil) != (test.wantErr == "") || err != nil &&
				(err.Error() != named(test.wantErr) || !wait.IsPermanent(err)) {
				t.Errorf("error %v, want %q for good", err, named(test.wantErr))
			}

			if got := strings.Join(*reported, "\n"); got != named(test.wantReported) {
				t.Errorf("got %q, want %q", got, named(test.wantReported))
			}

			if got := l.pods(t, node); got != named(test.wantPods) {
				t.Errorf("left on the node: %q, want %q", got, named(test.wantPods))
			}
		})
	}
}

// unheard ignores the reports of a drain.
func unheard(string) {}

// heard collects the reports of a drain.
func heard() (*[]string, func(string)) {
	var reported []string

	return &reported, func(text string) { reported = append(reported, text) }
}

func testDrainByForceLeavesWhoTakesLong(t *testing.T, l *living) {
	t.Helper()
	l.node(t, "forced", nil)
	l.pod(t, "forced", "lingers", func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(300)) })
	l.budget(t, "lingers", 0)

	reported, tell := heard()
	check(t, l.client(t).Drain(t.Context(), "forced", hasty(cluster.DrainForce), tell))

	const want = "drain node forced: continuing although 1 pod remains: default/lingers (terminating)"
	if got := strings.Join(*reported, "\n"); got != want || l.pods(t, "forced") != "lingers†" {
		t.Errorf("got %q with %q on the node, want %q", got, l.pods(t, "forced"), want)
	}
}

func testDrainNamesBlockers(t *testing.T, l *living) {
	t.Helper()
	l.node(t, "named", nil)
	l.pod(t, "named", "slow", func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(300)) })
	l.pod(t, "named", "twice", func(p *corev1.Pod) { p.Labels["second"] = "yes" })
	l.budget(t, "twice", 1)

	_, err := l.api.PolicyV1().PodDisruptionBudgets("default").Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "second"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"second": "yes"}}},
	}, metav1.CreateOptions{})
	check(t, err)

	err = l.client(t).Drain(t.Context(), "named", hasty(cluster.DrainFail), unheard)
	if err == nil || !strings.Contains(err.Error(),
		"2 pods remain: default/slow (terminating), default/twice (") ||
		!strings.Contains(err.Error(), "more than one PodDisruptionBudget") {
		t.Errorf("error %v, want it to name both and why", err)
	}
}

// podServer serves the pods of a node, and answers evictions with a handler.
func podServer(evict http.HandlerFunc, pods ...corev1.Pod) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			evict(w, r)
		case strings.HasSuffix(r.URL.Path, "/poddisruptionbudgets"):
			answer(w, http.StatusOK, policyv1.PodDisruptionBudgetList{
				TypeMeta: metav1.TypeMeta{Kind: "PodDisruptionBudgetList", APIVersion: "policy/v1"},
			})
		default:
			answer(w, http.StatusOK, corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: pods})
		}
	}
}

// blocked is how an API server refuses an eviction while it does not know the state of
// the budget: with the wish to be asked again in ten seconds.
func blocked(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "10")
	answer(w, http.StatusTooManyRequests, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Reason: metav1.StatusReasonTooManyRequests, Code: http.StatusTooManyRequests,
		Message: "Cannot evict pod as it would violate the pod's disruption budget.",
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
			{Type: policyv1.DisruptionBudgetCause, Message: "The disruption budget b is still being processed by the server."},
		}},
	})
}

// Not parallel: it looks at the goroutines of the whole process.
func TestDrain_endsWithItsContext(t *testing.T) {
	ca := newAuthority(t)
	asked := make(chan struct{})
	once := sync.OnceFunc(func() { close(asked) })

	server := ca.apiServer(t, podServer(func(w http.ResponseWriter, r *http.Request) {
		blocked(w, r)
		once()
	}, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "stays"}}))

	ctx, cancel := context.WithCancelCause(t.Context())
	interrupted := errors.New("interrupted")
	done := make(chan error, 1)
	client := ca.client(t, server.URL)

	go func() { done <- client.Drain(ctx, "worker-1", cluster.DrainPolicy{Timeout: time.Hour}, unheard) }()

	<-asked
	cancel(interrupted)

	began := time.Now()

	if err := <-done; !errors.Is(err, interrupted) || wait.IsPermanent(err) {
		t.Errorf("error %v, want the cause of the interrupt", err)
	}

	// Less than a pause of kubectl's between two evictions.
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("it took %s to end", took)
	}

	var stacks bytes.Buffer
	check(t, pprof.Lookup("goroutine").WriteTo(&stacks, 2))

	for _, code := range []string{"nodes.(*Nodes)", "nodes.(*draining)", "api.(*Failover)", "kubectl/pkg/drain"} {
		if strings.Contains(stacks.String(), code) {
			t.Errorf("a goroutine is left in %s", code)
		}
	}
}

func TestDrain_leavesOutWhatIsOverdue(t *testing.T) {
	t.Parallel()

	ca := newAuthority(t)
	pod := func(name string, ago time.Duration) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, DeletionTimestamp: new(metav1.NewTime(time.Now().Add(-ago))),
		}}
	}

	evict := func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("request %s for a pod that is shutting down", r.URL)
	}

	check(t, ca.client(t, ca.apiServer(t, podServer(evict, pod("dead", 2*time.Minute))).URL).Drain(t.Context(), "worker-1",
		patient, unheard))

	err := ca.client(t, ca.apiServer(t, podServer(evict, pod("slow", -time.Minute))).URL).
		Drain(t.Context(), "worker-1", hasty(cluster.DrainFail), unheard)
	if err == nil || !strings.Contains(err.Error(), "default/slow (terminating)") {
		t.Errorf("error %v, want the pod that may still end", err)
	}
}

// A pod of the same name is not the pod that was to be evicted.
func TestDrain_evictsThePodItSaw(t *testing.T) {
	t.Parallel()

	ca := newAuthority(t)

	var evictions atomic.Int32

	server := ca.apiServer(t, podServer(func(w http.ResponseWriter, r *http.Request) {
		if evictions.Add(1) == 1 { // the last one may end with the drain, in the middle of its body
			eviction := decode[policyv1.Eviction](t, r)
			if p := eviction.DeleteOptions.Preconditions; p == nil || p.UID == nil || *p.UID != "its-uid" {
				t.Errorf("preconditions %v, want the UID", p)
			}
		}

		refusal(409, metav1.StatusReasonConflict)(w, r)
	}, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db-0", UID: "its-uid"}}))

	err := ca.client(t, server.URL).Drain(t.Context(), "worker-1", hasty(cluster.DrainFail), unheard)
	if err == nil || evictions.Load() == 0 {
		t.Errorf("error %v after %d evictions", err, evictions.Load())
	}
}

// Whether pods are left is not known when the API is gone, so nothing is final.
func TestDrain_ofAnAPIThatIsGone(t *testing.T) {
	t.Parallel()

	ca := newAuthority(t)

	for _, then := range []cluster.DrainTimeout{cluster.DrainFail, cluster.DrainForce, cluster.DrainSkip} {
		err := ca.client(t, "https://"+closedPort(t)).Drain(t.Context(), "worker-1",
			cluster.DrainPolicy{Timeout: time.Second, OnTimeout: then}, unheard)
		if err == nil || wait.IsPermanent(err) || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("%s: error %v, want one that may be repeated", then, err)
		}
	}
}
