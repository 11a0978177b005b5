package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// ensureClaim makes or repairs a claim, and lets it grow. One that was deleted while its pod runs goes when the pod
// does: until then nothing can be done for it, and nothing has to. One that no pod keeps is awaited and made again.
// Which may be is for ensureClaims.
func (h *Client) ensureClaim(
	ctx context.Context, s Spec, claim, live *corev1.PersistentVolumeClaim, pod *corev1.Pod,
) error {
	if live != nil && live.DeletionTimestamp != nil && keepsClaims(pod) {
		h.progress(fmt.Sprintf("%s was deleted and is removed with pod %s, including its data", ClaimKind.Of(live), pod.Name))

		return nil
	}

	wanted, err := fieldsOf(ClaimKind, claim)
	if err != nil {
		return err
	}

	if live != nil && grows(live, claim) {
		if err := h.growable(ctx, live, claim); err != nil {
			return err
		}
	}

	_, err = h.ensure(ctx, s, ClaimKind, wanted, OrNil(live), func(o Object) (fields, error) {
		found, ok := o.(*corev1.PersistentVolumeClaim)
		if !ok {
			return nil, fmt.Errorf("the host returned %T instead of a PersistentVolumeClaim", o)
		}

		return claimBody(found, claim, wanted)
	})

	return err
}

// keepsClaims reports whether a pod keeps deleted claims: one without a node uses none (Kubernetes 1.36,
// controller/volume/pvcprotection podUsesPVC).
func keepsClaims(pod *corev1.Pod) bool { return pod != nil && pod.Spec.NodeName != "" }

// keptBy is the error, final, of ending a pod that is all that keeps the claims of its machine, which were deleted; nil
// when none was, and when the pod is about to go anyway.
func (h *Client) keptBy(ctx context.Context, s Spec, m Machine, found *Inventory) error {
	pod := found.Pods[s.PodName(m)]
	if !keepsClaims(pod) || pod.DeletionTimestamp != nil {
		return nil
	}

	vanished, err := h.vanished(ctx, s, m, found)
	if err != nil {
		return err
	}

	var kept []string

	for _, at := range dataPaths {
		name := s.claimName(m, at)
		if claim := found.Claims[name]; claim != nil && claim.DeletionTimestamp != nil || slices.Contains(vanished, name) {
			kept = append(kept, ClaimKind.title(s.Namespace, name))
		}
	}

	if len(kept) == 0 {
		return nil
	}

	return wait.Permanent(fmt.Errorf(
		"%s of machine %s still uses deleted claims: %s. The deletion cannot be undone, and their data is lost when the "+
			"pod is replaced, so the pod was kept. While it runs, back up its data (of a control plane: etcd); then "+
			"remove machine %s and add another, or add first if it is the only control plane",
		PodKind.Of(pod), m.Name, strings.Join(kept, ", "), m.Name))
}

// claimBody is what to apply to a claim that exists. Its spec can never be changed but for the size of one that is
// bound (Kubernetes 1.36, core/validation ValidatePersistentVolumeClaimUpdate), and that only grows.
func claimBody(live, claim *corev1.PersistentVolumeClaim, wanted fields) (fields, error) {
	owned, err := ownedFields(ClaimKind, live)
	if err != nil {
		return nil, err
	}

	spec := map[string]any{}
	if had := requested(live); grows(live, claim) || had.Cmp(requested(claim)) == 0 {
		spec["resources"] = wanted.part("spec")["resources"]
	}

	return owned.with(wanted.part("metadata"), spec), nil
}

func requested(claim *corev1.PersistentVolumeClaim) resource.Quantity {
	return claim.Spec.Resources.Requests[corev1.ResourceStorage]
}

// grows reports whether a claim has to grow, and can by now.
func grows(live, wanted *corev1.PersistentVolumeClaim) bool {
	had := requested(live)

	return live.Status.Phase == corev1.ClaimBound && had.Cmp(requested(wanted)) < 0
}

// growable is an error when the class of a claim does not let it grow. Where classes cannot be read the host's own
// answer has to do.
func (h *Client) growable(ctx context.Context, live, wanted *corev1.PersistentVolumeClaim) error {
	name := ""
	if live.Spec.StorageClassName != nil {
		name = *live.Spec.StorageClassName
	}

	had, wants := requested(live), requested(wanted)
	refusal := fmt.Errorf("%s has %s and cannot grow to %s", ClaimKind.Of(live), had.String(), wants.String())

	if name == "" {
		return wait.Permanent(fmt.Errorf(
			"%w: it has no storage class, and growing requires one with allowVolumeExpansion; set the size back to %s",
			refusal, had.String()))
	}

	class, err := h.API().StorageV1().StorageClasses().Get(ctx, name, metav1.GetOptions{})

	switch {
	case apierrors.IsForbidden(err):
		return nil
	case apierrors.IsNotFound(err):
		return wait.Permanent(fmt.Errorf(
			"%w: storage class %s no longer exists, and growing requires it; set the size back to %s",
			refusal, name, had.String()))
	case err != nil:
		return fmt.Errorf("read StorageClass %s on %s: %w", name, h, err)
	case class.AllowVolumeExpansion == nil || !*class.AllowVolumeExpansion:
		return wait.Permanent(fmt.Errorf(
			"%w: storage class %s lacks allowVolumeExpansion; set it if the storage supports it, or set the size back to %s",
			refusal, name, had.String()))
	}

	return nil
}

// conflicts are what a Spec wants of the objects that exist and can never be had, of all machines, as one error that is
// final.
func (i *Inventory) conflicts(s Spec) error {
	var errs []error

	for _, m := range s.Machines {
		for _, d := range i.Conflicts(s, m) {
			errs = append(errs, errors.New(d.String()))
		}
	}

	return wait.Permanent(errors.Join(errs...))
}

// Conflicts are wanted properties of the volumes of one machine that are impossible. A claim that other clients
// enlarged beyond its wanted size is no conflict.
func (i *Inventory) Conflicts(s Spec, m Machine) (conflicts []Difference) {
	if set := i.Sets[s.HostName(m)]; set != nil && ephemeral(set) != m.Pod.Storage.Ephemeral {
		before, after := claimedStorage, ephemeralStorage
		if !m.Pod.Storage.Ephemeral {
			before, after = after, before
		}

		conflicts = append(conflicts, Difference{Object: SetKind.ref(set), Cause: OtherStorage, Before: before, After: after,
			Of: m.Name})
	}

	for _, wanted := range s.Claims(m) {
		if live := i.Claims[wanted.Name]; live != nil && live.DeletionTimestamp == nil {
			conflicts = append(conflicts, claimConflicts(live, wanted, m)...)
		}
	}

	return conflicts
}

func claimConflicts(live, wanted *corev1.PersistentVolumeClaim, m Machine) (conflicts []Difference) {
	owned, err := ownedFields(ClaimKind, live)
	if err != nil {
		return []Difference{{Object: ClaimKind.ref(live), Cause: Unreadable, Reason: err.Error()}}
	}

	had, wants := requested(live), requested(wanted)
	if had.Cmp(wants) > 0 && owned.part("spec")["resources"] != nil {
		conflicts = append(conflicts, Difference{
			Object: ClaimKind.ref(live), Cause: Smaller, Before: had.String(), After: wants.String(), Of: m.Name,
		})
	}

	class, wantsClass := live.Spec.StorageClassName, wanted.Spec.StorageClassName
	if class != nil && wantsClass != nil && *class != *wantsClass {
		conflicts = append(conflicts, Difference{Object: ClaimKind.ref(live), Cause: OtherClass, Before: *class,
			After: *wantsClass, Of: m.Name})
	}

	return conflicts
}

// ephemeral reports whether the data of a StatefulSet's machine is in its pod.
func ephemeral(set *appsv1.StatefulSet) bool {
	for _, volume := range set.Spec.Template.Spec.Volumes {
		if volume.Name == volumeName(varPath) {
			return volume.EmptyDir != nil
		}
	}

	return false
}
