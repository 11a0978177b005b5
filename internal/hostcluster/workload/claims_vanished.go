package workload

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// What becomes of a machine whose claims somebody deleted. An empty claim beside the others would give it half of what
// it had: its data without a configuration, or its configuration without data. With the latter a control plane comes
// back while the others have a quorum: Talos removes its former member and joins as a learner, because its data
// directory is empty (Talos 1.13, services/etcd.go, buildInitialCluster and addMember). Without that quorum, and where
// it is the only one, it does not, and would wait for ever for what is lost. Nothing here knows which of these it is.
// So such a claim is not made again on its own. The machine's volumes are lost, and are replaced together by
// [Client.Wipe], when its cluster can do without them.
//
// That a claim was there is known by the StatefulSet, which is made after all claims of its machine and goes before any
// of them: as long as there is one that mounts the claim, no killed run of talosop is why the claim is not there, but
// for a wipe, which has marked the set. Where somebody deleted the StatefulSet, too, nothing tells a claim that is gone
// from one that was never made: it is made, and empty.

// keptPaths are those with what a machine cannot write anew. The others it fills at every start: on metal, /var has
// them (Talos 1.13, constants.Overlays and VarSystemOverlaysPath).
var keptPaths = []string{statePath, varPath}

// vanished are the claims of a machine that it had data in and that are no more, or go and nobody keeps. A pod that has
// a node may still have the volumes in use, see keepsClaims.
func (h *Client) vanished(ctx context.Context, s Spec, m Machine, found *Inventory) (names []string, err error) {
	set, pod := found.Sets[s.HostName(m)], found.Pods[s.PodName(m)]
	if set == nil || set.DeletionTimestamp != nil || set.Annotations[wipeAnnotation] != "" {
		return nil, nil
	}

	for _, at := range keptPaths {
		name := s.claimName(m, at)
		if live := found.Claims[name]; !mountsClaim(set, name) || live != nil &&
			(live.DeletionTimestamp == nil || keepsClaims(pod)) {
			continue
		}

		// It was not found by its labels, or not in this moment.
		o, err := h.get(ctx, ClaimKind, s.Namespace, name)
		if err != nil {
			return nil, err
		}

		if o == nil || s.Ours(o) && o.GetDeletionTimestamp() != nil && !keepsClaims(pod) {
			names = append(names, name)
		}
	}

	return names, nil
}

func mountsClaim(set *appsv1.StatefulSet, name string) bool {
	return slices.ContainsFunc(set.Spec.Template.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == name
	})
}

// ensureClaims makes and repairs the claims of a machine that are for Ensure to make; may says which of them to look
// at.
func (h *Client) ensureClaims(
	ctx context.Context, s Spec, m Machine, found *Inventory, may func(live *corev1.PersistentVolumeClaim) bool,
) error {
	vanished, err := h.vanished(ctx, s, m, found)
	if err != nil {
		return err
	}

	for _, claim := range s.Claims(m) {
		live := found.Claims[claim.Name]

		if slices.Contains(vanished, claim.Name) {
			h.progress(fmt.Sprintf("%s is gone with what machine %s had in it, and is not made anew on its own",
				ClaimKind.Of(claim), m.Name))

			continue
		}

		if !may(live) {
			continue
		}

		if err := h.ensureClaim(ctx, s, claim, live, found.Pods[s.PodName(m)]); err != nil {
			return err
		}
	}

	return nil
}
