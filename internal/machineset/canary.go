package machineset

import (
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
)

// validateCanary refuses a canary pool that the cluster does not have, and a soak for which no update has the time.
func (p Set) validateCanary() finding.List {
	var (
		diags finding.List
		pools = []string{}
		pool  = p.Changes.Canary.Pool
		soak  = p.Changes.Canary.Soak
		limit = p.Changes.UpdateTimeout
		at    = finding.Root("upgrade").AtName("canary")
	)

	for _, g := range p.Groups {
		if g.Role == step.Worker {
			pools = append(pools, g.Pool)
		}
	}

	if pool != "" && !slices.Contains(pools, pool) && !p.Unknown.Has(UnknownMachines) {
		diags.Append(unknownCanary.At(at.AtName("pool"), finding.Args{"value": pool, "pools": pools}))
	}

	if limit > 0 && soak >= limit {
		diags.Append(soakTooLong.At(at.AtName("soak"), finding.Args{"soak": step.Short(soak), "limit": step.Short(limit)}))
	}

	return diags
}

// canaryFirst is the line about a canary pool that a plan does not know.
func (p Set) canaryFirst(steps []step.Step) []string {
	if !p.Changes.CanaryUnknown || !slices.ContainsFunc(steps, step.Step.Disrupts) {
		return nil
	}

	return []string{"change the canary pool first, which is known after apply"}
}
