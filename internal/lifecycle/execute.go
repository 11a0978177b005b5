package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// revertAfter is how long a configuration is on trial. If the machine is not reachable within that time, Talos
// restores the previous one.
const revertAfter = time.Minute

// stepRun is a step with its machine, the other machine that is asked where there is one, and the last check before a
// machine goes out of service.
type stepRun struct {
	step    step.Step
	on, via cluster.Machine
	confirm func(context.Context) error
	// want is the spec of the run, and images the Kubernetes images in the machine's configuration.
	want   cluster.Spec
	images kubenames.Images
	// have is the observation on which the step was decided.
	have cluster.Snapshot
}

// execute runs one step on its machine. Each step has one effect, and is safe to repeat.
func (r *Runner) execute(ctx context.Context, o stepRun) error {
	machine := r.Fleet.Machine(o.on)

	if err := r.noteDueSoak(ctx, o.step); err != nil {
		return err
	}

	switch s := o.step.(type) {
	case step.ApplyConfig:
		return r.configure(ctx, o, s)
	case step.Upgrade:
		return r.upgrade(ctx, o, s)
	case step.Uncordon:
		return r.Kubernetes.Uncordon(ctx, s.Node)
	case step.TakeOwnership:
		return r.Kubernetes.Own(ctx, s.Node, o.want.Owner)
	case step.NoteStaged:
		return r.Kubernetes.NoteStaged(ctx, s.Node, s.Waits)
	case step.Soak:
		return r.soak(ctx, o, s)
	case step.Bootstrap:
		if err := o.confirm(ctx); err != nil {
			return err
		}

		return machine.Bootstrap(ctx)
	case step.Restore:
		return machine.Restore(ctx, r.Restoration.Reader(), o.confirm)
	case step.WriteMeta:
		return machine.WriteMeta(ctx, o.on.Meta)
	case step.DowngradeEtcd:
		if err := o.confirm(ctx); err != nil {
			return err
		}

		return machine.DowngradeEtcd(ctx, s.To)
	case step.CancelEtcdDowngrade:
		return machine.CancelEtcdDowngrade(ctx)
	case step.LeaveEtcd:
		return r.disrupt(ctx, o, s.Evacuation, func(ctx context.Context) error { return machine.LeaveEtcd(ctx, o.on.UUID) })
	case step.RemoveMember:
		return r.Fleet.Machine(o.via).RemoveMember(ctx, s.Member)
	case step.Reset:
		return r.reset(ctx, o, s)
	case step.ReplaceVolumes:
		return r.replaceVolumes(ctx, o, s)
	case step.RestartKubelet:
		return machine.RestartKubelet(ctx)
	case step.Operate:
		return r.operate(ctx, o, s)
	case step.DeleteNode:
		return r.Kubernetes.DeleteNode(ctx, s.Node)
	case step.PullImages:
		return r.pullImages(ctx, o, s)
	case step.UpgradeComponent:
		return r.upgradeComponent(ctx, o, s)
	case step.SyncManifests:
		return r.syncManifests(ctx, o, s)
	default:
		return wait.Permanent(fmt.Errorf("unsupported step %q", o.step))
	}
}

// reset wipes a machine, or only shuts it down.
func (r *Runner) reset(ctx context.Context, o stepRun, s step.Reset) error {
	machine := r.Fleet.Machine(o.on)

	return r.disrupt(ctx, o, s.Evacuation, func(ctx context.Context) error {
		if s.How.ShutDown {
			return machine.Shutdown(ctx, o.on.UUID)
		}

		return machine.Reset(ctx, s.Graceful, s.How)
	})
}

// configure sends a machine its configuration in the step's mode.
func (r *Runner) configure(ctx context.Context, o stepRun, s step.ApplyConfig) error {
	m := o.on

	config, err := r.configOf(ctx, o, s)
	if err != nil {
		return err
	}

	if err := r.freshTokens(ctx, o, s); err != nil {
		return err
	}

	machine := r.Fleet.Machine(m)

	switch {
	case s.Staged != "":
		return machine.StageConfig(ctx, config, m.UUID)
	case s.Reboot != "":
		// The next boot uses the staged configuration, so staging comes before the drain. An unplanned boot meanwhile does
		// what is wanted.
		if err := machine.StageConfig(ctx, config, m.UUID); err != nil {
			return err
		}

		return r.disrupt(ctx, o, s.Evacuation, func(ctx context.Context) error { return machine.Reboot(ctx, m.UUID) })
	case s.Try:
		return r.try(ctx, m, config)
	default:
		return machine.ApplyConfig(ctx, config, s.Access, m.UUIDToCompare(o.have.Machines[m.Name]))
	}
}

// try sends a member a configuration on trial, and keeps it once the machine answers under it. Otherwise Talos
// restores the previous one by itself.
func (r *Runner) try(ctx context.Context, m cluster.Machine, config []byte) error {
	machine := r.Fleet.Machine(m)

	if err := machine.TryConfig(ctx, config, m.UUID, revertAfter); err != nil {
		return err
	}

	// The other half of the time is for committing the configuration.
	probing, cancel := context.WithTimeout(ctx, revertAfter/2)
	defer cancel()

	err := wait.Until(probing, r.interval(), func(ctx context.Context) error {
		if s := machine.Observe(ctx); s.Access != step.Member {
			return fmt.Errorf("the machine does not respond with the new configuration: %s", s.Cause)
		}

		return nil
	})
	if err != nil {
		if ctx.Err() != nil {
			return err
		}

		return wait.Permanent(fmt.Errorf("%s does not respond with the new configuration and restores the previous one "+
			"within %s: %w",
			m.Name, revertAfter, err))
	}

	// A trial looks like the wanted configuration until it ends, and only this run knows that it is not committed. So
	// the commit is repeated until it succeeds.
	return wait.Until(probing, r.interval(), func(ctx context.Context) error {
		return machine.ApplyConfig(ctx, config, step.Member, m.UUID)
	})
}

// upgrade installs another Talos. The image is pulled before the node is drained.
func (r *Runner) upgrade(ctx context.Context, o stepRun, s step.Upgrade) error {
	machine := r.Fleet.Machine(o.on)

	if err := machine.PullImage(ctx, s.Installer); err != nil {
		return err
	}

	return r.disrupt(ctx, o, s.Evacuation, func(ctx context.Context) error {
		return machine.Upgrade(ctx, s.Installer, o.on.UUID, o.confirm)
	})
}

// replaceVolumes gives a machine new volumes, unless the old ones are usable again.
func (r *Runner) replaceVolumes(ctx context.Context, o stepRun, s step.ReplaceVolumes) error {
	volumes, ok := r.Fleet.Machine(o.on).(Volumes)
	if !ok {
		return wait.Permanent(fmt.Errorf("%s is not a pod, so it has no volumes to replace", s.Machine))
	}

	if err := o.confirm(ctx); err != nil {
		return err
	}

	return volumes.ReplaceVolumes(ctx)
}

// disrupt takes a machine out of service in order: its node is cordoned and drained, and a control plane transfers
// the etcd leadership. If anything before the effect fails, or the machine refuses it, the node is uncordoned. After
// the effect, the planner uncordons it once the machine works again.
func (r *Runner) disrupt(
	ctx context.Context, o stepRun, e step.Evacuation, effect func(context.Context) error,
) error {
	if err := r.evacuate(ctx, o.on, e); err != nil {
		return r.restore(ctx, e.Node, err)
	}

	if err := o.confirm(ctx); err != nil {
		return r.restore(ctx, e.Node, err)
	}

	err := effect(ctx)
	if wait.IsPermanent(err) || errors.Is(err, errUnconfirmed) {
		return r.restore(ctx, e.Node, err)
	}

	return err
}

// evacuate prepares a machine for its disruption.
func (r *Runner) evacuate(ctx context.Context, m cluster.Machine, e step.Evacuation) error {
	if e.Node != "" {
		if err := r.Kubernetes.Cordon(ctx, e.Node); err != nil {
			return err
		}
	}

	if e.Drain {
		note := func(text string) { r.tell(Event{State: Note, Machine: m.Name, Reason: text}) }
		note("draining node " + e.Node)

		if err := r.Kubernetes.Drain(ctx, e.Node, r.Policy.Drain, note); err != nil {
			return err
		}
	}

	if !e.HandOver {
		return nil
	}

	return r.Fleet.Machine(m).ForfeitLeadership(ctx)
}

// restore uncordons a node after an error, even when the run was canceled, and reports a failure.
func (r *Runner) restore(ctx context.Context, node string, cause error) error {
	if node == "" {
		return cause
	}

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastObservation)
	defer cancel()

	if err := r.Kubernetes.Uncordon(ctx, node); err != nil {
		err = errors.Join(cause, fmt.Errorf("node %s stays cordoned until the next apply: %w", node, err))
		if wait.IsPermanent(cause) {
			return wait.Permanent(err)
		}

		return err
	}

	return cause
}

// giveBack uncordons the nodes of working machines at the end of a run that stops early, and names those that stay
// cordoned.
func (r *Runner) giveBack(ctx context.Context, want cluster.Spec, have cluster.Snapshot) []step.Hold {
	var kept []step.Hold

	for _, m := range slices.Concat(want.Machines, want.Removed, want.ChangeOnly) {
		node, ok := have.NodeOf(m)
		if !ok || !node.Cordoned {
			continue
		}

		reason := cluster.NotReady(want, have, m)
		if reason == "" {
			err := r.Kubernetes.Uncordon(ctx, node.Name)
			if err == nil {
				continue
			}

			reason = err.Error()
		}

		if !node.Unschedulable {
			continue // the node is already uncordoned
		}

		kept = append(kept, step.Hold{
			Machine: m.Name, Reason: fmt.Sprintf(
				"its node %s stays cordoned by talosop until an apply finds the machine healthy: it %s", node.Name, reason),
		})
	}

	return kept
}
