package nodes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// Nodes are those of one cluster. It is safe for concurrent use.
type Nodes struct{ api *api.Client }

// New is for the cluster of a client; it does no I/O.
func New(c *api.Client) *Nodes { return &Nodes{c} }

// Observe lists the nodes, with one request, ordered by name, and asks whether an API server is ready. If
// [api.Options.StaticPods] asks for it, two more requests add their pods of the control plane and kube-proxy's image.
// [api.Options.EachServer] adds the certificates of API servers, and asks each of them whether it is ready. An API that
// does not answer, or refuses, is described by Reachable and Cause. The list may be slightly old: it comes from the API
// server's cache, which costs etcd nothing.
func (n *Nodes) Observe(ctx context.Context) kubestate.State {
	state := n.observe(ctx)
	state.Endpoint = n.api.Endpoint()

	if !n.api.Options.EachServer {
		if state.Reachable {
			state.Unready = n.api.NoneReady(ctx)
		}

		return state
	}

	// Also when no server answers: an expired certificate may be the reason.
	state.Certificates = n.api.Certificates(ctx)

	var answering []string
	for _, c := range state.Certificates {
		answering = append(answering, c.URL)
	}

	state.Unready = n.api.UnreadyAmong(ctx, answering)

	return state
}

func (n *Nodes) observe(ctx context.Context) kubestate.State {
	list, err := n.api.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return kubestate.State{Cause: api.OneLine(err)}
	}

	n.api.Learn(list.Items)

	state := kubestate.State{Reachable: true, Owners: map[string]string{}, Unproven: map[string]string{}}

	for i := range list.Items {
		node := &list.Items[i]
		state.Nodes = append(state.Nodes, Of(node))

		if owner, proven := ownerOf(node, n.api.Options.OwnerKeys); proven {
			state.Owners[node.Name] = owner
		} else if _, marked := node.Annotations[ownerMark]; marked {
			state.Unproven[node.Name] = owner
		}
	}

	if n.api.Options.StaticPods {
		if err := n.observeStaticPods(ctx, state.Nodes); err != nil {
			return kubestate.State{Cause: api.OneLine(err)}
		}

		if state.KubeProxy, err = n.kubeProxy(ctx); err != nil {
			return kubestate.State{Cause: api.OneLine(err)}
		}
	}

	slices.SortFunc(state.Nodes, func(a, b kubestate.Node) int { return strings.Compare(a.Name, b.Name) })

	return state
}

// Of returns what a decision needs of a node.
func Of(node *corev1.Node) kubestate.Node {
	_, controlPlane := node.Labels[api.ControlPlaneLabel]

	out := kubestate.Node{
		Name:           node.Name,
		Unschedulable:  node.Spec.Unschedulable,
		Cordoned:       marked(node),
		ControlPlane:   controlPlane,
		ProviderID:     node.Spec.ProviderID,
		Labels:         node.Labels,
		KubeletVersion: node.Status.NodeInfo.KubeletVersion,
		TalosVersion:   talosOf(node.Status.NodeInfo.OSImage),
		BootID:         node.Status.NodeInfo.BootID,
		Staged:         staged(node),
		Soak:           soakOf(node),
		Keys:           rotation.ParseKeys(node.Annotations[rotation.Annotation]),
	}

	out.CordonedAt, out.CordonedBy = markOf(node)
	out.ResetAt, _ = time.Parse(time.RFC3339, node.Annotations[resetMark]) // zero without the mark

	for _, a := range node.Status.Addresses {
		out.Addresses = append(out.Addresses, a.Address)
	}

	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			out.Ready = c.Status == corev1.ConditionTrue
			out.ReadyReason, out.ReadySince = c.Reason, c.LastTransitionTime.Time
		}
	}

	// The node controller taints a cordoned node and notes when (Kubernetes 1.36,
	// pkg/controller/util/node SwapNodeControllerTaint).
	for _, t := range node.Spec.Taints {
		if t.Key == corev1.TaintNodeUnschedulable && t.TimeAdded != nil {
			out.UnschedulableSince = t.TimeAdded.Time
		}
	}

	return out
}

// DeleteNode removes a Node object and returns once lists no longer show it: the
// cache that [Nodes.Observe] reads from follows etcd with a delay. Removing one
// that is gone is not an error.
func (n *Nodes) DeleteNode(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, n.api.Options.Call,
		fmt.Errorf("still listed after %s", n.api.Options.Call))
	defer cancel()

	err := n.api.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
	if err == nil {
		err = wait.Until(ctx, settle, func(ctx context.Context) error { return n.unlisted(ctx, name) })
	}

	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete node %s: %w", name, err)
	}

	return nil
}

// settle is how often the cache is asked for a node that was deleted.
const settle = 50 * time.Millisecond

// unlisted is nil when the API server's cache knows no such node.
func (n *Nodes) unlisted(ctx context.Context, name string) error {
	_, err := n.api.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{ResourceVersion: "0"})

	switch {
	case err == nil:
		return errors.New("the node is still listed")
	case apierrors.IsNotFound(err):
		return nil
	default:
		return err
	}
}

// talosOf is the version of a system that is called "Talos (v1.13.0)" (Talos 1.13, pkg/machinery/version, OSRelease);
// empty for another one.
func talosOf(system string) string {
	version, ok := strings.CutPrefix(system, "Talos (")
	if !ok {
		return ""
	}

	return strings.TrimSuffix(version, ")")
}
