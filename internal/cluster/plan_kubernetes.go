package cluster

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/versions"
)

// The order of a Kubernetes upgrade within one minor version. The images are pulled everywhere. Then the API server
// changes on one control plane after the other, then everything behind it, then the kubelets of workers, and last the
// bootstrap manifests. All machines finish one minor version before the first begins the next.
//
// Everything behind the API server of a machine changes in one configuration. Talos's own upgrade-k8s (Talos 1.13,
// pkg/cluster/kubernetes Upgrade) changes one component after the other. Each API server is then away three times, and
// here twice, because these changes restart it, too:
//
//   - the scheduler's image, whose configuration is among the files of the API server (Talos 1.13,
//     k8s/render_config_static_pods.go)
//   - the kubelet's minor version: the UID of a static pod is a hash of all fields that this kubelet knows (Kubernetes
//     1.36, pkg/kubelet/config applyDefaults), so another kubelet replaces all static pods
//
// The running kubelet seldom takes up the other static pods before Talos stops it. It looks for them every 20 seconds
// (Kubernetes 1.36, kubelet/apis/config/v1beta1 HTTPCheckFrequency).
//
// A resource changes only its own machines. The version skew policy applies to the whole cluster: API servers are at
// most one minor version apart, and no kubelet is newer than any of them, or more than three minor versions older. A
// kubelet waits for the API servers of other resources, or stays behind when none of their runs works (elsewhere.go).
// Controller managers and schedulers wait only for the API servers of their own resource.

// planKubernetes upgrades Kubernetes on running machines, once nothing else is left to do.
func planKubernetes(want Spec, have Snapshot, p Policy, d *Decision) {
	u, left := newKubernetesUpgrade(want, have, p)
	u.keepKubelets(d)

	if !left || !hasEtcd(want, have) {
		return
	}

	if reason := d.busyElsewhere(have); reason != "" {
		d.hold("", "the Kubernetes upgrade to %s waits for other work: %s", u.target, reason)

		return
	}

	if u.pull(d) {
		return
	}

	for _, components := range u.stages() {
		if u.upgrade(components, d) {
			return
		}
	}

	u.sync(d)
}

// newKubernetesUpgrade finds the next target version; left is false when nothing is left to do.
func newKubernetesUpgrade(want Spec, have Snapshot, p Policy) (u kubernetesUpgrade, left bool) {
	u = kubernetesUpgrade{want: want, have: have, policy: p}
	if want.Kubernetes.Version == "" {
		return u, false
	}

	u.target, u.final, u.back = want.Kubernetes.Version, true, true
	if u.newer() {
		return u, true
	}

	u.back = false

	for _, version := range append(slices.Clone(want.Kubernetes.Via), want.Kubernetes.Version) {
		u.target, u.final = version, version == want.Kubernetes.Version
		if !u.final && versions.MinorsBetween(version, want.Kubernetes.Version) <= 0 {
			continue
		}

		if u.componentsLeft() || u.manifestsLeft() {
			return u, true
		}
	}

	return u, false
}

// busyElsewhere names a step or a hold outside the upgrade.
func (d *Decision) busyElsewhere(have Snapshot) string {
	if len(d.Steps) > 0 {
		return d.Steps[0].String()
	}

	for _, h := range d.Holds {
		if !have.Machines[h.Machine].InUpgrade {
			return h.String()
		}
	}

	return ""
}

// stages are the components that change together on one machine, in order.
func (u kubernetesUpgrade) stages() [][]kubenames.Component {
	stages := [][]kubenames.Component{{kubenames.KubeAPIServer}, kubenames.BehindAPIServer()}
	if u.back {
		slices.Reverse(stages)
	}

	return stages
}

// mostPulls is how many machines pull images at once, because all may use one registry.
const mostPulls = 32

// pull pulls images on all machines that get any. Nothing changes before they have them, and nothing is pulled for
// what only stays behind.
func (u kubernetesUpgrade) pull(d *Decision) (under bool) {
	if !u.anywhere(func(m Machine, c kubenames.Component) bool { return u.changes(m, c) && !u.staysBehind(m, c) }) {
		return false
	}

	pulling := 0

	for _, m := range u.want.all() {
		s := u.have.Machines[m.Name]

		if s.Busy != "" && s.Pulled != u.target {
			pulling++
		}

		gets := func(c kubenames.Component) bool { return c != kubenames.KubeProxy && u.changes(m, c) }
		if !slices.ContainsFunc(u.order(), gets) || s.Pulled == u.target {
			continue
		}

		under = true

		if s.Busy == "" && pulling < mostPulls {
			d.step(step.PullImages{Machine: m.Name, Version: u.target})

			pulling++
		}
	}

	return under
}

// upgrade changes the components of a stage on as many machines as may change now.
func (u kubernetesUpgrade) upgrade(stage []kubenames.Component, d *Decision) (under bool) {
	roles := []step.Role{step.ControlPlane, step.Worker}
	if u.back {
		slices.Reverse(roles)
	}

	for _, role := range roles {
		machines := u.want.sorted(role)
		u.leaveBehind(machines, stage, d)

		lack := slices.DeleteFunc(slices.Clone(machines), func(m Machine) bool { return len(u.left(m, stage)) == 0 })
		if len(lack) == 0 {
			continue
		}

		if role == step.ControlPlane {
			m := u.first(lack, stage)
			u.upgradeControlPlane(m, u.left(m, stage), d)
		} else {
			u.upgradeWorkers(lack, d)
		}

		return true
	}

	return false
}

// left are the unfinished components of a stage on a machine, without those that stay behind.
func (u kubernetesUpgrade) left(m Machine, stage []kubenames.Component) []kubenames.Component {
	return slices.DeleteFunc(slices.Clone(stage),
		func(c kubenames.Component) bool { return !u.lacks(m, c) || u.staysBehind(m, c) })
}

// first is the machine that changes first: one with a component that does not run, because the change may repair it.
func (u kubernetesUpgrade) first(lack []Machine, stage []kubenames.Component) Machine {
	for _, m := range lack {
		if slices.ContainsFunc(u.left(m, stage), func(c kubenames.Component) bool { return u.broken(m, c) }) {
			return m
		}
	}

	return lack[0]
}

func (u kubernetesUpgrade) upgradeControlPlane(m Machine, components []kubenames.Component, d *Decision) {
	if u.have.Machines[m.Name].Busy != "" {
		return
	}

	components = u.repairFirst(m, components)

	const waits = "%q waits: %s"

	if reason := u.unfit(m, components[0]); reason != "" {
		d.hold(m.Name, waits, u.step(m, components...), reason)
	} else if reason = u.othersFirst(m, components); reason != "" {
		d.holdForOthers(m.Name, waits, u.step(m, components...), reason)
	} else {
		d.step(u.step(m, components...))
	}
}

// repairFirst are the components without those that wait for other resources, if any of the rest does not run: the
// others may wait for this machine.
func (u kubernetesUpgrade) repairFirst(m Machine, components []kubenames.Component) []kubenames.Component {
	rest := slices.DeleteFunc(slices.Clone(components), func(c kubenames.Component) bool { return u.awaits(m, c) != "" })
	if slices.ContainsFunc(rest, func(c kubenames.Component) bool { return u.broken(m, c) }) {
		return rest
	}

	return components
}

// othersFirst says what of other resources must follow before the components of a control plane change.
func (u kubernetesUpgrade) othersFirst(m Machine, components []kubenames.Component) string {
	for _, c := range components {
		if reason := cmp.Or(u.awaits(m, c), u.skewed(m, c)); reason != "" {
			return reason
		}
	}

	return ""
}

// upgradeWorkers upgrades kubelets within the budgets of their pools.
func (u kubernetesUpgrade) upgradeWorkers(lack []Machine, d *Decision) {
	stay := workersMustStay(u.want, u.have)
	budgets := map[string]*budget{}
	lack, soaks := u.canaryFirst(lack, d)

	for _, m := range lack {
		if budgets[m.Pool] == nil {
			budgets[m.Pool] = budgetOf(u.want, u.have, m.Pool, u.policy)
		}

		switch {
		case u.have.Machines[m.Name].Busy != "":
		case stay != "":
			d.hold(m.Name, "kubelet upgrade waits: %s", stay)
		case u.kubeletSkewed(m) != "":
			d.holdForOthers(m.Name, "kubelet upgrade waits: %s", u.kubeletSkewed(m))
		case u.beyondRepair(m) != "":
			d.hold(m.Name, "kubelet upgrade waits: it %s", u.beyondRepair(m))
		case !budgets[m.Pool].take(m.Name):
			d.hold(m.Name, "kubelet upgrade waits: %s", budgets[m.Pool])
		case soaks:
			d.step(step.Soaking(u.step(m, kubenames.Kubelet)))
		default:
			d.step(u.step(m, kubenames.Kubelet))
		}
	}
}

// canaryFirst are the workers whose kubelets may change now: those of the canary pool, which soak if others follow,
// and none of the others until the soak has ended.
func (u kubernetesUpgrade) canaryFirst(lack []Machine, d *Decision) (first []Machine, soaks bool) {
	for _, m := range lack {
		if u.want.IsCanary(m) {
			first = append(first, m)
		}
	}

	if len(first) > 0 {
		return first, len(first) < len(lack)
	}

	turn := soakOf(u.want, u.have)
	if turn.waits == "" {
		return lack, false
	}

	turn.plan(d)
	d.hold("", "kubelet upgrades wait: %s", turn.waits)

	return nil, false
}

// step is the change of components in one configuration.
func (u kubernetesUpgrade) step(m Machine, components ...kubenames.Component) step.UpgradeComponent {
	s := step.UpgradeComponent{
		Machine: m.Name, Role: m.Role, Component: components[0],
		From: u.has(m, components[0]), Image: u.image(m, components[0]),
	}

	for _, c := range components[1:] {
		s = s.And(step.ComponentChange{Component: c, From: u.has(m, c), Image: u.image(m, c)})
	}

	// Without an API its name is the reported or recorded one.
	node, _ := u.have.NodeOf(m)
	s.OnNode = cmp.Or(node.Name, u.have.Machines[m.Name].NodeName, m.NodeName)

	kubelet, changes := s.Of(kubenames.Kubelet)
	if changes && u.policy.DrainForKubelet && kubelet.From != kubelet.Image {
		s.Evacuation = EvacuationOf(u.have, m, u.policy)
		s.HandOver = false // its etcd continues to run
	}

	return s
}

// unfit says what keeps a component of a control plane from changing: anything else that does not work.
func (u kubernetesUpgrade) unfit(m Machine, c kubenames.Component) string {
	if !u.have.Kubernetes.Reachable && !u.mayRestore(m, c) {
		return "the Kubernetes API does not respond" + Because(u.have.Kubernetes.Cause)
	}

	if reason := u.beyondRepair(m); reason != "" {
		return "it " + reason
	}

	if !u.have.Kubernetes.Reachable {
		return "" // then nothing shows whether others work, and this is the repair
	}

	for _, other := range u.want.all() {
		if reason := outOfService(u.want, u.have, other); reason != "" && (other.Name != m.Name || !u.repairs(m)) {
			return other.Name + " " + reason
		}
	}

	if reason := othersUnfit(u.want, u.have, m); reason != "" {
		return reason
	}

	member, _ := u.have.MemberOf(m)

	return u.have.Etcd.Discord(member.ID)
}

// mayRestore reports whether a change may restore an API that does not answer: on a machine whose static pods do not
// run, it downgrades, changes the patch version, or corrects the source of an image. On other machines the API may only
// be unreachable from here. Talos knows the pods from its kubelet, without the API (Talos 1.13,
// runtime/machine_status.go staticPodsCheck).
func (u kubernetesUpgrade) mayRestore(m Machine, c kubenames.Component) bool {
	from, known := u.version(m, c)
	to, ok := kubenames.ImageVersion(u.image(m, c))
	down := slices.ContainsFunc(u.have.Machines[m.Name].Unmet,
		func(unmet string) bool { return conditionName(unmet) == "staticPods" })

	return c == kubenames.KubeAPIServer && down && u.changes(m, c) && known && ok && versions.MinorsBetween(from, to) <= 0
}

// beyondRepair says what a machine lacks that no Kubernetes image can repair.
func (u kubernetesUpgrade) beyondRepair(m Machine) string {
	s := u.have.Machines[m.Name]

	switch {
	case s.GoingDown():
		return "is about to reboot"
	case s.Stage != step.StageRunning:
		return fmt.Sprintf("is %s", s.Stage)
	case m.Role == step.ControlPlane:
		return memberNotReady(u.have, m)
	default:
		return ""
	}
}
