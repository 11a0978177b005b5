package cluster

import (
	"cmp"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

func newRollout(want Spec, have Snapshot, p Policy) rollout {
	r := rollout{want: want, have: have, policy: p, upgrades: map[string]step.Upgrade{}, kubernetes: joinsWith(want, have),
		keys: planKeys(want, have), etcd: etcdVersions(want, have)}

	for _, m := range want.all() {
		if upgrade, ok := upgradeOf(have, m, p); ok {
			r.upgrades[m.Name] = upgrade
		}
	}

	r.findHops()
	r.canary = r.canaryTurn()

	return r
}

// changeOf is the next change of a running machine; none where a lock keeps it. wait says why it must wait.
func (r rollout) changeOf(m Machine) (change step.Step, wait string) {
	if change, wait = r.nextChange(m); change == nil || r.keeps(m, change) != "" {
		return nil, ""
	}

	return change, wait
}

// nextChange is the next change that a running machine needs: an upgrade, otherwise its configuration. Before a
// downgrade the configuration comes first, because an older Talos may not read the newer one.
func (r rollout) nextChange(m Machine) (change step.Step, wait string) {
	upgrade, upgrades := r.upgrades[m.Name]
	config, configures := r.configOf(m)

	switch {
	case configures && (!upgrades || downgrades(m, r.have.Machines[m.Name])):
		return config, ""
	case !upgrades:
		return nil, ""
	default:
		return upgrade, cmp.Or(r.before(upgrade), r.awaitsEtcd(upgrade))
	}
}

// configOf is the configuration that a member needs: the wanted one where it runs another, or one for which it must
// reboot.
func (r rollout) configOf(m Machine) (step.ApplyConfig, bool) {
	s := r.have.Machines[m.Name]
	keys := r.keys.next(m)
	stages := r.policy.StageReboots && m.Platform().Reboots && s.Keys == keys

	switch {
	case leftEtcd(r.have, m):
		s.RebootFor = append(slices.Clone(s.RebootFor), "rejoining etcd, which it left")
		stages = false
	case s.ConfigDigest == m.ConfigDigest && s.Keys == keys, stages && s.StagedDigest == m.ConfigDigest:
		return step.ApplyConfig{}, false
	}

	if s.Access != step.Member || s.ConfigDigest == "" {
		return step.ApplyConfig{}, false
	}

	step := step.ApplyConfig{
		Machine: m.Name, Address: m.Address, Role: m.Role, Digest: m.ConfigDigest, Container: m.Container,
		Access: step.Member, Install: m.InstallTarget, TalosVersion: m.TalosVersion, Kubernetes: r.kubernetes,
		Try: r.policy.TryConfig && s.Keys == keys, Keys: keys, Moves: r.keys.moves(m, keys),
	}

	switch why := strings.Join(s.RebootFor, ", "); {
	case why == "":
	case stages:
		step.Staged, step.Try = why, false
	default:
		step.Reboot, step.Try = why, false
		step.Evacuation = EvacuationOf(r.have, m, r.policy)
	}

	return step, true
}

// leftEtcd reports whether a wanted control plane left etcd because of a removal that was interrupted and then
// undone. Its etcd stays stopped, without data, and joins as a new member after a reboot (Talos 1.13,
// internal/pkg/etcd LeaveCluster).
func leftEtcd(have Snapshot, m Machine) bool {
	s := have.Machines[m.Name]
	_, member := have.MemberOf(m)

	return m.Role == step.ControlPlane && m.Platform().Reboots && s.Access == step.Member &&
		s.Stage == step.StageRunning && s.EtcdService == step.ServiceFinished && !s.BootstrapRequested &&
		have.Etcd.Known && !member && s.Busy == "" && !s.GoingDown()
}

// planChanges rolls changes over the running machines: control planes one by one, then the workers of each pool
// within its budget.
func planChanges(want Spec, have Snapshot, p Policy, d *Decision) {
	r := newRollout(want, have, p)
	r.keepLocked(d)
	r.canary.plan(d)
	r.planEtcdVersion(d)
	r.planWorkers(r.planControlPlanes(d), d)
	r.planUnmanaged(d)
}

// GiveBack uncordons the nodes that talosop cordoned once their machines work, and removes the marks of nodes that
// another client uncordoned.
func (d *Decision) GiveBack(want Spec, have Snapshot) {
	for _, m := range want.upgraded() {
		node, ok := have.NodeOf(m)
		if ok && node.Cordoned && !d.concerns(m.Name) && NotReady(want, have, m) == "" {
			d.step(step.Uncordon{Machine: m.Name, Node: node.Name})
		}
	}
}

// planRegistrations makes machines register whose nodes are missing: a client deleted them, or etcd was restored from
// an older snapshot. A kubelet registers only when it starts (Kubernetes 1.36, kubelet_node_status.go,
// registerWithAPIServer). This happens once in a run; if it does not help, there is another cause.
func planRegistrations(want Spec, have Snapshot, p Policy, d *Decision) {
	k := have.Kubernetes
	if !k.Reachable {
		return
	}

	for _, m := range want.all() {
		s := have.Machines[m.Name]
		runs := s.Access == step.Member && s.Stage == step.StageRunning && !s.GoingDown() && s.NodeName != "" && s.Busy == ""

		late := s.NodeMissing || have.Time.Sub(s.Since) > p.RegisterTimeout && have.Time.Sub(k.Since) > p.RegisterTimeout

		if _, registered := have.NodeOf(m); !registered && runs && late && !s.KubeletRestarted && !d.concerns(m.Name) {
			d.step(step.RestartKubelet{Machine: m.Name})
		}
	}
}

// planControlPlanes changes one control plane. pending names a control plane with a disruptive change, for which
// workers wait.
func (r rollout) planControlPlanes(d *Decision) (pending string) {
	founded := hasEtcd(r.want, r.have)
	turn, wait := r.turn()

	for _, m := range r.want.sorted(step.ControlPlane) {
		change, later := r.changeOf(m)
		if change == nil {
			continue
		}

		if pending == "" && (later == "" || r.before(r.upgrades[m.Name]) == "") && r.disrupts(m) {
			pending = m.Name
		}

		if d.concerns(m.Name) {
			continue
		}

		_, upgrade := change.(step.Upgrade)

		switch {
		case later != "":
			d.hold(m.Name, "%s", later)
		case !founded && upgrade && !r.have.Machines[m.Name].Stopped:
			d.hold(m.Name, "is upgraded after the cluster has etcd")
		case !founded:
			d.step(change)
		case turn != m.Name:
			d.hold(m.Name, "%s waits: %s", kindOf(change), wait)
		default:
			r.planTurn(m, change, d)
		}
	}

	return pending
}

// disrupts is true for a machine with any disruptive change, even if another change comes first.
func (r rollout) disrupts(m Machine) bool {
	_, upgrades := r.upgrades[m.Name]
	config, configures := r.configOf(m)

	return upgrades || configures && config.Disrupts()
}

// kindOf names a change that has to wait.
func kindOf(change step.Step) string {
	if _, ok := change.(step.Upgrade); ok {
		return "Talos upgrade"
	}

	return "configuration change"
}

// planTurn changes the control plane that is next, unless that would cost etcd its quorum.
func (r rollout) planTurn(m Machine, change step.Step, d *Decision) {
	if other := r.restarting(m, change); other != "" {
		d.hold(m.Name, "%s waits: %s", kindOf(change), other)

		return
	}

	if !change.Disrupts() {
		d.step(change)

		return
	}

	upgrade, _ := change.(step.Upgrade)
	reason, remedy := cmp.Or(r.inTransit(m, change), r.afterCanary(m)), ""

	if reason == "" && upgrade.Loses {
		reason, remedy = dataStays(r.want, r.have, m)
	}

	if reason == "" {
		reason, remedy = gate(r.want, r.have, m, r.policy)
	}

	switch {
	case remedy != "":
		d.refuse(m.Name, reason, remedy)
	case reason != "":
		d.hold(m.Name, "%q waits: %s", change, reason)
	default:
		d.step(change)
	}
}

// restarting names another control plane whose pods restart for the keys that this run gave it, before a change for
// which those of this one do. That the machine lacks something does not make it urgent: other keys repair nothing.
func (r rollout) restarting(m Machine, change step.Step) string {
	config, configures := change.(step.ApplyConfig)
	if !configures || config.Keys.SamePods(r.have.Machines[m.Name].Keys) {
		return ""
	}

	for _, other := range r.want.sorted(step.ControlPlane) {
		if other.Name == m.Name || r.have.Machines[other.Name].StampsBefore == nil {
			continue
		}

		if reason := NotReady(r.want, r.have, other); reason != "" {
			return other.Name + ": " + reason
		}
	}

	return ""
}

// inTransit says why a machine that lacks something is not taken out of service for a change that may repair it.
// Either it is unsettled, or this run disrupted it and it has not worked since, so the effect of another disruption
// is unknown.
func (r rollout) inTransit(m Machine, change step.Step) string {
	s := r.have.Machines[m.Name]
	_, upgrade := change.(step.Upgrade)

	switch {
	case s.InSequence():
		return "it is " + string(s.Stage)
	case upgrade && s.Stage == step.StageBooting && r.have.Time.Sub(s.Since) <= r.policy.BootTimeout:
		return "it is booting"
	case s.RebootedFrom != "" && NotReady(r.want, r.have, m) != "":
		return "it was rebooted and " + NotReady(r.want, r.have, m)
	default:
		return ""
	}
}

// turn names the control plane that changes next, and why the others wait. A machine that lacks something goes first,
// because the change may repair it. Among these, one whose etcd does not run is first, because it costs no vote.
// Otherwise every other control plane must be healthy.
func (r rollout) turn() (turn, wait string) {
	var down, sick, first, unfit string

	want, have := r.want, r.have

	if other := r.inHand(); other != "" {
		return "", other
	}

	for _, m := range want.sorted(step.ControlPlane) {
		change, later := r.changeOf(m)
		changes := change != nil && later == ""
		reason := NotReady(want, have, m)

		switch {
		case changes && reason != "" && have.Machines[m.Name].EtcdDown():
			down = cmp.Or(down, m.Name)
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

	sick = cmp.Or(down, sick)

	switch {
	case sick != "":
		return sick, sick + " is changed first"
	case unfit != "":
		return "", unfit
	default:
		return first, first + " is changed first"
	}
}

// inHand names the control plane on which a step runs, or whose removal is unfinished and must finish before anything
// else changes.
func (r rollout) inHand() string {
	want, have := r.want, r.have

	for _, m := range slices.Concat(want.sorted(step.ControlPlane), want.removed(step.ControlPlane)) {
		if s := have.Machines[m.Name]; s.Busy != "" {
			return m.Name + " is " + s.Busy
		}
	}

	for _, m := range want.removed(step.ControlPlane) {
		if departed(want, have, m, r.policy) {
			continue
		}

		s := have.Machines[m.Name]
		_, member := memberOfRemoved(want, have, m)

		if s.Resetting || s.Access == step.Member && have.Etcd.Known && !member {
			return m.Name + " is being removed"
		}
	}

	return ""
}

// disrupts is true for a step that takes a working machine out of service: not a blank one, nor one that is lost.
func disrupts(op step.Step, have Snapshot) bool {
	return op.Disrupts() && !op.OnLost() && have.Machines[op.On()].Access != step.Maintenance
}
