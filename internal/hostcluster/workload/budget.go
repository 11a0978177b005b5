package workload

import (
	"context"
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Budget lets whoever drains nodes of the host evict one control plane at a time, nil for a resource that has none.
// talosop's own replacements delete pods and evict none, so that it does not bound them: the planner does, which knows
// more than readiness.
//
// What counts is the pods that there are, each with its StatefulSet of one (Kubernetes 1.36, controller/disruption
// getExpectedScale): the budget needs no number of machines.
//
// A pod that is not ready may still be a member of etcd that the quorum needs, such as one whose API server restarts,
// and with ephemeral storage it takes its data along. So it goes when as many others are ready as are wanted to be
// (IfHealthyBudget), and not always.
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

// Budget is that of a Spec for the control planes that there are. A single one protects nobody, and a drain that it
// holds would never end: a ready one is let go because one may be away, and one that is not ready only with
// AlwaysAllow, because for a budget that wants no healthy pod the other policy allows nothing (Kubernetes 1.36,
// registry/core/pod/storage/eviction.go). Those that leave are members of etcd to the end, so that what stays is a
// single one when they are gone, and not before.
func (i *Inventory) Budget(s Spec) *policyv1.PodDisruptionBudget {
	b := s.Budget()
	if b == nil || i.controlPlanes(s) > 1 {
		return b
	}

	unready := policyv1.AlwaysAllow
	b.Spec.UnhealthyPodEvictionPolicy = &unready

	return b
}

// controlPlanes counts those that a Spec is to keep and those that have a pod or are to get one, whether the Spec names
// them or not.
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

// easeBudget lets the budget follow when a control plane is removed. Where there is none it is left at that.
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

// ensureBudget makes or repairs the budget. Whoever may not have one gets a cluster without it: it protects from others
// alone.
func (h *Client) ensureBudget(ctx context.Context, s Spec, found *Inventory) error {
	wanted := found.Budget(s)
	if wanted == nil {
		return nil
	}

	err := h.putBudget(ctx, s, wanted, found.Budgets[wanted.Name])
	if apierrors.IsForbidden(err) {
		h.progress(fmt.Sprintf("A drain of the host may take several control planes at once: %v", err))

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

// measured says whether others gave a budget the other measure, beside which the host does not take ours: it is made
// anew.
func measured(live *policyv1.PodDisruptionBudget) bool {
	return live != nil && live.DeletionTimestamp == nil && live.Spec.MinAvailable != nil
}

// observeBudget is about the budget, as far as something can be done about it: to whoever may not make or change one it
// is as if there were none.
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
