package cluster

import (
	"fmt"
	"slices"
)

// rollout is one round of changes to machines that run.
type rollout struct {
	want   Spec
	have   Snapshot
	policy Policy
	// target and behind are the lowest version that any machine has to reach next, and
	// one that has to: every machine finishes a minor version before the first one goes
	// on to the next.
	target, behind string
}

func newRollout(want Spec, have Snapshot, p Policy) rollout {
	r := rollout{want: want, have: have, policy: p}

	for _, m := range want.all() {
		upgrade, ok := r.upgradeOf(m)
		if ok && (r.target == "" || minorsBetween(r.target, upgrade.To) < 0) {
			r.target, r.behind = upgrade.To, m.Name
		}
	}

	return r
}

// changeOf is the next change that a machine which runs has to go through: an upgrade,
// else its configuration. Before a downgrade the configuration comes first, because an
// older Talos may not read the newer one. wait says why its turn has not come yet.
func (r rollout) changeOf(m Machine) (change Step, wait string) {
	upgrade, upgrades := r.upgradeOf(m)
	config, configures := r.configOf(m)

	switch {
	case configures && (!upgrades || downgrades(m, r.have.Machines[m.Name])):
		return config, ""
	case !upgrades:
		return nil, ""
	case minorsBetween(r.target, upgrade.To) > 0:
		return upgrade, fmt.Sprintf("goes on to %s once %s runs %s", upgrade.To, r.behind, r.target)
	default:
		return upgrade, ""
	}
}

// configOf is the configuration that a member has to be given: one that runs another
// than wanted.
func (r rollout) configOf(m Machine) (ApplyConfig, bool) {
	s := r.have.Machines[m.Name]
	if s.Access != Member || s.ConfigDigest == "" || s.ConfigDigest == m.ConfigDigest {
		return ApplyConfig{}, false
	}

	step := ApplyConfig{
		Machine: m.Name, Address: m.Address, Role: m.Role, Digest: m.ConfigDigest,
		Access: Member, Install: m.InstallTarget, TalosVersion: m.TalosVersion, Try: r.policy.TryConfig,
	}

	if len(s.RebootFor) > 0 {
		step.Reboot, step.Try = reasons(s.RebootFor), false
		step.Evacuation = evacuation(r.have, m, r.policy)
	}

	return step, true
}

// evacuation is how a machine is taken out of service. It is not drained when its node is
// not Ready, since nothing can leave it in good order then, nor when that is the only
// node, since nothing could go elsewhere.
func evacuation(have Snapshot, m Machine, p Policy) Evacuation {
	var e Evacuation

	if n, ok := have.NodeOf(m); ok && have.Kubernetes.Reachable {
		e.Node, e.Drain = n.Name, n.Ready && !p.Drain.Skip && len(have.Kubernetes.Nodes) > 1
	}

	if member, ok := have.MemberOf(m); ok && m.Role == ControlPlane {
		e.HandOver = have.Etcd.Views[member.ID].Leader == member.ID
	}

	return e
}

// outOfService says why a machine does not do its part: it is unsettled, or talosop
// cordoned its node. Empty when it does.
func outOfService(want Spec, have Snapshot, m Machine) string {
	if reason := Unsettled(want, have, m); reason != "" {
		return reason
	}

	if node, ok := have.NodeOf(m); ok && node.Cordoned {
		return fmt.Sprintf("its node %s is cordoned", node.Name)
	}

	return ""
}

// planChanges rolls changes over the machines that run: control planes one by one, then
// the workers of each pool within its budget.
func planChanges(want Spec, have Snapshot, p Policy, d *Decision) {
	r := newRollout(want, have, p)
	r.planWorkers(r.planControlPlanes(d), d)
}

// planUncordons gives back the nodes that talosop cordoned, once their machines work.
func planUncordons(want Spec, have Snapshot, d *Decision) {
	for _, m := range want.all() {
		node, ok := have.NodeOf(m)
		if ok && node.Cordoned && !d.concerns(m.Name) && Unsettled(want, have, m) == "" {
			d.step(Uncordon{Machine: m.Name, Node: node.Name})
		}
	}
}

// planControlPlanes changes one control plane. pending names a control plane that has
// something disruptive before it, which workers wait for.
func (r rollout) planControlPlanes(d *Decision) (pending string) {
	founded := hasEtcd(r.want, r.have)
	turn, wait := r.turn()

	for _, m := range r.want.sorted(ControlPlane) {
		change, later := r.changeOf(m)
		if change == nil {
			continue
		}

		if pending == "" && later == "" && Disruptive(change) {
			pending = m.Name
		}

		if d.concerns(m.Name) {
			continue
		}

		_, upgrade := change.(Upgrade)

		switch {
		case later != "":
			d.hold(m.Name, "%s", later)
		case !founded && upgrade:
			d.hold(m.Name, "is upgraded once the cluster has an etcd")
		case !founded:
			d.step(change)
		case turn != m.Name:
			d.hold(m.Name, "keeps its %s for now: %s", kept(change), wait)
		default:
			r.planTurn(m, change, d)
		}
	}

	return pending
}

// kept names what stays as it is while a change has to wait.
func kept(change Step) string {
	if _, ok := change.(Upgrade); ok {
		return "Talos"
	}

	return "configuration"
}

// planTurn changes the control plane whose turn it is, unless that would cost etcd its
// quorum.
func (r rollout) planTurn(m Machine, change Step, d *Decision) {
	if !Disruptive(change) {
		d.step(change)

		return
	}

	reason, remedy := gate(r.want, r.have, m)

	switch {
	case remedy != "":
		d.refuse(m.Name, reason, remedy)
	case reason != "":
		d.hold(m.Name, "%q has to wait: %s", change, reason)
	default:
		d.step(change)
	}
}

// gate says why a control plane must not go out of service now; remedy is set when
// waiting does not help. A machine whose own etcd does not run costs no vote.
func gate(want Spec, have Snapshot, m Machine) (reason, remedy string) {
	s := have.Machines[m.Name]
	if s.EtcdService != "" && s.EtcdService != ServiceRunning {
		return "", ""
	}

	if reason := othersUnfit(want, have, m); reason != "" {
		return reason, ""
	}

	member, ok := have.MemberOf(m)

	if reason := discord(have, member.ID); reason != "" || !ok {
		return reason, ""
	}

	q := quorumOf(want, have)
	reason = q.down(member.ID)

	if reason != "" && len(q.votes) == 2 {
		return "etcd has two members and needs both, so neither can be spared",
			"Add a third control plane, or remove one, before this change"
	}

	return reason, ""
}

// othersUnfit says which other control plane does not work, in the spec or beyond it.
func othersUnfit(want Spec, have Snapshot, m Machine) string {
	for _, other := range want.sorted(ControlPlane) {
		if other.Name == m.Name {
			continue
		}

		if reason := outOfService(want, have, other); reason != "" {
			return other.Name + " " + reason
		}
	}

	for _, member := range have.Etcd.Members {
		if name, state := ownerOf(want, have, member); name != m.Name {
			if reason := memberUnfit(want, member, name, state); reason != "" {
				return reason
			}
		}
	}

	return nodesUnfit(want, have, m)
}

// memberUnfit says what is wrong with the machine of a member.
func memberUnfit(want Spec, member EtcdMember, name string, s MachineState) string {
	switch {
	case member.Learner:
		return name + " is a learner in etcd, not promoted yet"
	case s.Access != Member:
		return fmt.Sprintf("etcd member %s of %s does not answer%s", member.ID, name, because(s.Cause))
	case s.Busy != "":
		return name + " is " + s.Busy
	case s.Stage != StageRunning || s.goingDown():
		return fmt.Sprintf("%s is %s", name, s.Stage)
	case unready(want, s) != "":
		return name + " " + unready(want, s)
	default:
		return ""
	}
}

// nodesUnfit names a control plane that Kubernetes has, but for one, and that is not Ready.
func nodesUnfit(want Spec, have Snapshot, m Machine) string {
	own, _ := have.NodeOf(m)

	for _, node := range have.Kubernetes.Nodes {
		if node.ControlPlane && !node.Ready && want.NodesBecomeReady && own.Name != node.Name {
			return fmt.Sprintf("control plane node %s is not Ready", node.Name)
		}
	}

	return ""
}

// hasEtcd reports whether there is a cluster that a change could harm.
func hasEtcd(want Spec, have Snapshot) bool {
	return want.Bootstrapped || len(have.Etcd.Members) > 0 || etcdBeginning(want.sorted(ControlPlane), have)
}

// turn names the control plane that is changed next, and why the others wait. A
// machine that lacks something goes first, since the change may be its cure; otherwise
// every other control plane has to be whole.
func (r rollout) turn() (turn, wait string) {
	var sick, first, unfit string

	want, have := r.want, r.have

	for _, m := range slices.Concat(want.sorted(ControlPlane), want.removed(ControlPlane)) {
		if s := have.Machines[m.Name]; s.Busy != "" {
			return "", m.Name + " is " + s.Busy
		}
	}

	for _, m := range want.sorted(ControlPlane) {
		change, later := r.changeOf(m)
		changes := change != nil && later == ""
		reason := Unsettled(want, have, m)

		switch {
		case changes && reason != "" && sick == "":
			sick = m.Name
		case changes && reason == "" && outOfService(want, have, m) == "" && first == "":
			first = m.Name
		case !changes && reason != "" && unfit == "":
			unfit = m.Name + ": " + reason
		case reason == "" && unfit == "":
			if cordoned := outOfService(want, have, m); cordoned != "" {
				unfit = m.Name + ": " + cordoned
			}
		}
	}

	switch {
	case sick != "":
		return sick, "that of " + sick + " is changed first"
	case unfit != "":
		return "", unfit
	default:
		return first, "that of " + first + " is changed first"
	}
}
