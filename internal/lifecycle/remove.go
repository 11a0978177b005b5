package lifecycle

import (
	"context"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
)

// Remove takes the machines in want.Removed out of a cluster whose other machines belong to other resources, as
// cluster.PlanRemoval decides; want.Machines is empty. Destructive. If the cluster lives on, a machine that does not
// answer is removed from it without a reset, and named in Result.Left. If the cluster ends, such a machine is named
// in an *[IncompleteError] like that of Teardown. Machines that accepted their reset and do not come back are in
// Result.Away. It is idempotent.
func (r *Runner) Remove(ctx context.Context, want cluster.Spec) (Result, error) {
	r.Checks, r.endsHooks = nil, true

	result, err := r.run(ctx, want, func(have cluster.Snapshot) cluster.Decision {
		return cluster.PlanRemoval(want, have, r.Policy)
	})
	if err != nil {
		return result, err
	}

	r.leave(&result, want.Removed)

	if len(result.Left) > 0 && cluster.Ends(want, result.Snapshot, r.Policy) {
		return result, &IncompleteError{Phase: cluster.Degraded, Holds: result.Left, Done: result.Done, Err: ErrLeftBehind}
	}

	return result, nil
}
