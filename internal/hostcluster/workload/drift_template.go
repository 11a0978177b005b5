package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// A pod template may contain nothing besides the wanted fields. A volume over /opt, a node selector or a sidecar
// from another client would change the machine, and server-side apply leaves such fields to their owner. So
// talosop finds them in the record of managed fields, and asks the host what they mean, because the host knows the
// defaults.

// stays reports whether a pod is what is wanted, although its StatefulSet was changed after the pod was made: with the
// wanted template the pod is that set's again, and nothing has to be replaced. What the pod has besides is not compared
// here. Should it come from a template, the pod is one of another template as soon as the set has the wanted one.
func (s Spec) stays(m Machine, set *appsv1.StatefulSet, pod *corev1.Pod) bool {
	if set == nil || pod == nil || set.DeletionTimestamp != nil || pod.DeletionTimestamp != nil ||
		!otherTemplate(set, pod) {
		return false
	}

	wanted := s.StatefulSet(m).Spec.Template

	return equality.Semantic.DeepDerivative(wanted.Spec, pod.Spec) &&
		equality.Semantic.DeepDerivative(wanted.Labels, pod.Labels) &&
		equality.Semantic.DeepDerivative(wanted.Annotations, pod.Annotations)
}

// templateDrift returns the differences of a template in which other clients set fields.
func (h *Client) templateDrift(
	ctx context.Context, set *appsv1.StatefulSet, wanted corev1.PodTemplateSpec, makers []string,
) (found []Difference, err error) {
	became, err := h.putTemplate(ctx, set, wanted, metav1.DryRunAll)

	switch {
	case apierrors.IsNotFound(err):
		return nil, nil // the next observation sees that it is gone
	case refused(err):
		return []Difference{{Object: SetKind.ref(set), Cause: Refused, By: makers, Reason: err.Error()}}, nil
	case err != nil:
		return nil, fmt.Errorf("compare the template of %s on %s: %w", SetKind.Of(set), h, err)
	}

	has, err := templateFields(set)
	if err != nil {
		return nil, err
	}

	wants, err := templateFields(became)
	if err != nil {
		return nil, err
	}

	for _, d := range objects.Differences(has, wants) {
		found = append(found, fieldDifference(SetKind.ref(set), d, makers))
	}

	return found, nil
}

// dropAdditions removes fields of other clients from a template as a whole. It runs before the apply, which leaves
// such fields and is refused on a contradiction: a renumbered port keeps its name. A set without such fields is
// not written.
func (h *Client) dropAdditions(
	ctx context.Context, set *appsv1.StatefulSet, wanted corev1.PodTemplateSpec,
) (*appsv1.StatefulSet, error) {
	makers, err := addedBy(set)
	if err != nil || len(makers) == 0 {
		return set, err
	}

	became, err := h.putTemplate(ctx, set, wanted)
	if err != nil {
		return nil, final(fmt.Errorf("undo the changes of %s to the template of %s on %s: %w", strings.Join(makers, ", "),
			SetKind.Of(set), h, err))
	}

	return became, nil
}

// putTemplate replaces a template as a whole: an apply takes nothing from others.
func (h *Client) putTemplate(
	ctx context.Context, set *appsv1.StatefulSet, wanted corev1.PodTemplateSpec, dryRun ...string,
) (*appsv1.StatefulSet, error) {
	patch, err := replacing(set, "/spec/template", wanted)
	if err != nil {
		return nil, err
	}

	return h.API().AppsV1().StatefulSets(set.Namespace).Patch(ctx, set.Name, types.JSONPatchType, patch,
		metav1.PatchOptions{FieldManager: FieldManager, DryRun: dryRun})
}

// replacing is a patch of a part of one object, and of no other that has its name by then. It needs no other right than
// an apply does.
func replacing(o metav1.Object, part string, value any) ([]byte, error) {
	return json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": o.GetUID()},
		{"op": "replace", "path": part, "value": value},
	})
}

func templateFields(set *appsv1.StatefulSet) (fields, error) {
	all, err := liveFields(SetKind, set)

	return fields{"spec": map[string]any{"template": all.part("spec")["template"]}}, err
}

// addedBy are those who set fields of a template that talosop did not set.
func addedBy(set *appsv1.StatefulSet) (makers []string, err error) {
	var ours map[string]any

	type maker struct {
		name     string
		template map[string]any
	}

	var theirs []maker

	for _, entry := range set.ManagedFields {
		if entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}

		var all map[string]any
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &all); err != nil {
			return nil, wait.Permanent(fmt.Errorf("read the field managers of %s: %w", SetKind.Of(set), err))
		}

		template := within(within(all, "f:spec"), "f:template")

		// Fields that talosop wrote without an apply, and fields that webhooks changed in its apply, need not be
		// kept.
		if entry.Manager == FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply {
			ours = template
		} else {
			theirs = append(theirs, maker{entry.Manager, template})
		}
	}

	for _, m := range theirs {
		if beyond(m.template, ours) {
			makers = append(makers, m.name)
		}
	}

	slices.Sort(makers)

	return slices.Compact(makers), nil
}

func within(of map[string]any, key string) map[string]any {
	part, ok := of[key].(map[string]any)
	if !ok {
		return nil
	}

	return part
}

// beyond reports whether a set of fields (Kubernetes: FieldsV1, a map for each, "." for the thing itself) has some that
// another has not.
func beyond(theirs, ours map[string]any) bool {
	for key := range theirs {
		if key == "." {
			continue
		}

		if _, both := ours[key]; !both || beyond(within(theirs, key), within(ours, key)) {
			return true
		}
	}

	return false
}
