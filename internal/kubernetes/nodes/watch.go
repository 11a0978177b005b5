package nodes

import (
	"context"
	"reflect"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/talosop/terraform-provider-talosop/internal/panics"
)

// WatchNodes calls changed whenever a node changes in what [Nodes.Observe] reports, until the context ends. If
// [api.Options.StaticPods] asks for them, the pods of the control plane are part of that. A watch that ends, or that
// no server answers, is restarted. WatchNodes then calls changed, because changes in between are unknown. It changes
// nothing.
func (n *Nodes) WatchNodes(ctx context.Context, changed func()) {
	watches := []watched{{n.api.CoreV1().Nodes().Watch, "", nodeOf}}
	if n.api.Options.StaticPods {
		watches = append(watches, watched{n.api.CoreV1().Pods(metav1.NamespaceSystem).Watch, controlPlanePods, podOf})
	}

	var all sync.WaitGroup

	for _, w := range watches {
		all.Go(func() {
			// Without it, they are still polled.
			_ = panics.Call(func() { w.follow(ctx, n.api.Options.Poll, changed) })
		})
	}

	all.Wait()
}

// watched is a kind of objects that Observe reports.
type watched struct {
	begin  func(context.Context, metav1.ListOptions) (watch.Interface, error)
	labels string
	// of is the name of an object and what is reported of it; ok is false for an error.
	of func(runtime.Object) (name string, reported any, ok bool)
}

func nodeOf(object runtime.Object) (name string, reported any, ok bool) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return "", nil, false
	}

	return node.Name, Of(node), true
}

func podOf(object runtime.Object) (name string, reported any, ok bool) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return "", nil, false
	}

	_, state, _ := staticPodOf(pod)

	return pod.Name, state, true
}

// follow watches until the context ends.
func (w watched) follow(ctx context.Context, every time.Duration, changed func()) {
	pause := time.NewTicker(every)
	defer pause.Stop()

	for {
		w.watch(ctx, changed)

		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
	}
}

// watch is follow for as long as one watch lasts.
func (w watched) watch(ctx context.Context, changed func()) {
	events, err := w.begin(ctx, metav1.ListOptions{LabelSelector: w.labels, ResourceVersion: "0"})
	if err != nil {
		return // Observe says why
	}

	defer events.Stop()

	seen := map[string]any{}

	for event := range events.ResultChan() {
		name, now, ok := w.of(event.Object)
		if !ok {
			return // an error, such as that the version is too old
		}

		if event.Type == watch.Deleted {
			delete(seen, name)
			changed()

			continue
		}

		if !reflect.DeepEqual(seen[name], now) {
			seen[name] = now
			changed()
		}
	}
}
