package machines

import (
	"context"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/ledger"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// The plan of a replacement that the CLI forces: -replace, replace_triggered_by and a taint. The create is planned
// without state, so what it wipes comes from an earlier call of the same process.

// removal is what a replacement of an object in state would wipe. Few plans need it.
func (r *machinesResource[M, P]) removal(
	ctx context.Context, state M, private tf.PrivateState,
) ledger.Removal {
	common := P(&state).common()

	set := sync.OnceValue(func() machineset.Set {
		p, _, _ := r.recalledSet(ctx, &state, private) // a plan that needs it reports its mistakes

		return p.Set
	})

	return ledger.Removal{
		Kind: r.kind, ID: common.ID.ValueString(), Set: set,
		Tell: func() string {
			record, found := common.Recorded(ctx, set())
			loss := set().Removal(record, cluster.DefaultPolicy())

			if loss == "" || found.HasError() || set().Preserves {
				return ""
			}

			return " What it would do: " + loss
		},
		Refuse: func() finding.List {
			record, found := common.Recorded(ctx, set())

			return append(found, set().RefuseReplace(r.kind, common.ID.ValueString(), record)...)
		},
		Plan: func(next machineset.Set, tainted bool) finding.List {
			record, found := common.Recorded(ctx, set())
			if found.HasError() {
				return found
			}

			return r.planReset(set(), next, common, record, tainted)
		},
	}
}

// planReplaced plans the reset of the object that a create replaces, if any, and refuses what is protected.
func (r *machinesResource[M, P]) planReplaced(
	ctx context.Context, plan *M, private tf.PrivateState, planned tf.PrivateStore,
) diag.Diagnostics {
	p, _ := r.set(ctx, plan) // its mistakes are already reported
	diags := tf.Diagnostics(r.Ledger().RefuseReplace(ctx, private, r.kind, P(plan).common().ID, p.Set))
	leaves := p.Unknown.Has(machineset.UnknownSecrets) && r.Ledger().SecretsPlanned() // for a cluster with new secrets

	// The removal of a tainted object has the private state of this plan.
	replaced, tainted, _ := r.Ledger().Replaced(ctx, private, r.kind, P(plan).common().ID, p.Set)
	if tainted && p.TakesCluster() {
		remembered, more := readSurroundings(ctx, private)
		remembered.OtherControlPlanes = replaced.Set().AddressesBeside()
		diags.Append(append(more, storeSurroundings(ctx, planned, remembered)...)...)
	}

	return append(diags, tf.PlannedCreate(ctx, private, planned, p.AddressesBeside(), leaves)...)
}

// planReset notes which machines a replacement resets, and warns of what they lose. It refuses the reset when a
// protected cluster ends with the plan, or when control planes cannot be replaced in turn. next is what the object
// becomes.
func (r *machinesResource[M, P]) planReset(
	p, next machineset.Set, common CommonModel, record machineset.Record, tainted bool,
) finding.List {
	if p.Preserves || record.LeftToOthers() {
		return nil
	}

	if off := p.RefuseOff(next); off.HasError() {
		return off
	}

	going := p.Spec(machineset.PriorStateOfDestroy(record, p), machineset.Rendered{}).Machines
	r.Ledger().PlanReplaced(p, r.object(common), going)

	found := p.WarnOfRemoval(record, cluster.DefaultPolicy())
	if found.Append(r.Ledger().PlanEnd(p, r.object(common), finding.OperationReplace)...); found.HasError() {
		return found
	}

	return append(found, r.Ledger().PlanInTurn(p, next, r.object(common), tainted)...)
}
