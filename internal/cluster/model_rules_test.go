package cluster_test

import (
	"slices"
	"strconv"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
)

// judge checks each step when it begins. It knows what no planner can: which box is the wanted one, and what is
// really up.
type judge struct {
	*site
	want cluster.Spec
	// meant is the box of each machine, by name.
	meant map[string]*box
	// succeeded are the successful disruptions of this run.
	succeeded map[string]bool
	run       int
	// wanted is the naming of the wanted Kubernetes images, and pulled the version whose images each machine pulled in
	// this run.
	wanted naming
	pulled map[string]string
	// settled are the control planes that were in the cluster when the run began, and downAtFirst those of them with
	// failed static pods.
	settled     map[string]bool
	downAtFirst int
	// kept are the machines with a change that a lock prevents.
	kept, keptKubelets map[string]bool
	// behind is what the last decision left to a later run, by machine.
	behind map[string]kubenames.Component
	// stages is true when a change that needs a reboot waits for one.
	stages bool
	// destroys is true where all machines of the spec leave.
	destroys bool
	soaking
}

// check is called before a step begins.
func (j *judge) check(op step.Step) {
	name := op.On()
	b := j.meant[name]

	j.identity(op, b)

	if b == nil {
		return
	}

	j.pods(op, b)
	j.locked(op, b)
	j.canaryFirst(op, b)

	if op.Disrupts() && j.succeeded[purpose(op)] && purpose(op) != "" {
		j.fail("%q again, although it succeeded", op)
	}

	switch op := op.(type) {
	case step.Bootstrap, step.Restore:
		for _, other := range j.boxes {
			if other.data || other.asked {
				j.fail("%q although %s has an etcd", op, other.name)
			}
		}
	case step.DowngradeEtcd:
		j.downgrade(op, b)
	case step.RemoveMember:
		j.expulsion(op)
	case step.LeaveEtcd:
		j.spared(op, b)
		j.disruption(op, b)
	case step.Reset:
		if j.destroys {
			j.ending(op, b)

			return
		}

		if j.memberOf(b) != nil {
			j.fail("%q before it left etcd", op)
		}

		if b.pod != nil && !b.up() {
			return // only its remains are removed
		}

		j.disruption(op, b)
	case step.Upgrade:
		if b.pod != nil && b.digest == "" {
			return // no workload uses a blank pod
		}

		j.hops(op, b)
		j.order(op)
		j.disruption(op, b)
	case step.UpgradeComponent:
		j.components(op, b)
	case step.SyncManifests:
		j.synced(op)
	case step.Soak:
		j.observesSoak()
	case step.ApplyConfig:
		j.rekeys(op, b)

		if op.Access == step.Maintenance {
			j.joining(op, b)
		}

		if b.impostor {
			j.fail("%q goes to any machine that answers at the address of a member", op)
		}

		if j.onlyChanged(b) {
			j.afterAll(op)
		}

		if op.Access == step.Member && op.Reboot != "" {
			j.disruption(op, b)
		}

		if op.Access == step.Member && op.Reboot+op.Staged == "" && b.needsReboot && b.digest != newDigest {
			j.fail("%q without the reboot that it needs", op)
		}

		if op.Staged != "" && (!j.stages || b.staged == op.Digest) {
			j.fail("%q, which is not wanted, or once more", op)
		}
	case step.Uncordon:
		j.cordons(op.Node, b)
	case step.DeleteNode:
		j.deletion(op, b)
	}
}

// identity is invariant 5: the machine that answers is the wanted one.
func (j *judge) identity(step step.Step, meant *box) {
	if !actsOnMachine(step) {
		return
	}

	answers := j.at(j.machine(step.On()).Address)
	if pod := j.podOf(j.machine(step.On())); pod != nil && onHost(step) {
		answers = pod
	}

	switch {
	case answers == nil:
		j.fail("%q is sent to a machine that does not answer", step)
	case answers != meant:
		j.fail("%q goes to %s, which is not the machine meant", step, answers.uuid)
	}
}

func (j *judge) machine(name string) cluster.Machine {
	for _, m := range j.want.Known() {
		if m.Name == name {
			return m
		}
	}

	return cluster.Machine{}
}

// expulsion is invariant 4 for members that are removed through another machine.
func (j *judge) expulsion(step step.RemoveMember) {
	for _, m := range j.members {
		if m.id != step.Member {
			continue
		}

		if j.etcdUp(m.box) && m.box.member == m.id {
			j.fail("%q, which works", step)
		}

		if all, healthy := j.votes(m); healthy <= all/2 {
			j.fail("%q leaves %d of %d members working", step, healthy, all)
		}

		return
	}

	j.fail("%q, which is no member", step)
}

// spared is invariant 4 for members that leave by themselves.
func (j *judge) spared(step step.Step, b *box) {
	m := j.memberOf(b)
	if m == nil {
		j.fail("%q of a machine that is no member", step)

		return
	}

	if all, healthy := j.votes(m); healthy <= all/2 {
		j.fail("%q leaves %d of %d members working", step, healthy, all)
	}
}

// disruption is invariants 2 and 3.
func (j *judge) disruption(op step.Step, b *box) {
	if b.controlPlane {
		j.quorate(op, b)
	} else {
		j.budget(op, b)
	}

	b.disrupted, b.inRun = true, j.run

	if up, ok := op.(step.Upgrade); ok && !j.onlyChanged(b) {
		b.hop = up.To
	}
}

func (j *judge) quorate(op step.Step, b *box) {
	for _, other := range j.boxes {
		gone := other.life == off && j.memberOf(other) == nil // it was reset, and left permanently
		if other != b && other.controlPlane && other.disrupted && !gone && (other.inRun == j.run || other.life == away) {
			j.fail("%q while control plane %s is disrupted (%s)", op, other.name, other.life)
		}
	}

	m := j.memberOf(b)
	if m == nil || m.learner || !j.etcdUp(b) {
		return
	}

	all, _ := j.votes(nil)
	_, leaves := op.(step.LeaveEtcd) // which spared checks

	if _, others := j.votes(m); all > 1 && others <= all/2 && !leaves {
		j.fail("%q while %d others of %d members work", op, others, all)
	}

	if all > 1 && j.alarm || all > 2 && j.split {
		j.fail("%q while etcd is troubled", op)
	}

	for _, other := range j.members {
		if other.box != b && (other.learner || !j.etcdUp(other.box) || other.box.sick) {
			j.fail("%q while member %s does not work", op, other.box.name)
		}
	}
}

func (j *judge) budget(op step.Step, b *box) {
	pool := j.machine(op.On()).Pool
	size, down := 0, 0

	for _, m := range slices.Concat(j.want.Machines, j.want.ChangeOnly) {
		other := j.meant[m.Name]
		if m.Role != step.Worker || m.Pool != pool || j.onlyChanged(other) && j.nodeOf(other) == nil {
			continue
		}

		size++

		if node := j.nodeOf(other); other != b && (other.disrupted || !j.well(other) || node.ours) {
			down++
		}
	}

	for _, m := range j.want.Removed {
		if other := j.meant[m.Name]; m.Role == step.Worker && m.Pool == pool && other != b && other.disrupted &&
			other.life != off {
			down++
		}
	}

	if limit := j.want.Pools[pool].Of(size); j.well(b) && down+1 > limit {
		j.fail("%q while %d workers of pool %q are down, and %d may be", op, down, pool, limit)
	}
}

// hops is invariant 10: no minor version is skipped, and no machine begins one before all others finished the one
// before.
func (j *judge) hops(step step.Upgrade, b *box) {
	from, to := minor(b.version), minor(step.To)
	if to-from > 1 || from-to > 1 {
		j.fail("%q skips a minor version", step)
	}

	if j.onlyChanged(b) {
		j.afterAll(step)

		return
	}

	for _, m := range j.want.Machines {
		other := j.meant[m.Name]
		if other == b || other.foreign || other.digest == "" || to == from || other.version == m.TalosVersion {
			continue
		}

		at := minor(other.version)
		if to > from && at < to-1 || to < from && at > to+1 {
			j.fail("%q while %s is at %s", step, m.Name, other.version)
		}
	}

	for _, other := range j.boxes {
		if other.hop != "" && minor(other.hop) != to && to != from {
			j.fail("%q while %s is not through with %s", step, other.name, other.hop)
		}
	}
}

// order is that of roles: control planes come first, except for the canary pool.
func (j *judge) order(op step.Upgrade) {
	for _, m := range j.want.Machines {
		if b := j.meant[m.Name]; m.Role == step.ControlPlane && op.Role == step.Worker &&
			!j.want.IsCanary(j.machine(op.Machine)) && minor(b.version) == minor(op.From) &&
			b.version != m.TalosVersion && !j.kept[m.Name] {
			j.fail("%q before control plane %s", op, m.Name)
		}
	}
}

// minor is the second number of a version.
func minor(version string) int {
	parts := strings.Split(version, ".")
	if len(parts) < 2 {
		return 0
	}

	n, err := strconv.Atoi(parts[1])
	if err != nil {
		return 0
	}

	return n
}

// cordons is invariant 11.
func (j *judge) cordons(node string, b *box) {
	for _, n := range j.nodes {
		if n.name == node && (n.foreign || n.box != b) {
			j.fail("uncordon of node %s, which is not talosop's to uncordon", node)
		}
	}
}

func (j *judge) deletion(step step.DeleteNode, b *box) {
	for _, n := range j.nodes {
		if n.name == step.Node && n.box != b {
			j.fail("%q, which is the node of %s", step, n.box.uuid)
		}
	}

	if b.up() && !b.foreign && j.at(b.addr) == b && b.addr == j.machine(step.Machine).Address {
		j.fail("%q while its machine runs", step)
	}
}

// unreached lists what is not as wanted although the planner reports that it is done.
func (j *judge) unreached() []string {
	var missing []string

	for _, m := range j.want.Machines {
		b := j.meant[m.Name]

		for what, wrong := range map[string]bool{
			"does not run": b.life != running, "is not well": !j.well(b),
			"role": b.controlPlane != (m.Role == step.ControlPlane),
		} {
			if wrong {
				missing = append(missing, m.Name+": "+what)
			}
		}

		for what, wrong := range map[string]bool{
			"configuration": b.digest != newDigest && !(j.stages && b.staged == newDigest), "version": b.version != m.TalosVersion,
			"schematic":              m.Schematic != "" && b.schematic != m.Schematic,
			"made of something else": b.pod != nil && b.pod.outdated,
		} {
			if wrong && !j.kept[m.Name] {
				missing = append(missing, m.Name+": "+what)
			}
		}

		if n := j.nodeOf(b); n != nil && n.ours {
			missing = append(missing, m.Name+": its node is cordoned by talosop")
		}
	}

	for _, m := range j.want.Removed {
		b := j.meant[m.Name]
		if b.up() && !b.foreign && j.at(b.addr) == b && (b.addr == m.Address || b.pod != nil) || m.Container && !b.foreign && b.life != gone {
			missing = append(missing, m.Name+": still runs")
		}

		if slices.ContainsFunc(j.members, func(e *etcdMember) bool { return e.box == b }) {
			missing = append(missing, m.Name+": is still a member of etcd")
		}

		if slices.ContainsFunc(j.nodes, func(n *kubeNode) bool { return n.box == b }) {
			missing = append(missing, m.Name+": still has a node")
		}
	}

	missing = append(missing, j.keysLeft()...)
	missing = append(missing, j.notUpgraded()...)
	missing = append(missing, j.unmanagedLeft()...)
	slices.Sort(missing)

	return missing
}
