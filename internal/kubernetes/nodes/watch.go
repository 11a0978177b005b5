package nodes

import (
	"context"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// WatchNodes calls changed whenever a node changes in what [Nodes.Observe] reports, until the context ends. A
// watch that ends, or that no server answers, is restarted. WatchNodes then calls changed, because changes in
// between are unknown. It changes nothing.
func (n *Nodes) WatchNodes(ctx context.Context, changed func()) {
	pause := time.NewTicker(n.api.Options.Poll)
	defer pause.Stop()

	for {
		n.watch(ctx, changed)

		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
	}
}

// watch is WatchNodes for as long as one watch lasts.
func (n *Nodes) watch(ctx context.Context, changed func()) {
	events, err := n.api.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return // Observe says why
	}

	defer events.Stop()

	seen := map[string]kubestate.Node{}

	for event := range events.ResultChan() {
		node, ok := event.Object.(*corev1.Node)
		if !ok {
			return // an error, such as that the version is too old
		}

		if event.Type == watch.Deleted {
			delete(seen, node.Name)
			changed()

			continue
		}

		if now := Of(node); !reflect.DeepEqual(seen[node.Name], now) {
			seen[node.Name] = now
			changed()
		}
	}
}
