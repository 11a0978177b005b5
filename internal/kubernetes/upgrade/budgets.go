package upgrade

import (
	"context"
	"fmt"

	policyv1 "k8s.io/api/policy/v1"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
)

// blockedEvictions finds PodDisruptionBudgets that allow no eviction even while all of their pods are healthy. Drains
// of the nodes with these pods time out.
func (u *Upgrade) blockedEvictions(ctx context.Context) ([]Problem, error) {
	budgets, err := every[policyv1.PodDisruptionBudget](ctx, u,
		objects.Reference{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"})

	var problems []Problem

	for _, b := range budgets {
		if s := b.Status; s.ExpectedPods > 0 && s.DesiredHealthy >= s.ExpectedPods {
			problems = append(problems, Problem{EvictionCode, "PodDisruptionBudget " + b.Namespace + "/" + b.Name,
				fmt.Sprintf("it requires %d healthy pods of %d, so none can be evicted", s.DesiredHealthy, s.ExpectedPods)})
		}
	}

	return problems, err
}
