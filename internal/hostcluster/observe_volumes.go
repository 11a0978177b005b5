package hostcluster

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// lost says of a machine's claims which can never be used again: the volume is gone, or it is on nodes that do not exist any more.
// A node that is there but not ready may come back with the volume, so that nothing of it is lost.
func (about *surroundings) lost(s Spec, m Machine, found *inventory) (lines []string, err error) {
	for _, at := range dataPaths {
		claim := found.claims[s.claimName(m, at)]
		if claim == nil || claim.Spec.VolumeName == "" || claim.DeletionTimestamp != nil {
			continue
		}

		if claim.Status.Phase == corev1.ClaimLost {
			lines = append(lines, fmt.Sprintf("%s is lost: its volume %s does not exist any more", claimKind.of(claim), claim.Spec.VolumeName))

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

		if nodes != nil && !fitsAny(volume.Spec.NodeAffinity.Required, nodes) {
			lines = append(lines, fmt.Sprintf("volume %s of %s is on a node that does not exist any more", volume.Name, claimKind.of(claim)))
		}
	}

	return lines, nil
}

// fitsAny says whether some node is one of those that a volume can be used on.
func fitsAny(selector *corev1.NodeSelector, nodes map[string]*corev1.Node) bool {
	for _, node := range nodes {
		if slices.ContainsFunc(selector.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool { return fits(term, node) }) {
			return true
		}
	}

	return false
}

// fits is the meaning of one term: all of it, and an empty one fits nothing (Kubernetes 1.36, corev1.NodeSelectorTerm).
func fits(term corev1.NodeSelectorTerm, node *corev1.Node) bool {
	if len(term.MatchExpressions)+len(term.MatchFields) == 0 {
		return false
	}

	return matchAll(term.MatchExpressions, node.Labels) && matchAll(term.MatchFields, map[string]string{metav1.ObjectNameField: node.Name})
}

var operators = map[corev1.NodeSelectorOperator]selection.Operator{
	corev1.NodeSelectorOpIn: selection.In, corev1.NodeSelectorOpNotIn: selection.NotIn, corev1.NodeSelectorOpExists: selection.Exists,
	corev1.NodeSelectorOpDoesNotExist: selection.DoesNotExist,
	corev1.NodeSelectorOpGt:           selection.GreaterThan, corev1.NodeSelectorOpLt: selection.LessThan,
}

// matchAll takes what it does not understand for met: a volume is called lost only when that is certain.
func matchAll(requirements []corev1.NodeSelectorRequirement, values map[string]string) bool {
	return !slices.ContainsFunc(requirements, func(r corev1.NodeSelectorRequirement) bool {
		requirement, err := labels.NewRequirement(r.Key, operators[r.Operator], r.Values)

		return err == nil && !requirement.Matches(labels.Set(values))
	})
}
