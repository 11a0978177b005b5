package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	clientgo "k8s.io/client-go/kubernetes"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// Observe lists the nodes, with one request, ordered by name, and with two more the
// pods of the control plane on them and kube-proxy's image, if [Options.StaticPods] asks for it. An API that does not
// answer, or refuses, is described by Reachable and Cause. The list may be a moment
// old: it comes from the API server's cache, which costs etcd nothing.
func (c *Client) Observe(ctx context.Context) cluster.KubernetesState {
	var list *corev1.NodeList

	err := c.do(ctx, func(ctx context.Context, api clientgo.Interface) (err error) {
		list, err = api.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})

		return err
	})
	if err != nil {
		return cluster.KubernetesState{Cause: oneLine(err)}
	}

	c.learn(list.Items)

	state := cluster.KubernetesState{Reachable: true}
	for i := range list.Items {
		state.Nodes = append(state.Nodes, nodeOf(&list.Items[i]))
	}

	if c.staticPods {
		if err := c.observeStaticPods(ctx, state.Nodes); err != nil {
			return cluster.KubernetesState{Cause: oneLine(err)}
		}

		if state.KubeProxy, err = c.kubeProxy(ctx); err != nil {
			return cluster.KubernetesState{Cause: oneLine(err)}
		}
	}

	slices.SortFunc(state.Nodes, func(a, b cluster.Node) int { return strings.Compare(a.Name, b.Name) })

	return state
}

// oneLine joins the reasons of several servers.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// controlPlaneLabel is on the nodes of control planes: Talos gives it to them, as
// kubeadm does (Talos 1.13, constants.LabelNodeRoleControlPlane).
const controlPlaneLabel = "node-role.kubernetes.io/control-plane"

func nodeOf(n *corev1.Node) cluster.Node {
	_, controlPlane := n.Labels[controlPlaneLabel]

	out := cluster.Node{
		Name:           n.Name,
		Unschedulable:  n.Spec.Unschedulable,
		Cordoned:       marked(n),
		ControlPlane:   controlPlane,
		KubeletVersion: n.Status.NodeInfo.KubeletVersion,
		BootID:         n.Status.NodeInfo.BootID,
	}

	for _, a := range n.Status.Addresses {
		out.Addresses = append(out.Addresses, a.Address)
	}

	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			out.Ready = c.Status == corev1.ConditionTrue
			out.ReadyReason, out.ReadySince = c.Reason, c.LastTransitionTime.Time
		}
	}

	// The node controller taints a cordoned node and notes when (Kubernetes 1.36,
	// pkg/controller/util/node SwapNodeControllerTaint).
	for _, t := range n.Spec.Taints {
		if t.Key == corev1.TaintNodeUnschedulable && t.TimeAdded != nil {
			out.UnschedulableSince = t.TimeAdded.Time
		}
	}

	return out
}

// DeleteNode removes a Node object and returns once lists no longer show it: the
// cache that [Client.Observe] reads from follows etcd with a delay. Removing one
// that is gone is not an error.
func (c *Client) DeleteNode(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.call, fmt.Errorf("still listed after %s", c.call))
	defer cancel()

	err := c.do(ctx, func(ctx context.Context, api clientgo.Interface) error {
		return api.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
	})
	if err == nil {
		err = wait.Until(ctx, settle, func(ctx context.Context) error { return c.unlisted(ctx, name) })
	}

	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete node %s: %w", name, err)
	}

	return nil
}

// settle is how often the cache is asked for a node that was deleted.
const settle = 50 * time.Millisecond

// unlisted is nil when the API server's cache knows no such node.
func (c *Client) unlisted(ctx context.Context, name string) error {
	err := c.do(ctx, func(ctx context.Context, api clientgo.Interface) error {
		_, err := api.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{ResourceVersion: "0"})

		return err
	})

	switch {
	case err == nil:
		return errors.New("it is still listed")
	case apierrors.IsNotFound(err):
		return nil
	default:
		return err
	}
}

// Ready asks the API server whether it is ready to serve, as a load balancer would.
func (c *Client) Ready(ctx context.Context) error {
	err := c.do(ctx, func(ctx context.Context, api clientgo.Interface) error {
		return api.CoreV1().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
	if err != nil {
		return fmt.Errorf("ask the Kubernetes API whether it is ready: %w", err)
	}

	return nil
}

// Version returns the version of the API server, such as v1.35.2.
func (c *Client) Version(ctx context.Context) (string, error) {
	var told string

	err := c.do(ctx, func(ctx context.Context, api clientgo.Interface) (err error) {
		told, err = versionFrom(ctx, api)

		return err
	})
	if err != nil {
		return "", fmt.Errorf("ask the Kubernetes API for its version: %w", err)
	}

	return told, nil
}

func versionFrom(ctx context.Context, api clientgo.Interface) (string, error) {
	raw, err := api.CoreV1().RESTClient().Get().AbsPath("/version").DoRaw(ctx)
	if err != nil {
		return "", err
	}

	var info version.Info
	if err := json.Unmarshal(raw, &info); err != nil {
		return "", fmt.Errorf("read the version: %w", err)
	}

	return info.GitVersion, nil
}
