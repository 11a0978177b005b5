package nodes

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// controlPlanePods selects the mirror pods of the control plane's components (Talos
// 1.13, ControlPlaneStaticPodController).
const controlPlanePods = "tier=control-plane"

// observeStaticPods adds the control plane's pods to their nodes, with one request.
func (n *Nodes) observeStaticPods(ctx context.Context, nodes []kubestate.Node) error {
	list, err := n.api.CoreV1().Pods(metav1.NamespaceSystem).List(ctx,
		metav1.ListOptions{LabelSelector: controlPlanePods, ResourceVersion: "0"})
	if err != nil {
		return fmt.Errorf("list the pods of the control plane: %w", api.WithoutURL(err))
	}

	pods := map[string]map[string]kubestate.StaticPod{}

	for i := range list.Items {
		p := &list.Items[i]

		name, pod, mirror := staticPodOf(p)
		if !mirror {
			continue
		}

		if pods[p.Spec.NodeName] == nil {
			pods[p.Spec.NodeName] = map[string]kubestate.StaticPod{}
		}

		pods[p.Spec.NodeName][name] = pod
	}

	for i := range nodes {
		nodes[i].StaticPods = pods[nodes[i].Name]
	}

	return nil
}

// staticPodOf returns what a decision needs of a mirror pod. mirror is false for another pod, and for one that is being
// deleted.
func staticPodOf(p *corev1.Pod) (name string, pod kubestate.StaticPod, mirror bool) {
	// The kubelet names a mirror pod after the static pod and its node.
	name, mirror = strings.CutSuffix(p.Name, "-"+p.Spec.NodeName)
	if !mirror || p.DeletionTimestamp != nil {
		return "", kubestate.StaticPod{}, false
	}

	pod = kubestate.StaticPod{Stamp: kubenames.StaticPodStamp(p.Annotations), Ready: PodReady(p)}
	if len(p.Spec.Containers) > 0 {
		pod.Image = p.Spec.Containers[0].Image
	}

	return name, pod, true
}

// kubeProxy is the image of the kube-proxy DaemonSet in Talos's bootstrap manifests (Talos 1.13,
// k8s/templates.go); empty where there is none.
func (n *Nodes) kubeProxy(ctx context.Context) (string, error) {
	daemons, err := n.api.AppsV1().DaemonSets(metav1.NamespaceSystem).Get(ctx, string(kubenames.KubeProxy),
		metav1.GetOptions{ResourceVersion: "0"})

	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read the DaemonSet %s: %w", kubenames.KubeProxy, api.WithoutURL(err))
	case len(daemons.Spec.Template.Spec.Containers) == 0:
		return "", nil
	default:
		return daemons.Spec.Template.Spec.Containers[0].Image, nil
	}
}

// PodReady reports whether a pod's condition Ready is true.
func PodReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}

	return false
}
