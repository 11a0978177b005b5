package cluster

import (
	"fmt"
	"slices"
)

// The order of an upgrade of Kubernetes within one minor version, as Talos's own upgrade-k8s
// has it (Talos 1.13, pkg/cluster/kubernetes Upgrade): the images are pulled everywhere, then
// each component of the control plane goes from one control plane to the next, then kube-proxy's
// image, then the kubelets, control planes first, and at last the bootstrap manifests. All
// machines finish one minor version before the first goes on to the next.
//
// A resource changes its own machines only. That is enough for control planes: their
// components talk to the API server of their own machine (Talos 1.13, secrets/kubernetes.go,
// LocalEndpoint). What crosses machines is asked of the whole cluster: API servers are at most
// one minor version apart, and no kubelet of a worker is newer than any of them, or more than
// three minor versions older (Kubernetes version skew policy).

// kubeletSkew is how many minor versions a kubelet may be behind an API server.
const kubeletSkew = 3

// kubernetesUpgrade is one round of an upgrade of Kubernetes.
type kubernetesUpgrade struct {
	want   Spec
	have   Snapshot
	policy Policy
	// target is the version that is being reached now, and final whether it is the wanted
	// one. back is true while components that are newer than wanted are taken back.
	target      string
	final, back bool
}

// planKubernetes upgrades Kubernetes on machines that run, once nothing else is to be done.
func planKubernetes(want Spec, have Snapshot, p Policy, d *Decision) {
	u, left := newKubernetesUpgrade(want, have, p)
	if !left || !hasEtcd(want, have) {
		return
	}

	if reason := d.busyElsewhere(have); reason != "" {
		d.hold("", "Kubernetes goes on to %s once nothing else is under way: %s", u.target, reason)

		return
	}

	if u.pull(d) {
		return
	}

	for _, component := range u.order() {
		if u.upgrade(component, d) {
			return
		}
	}

	u.sync(d)
}

// newKubernetesUpgrade finds the version that is to be reached next; left is false when
// nothing is left to do.
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
		if u.componentsLeft() || u.manifestsLeft() {
			return u, true
		}
	}

	return u, false
}

// busyElsewhere names a step or a hold that is none of the upgrade itself.
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

// order is the components in the order in which they change, which is the other way round
// when they are taken back: at no time is one newer than the API server it talks to.
func (u kubernetesUpgrade) order() []Component {
	order := []Component{KubeAPIServer, KubeControllerManager, KubeScheduler, KubeProxy, Kubelet}
	if u.back {
		slices.Reverse(order)
	}

	return order
}

// image is the one that a component of a machine has to reach now; empty where it has none,
// or nobody knows what it has.
func (u kubernetesUpgrade) image(m Machine, c Component) string {
	if u.have.Machines[m.Name].Images == nil || u.have.Machines[m.Name].Access != Member {
		return ""
	}

	return ImageAt(m.Images[c], u.want.Kubernetes.Version, u.target)
}

// lacks reports whether a component of a machine has to change for the version that is
// being reached, or is not seen to run with what it was given.
func (u kubernetesUpgrade) lacks(m Machine, c Component) bool {
	image := u.image(m, c)
	if image == "" {
		return false
	}

	version, known := u.version(m, c)

	switch current := u.have.Machines[m.Name].Images[c]; {
	case current == image:
		return !u.runs(m, c, image)
	case u.back:
		return known && older(u.target, version)
	case u.final:
		return true
	default:
		return known && minorsBetween(version, u.target) > 0
	}
}

// newer reports whether any component is newer than wanted.
func (u kubernetesUpgrade) newer() bool {
	return slices.ContainsFunc(u.want.all(), func(m Machine) bool {
		return slices.ContainsFunc(u.order(), func(c Component) bool {
			version, known := u.version(m, c)

			return known && u.image(m, c) != "" && u.have.Machines[m.Name].Images[c] != u.image(m, c) && older(u.target, version)
		})
	})
}

// version is that of a component: by its image, else, where the configuration leaves the
// image to Talos, by what is seen to run.
func (u kubernetesUpgrade) version(m Machine, c Component) (version string, known bool) {
	if image := u.have.Machines[m.Name].Images[c]; image != "" {
		return ImageVersion(image)
	}

	node, ok := u.have.NodeOf(m)

	switch {
	case !ok:
		return "", false
	case c == Kubelet:
		return node.KubeletVersion, node.KubeletVersion != ""
	default:
		return ImageVersion(node.StaticPods[string(c)].Image)
	}
}

// runs reports whether Kubernetes shows a component with its image. kube-proxy runs
// elsewhere, and where nobody looked the configuration is taken at its word.
func (u kubernetesUpgrade) runs(m Machine, c Component, image string) bool {
	node, ok := u.have.NodeOf(m)

	switch {
	case c == KubeProxy:
		return true
	case !ok:
		return !u.have.Kubernetes.Reachable
	case c == Kubelet:
		version, known := ImageVersion(image)

		return !known || node.KubeletVersion == "" || node.KubeletVersion == version
	case node.StaticPods == nil:
		return true
	default:
		pod := node.StaticPods[string(c)]

		return pod.Image == image && pod.Ready
	}
}

func (u kubernetesUpgrade) componentsLeft() bool {
	return slices.ContainsFunc(u.want.all(), func(m Machine) bool { return u.machineLeft(m) })
}

func (u kubernetesUpgrade) machineLeft(m Machine) bool {
	return slices.ContainsFunc(u.order(), func(c Component) bool { return u.lacks(m, c) })
}

// changes reports whether a component gets another image, rather than being waited for.
func (u kubernetesUpgrade) changes(m Machine, c Component) bool {
	return u.lacks(m, c) && u.have.Machines[m.Name].Images[c] != u.image(m, c)
}

// pull fetches images on all machines that get any. Nothing is changed before they have them.
func (u kubernetesUpgrade) pull(d *Decision) (under bool) {
	for _, m := range u.want.all() {
		s := u.have.Machines[m.Name]

		gets := slices.ContainsFunc(u.order(), func(c Component) bool { return c != KubeProxy && u.changes(m, c) })
		if !gets || s.Pulled == u.target {
			continue
		}

		under = true

		if s.Busy == "" {
			d.step(PullImages{Machine: m.Name, Version: u.target})
		}
	}

	return under
}

// upgrade changes one component on as many machines as may be changed now.
func (u kubernetesUpgrade) upgrade(c Component, d *Decision) (under bool) {
	roles := []Role{ControlPlane, Worker}
	if u.back {
		slices.Reverse(roles)
	}

	for _, role := range roles {
		if role == Worker && c != Kubelet {
			continue
		}

		lack := slices.DeleteFunc(slices.Clone(u.want.sorted(role)), func(m Machine) bool { return !u.lacks(m, c) })
		if len(lack) == 0 {
			continue
		}

		if role == ControlPlane {
			u.upgradeControlPlane(c, u.first(lack), d)
		} else {
			u.upgradeWorkers(lack, d)
		}

		return true
	}

	return false
}

// first is the machine that is changed first: one that does not work, since the change may
// be its cure.
func (u kubernetesUpgrade) first(lack []Machine) Machine {
	for _, m := range lack {
		if Unsettled(u.want, u.have, m) != "" {
			return m
		}
	}

	return lack[0]
}

func (u kubernetesUpgrade) upgradeControlPlane(c Component, m Machine, d *Decision) {
	if u.have.Machines[m.Name].Busy != "" {
		return
	}

	reason := u.unfit(m, c)
	if reason == "" {
		if reason = u.skewed(m, c); reason != "" {
			d.Yields = true
		}
	}

	if reason != "" {
		d.hold(m.Name, "%q has to wait: %s", u.step(m, c), reason)

		return
	}

	d.step(u.step(m, c))
}

// upgradeWorkers upgrades kubelets within the budgets of their pools.
func (u kubernetesUpgrade) upgradeWorkers(lack []Machine, d *Decision) {
	stay, skew := workersMustStay(u.want, u.have), u.kubeletsSkewed()
	budgets := map[string]*budget{}

	if stay == "" && skew != "" {
		stay, d.Yields = skew, true
	}

	for _, m := range lack {
		if budgets[m.Pool] == nil {
			budgets[m.Pool] = budgetOf(u.want, u.have, m.Pool, u.policy)
		}

		switch {
		case u.have.Machines[m.Name].Busy != "":
		case stay != "":
			d.hold(m.Name, "keeps its kubelet for now: %s", stay)
		case u.beyondCure(m) != "":
			d.hold(m.Name, "keeps its kubelet for now: it %s", u.beyondCure(m))
		case !budgets[m.Pool].take(m.Name):
			d.hold(m.Name, "keeps its kubelet for now: %s", budgets[m.Pool])
		default:
			d.step(u.step(m, Kubelet))
		}
	}
}

// step is the change of one component.
func (u kubernetesUpgrade) step(m Machine, c Component) UpgradeComponent {
	s := UpgradeComponent{
		Machine: m.Name, Role: m.Role, Component: c,
		From: u.have.Machines[m.Name].Images[c], Image: u.image(m, c),
	}

	if node, ok := u.have.NodeOf(m); ok {
		s.OnNode = node.Name
	}

	if c == Kubelet && u.policy.DrainForKubelet && s.From != s.Image {
		s.Evacuation = evacuation(u.have, m, u.policy)
		s.HandOver = false // its etcd goes on
	}

	return s
}

// unfit says what keeps a component of a control plane from being changed: anything but
// itself that does not work.
func (u kubernetesUpgrade) unfit(m Machine, c Component) string {
	if !u.have.Kubernetes.Reachable && !u.mends(m, c) {
		return "the Kubernetes API does not answer" + because(u.have.Kubernetes.Cause)
	}

	if reason := u.beyondCure(m); reason != "" {
		return "it " + reason
	}

	if !u.have.Kubernetes.Reachable {
		return "" // then nothing shows whether others work, and this is the cure
	}

	for _, other := range u.want.all() {
		if reason := outOfService(u.want, u.have, other); reason != "" && other.Name != m.Name {
			return other.Name + " " + reason
		}
	}

	if reason := othersUnfit(u.want, u.have, m); reason != "" {
		return reason
	}

	member, _ := u.have.MemberOf(m)

	return discord(u.have, member.ID)
}

// mends reports whether a change may bring back an API that does not answer: it goes back to
// an older version, or corrects where an image comes from.
func (u kubernetesUpgrade) mends(m Machine, c Component) bool {
	from, known := u.version(m, c)
	to, ok := ImageVersion(u.image(m, c))

	return c == KubeAPIServer && u.changes(m, c) && known && ok && !older(from, to)
}

// beyondCure says what a machine lacks that no image of Kubernetes brings back.
func (u kubernetesUpgrade) beyondCure(m Machine) string {
	s := u.have.Machines[m.Name]

	switch {
	case s.goingDown():
		return "is about to reboot"
	case s.Stage != StageRunning:
		return fmt.Sprintf("is %s", s.Stage)
	case m.Role == ControlPlane:
		return unsettledMember(u.have, m)
	default:
		return ""
	}
}

// skewed says which part of the cluster, of another resource, has to follow before a
// component of a control plane goes on.
func (u kubernetesUpgrade) skewed(m Machine, c Component) string {
	to, ok := ImageVersion(u.image(m, c))
	if c != KubeAPIServer || !ok {
		return ""
	}

	for _, node := range u.have.Kubernetes.Nodes {
		if minorsBetween(node.KubeletVersion, to) > kubeletSkew {
			return fmt.Sprintf("node %s runs kubelet %s, and kube-apiserver %s supports none that is more than %d minor versions older",
				node.Name, node.KubeletVersion, to, kubeletSkew)
		}

		if api, known := ImageVersion(node.StaticPods[string(KubeAPIServer)].Image); known && minorsBetween(api, to) > 1 {
			return fmt.Sprintf("node %s runs kube-apiserver %s, and API servers of one cluster are at most one minor version apart", node.Name, api)
		}
	}

	return ""
}

// kubeletsSkewed names an API server that is older than what the kubelets of workers are to
// become. Where the control planes are the spec's own they went first, and those beside,
// which may wait for this resource, are not waited for.
func (u kubernetesUpgrade) kubeletsSkewed() string {
	if u.want.OwnsControlPlane() {
		return ""
	}

	for _, node := range u.have.Kubernetes.Nodes {
		if api, known := ImageVersion(node.StaticPods[string(KubeAPIServer)].Image); known && minorsBetween(api, u.target) > 0 {
			return fmt.Sprintf("kube-apiserver of node %s runs %s, and no kubelet may be newer", node.Name, api)
		}
	}

	return ""
}

// manifestsLeft reports whether the manifests of the version that is being reached have to be
// synced: where every API server has it, and no component a newer one, so that what the
// control planes render is that version's. The last control plane to get there syncs.
func (u kubernetesUpgrade) manifestsLeft() bool {
	synced := orElse(u.have.Kubernetes.Manifests, u.want.Kubernetes.Manifests)

	if !u.want.OwnsControlPlane() || synced == "" || synced == u.target {
		return false
	}

	if !u.final && minorsBetween(synced, u.target) <= 0 {
		return false
	}

	for _, m := range u.want.sorted(ControlPlane) {
		version, known := u.version(m, KubeAPIServer)
		if known && minorsBetween(version, u.target) != 0 {
			return false
		}
	}

	for _, node := range u.have.Kubernetes.Nodes {
		if api, known := ImageVersion(node.StaticPods[string(KubeAPIServer)].Image); known && minorsBetween(api, u.target) > 0 {
			return false
		}
	}

	return true
}

// sync brings the bootstrap manifests of a control plane to the cluster.
func (u kubernetesUpgrade) sync(d *Decision) {
	if !u.manifestsLeft() {
		return
	}

	if !u.have.Kubernetes.Reachable {
		d.hold("", "the bootstrap manifests of Kubernetes %s wait for the Kubernetes API%s", u.target, because(u.have.Kubernetes.Cause))

		return
	}

	step := SyncManifests{Version: u.target}

	for _, m := range u.want.sorted(ControlPlane) {
		s := u.have.Machines[m.Name]
		if s.Access != Member {
			continue
		}

		if s.Busy != "" {
			return
		}

		if step.Machine == "" {
			step.Machine = m.Name
		}

		if step.TalosVersion == "" || older(s.TalosVersion, step.TalosVersion) {
			step.TalosVersion = s.TalosVersion
		}
	}

	if step.Machine != "" {
		d.step(step)
	}
}

// refuseKubernetes names what no upgrade of Kubernetes does: go back a minor version, and
// pass minor versions without a release, or without an image, for each of them.
func refuseKubernetes(want Spec, have Snapshot, d *Decision) {
	u := kubernetesUpgrade{want: want, have: have, target: want.Kubernetes.Version, final: true}
	if u.target == "" {
		return
	}

	lowest, highest, allowed := "", "", true

	for _, m := range want.all() {
		for _, c := range u.order() {
			version, known := u.version(m, c)
			if !known || u.image(m, c) == "" {
				continue
			}

			allowed = allowed && m.AllowDowngrade

			if lowest == "" || older(version, lowest) {
				lowest = version
			}

			if older(highest, version) || highest == "" {
				highest = version
			}

			if reason := u.gap(m, c, version); reason != "" {
				d.refuse(m.Name, reason, fmt.Sprintf("Upgrade Kubernetes one minor version at a time, or name releases in between; %s stays at %s until then", c, version))

				return
			}
		}
	}

	switch {
	case !older(u.target, lowest):
	case minorsBetween(u.target, lowest) > 0:
		d.refuse("", fmt.Sprintf("Kubernetes %s runs, and %s is wanted: Kubernetes cannot go back to an older minor version", lowest, u.target),
			"Set kubernetes_version to "+highest+" or later")
	case !allowed:
		d.refuse("", fmt.Sprintf("Kubernetes %s runs, and %s is older", lowest, u.target),
			"Set kubernetes_version to "+highest+" or later, or allow_downgrade to go back to an older patch release")
	}
}

// gap says why a component cannot pass each minor version on its way: there is no release of
// one, or its image cannot be named at one.
func (u kubernetesUpgrade) gap(m Machine, c Component, version string) string {
	for at := version; minorsBetween(at, u.target) > 1; {
		i := slices.IndexFunc(u.want.Kubernetes.Via, func(via string) bool { return minorsBetween(at, via) == 1 })
		if i < 0 {
			return fmt.Sprintf("%s runs %s, and no release between it and %s is known that is one minor version later than %s", c, version, u.target, at)
		}

		via := u.want.Kubernetes.Via[i]
		if got, ok := ImageVersion(ImageAt(m.Images[c], u.target, via)); !ok || got != via {
			return fmt.Sprintf("%s runs %s, and its image %s does not say what it is called at %s, which it has to pass on its way", c, version, m.Images[c], via)
		}

		at = via
	}

	return ""
}

// joinsWith is the version that a machine joins with when the cluster runs an older one than
// is wanted: that of its oldest API server; else empty.
func joinsWith(want Spec, have Snapshot) string {
	lowest := ""

	note := func(version string, known bool) {
		if known && (lowest == "" || older(version, lowest)) {
			lowest = version
		}
	}

	for _, m := range want.sorted(ControlPlane) {
		if s := have.Machines[m.Name]; s.Access == Member {
			note(ImageVersion(s.Images[KubeAPIServer]))
		}
	}

	for _, node := range have.Kubernetes.Nodes {
		note(ImageVersion(node.StaticPods[string(KubeAPIServer)].Image))
	}

	if older(lowest, want.Kubernetes.Version) {
		return lowest
	}

	return ""
}
