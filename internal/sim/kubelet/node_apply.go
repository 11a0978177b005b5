package kubelet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/constants"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/sim/kube"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// Apply sets labels, annotations and taints of the configuration on the node, as Talos does while a machine runs,
// and removes those that it set before (Talos 1.14, k8s/node_apply.go). It retries until it succeeds, ctx ends, or
// another call replaces it.
func (kl *Kubelet) Apply(ctx context.Context) {
	own := kl.applies.Add(1)

	for reported := ""; ; {
		err := kl.apply(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}

		if text := err.Error(); errors.Is(err, errRestricted) && text != reported {
			kl.World.Logf("%s: apply to node: %v", kl.Name(), err)
			reported = text
		}

		if timing.Pause(ctx, kube.KubeletRetry) != nil || kl.applies.Load() != own {
			return
		}
	}
}

func (kl *Kubelet) apply(ctx context.Context) error {
	k, err := kl.host.Kubernetes(ctx)
	if err != nil {
		return err
	}

	node, err := k.GetNode(ctx, kl.NodeName)
	if apierrors.IsNotFound(err) {
		return nil // the kubelet registers it, and asks again
	}

	if err != nil {
		return err
	}

	next := node.DeepCopy()
	if err := kl.configure(next); err != nil {
		return err
	}

	if apiequality.Semantic.DeepEqual(node, next) {
		return nil
	}

	// A control plane writes as an administrator, a worker with the credentials of its kubelet (getK8sClient).
	if !kl.ControlPlane() {
		if err := restricted(node, next); err != nil {
			return err
		}
	}

	_, err = k.Typed.CoreV1().Nodes().Update(ctx, next, metav1.UpdateOptions{})

	return err
}

// configure sets the configured fields of a node.
func (kl *Kubelet) configure(node *corev1.Node) error {
	cfg := kl.Config().K8sNodeConfig()

	if node.Labels == nil {
		node.Labels = map[string]string{}
	}

	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}

	for annotation, put := range map[string]func(owned map[string]bool){
		constants.AnnotationOwnedLabels:      func(o map[string]bool) { putOwned(node.Labels, cfg.Labels(), o) },
		constants.AnnotationOwnedAnnotations: func(o map[string]bool) { putOwned(node.Annotations, cfg.Annotations(), o) },
		constants.AnnotationOwnedTaints:      func(o map[string]bool) { putTaints(node, cfg.Taints(), o) },
	} {
		if err := withOwned(node, annotation, put); err != nil {
			return err
		}
	}

	return nil
}

// withOwned reads and writes the list of what Talos put onto a node.
func withOwned(node *corev1.Node, annotation string, put func(owned map[string]bool)) error {
	var list []string
	if err := json.Unmarshal([]byte(cmp.Or(node.Annotations[annotation], "[]")), &list); err != nil {
		return fmt.Errorf("read %s: %w", annotation, err)
	}

	owned := map[string]bool{}
	for _, key := range list {
		owned[key] = true
	}

	put(owned)
	delete(node.Annotations, annotation)

	if len(owned) == 0 {
		return nil
	}

	encoded, err := json.Marshal(slices.Sorted(maps.Keys(owned)))
	if err != nil {
		return fmt.Errorf("write %s: %w", annotation, err)
	}

	node.Annotations[annotation] = string(encoded)

	return nil
}

// putOwned sets what is wanted, unless it is there with another value that Talos did not set.
func putOwned(held, wanted map[string]string, owned map[string]bool) {
	for key, value := range wanted {
		if now, exists := held[key]; exists && now != value && !owned[key] {
			continue
		}

		held[key], owned[key] = value, true
	}

	for key := range owned {
		if _, stays := wanted[key]; !stays {
			delete(held, key)
			delete(owned, key)
		}
	}
}

// putTaints does so with taints.
func putTaints(node *corev1.Node, wanted map[string]string, owned map[string]bool) {
	for _, taint := range taintsOf(wanted) {
		at := slices.IndexFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taint.Key })

		switch {
		case at < 0:
			node.Spec.Taints = append(node.Spec.Taints, taint)
		case owned[taint.Key]:
			node.Spec.Taints[at].Value, node.Spec.Taints[at].Effect = taint.Value, taint.Effect
		case node.Spec.Taints[at].Value != taint.Value || node.Spec.Taints[at].Effect != taint.Effect:
			continue
		}

		owned[taint.Key] = true
	}

	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		_, stays := wanted[t.Key]
		goes := owned[t.Key] && !stays

		if goes {
			delete(owned, t.Key)
		}

		return goes
	})
}

// errRestricted is NodeRestriction's refusal to a kubelet.
var errRestricted = errors.New("forbidden")

// restricted is how the admission plugin NodeRestriction judges an update that a kubelet makes of its own node
// (Kubernetes 1.36, plugin/pkg/admission/noderestriction, admitNode).
func restricted(before, after *corev1.Node) error {
	if !apiequality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints) {
		return fmt.Errorf("nodes %q is %w: node %q is not allowed to modify taints", after.Name, errRestricted, after.Name)
	}

	var refused []string

	for _, labels := range []map[string]string{before.Labels, after.Labels} {
		for key := range labels {
			old, was := before.Labels[key]
			now, is := after.Labels[key]

			if (was != is || old != now) && kubenames.RestrictedLabel(key) {
				refused = append(refused, key)
			}
		}
	}

	if len(refused) == 0 {
		return nil
	}

	slices.Sort(refused)

	return fmt.Errorf("nodes %q is %w: is not allowed to modify labels: %s", after.Name, errRestricted,
		strings.Join(slices.Compact(refused), ", "))
}
