package hostcluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgo "k8s.io/client-go/kubernetes"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/panics"
)

// podLists caches the pods of clusters briefly: a run requests them with each connection, fifty at once.
type podLists struct {
	api clientgo.Interface

	mu    sync.Mutex
	lists map[clusterKey]*podList
	// seen are the addresses that pods of a cluster had.
	seen map[clusterKey]map[string]bool
}

type clusterKey struct{ namespace, selector string }

// podList is a list of pods that is known or being requested.
type podList struct {
	begun time.Time
	done  chan struct{}
	items []corev1.Pod
	err   error
}

func newPodLists(api clientgo.Interface) *podLists {
	return &podLists{api: api, lists: map[clusterKey]*podList{}, seen: map[clusterKey]map[string]bool{}}
}

// listTime bounds a list that several wait for.
const listTime = 20 * time.Second

// recent is the maximum age of cached pods for a new connection. What turned out to be wrong is requested again.
const recent = 2 * time.Second

// recent returns the pods of all machines of a cluster as they were a moment ago.
func (p *podLists) recent(ctx context.Context, s workload.Spec) (*podList, error) {
	return p.since(ctx, s, time.Now().Add(-recent))
}

// current returns the pods of all machines of a cluster as they are.
func (p *podLists) current(ctx context.Context, s workload.Spec) (*podList, error) {
	return p.since(ctx, s, time.Now())
}

// since returns pods that the host was asked for after some time. However many ask at once, two lists are made: the one
// that was running, and one for all others.
func (p *podLists) since(ctx context.Context, s workload.Spec, earliest time.Time) (*podList, error) {
	for {
		l, fits := p.begin(ctx, s, earliest)

		select {
		case <-l.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}

		switch {
		case !fits:
		case l.err != nil:
			return nil, fmt.Errorf("list the pods of cluster %s in namespace %s: %w", s.Cluster, s.Namespace, l.err)
		default:
			return l, nil
		}
	}
}

// begin finds or makes a list. One that does not fit is to be waited for.
func (p *podLists) begin(ctx context.Context, s workload.Spec, earliest time.Time) (l *podList, fits bool) {
	key := clusterKey{s.Namespace, s.Selector()}

	p.mu.Lock()
	defer p.mu.Unlock()

	if l := p.lists[key]; l != nil && !l.failed() {
		switch {
		case !l.begun.Before(earliest):
			return l, true
		case !l.isDone():
			return l, false
		}
	}

	l = &podList{begun: time.Now(), done: make(chan struct{})}
	p.lists[key] = l

	go func() {
		defer close(l.done)

		// The other callers continue to wait when the first one gives up.
		ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), listTime,
			fmt.Errorf("no response within %s", listTime))
		defer cancel()

		l.err = panics.Do(func() error {
			list, err := p.api.CoreV1().Pods(key.namespace).List(ctx, metav1.ListOptions{LabelSelector: key.selector})
			if err != nil {
				return err
			}

			l.items = slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return !s.OwnPod(&pod) })
			p.see(key, l.items)

			return nil
		})
	}()

	return l, true
}

func (l *podList) isDone() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// failed is false while the request runs.
func (l *podList) failed() bool { return l.isDone() && l.err != nil }

func (p *podLists) see(key clusterKey, pods []corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.seen[key] == nil {
		p.seen[key] = map[string]bool{}
	}

	for i := range pods {
		for _, ip := range workload.PodIPs(&pods[i]) {
			p.seen[key][ip] = true
		}
	}
}

// had reports whether a pod of the cluster has or had an address.
func (p *podLists) had(s workload.Spec, ip string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.seen[clusterKey{s.Namespace, s.Selector()}][ip]
}

// machine finds the pod of a machine by its label, nil without one.
func (l *podList) machine(label string) *corev1.Pod {
	return l.find(func(p *corev1.Pod) bool { return p.Labels[workload.LabelMachine] == label })
}

// ip finds the pod that has an address. One that has ended does not: another may have got it.
func (l *podList) ip(ip string) *corev1.Pod {
	return l.find(func(p *corev1.Pod) bool { return !hasEnded(p) && slices.Contains(workload.PodIPs(p), ip) })
}

// find prefers pods that are not being deleted.
func (l *podList) find(fits func(*corev1.Pod) bool) *corev1.Pod {
	var found *corev1.Pod

	for i := range l.items {
		if p := &l.items[i]; fits(p) && (found == nil || found.DeletionTimestamp != nil) {
			found = p
		}
	}

	return found
}

// controlPlanes are the pods of control planes, ready ones first.
func (l *podList) controlPlanes() []*corev1.Pod {
	var pods []*corev1.Pod

	for i := range l.items {
		if l.items[i].Labels[workload.LabelRole] == string(workload.ControlPlane) {
			pods = append(pods, &l.items[i])
		}
	}

	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(worse(!isReady(a), !isReady(b)), worse(a.DeletionTimestamp != nil, b.DeletionTimestamp != nil),
			cmp.Compare(a.Name, b.Name))
	})

	return pods
}

func worse(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// running finds the pod that a target means, which must run.
func (l *podList) running(s workload.Spec, t target) (*corev1.Pod, error) {
	pod := l.machine(t.machine)

	switch {
	case pod == nil:
		return nil, fmt.Errorf("machine %s-%s has no pod in namespace %s", s.Cluster, t.machine, s.Namespace)
	case t.ip != "" && !slices.Contains(workload.PodIPs(pod), t.ip):
		return nil, fmt.Errorf("machine %s-%s no longer has the address %s", s.Cluster, t.machine, t.ip)
	}

	return pod, fit(pod)
}

// fit is why nothing can be reached in a pod, nil when something may.
func fit(pod *corev1.Pod) error {
	if reason := notRunning(pod); reason != "" {
		return fmt.Errorf("pod %s/%s is not running: it is %s%s", pod.Namespace, pod.Name,
			cmp.Or(string(pod.Status.Phase), "new"), reason)
	}

	return nil
}

// notRunning returns why the container of a pod does not run, empty when it does.
func notRunning(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return ", not scheduled: " + reasoned(c.Reason, c.Message)
		}
	}

	if hasEnded(pod) {
		return ": " + reasoned(cmp.Or(pod.Status.Reason, "it terminated"), pod.Status.Message)
	}

	for _, c := range pod.Status.ContainerStatuses {
		switch {
		case c.Name != workload.ContainerName || c.State.Running != nil:
		case c.State.Waiting != nil:
			return ", its container is waiting: " + reasoned(c.State.Waiting.Reason, c.State.Waiting.Message)
		case c.State.Terminated != nil:
			return fmt.Sprintf(", its container exited with code %d and will restart",
				c.State.Terminated.ExitCode)
		}
	}

	if pod.Status.Phase != corev1.PodRunning {
		return ", and has not started yet"
	}

	return ""
}

func reasoned(reason, message string) string {
	if message == "" {
		return reason
	}

	return reason + " (" + message + ")"
}

func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
