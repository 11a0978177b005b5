package workload

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// observeClaims compares the claims, and says what of them is wanted and can never be had. That claims with data have
// vanished is for explain, unless a pod still has what was in them.
func (h *Client) observeClaims(
	ctx context.Context, s Spec, m Machine, found *Inventory, vanished []string, state *MachineState,
) error {
	kept := keepsClaims(found.Pods[s.PodName(m)])
	state.Stays = append(state.Stays, found.Conflicts(s, m)...)

	for _, at := range dataPaths {
		state.Exists = state.Exists || found.Claims[s.claimName(m, at)] != nil
	}

	for _, claim := range s.Claims(m) {
		live := found.Claims[claim.Name]

		switch {
		case slices.Contains(vanished, claim.Name):
			state.Complete = false

			if kept {
				state.Stays = append(state.Stays, Difference{Object: ClaimKind.ref(claim), Cause: Going})
			}

			continue
		case live == nil:
			state.Complete = false
			state.Drift = append(state.Drift, Difference{Object: ClaimKind.ref(claim), Cause: Missing})

			continue
		case live.DeletionTimestamp != nil:
			state.Complete = false
			state.Stays = append(state.Stays, Difference{Object: ClaimKind.ref(claim), Cause: Going})

			continue
		}

		wanted, err := fieldsOf(ClaimKind, claim)
		if err != nil {
			return err
		}

		body, err := claimBody(live, claim, wanted)
		if err != nil {
			return err
		}

		_, drift, err := h.differences(ctx, ClaimKind, live, body)
		if err != nil {
			return err
		}

		state.Drift = append(state.Drift, drift...)
	}

	return nil
}

// lost says of a machine's claims which can never be used again: the volume is gone, or it is on a node that does not
// exist any more. A node that is there but not ready may come back with the volume, so that nothing of it is lost.
func (about *surroundings) lost(s Spec, m Machine, found *Inventory) (lost []Difference, err error) {
	for _, at := range dataPaths {
		claim := found.Claims[s.claimName(m, at)]
		if claim == nil || claim.Spec.VolumeName == "" || claim.DeletionTimestamp != nil {
			continue
		}

		if claim.Status.Phase == corev1.ClaimLost {
			lost = append(lost, Difference{Object: ClaimKind.ref(claim), Cause: VolumeLost, Of: claim.Spec.VolumeName})

			continue
		}

		volumes, err := about.volumes()
		if err != nil {
			return nil, err
		}

		// One that is not in the list may have been made since; the host marks a claim without its volume as lost.
		volume := volumes[claim.Spec.VolumeName]
		if volume == nil || volume.Spec.NodeAffinity == nil || volume.Spec.NodeAffinity.Required == nil {
			continue
		}

		nodes, err := about.nodes()
		if err != nil {
			return nil, err
		}

		if nodeGone(volume.Spec.NodeAffinity.Required, nodes) {
			lost = append(lost, Difference{Object: ClaimKind.ref(claim), Cause: VolumeUnreachable, Of: volume.Name})
		}
	}

	return lost, nil
}

// nodeGone reports whether a volume is bound to single nodes, none of which exists. It is true only when that is
// certain. Nodes come and go in the zone of a volume, the storage adds other labels to nodes, and a host that
// shows no node still has some.
func nodeGone(selector *corev1.NodeSelector, nodes map[string]*corev1.Node) bool {
	if len(nodes) == 0 || len(selector.NodeSelectorTerms) == 0 {
		return false
	}

	for _, term := range selector.NodeSelectorTerms {
		gone := func(key string, requirements []corev1.NodeSelectorRequirement) bool {
			return slices.ContainsFunc(requirements, func(r corev1.NodeSelectorRequirement) bool {
				return r.Key == key && r.Operator == corev1.NodeSelectorOpIn && len(r.Values) == 1 && !isNode(r.Values[0], nodes)
			})
		}

		// All parts of a term must match (Kubernetes 1.36, corev1.NodeSelectorTerm), so one impossible part is
		// enough.
		if !gone(corev1.LabelHostname, term.MatchExpressions) && !gone(metav1.ObjectNameField, term.MatchFields) {
			return false
		}
	}

	return true
}

// isNode reports whether there is a node of a name or of a host name.
func isNode(name string, nodes map[string]*corev1.Node) bool {
	for _, node := range nodes {
		if node.Name == name || node.Labels[corev1.LabelHostname] == name {
			return true
		}
	}

	return false
}
