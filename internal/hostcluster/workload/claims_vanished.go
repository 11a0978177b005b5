package workload

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// A user may delete some claims of a machine. An empty claim beside the others would keep half of its data: its
// data without a configuration, or its configuration without data. In the second case, a control plane comes back
// while the others have a quorum. Talos removes its former member and joins as a learner, because its data
// directory is empty (Talos 1.13, services/etcd.go, buildInitialCluster and addMember). Without that quorum, or as
// the only control plane, it would wait for ever for the lost data. This package cannot tell which case applies.
// So such a claim is not recreated on its own. The machine's volumes are lost, and [Client.Wipe] replaces them
// together when its cluster can do without them.
//
// The StatefulSet shows that a claim existed: it is created after all claims of its machine and deleted before any
// of them. While a set mounts the claim, a killed run of talosop cannot explain a missing claim, except for a
// wipe, which marks the set. If the StatefulSet is deleted too, a lost claim looks like one that was never made:
// it is made, and empty.

// keptPaths are the paths with data that a machine cannot write again. It fills the others at every start: on
// metal, /var has them (Talos 1.13, constants.Overlays and VarSystemOverlaysPath).
var keptPaths = []string{statePath, varPath}

// vanished returns the claims with data of a machine that are deleted, or are being deleted with nothing that
// keeps them. A pod with a node may still use the volumes, see keepsClaims.
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
			h.progress(fmt.Sprintf("%s and its data of machine %s are lost, and it is not recreated automatically",
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
