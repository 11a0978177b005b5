package cluster

import (
	"fmt"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// The machines of the canary pool are the first that a rollout takes out of service, before control planes: a worker
// may run another Talos than its control planes. Kubelets follow the API servers, so there it is the first pool of
// workers. Once all machines of the pool have their change and work, they are observed for the soak. Only then follow
// the others.
//
// A machine that is new in the pool soaks too, when others are about to change: its node has no owner mark until then.
//
// A machine that does not work is changed before, because the change may repair it, and the canary pool may wait for
// it. A locked canary machine keeps its state, and nothing waits for it.

// IsCanary reports whether a machine is in the canary pool.
func (s Spec) IsCanary(m Machine) bool {
	return s.Canary.Pool != "" && m.Role == step.Worker && m.Pool == s.Canary.Pool
}

// canaries are the machines of the canary pool.
func (s Spec) canaries() (machines []Machine) {
	for _, m := range s.sorted(step.Worker) {
		if s.IsCanary(m) {
			machines = append(machines, m)
		}
	}

	return machines
}

func (t canaryTurn) plan(d *Decision) {
	if t.soak != nil && !d.steps(t.soak.On()) {
		d.step(t.soak)
	}
}

// canaryTurn says what machines outside the canary pool wait for. If none of them is about to go out of service,
// there is nothing to test.
func (r rollout) canaryTurn() canaryTurn {
	if r.want.Canary.Pool == "" || !r.othersFollow() {
		return canaryTurn{}
	}

	for _, m := range r.want.canaries() {
		change, later := r.changeOf(m)
		due := change != nil && r.disrupts(m) && (later == "" || r.before(r.upgrades[m.Name]) == "")

		if due {
			return canaryTurn{waits: comesFirst(m, "")}
		}
	}

	return soakOf(r.want, r.have)
}

func comesFirst(m Machine, reason string) string {
	return fmt.Sprintf("pool %s comes first, but %s is not done%s", m.Pool, m.Name, Because(reason))
}

// othersFollow reports whether a machine outside the canary pool is to go out of service.
func (r rollout) othersFollow() bool {
	for _, m := range r.want.all() {
		if change, _ := r.changeOf(m); change != nil && !r.want.IsCanary(m) && r.disrupts(m) {
			return true
		}
	}

	for _, m := range r.want.ChangeOnly {
		if change := r.changeOfUnmanaged(m); change != nil && change.Disrupts() {
			return true
		}
	}

	return false
}

// soakOf is the soak of a canary pool whose machines have their change. A soak that has begun judges its machines
// itself.
func soakOf(want Spec, have Snapshot) canaryTurn {
	var soak canaryTurn

	for _, m := range want.canaries() {
		node, registered := have.NodeOf(m)
		unknown := have.Machines[m.Name].Access != step.Member || have.Kubernetes.Reachable && !registered

		switch {
		case m.Locked:
			unknown = false
		case registered && want.Owner != "" && have.Kubernetes.Owners[node.Name] != want.Owner:
			return canaryTurn{waits: comesFirst(m, "its node is new")}
		}

		if reason := outOfService(want, have, m); reason != "" && (unknown || node.Soak.Due) && node.Soak.Since.IsZero() {
			return canaryTurn{waits: comesFirst(m, reason)}
		}

		if !node.Soak.Due || soak.waits != "" {
			continue
		}

		soak.waits = fmt.Sprintf("pool %s is observed for %s first", m.Pool, step.Short(want.Canary.Soak))

		if have.Machines[m.Name].Busy == "" {
			soak.soak = step.Soak{Machine: m.Name, Pool: m.Pool, For: want.Canary.Soak}
		}
	}

	return soak
}

// afterCanary says why a working machine is not taken out of service yet.
func (r rollout) afterCanary(m Machine) string {
	if r.want.IsCanary(m) || outOfService(r.want, r.have, m) != "" {
		return ""
	}

	return r.canary.waits
}

// SoakingNodes are the nodes of the canary pool whose soak has not ended, and when it began; zero before.
func SoakingNodes(want Spec, have Snapshot) (names []string, since time.Time) {
	begun := true

	for _, m := range want.Ordered().canaries() {
		node, _ := have.NodeOf(m)
		if !node.Soak.Due {
			continue
		}

		names, begun = append(names, node.Name), begun && !node.Soak.Since.IsZero()
		if node.Soak.Since.After(since) {
			since = node.Soak.Since
		}
	}

	if !begun {
		return names, time.Time{}
	}

	return names, since
}

// FailedSoak says which machine failed since its soak began; empty for none. It is unknown for one that just fell
// silent, and while Kubernetes does not answer.
func FailedSoak(want Spec, begun, now Snapshot, p Policy) (reason string, unknown bool) {
	for _, m := range want.Ordered().canaries() {
		was, _ := begun.NodeOf(m)
		if !was.Soak.Due {
			continue
		}

		s := now.Machines[m.Name]
		is, _ := now.NodeOf(m)
		silent := s.Access == step.Unreachable && now.Time.Sub(s.Since) <= p.DeadAfter

		switch problem := NotReady(want, now, m); {
		case silent, !now.Kubernetes.Reachable:
			unknown = true
		case problem != "":
			return m.Name + " " + problem, false
		case was.BootID != "" && is.BootID != "" && was.BootID != is.BootID:
			return m.Name + " rebooted", false
		}
	}

	return "", unknown
}
