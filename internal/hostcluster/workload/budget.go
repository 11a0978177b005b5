package workload

import (
	"context"
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Budget lets a drain of host nodes evict one control plane at a time. It is nil for a resource without control
// planes. It does not bound talosop's own replacements, which delete pods and evict none. The planner bounds
// those, because it knows more than readiness.
//
// The budget counts the existing pods, each with its StatefulSet of one (Kubernetes 1.36, controller/disruption
// getExpectedScale). So it needs no number of machines.
//
// A pod that is not ready may still be an etcd member that the quorum needs, such as one whose API server
// restarts. With ephemeral storage, its eviction also loses its data. So it may be evicted only while as many
// others are ready as wanted (IfHealthyBudget), and not always.
func (s Spec) Budget() *policyv1.PodDisruptionBudget {
	if s.Endpoint == nil {
		return nil
	}

	away, unready := intstr.FromInt32(1), policyv1.IfHealthyBudget

	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: s.Cluster, Namespace: s.Namespace, Labels: s.labels(),
			Annotations: merged(s.Annotations)},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: &away, UnhealthyPodEvictionPolicy: &unready,
			Selector: &metav1.LabelSelector{
				MatchLabels: merged(s.identity(), map[string]string{LabelRole: string(ControlPlane)})},
		},
	}
}

// Budget is the budget of a Spec for the existing control planes. For a single one, a budget protects nothing, and
// a drain that it blocks would never end. So a ready pod may be evicted because one may be unavailable. One that
// is not ready needs AlwaysAllow: the other policy allows nothing when a budget wants no healthy pod (Kubernetes
// 1.36, registry/core/pod/storage/eviction.go). Leaving control planes are etcd members until they are gone, so
// the rest counts as a single one only after that.
func (i *Inventory) Budget(s Spec) *policyv1.PodDisruptionBudget {
	b := s.Budget()
	if b == nil || i.controlPlanes(s) > 1 {
		return b
	}

	unready := policyv1.AlwaysAllow
	b.Spec.UnhealthyPodEvictionPolicy = &unready

	return b
}

// controlPlanes counts the control planes that a Spec keeps and those that have or get a pod, even if the Spec
// does not name them.
func (i *Inventory) controlPlanes(s Spec) int {
	machines := map[string]bool{}

	for _, m := range s.Machines {
		if m.Role == ControlPlane && !m.Leaving {
			machines[m.Label()] = true
		}
	}

	note := func(labels map[string]string) {
		if machine := labels[LabelMachine]; machine != "" && labels[LabelRole] == string(ControlPlane) {
			machines[machine] = true
		}
	}

	for _, set := range i.Sets {
		note(set.Labels)
	}

	for _, pod := range i.Pods {
		note(pod.Labels)
	}

	return len(machines)
}

// easeBudget adjusts the budget to the removal of a control plane. Without a budget it does nothing.
func (h *Client) easeBudget(ctx context.Context, s Spec) error {
	wanted := s.Budget()
	if wanted == nil {
		return nil
	}

	found, err := h.Inventory(ctx, s, s.Selector())
	if err != nil {
		return err
	}

	if live := found.Budgets[wanted.Name]; live == nil || live.DeletionTimestamp != nil {
		return nil
	}

	return h.ensureBudget(ctx, s, found)
}

// ensureBudget makes or repairs the budget. Without the right to do so, the cluster gets none: the budget only
// protects from other clients.
func (h *Client) ensureBudget(ctx context.Context, s Spec, found *Inventory) error {
	wanted := found.Budget(s)
	if wanted == nil {
		return nil
	}

	err := h.putBudget(ctx, s, wanted, found.Budgets[wanted.Name])
	if apierrors.IsForbidden(err) {
		h.progress(fmt.Sprintf("A drain of the host can stop several control planes at once: %v", err))

		return nil
	}

	return err
}

func (h *Client) putBudget(ctx context.Context, s Spec, wanted, live *policyv1.PodDisruptionBudget) error {
	if measured(live) {
		if err := h.remove(ctx, BudgetKind, live); err != nil {
			return err
		}

		if err := h.awaitGone(ctx, BudgetKind, live); err != nil {
			return err
		}

		live = nil
	}

	body, err := fieldsOf(BudgetKind, wanted)
	if err != nil {
		return err
	}

	_, err = h.ensure(ctx, s, BudgetKind, body, OrNil(live), func(Object) (fields, error) { return body, nil })

	return err
}

// measured reports whether another client gave a budget the other measure. The host does not accept ours beside
// it, so the budget is recreated.
func measured(live *policyv1.PodDisruptionBudget) bool {
	return live != nil && live.DeletionTimestamp == nil && live.Spec.MinAvailable != nil
}

// observeBudget reports differences of the budget that can be repaired. Without the right to make or change it, it
// counts as absent.
func (h *Client) observeBudget(ctx context.Context, s Spec, found *Inventory, o *Observation) error {
	wanted := found.Budget(s)
	if wanted == nil || found.Budgets == nil {
		return nil
	}

	body, err := fieldsOf(BudgetKind, wanted)
	if err != nil {
		return err
	}

	live := found.Budgets[wanted.Name]
	gone := live == nil || live.DeletionTimestamp != nil

	if !gone && !measured(live) {
		if may, err := differs(BudgetKind, live, body); err != nil || !may {
			return err
		}
	}

	_, err = h.apply(ctx, BudgetKind, s.Namespace, body, applyMode{force: true, dryRun: true})

	switch {
	case apierrors.IsForbidden(err):
		return nil
	case gone:
		o.Missing = append(o.Missing, Difference{Object: BudgetKind.ref(wanted), Cause: Missing})

		return nil
	case measured(live):
		o.Drift = append(o.Drift, Difference{
			Object: BudgetKind.ref(live), Cause: Remeasured, Before: live.Spec.MinAvailable.String(),
			After: wanted.Spec.MaxUnavailable.String(),
		})

		return nil
	}

	_, drift, err := h.differences(ctx, BudgetKind, live, body)
	o.Drift = append(o.Drift, drift...)

	return err
}
