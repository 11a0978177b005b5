package cluster_test

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// soaking is what is true about the canary pool, which the notes on its nodes only claim.
type soaking struct {
	// unsoaked are the canary machines that changed before others and have not soaked since, and when they changed.
	unsoaked map[string]time.Time
	// boots are those in which the machines were when the soak of this run began.
	boots map[string]int
	// soaks is how many soaks ended well.
	soaks int
}

// randomCanary gives some clusters a canary pool, in which an earlier run may have left the soak anywhere.
func (t *trial) randomCanary(random *rand.Rand) {
	others := slices.ContainsFunc(t.boxes, func(b *box) bool { return b.others })
	if random.IntN(3) > 0 || others || !t.want.OwnsControlPlane() {
		return
	}

	t.want.Canary = cluster.Canary{Pool: []string{"a", "b"}[random.IntN(2)],
		Soak: time.Duration(1+random.IntN(15)) * time.Minute}

	t.want.Owner = "us"

	for _, m := range t.want.Machines {
		b := t.meant[m.Name]
		n := t.nodeOf(b)

		if n != nil {
			n.marked = true
		}

		if !t.want.IsCanary(m) || n == nil || random.IntN(2) == 0 {
			continue
		}

		t.unsoaked[m.Name] = t.now.Add(-3 * time.Hour)
		n.soak.Due = true

		if random.IntN(2) == 0 {
			n.soak.Since = t.now.Add(-time.Duration(random.IntN(60)) * time.Minute)
		}
	}
}

// operate begins a step as lifecycle carries it out, and what it notes about the soak of the canary pool.
func (j *judge) operate(m cluster.Machine, next step.Step, how failure) *operation {
	if soak, is := next.(step.Soak); is {
		return j.soak(m, soak, how)
	}

	op := j.site.operate(m, next, how)
	first := op.phases[0]

	op.phases[0] = func() error {
		if node := step.SoaksOn(next); node != "" {
			if !j.api() {
				return errAgain
			}

			j.noteSoak(node, kubestate.Soak{Due: true})
		}

		if j.want.IsCanary(m) && j.othersFollow(next) {
			j.unsoaked[m.Name] = j.now
		}

		return first()
	}

	return op
}

func (s *site) noteSoak(node string, soak kubestate.Soak) {
	for _, n := range s.nodes {
		if n.name == node {
			n.soak = soak
		}
	}
}

// soak observes the canary pool until its end, and then takes the notes off. A failure ends the run.
func (j *judge) soak(m cluster.Machine, next step.Soak, how failure) *operation {
	op := &operation{step: next, machine: m}

	j.simply(op, how, j.beginSoak)

	begin := op.phases[0]
	op.phases[0] = func() error {
		if !j.api() {
			return errAgain
		}

		return begin()
	}

	var await func() error

	await = func() error {
		switch failed, unknown := j.soakFails(); {
		case failed != "":
			j.say("%s failed in its soak", failed)
			j.noteSoaks(kubestate.Soak{Due: true})

			return errFatal
		case unknown || j.now.Before(j.soakBegan().Add(next.For)):
			op.phases = append(op.phases, await)

			return nil
		}

		j.soaked()
		j.noteSoaks(kubestate.Soak{})

		return nil
	}

	op.phases = append(op.phases, await)

	return op
}

// soakingNodes are the nodes of the canary pool whose notes say that their soak is due.
func (j *judge) soakingNodes() (nodes []*kubeNode) {
	for _, m := range j.want.Machines {
		if n := j.nodeOf(j.meant[m.Name]); j.want.IsCanary(m) && n != nil && n.soak.Due {
			nodes = append(nodes, n)
		}
	}

	return nodes
}

func (j *judge) noteSoaks(soak kubestate.Soak) {
	for _, n := range j.soakingNodes() {
		n.soak = soak
	}
}

// soakBegan is when the soak began by the notes; zero for not on all nodes.
func (j *judge) soakBegan() (at time.Time) {
	for _, n := range j.soakingNodes() {
		if n.soak.Since.IsZero() {
			return time.Time{}
		}

		if n.soak.Since.After(at) {
			at = n.soak.Since
		}
	}

	return at
}

func (j *judge) beginSoak() {
	if at := j.soakBegan(); at.IsZero() || at.After(j.now) {
		j.noteSoaks(kubestate.Soak{Due: true, Since: j.now})
	}
}

// soakFails names a machine that does not work, or that rebooted since the run began to observe it. It is unknown for
// one that is away, and without an API.
func (j *judge) soakFails() (failed string, unknown bool) {
	for _, m := range j.want.Machines {
		boot, observed := j.soaking.boots[m.Name]
		if !observed {
			continue
		}

		switch b := j.meant[m.Name]; {
		case !j.api(), b.life == away:
			unknown = true
		case !j.well(b), j.at(m.Address) != b, b.boot != boot:
			return m.Name, false
		}
	}

	return "", unknown
}

// observesSoak is called when the run begins to observe a soak.
func (j *judge) observesSoak() {
	j.soaking.boots = map[string]int{}

	for _, m := range j.want.Machines {
		if n := j.nodeOf(j.meant[m.Name]); j.want.IsCanary(m) && n != nil && n.soak.Due {
			j.soaking.boots[m.Name] = j.meant[m.Name].boot
		}
	}
}

// soaked: a soak began after the changes of its machines, and lasted.
func (j *judge) soaked() {
	began := j.soakBegan()

	for name, changed := range j.unsoaked {
		if began.Before(changed) || j.now.Sub(began) < j.want.Canary.Soak {
			j.fail("the soak of %s began at %s and is over, and it changed at %s", name, began, changed)
		}
	}

	clear(j.unsoaked)

	j.soaks++
}

// canaryFirst: no working machine outside the canary pool goes out of service for a change before the machines of the
// pool have it and have soaked. Kubelets of control planes do not wait.
func (j *judge) canaryFirst(op step.Step, b *box) {
	if !j.waitsForCanary(op, b) {
		return
	}

	for _, m := range j.want.Machines {
		switch o := j.meant[m.Name]; {
		case !j.want.IsCanary(m), m.Locked, j.kept[m.Name]:
		case !j.unsoaked[m.Name].IsZero():
			j.fail("%q before canary %s has soaked", op, m.Name)
		case j.lacksChange(op, m, o):
			j.fail("%q before canary %s has its change", op, m.Name)
		}
	}
}

// waitsForCanary reports whether a step takes a working machine outside the pool out of service for a change.
func (j *judge) waitsForCanary(op step.Step, b *box) bool {
	if j.want.Canary.Pool == "" || j.want.IsCanary(j.machine(op.On())) || !j.well(b) {
		return false
	}

	switch op := op.(type) {
	case step.Upgrade:
		return true
	case step.ApplyConfig:
		return op.Access == step.Member && op.Reboot != ""
	case step.UpgradeComponent:
		return op.Component == kubenames.Kubelet && op.Role == step.Worker && op.From != op.Image
	default:
		return false
	}
}

// lacksChange reports whether a canary machine still needs what a step brings, or a reboot for its configuration.
func (j *judge) lacksChange(op step.Step, m cluster.Machine, b *box) bool {
	switch op := op.(type) {
	case step.UpgradeComponent:
		has := b.kube.images[kubenames.Kubelet]

		return m.Images[kubenames.Kubelet] != "" && has != m.Images[kubenames.Kubelet] &&
			j.minorOf(has) == j.minorOf(op.From) && !j.stays(m.Name, kubenames.Kubelet)
	case step.Upgrade:
		if j.needsTalos(m, b) {
			return minor(b.version) == minor(op.From)
		}

		return j.needsReboot(m, b)
	default:
		return j.needsReboot(m, b)
	}
}

func (j *judge) needsTalos(m cluster.Machine, b *box) bool {
	if m.Pool == cluster.UnmanagedPool {
		return newer(m.TalosVersion, b.version)
	}

	return b.version != m.TalosVersion || m.Schematic != "" && b.schematic != m.Schematic
}

func (j *judge) needsReboot(m cluster.Machine, b *box) bool {
	return m.ConfigDigest != "" && b.digest != m.ConfigDigest && b.needsReboot && !j.stages
}

// othersFollow reports whether a machine outside the canary pool waits for a change of one in it.
func (j *judge) othersFollow(op step.Step) bool {
	kubelet, is := op.(step.UpgradeComponent)
	config, configures := op.(step.ApplyConfig)

	switch _, upgrades := op.(step.Upgrade); {
	case !is && !upgrades && !configures, configures && config.Access == step.Member && config.Reboot == "",
		is && (kubelet.Component != kubenames.Kubelet || kubelet.From == kubelet.Image):
		return false
	}

	return slices.ContainsFunc(slices.Concat(j.want.Machines, j.want.ChangeOnly), func(m cluster.Machine) bool {
		b := j.meant[m.Name]

		switch {
		case j.want.IsCanary(m), m.Locked, j.kept[m.Name], !b.up() && b.life != away, b.foreign, b.digest == "":
			return false
		case is:
			return m.Role == step.Worker && m.Images[kubenames.Kubelet] != "" &&
				b.kube.images[kubenames.Kubelet] != m.Images[kubenames.Kubelet] && !j.stays(m.Name, kubenames.Kubelet)
		default:
			return j.needsTalos(m, b) || j.needsReboot(m, b)
		}
	})
}
