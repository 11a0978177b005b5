package cluster

import (
	"fmt"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// planWorkers changes workers: at once where no reboot is needed, the rest within the budget of each pool and after
// the control planes. Leaving workers share the budget of their pool and come last.
func (r rollout) planWorkers(controlPlane string, d *Decision) {
	budgets := map[string]*budget{}
	for _, pool := range r.want.poolNames() {
		budgets[pool] = budgetOf(r.want, r.have, pool, r.policy)
	}

	mustStay := workersMustStay(r.want, r.have)

	stay := mustStay
	if controlPlane != "" {
		stay = "control planes come first, but " + controlPlane + " is not done"
	}

	live := r.liveShares()

	for _, m := range r.want.sorted(step.Worker) {
		first := stay
		if r.want.IsCanary(m) {
			first = mustStay
		}

		r.planWorker(m, first, budgets[m.Pool], live[m.Pool], d)
	}

	blind := r.keys.blindWorker(r.policy)

	for _, m := range r.want.removed(step.Worker) {
		planWorkerRemoval(r.want, r.have, m, r.policy, budgets[m.Pool], mustStay, blind, d)
	}
}

// poolNames lists the pools in order.
func (s Spec) poolNames() []string {
	var names []string

	for _, m := range slices.Concat(s.sorted(step.Worker), s.removed(step.Worker)) {
		if !slices.Contains(names, m.Pool) {
			names = append(names, m.Pool)
		}
	}

	slices.Sort(names)

	return names
}

// share is how many workers of a pool may get a configuration without a reboot at once, and which of those that got
// theirs do not work.
type share struct {
	left   int
	broken []string
}

// liveShares limits how fast a configuration without a reboot spreads. It reaches as many workers of a pool at once
// as already work with theirs, at least one. It reaches none while as many as may be out of service have it and do
// not work. So a bad one stops at the first machines, and a good one is through a large pool in a few rounds.
func (r rollout) liveShares() map[string]*share {
	shares, sizes := map[string]*share{}, map[string]int{}

	for _, pool := range r.want.poolNames() {
		shares[pool] = &share{}
	}

	for _, m := range r.want.sorted(step.Worker) {
		sizes[m.Pool]++

		s := r.have.Machines[m.Name]
		if _, changes := r.configOf(m); s.Access != step.Member || changes {
			continue
		}

		if s.Busy == "" && outOfService(r.want, r.have, m) == "" {
			shares[m.Pool].left++
		} else {
			shares[m.Pool].broken = append(shares[m.Pool].broken, m.Name)
		}
	}

	for pool, sh := range shares {
		sh.left = max(1, sh.left)
		if len(sh.broken) >= r.want.Pools[pool].Of(sizes[pool]) {
			sh.left = 0
		}
	}

	return shares
}

func (s *share) String() string {
	if len(s.broken) == 0 {
		return "other machines of its pool get theirs first"
	}

	return enumerate(s.broken) + " not healthy with the new one"
}

func (r rollout) planWorker(m Machine, stay string, b *budget, live *share, d *Decision) {
	change, later := r.changeOf(m)
	if change == nil || d.concerns(m.Name) {
		return
	}

	switch {
	case later != "":
		d.hold(m.Name, "%s", later)
	case !change.Disrupts() && live.left == 0:
		d.hold(m.Name, "configuration change waits: %s", live)
	case !change.Disrupts():
		live.left--

		d.step(change)
	case stay != "":
		d.hold(m.Name, "%s waits: %s", kindOf(change), stay)
	case r.inTransit(m, change) != "":
		d.hold(m.Name, "%s waits: %s", kindOf(change), r.inTransit(m, change))
	case r.afterCanary(m) != "":
		d.hold(m.Name, "%s waits: %s", kindOf(change), r.afterCanary(m))
	case !b.take(m.Name):
		d.hold(m.Name, "%s waits: %s", kindOf(change), b)
	case r.canary.waits != "":
		d.step(step.Soaking(change))
	default:
		d.step(change)
	}
}

// workersMustStay says why no worker may go out of service: pods could not be moved, or the control plane must be
// repaired first.
func workersMustStay(want Spec, have Snapshot) string {
	if !have.Kubernetes.Reachable {
		return "the Kubernetes API does not respond" + Because(have.Kubernetes.Cause)
	}

	for _, m := range want.sorted(step.ControlPlane) {
		if reason := outOfService(want, have, m); reason != "" {
			return m.Name + " " + reason
		}
	}

	return nodesUnfit(want, have, Machine{})
}

// budget counts the workers of a pool that are or will be out of service.
type budget struct {
	pool  string
	limit int
	down  []string
}

// budgetOf counts what a pool already uses.
func budgetOf(want Spec, have Snapshot, pool string, p Policy) *budget {
	b := &budget{pool: pool}
	size := 0

	for _, m := range slices.Concat(want.sorted(step.Worker), want.ChangeOnly) {
		if m.Pool != pool {
			continue
		}

		size++

		if have.Machines[m.Name].Busy != "" || outOfService(want, have, m) != "" {
			b.down = append(b.down, m.Name)
		}
	}

	for _, m := range want.removed(step.Worker) {
		s := have.Machines[m.Name]
		if m.Pool != pool || departed(want, have, m, p) {
			continue
		}

		if s.Busy != "" || s.Resetting || s.Access != step.Member {
			b.down = append(b.down, m.Name)
		}
	}

	b.limit = want.Pools[pool].Of(size)

	return b
}

// take uses the budget for one machine. A machine that is already out of service costs nothing more.
func (b *budget) take(machine string) bool {
	if slices.Contains(b.down, machine) {
		return true
	}

	if len(b.down) >= b.limit {
		return false
	}

	b.down = append(b.down, machine)

	return true
}

func (b *budget) String() string {
	where := "workers of pool " + b.pool

	switch b.pool {
	case "":
		where = "workers"
	case UnmanagedPool:
		where = "unmanaged nodes"
	}

	return fmt.Sprintf("at most %d of the %s may be out of service, and %s", b.limit, where, enumerate(b.down))
}

// enumerate names the machines that are down, the first few of many.
func enumerate(names []string) string {
	const most = 3

	switch {
	case len(names) == 1:
		return names[0] + " is"
	case len(names) > most:
		return fmt.Sprintf("%s and %d more are", strings.Join(names[:most], ", "), len(names)-most)
	default:
		return strings.Join(names, ", ") + " are"
	}
}
