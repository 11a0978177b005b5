package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
)

// precaution is the etcd snapshot before the first risky step of a run.
type precaution struct {
	mu    sync.Mutex
	taken bool
}

// risky reports whether a step takes a control plane out of service or out of etcd, gives etcd's data to another API
// server, or downgrades etcd.
func risky(op step.Step, on cluster.Machine) bool {
	if s, ok := op.(step.UpgradeComponent); ok && s.Component == kubenames.KubeAPIServer {
		return s.From != s.Image
	}

	if _, back := op.(step.DowngradeEtcd); back {
		return true
	}

	return op.Disrupts() && on.Role == step.ControlPlane
}

// take takes the snapshot, unless the run has one. Its error prevents the step.
func (p *precaution) take(ctx context.Context, r *Runner, o stepRun, watch *observer) error {
	if r.Snapshots == nil || !risky(o.step, o.on) {
		return nil
	}

	// A machine that does not run costs no vote. It may be the only one.
	_, ok := watch.snapshotSource(o.on)
	if !ok && o.have.Machines[o.on.Name].Access != step.Member {
		return nil
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	if p.taken {
		return nil
	}

	from, ok := watch.snapshotSource(o.on)
	if !ok {
		return errors.New("take a snapshot of etcd first: no control plane has a healthy etcd")
	}

	where, err := r.Snapshots.Keep(ctx, time.Now(), r.Fleet.Machine(from).EtcdSnapshot)
	if err != nil {
		return fmt.Errorf("take a snapshot of etcd first: %w", err)
	}

	p.taken = true

	r.tell(Event{State: Note, Machine: from.Name, Reason: "took a snapshot of etcd: " + where})

	return nil
}

// snapshotSource is the control plane that gives a snapshot. It has a view of etcd, and is preferably a follower and
// not the machine that is about to go out of service.
func (o *observer) snapshotSource(leaving cluster.Machine) (best cluster.Machine, ok bool) {
	rank := -1

	for _, m := range o.machines() {
		o.mu.Lock()
		view, seen := o.views[m.Name]
		o.mu.Unlock()

		if !seen || view.Leader == "" {
			continue
		}

		points := 0
		if view.Leader != view.Member {
			points++
		}

		if m.Name != leaving.Name {
			points += 2
		}

		if points > rank {
			best, rank = m, points
		}
	}

	return best, rank >= 0
}
