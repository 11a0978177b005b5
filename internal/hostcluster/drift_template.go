package hostcluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// A pod template is wanted as it is and nothing besides: a volume over /opt, a node selector or a sidecar that somebody added lets another
// machine come back than was asked for, and server-side apply leaves all of that to whoever added it. So it is looked for in the
// record of who set what; what it means is then asked of the host, which knows what is a default.

// additions says what others added to a pod template, a line each.
func (h *Host) additions(ctx context.Context, set *appsv1.StatefulSet, wanted corev1.PodTemplateSpec) ([]string, error) {
	makers, err := addedBy(set)
	if err != nil || len(makers) == 0 {
		return nil, err
	}

	// Whatever version it has by now: its status changes all the time.
	asked := set.DeepCopy()
	asked.ResourceVersion = ""
	became, err := h.putTemplate(ctx, asked, wanted, metav1.DryRunAll)

	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return nil, nil // it is another one by now, which the next observation sees
	case refused(err):
		return []string{fmt.Sprintf("%s: %s added to its template, and the host would not take that away: %v", setKind.of(set), strings.Join(makers, ", "), err)}, nil
	case err != nil:
		return nil, fmt.Errorf("compare the template of %s on %s: %w", setKind.of(set), h, err)
	}

	found, err := templateFields(set)
	if err != nil {
		return nil, err
	}

	wants, err := templateFields(became)
	if err != nil {
		return nil, err
	}

	var lines []string

	for _, d := range kubernetes.Differences(found, wants) {
		lines = append(lines, fmt.Sprintf("%s: %s (by %s)", setKind.of(set), d, strings.Join(makers, ", ")))
	}

	return lines, nil
}

// dropAdditions takes from a template what others added to it. What is as wanted is not written.
func (h *Host) dropAdditions(ctx context.Context, set *appsv1.StatefulSet, wanted corev1.PodTemplateSpec) (*appsv1.StatefulSet, error) {
	makers, err := addedBy(set)
	if err != nil || len(makers) == 0 {
		return set, err
	}

	became := set

	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if became, err = h.putTemplate(ctx, set, wanted); !apierrors.IsConflict(err) {
			return err
		}

		now, reason := h.client().AppsV1().StatefulSets(set.Namespace).Get(ctx, set.Name, metav1.GetOptions{})
		if reason == nil && now.UID == set.UID {
			set = now
		}

		return err
	})
	if err != nil {
		return nil, final(fmt.Errorf("take from %s on %s what %s added to its template: %w", setKind.of(set), h, strings.Join(makers, ", "), err))
	}

	return became, nil
}

// putTemplate replaces a template as a whole, unless the set changed since it was read: an apply takes nothing from others.
func (h *Host) putTemplate(ctx context.Context, set *appsv1.StatefulSet, wanted corev1.PodTemplateSpec, dryRun ...string) (*appsv1.StatefulSet, error) {
	changed := set.DeepCopy()
	wanted.DeepCopyInto(&changed.Spec.Template)

	return h.client().AppsV1().StatefulSets(set.Namespace).Update(ctx, changed, metav1.UpdateOptions{FieldManager: fieldManager, DryRun: dryRun})
}

func templateFields(set *appsv1.StatefulSet) (fields, error) {
	all, err := liveFields(setKind, set)

	return fields{"spec": map[string]any{"template": all.part("spec")["template"]}}, err
}

// addedBy are those who set fields of a template that talosop did not set.
func addedBy(set *appsv1.StatefulSet) (makers []string, err error) {
	var ours map[string]any

	theirs := map[string]map[string]any{}

	for _, entry := range set.ManagedFields {
		if entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}

		var all map[string]any
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &all); err != nil {
			return nil, wait.Permanent(fmt.Errorf("read who set the fields of %s: %w", setKind.of(set), err))
		}

		template := within(within(all, "f:spec"), "f:template")

		switch {
		case entry.Manager != fieldManager:
			theirs[entry.Manager] = template
		case entry.Operation == metav1.ManagedFieldsOperationApply:
			ours = template
		default:
			// What webhooks made of what talosop asked for.
		}
	}

	for maker, template := range theirs {
		if beyond(template, ours) {
			makers = append(makers, maker)
		}
	}

	slices.Sort(makers)

	return makers, nil
}

func within(of map[string]any, key string) map[string]any {
	part, ok := of[key].(map[string]any)
	if !ok {
		return nil
	}

	return part
}

// beyond says whether a set of fields (Kubernetes: FieldsV1, a map for each, "." for the thing itself) has some that another has not.
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
