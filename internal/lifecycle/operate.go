package lifecycle

import (
	"context"
	"fmt"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/operate"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/operation"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// Operate does an operation once on machines of want, in the order of operate.Plan, and returns when all of them work
// again. It stops early, with an *[IncompleteError], as [Runner.Converge] does. It is not idempotent: another run
// begins again.
func (r *Runner) Operate(ctx context.Context, want cluster.Spec, asked operate.Order) (Result, error) {
	if refused := r.unwipeable(ctx, want, asked); len(refused) > 0 {
		return Result{}, &RefusedError{refused}
	}

	return r.run(ctx, want, func(have cluster.Snapshot) cluster.Decision {
		return operate.Plan(want, have, r.Policy, asked)
	})
}

// unwipeable are the machines on which Talos would refuse a wipe, which is found out before the first one is touched.
// A machine that does not answer is asked by its wipe.
func (r *Runner) unwipeable(ctx context.Context, want cluster.Spec, asked operate.Order) []step.Refusal {
	if asked.Kind != operation.Reset {
		return nil
	}

	var refused []step.Refusal

	for _, m := range want.Machines {
		if !slices.Contains(asked.Machines, m.Name) {
			continue
		}

		if err := r.Fleet.Machine(m).CheckWipe(ctx, asked.Wipe); wait.IsPermanent(err) {
			refused = append(refused, step.Refusal{Machine: m.Name, Reason: err.Error(),
				Remedy: "Name volumes and disks of the machine, as `talosctl get volumestatus` and `talosctl get disks` " +
					"list them"})
		}
	}

	return refused
}

// operate does an operation on one machine.
func (r *Runner) operate(ctx context.Context, o stepRun, s step.Operate) error {
	machine := r.Fleet.Machine(o.on)

	switch s.Kind {
	case operation.Reboot:
		return r.disrupt(ctx, o, s.Evacuation, func(ctx context.Context) error { return machine.Reboot(ctx, o.on.UUID) })
	case operation.Rollback:
		return r.disrupt(ctx, o, s.Evacuation, func(ctx context.Context) error { return machine.Rollback(ctx, o.on.UUID) })
	case operation.Reset:
		return r.disrupt(ctx, o, s.Evacuation, func(ctx context.Context) error {
			// First the record: a run that is killed after the wipe still counts.
			if s.Evacuation.Node != "" {
				if err := r.Kubernetes.NoteReset(ctx, s.Evacuation.Node); err != nil {
					return err
				}
			}

			return machine.WipeVolumes(ctx, s.Wipe, o.on.UUID)
		})
	case operation.Defragment:
		if err := o.confirm(ctx); err != nil {
			return err
		}

		return machine.DefragmentEtcd(ctx)
	case operation.SyncManifests:
		if err := o.confirm(ctx); err != nil {
			return err
		}

		return r.syncManifests(ctx, o,
			step.SyncManifests{Machine: s.Machine, TalosVersion: cluster.OldestTalos(o.want, o.have)})
	case operation.RestartService:
		return machine.RestartService(ctx, s.Service)
	default:
		return wait.Permanent(fmt.Errorf("unsupported operation %q", s.Kind))
	}
}
