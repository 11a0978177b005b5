package cluster_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// trial is a random cluster with a random change.
type trial struct {
	*judge
	random *rand.Rand
	policy cluster.Policy
	// faults is the share of steps that fail.
	faults float64
	// kills is how often the run is killed.
	kills float64
	// whole is true for a healthy cluster without failures, which ends in the desired state.
	whole bool

	ail float64 // the share of unhealthy machines
	old cluster.Machine
	new cluster.Machine
	// mid is a release between the old and the new version.
	mid     []cluster.Release
	digest  string
	reboot  bool
	created bool
	pods    bool // every machine of the spec is one
	kube    kubeChange

	// mistaken is a machine that the user configured wrongly.
	mistaken string

	done []step.Step
	// window is how long the maintenance window is alternately open and closed; zero for none. refuses is true when a
	// run does not wait for it.
	window  time.Duration
	refuses bool
	// waited is true when a step waited for the window.
	waited bool
	// unmanaged adds and removes machines without a resource; nil where there are none.
	unmanaged *rand.Rand
	// keptAtAll is true when a lock kept anything.
	keptAtAll bool
	// behindAtAll is true when anything was left to a later run. quietSince is since when no run of another resource
	// works.
	behindAtAll bool
	quietSince  time.Time
	// vain counts the failed waits for a component of a machine.
	vain map[step.UpgradeComponent]int
}

func newTrial(seed uint64) *trial {
	random := rand.New(rand.NewPCG(seed, 3))
	s := &site{random: random, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), pinned: map[string]string{},
		pins: map[naming]string{}}
	t := &trial{random: random, judge: &judge{site: s, meant: map[string]*box{}, succeeded: map[string]bool{},
		soaking: soaking{unsoaked: map[string]time.Time{}}}}

	t.policy = cluster.DefaultPolicy()
	t.policy.RegisterTimeout = 24 * time.Hour // the clock jumps while machines boot, and no node is ever lost
	t.policy.TryConfig = random.IntN(4) == 0
	t.policy.Drain.Skip = random.IntN(6) == 0
	t.whole = random.IntN(3) == 0

	if !t.whole {
		t.ail = []float64{0, 0.03, 0.15, 0.4}[random.IntN(4)]
		t.faults = []float64{0, 0.05, 0.2}[random.IntN(3)]
		t.kills = []float64{0, 0, 0.05}[random.IntN(3)]
	}

	t.randomChange()
	t.randomKubernetes()
	t.randomCluster()

	for _, n := range t.nodes {
		n.ours = n.ours && !(t.whole && t.unowned(n))
	}

	t.want.Shared = slices.ContainsFunc(t.boxes, func(b *box) bool { return b.others && b.controlPlane })
	t.beginProxy()
	t.randomEtcd(rand.New(rand.NewPCG(seed, 11)))
	t.randomLocks(rand.New(rand.NewPCG(seed, 13)))
	t.randomWindow(rand.New(rand.NewPCG(seed, 17)))
	t.randomStaging(rand.New(rand.NewPCG(seed, 19)))
	t.randomUnmanaged(rand.New(rand.NewPCG(seed, 23)))
	t.randomCanary(rand.New(rand.NewPCG(seed, 29)))

	return t
}

// unowned is true for the node of a machine outside the spec.
func (t *trial) unowned(n *kubeNode) bool {
	return !slices.ContainsFunc(t.want.Known(), func(m cluster.Machine) bool { return t.meant[m.Name].name == n.name })
}

// randomStaging picks whether configurations are staged, on which machines one already is, and whether the sources of
// bootstrap manifests change.
func (t *trial) randomStaging(random *rand.Rand) {
	t.stages = random.IntN(4) == 0
	t.policy.StageReboots = t.stages

	if random.IntN(3) == 0 {
		t.want.Kubernetes.Changed = []string{"Flannel"}
	}

	for _, m := range t.want.Machines {
		if b := t.meant[m.Name]; b.needsReboot && b.pod == nil && b.digest == "old" && random.IntN(5) == 0 {
			b.staged = newDigest
		}
	}
}

// randomChange picks the change for all machines.
func (t *trial) randomChange() {
	t.old = cluster.Machine{Installation: cluster.Installation{TalosVersion: "v1.12.3", Schematic: "s1"}}
	t.new = t.old
	t.digest = newDigest
	t.want = cluster.Spec{Name: "prod", NodesBecomeReady: t.random.IntN(7) > 0, Bootstrapped: true,
		Pools: map[string]cluster.Budget{}}
	t.noCNI = !t.want.NodesBecomeReady

	switch t.random.IntN(10) {
	case 0, 1, 2:
		t.new.TalosVersion = "v1.13.0"
	case 3, 4:
		t.old.TalosVersion, t.new.TalosVersion = "v1.11.6", "v1.13.0"
		t.mid = []cluster.Release{{Version: "v1.12.4"}}
	case 7: // across a version of etcd
		t.old.TalosVersion, t.new.TalosVersion, t.new.AllowDowngrade = "v1.14.1", "v1.13.6", true
	case 8:
		t.old.TalosVersion, t.new.TalosVersion = "v1.13.6", "v1.14.1"
	case 5:
		t.new.TalosVersion = "v1.12.4"
	case 6:
		t.new.TalosVersion, t.new.AllowDowngrade = "v1.11.6", t.whole || t.random.IntN(3) > 0
		if t.random.IntN(2) == 0 {
			t.old.TalosVersion = "v1.13.0"
			t.mid = []cluster.Release{{Version: "v1.12.4"}}
		}
	}

	if t.random.IntN(5) == 0 {
		t.new.Schematic = "s2"
	}

	if t.random.IntN(3) == 0 {
		t.digest, t.reboot = "old", t.random.IntN(2) == 0
	}

	for _, pool := range []string{"", "a", "b"} {
		switch t.random.IntN(4) {
		case 0:
			t.want.Pools[pool] = cluster.Budget{Count: 1 + t.random.IntN(4)}
		case 1, 2:
			t.want.Pools[pool] = cluster.Budget{Percent: 10 + t.random.IntN(60)}
		}
	}
}

func (t *trial) chance(p float64) bool { return t.random.Float64() < p }

// randomCluster makes the machines.
func (t *trial) randomCluster() {
	kind := t.random.IntN(10)
	t.pods = kind != 2 && t.random.IntN(3) == 0 // a host cluster runs the whole control plane

	controlPlanes := []int{1, 2, 3, 3, 3, 4, 5}[t.random.IntN(7)]
	workers := t.random.IntN([]int{1, 4, 8, 16, 45}[t.random.IntN(5)] + 1)

	if !t.kube.alone {
		workers = min(workers, 12) // a Kubernetes upgrade has many rounds
	}

	if t.whole && controlPlanes == 2 {
		controlPlanes = 3 // of two members, none can be lost
	}

	t.created = kind > 0
	if !t.created {
		t.want.Bootstrapped = false

		if t.random.IntN(2) == 0 { // every machine is blank, and may have been part of a cluster before
			t.want.RestoreFrom, t.want.Bootstrapped = "key", t.random.IntN(2) == 0
		}
	}

	owned := controlPlanes

	switch kind {
	case 1:
		owned, t.want.Bootstrapped = 0, true
	case 2:
		owned, t.want.Joins = t.random.IntN(controlPlanes)+1, true
	}

	listed := t.random.IntN(2) == 0

	for i := range controlPlanes {
		name := fmt.Sprintf("cp-%d", i+1)

		if i < owned {
			t.addMachine(name, step.ControlPlane)

			continue
		}

		b := t.newBox(name, step.ControlPlane)
		b.others = true
		t.live(b)

		if listed {
			t.want.OtherControlPlanes = append(t.want.OtherControlPlanes,
				cluster.MachineAt(name, step.ControlPlane, b.addr))
			t.meant[name] = b
		}
	}

	for i := range workers {
		t.addMachine(fmt.Sprintf("w-%d", i+1), step.Worker)
	}

	if t.created && !t.whole && !t.kube.alone && t.random.IntN(6) == 0 {
		b := t.newBox("far", step.Worker)
		b.others = true
		t.live(b)

		if t.random.IntN(2) == 0 {
			t.setKubernetes(b, t.images(step.Worker, "v1.32.5", t.kube.before))
		}
	}

	if t.created {
		t.randomRemovals(owned)
		t.randomDrift()
		t.randomFaults()
		t.randomMistakes()
	}

	if t.pods {
		t.randomPods()
	}
}

// randomMistakes makes a user name another machine than the one that is there.
func (t *trial) randomMistakes() {
	if t.whole || t.random.IntN(30) > 0 || len(t.want.Machines) == 0 {
		return
	}

	m := &t.want.Machines[t.random.IntN(len(t.want.Machines))]
	t.mistaken = m.Name

	mistake := t.random.IntN(3)
	if t.pods && mistake == 1 {
		mistake = 0 // they have no UUID
	}

	switch mistake {
	case 0:
		t.meant[m.Name].foreign = true
	case 1:
		m.UUID = "another"
	case 2: // under another name
		gone := *m
		gone.UUID, gone.NodeName = t.meant[m.Name].uuid, t.meant[m.Name].name
		m.Name, m.UUID, m.NodeName = "renamed", "", ""
		t.mistaken = m.Name
		t.meant[m.Name] = t.meant[gone.Name]
		t.want.Removed = append(t.want.Removed, gone)
	}
}

func (t *trial) newBox(name string, role step.Role) *box {
	n := len(t.boxes) + 1
	b := &box{uuid: fmt.Sprintf("uuid-%d", n), addr: fmt.Sprintf("10.0.0.%d", n), name: name, life: maintenance,
		controlPlane: role == step.ControlPlane, kube: newKubeBox()}
	t.boxes = append(t.boxes, b)

	return b
}

// live makes a box part of the cluster.
func (t *trial) live(b *box) {
	b.life, b.version, b.schematic, b.digest, b.needsReboot = running, t.old.TalosVersion, t.old.Schematic, t.digest,
		t.reboot
	t.register(b)
	t.liveKubernetes(b)

	if b.controlPlane {
		t.addMember(b, false)
	}

	node := t.nodeOf(b)
	node.foreign = t.random.IntN(12) == 0
	node.ours = !node.foreign && t.random.IntN(12) == 0
}

// addMachine adds a wanted machine in any state that an earlier apply may leave.
func (t *trial) addMachine(name string, role step.Role) {
	b := t.newBox(name, role)
	t.meant[name] = b

	m := cluster.Machine{
		Name: name, Role: role, Wanted: cluster.Wanted{Address: b.addr},
		Configured:   cluster.Configured{ConfigDigest: newDigest},
		Installation: cluster.Installation{InstallTarget: "/dev/sda", TalosVersion: t.new.TalosVersion, Schematic: t.new.Schematic, Via: t.mid, AllowDowngrade: t.new.AllowDowngrade},
	}

	if !t.kube.alone {
		m.Images = t.images(role, t.kube.final(), t.kube.then)
	}

	if role == step.Worker {
		m.Pool = []string{"", "a", "a", "b"}[t.random.IntN(4)]
	}

	grows := len(t.boxes) > 1 && t.random.IntN(10) == 0 && !(t.whole && role == step.ControlPlane && t.etcdGoesBack())
	if t.created && !grows {
		t.live(b)
		t.setKubernetes(b, t.reached(role))

		m.UUID, m.NodeName = b.uuid, b.name

		switch t.random.IntN(8) { // the progress of an earlier apply
		case 0:
			b.digest = newDigest
		case 1:
			if len(t.mid) > 0 {
				b.version = t.mid[0].Version
			}
		case 2:
			if len(t.mid) == 0 {
				b.version, b.schematic = t.new.TalosVersion, t.new.Schematic
			}
		}
	}

	t.want.Machines = append(t.want.Machines, m)
}

// randomRemovals removes some machines, which are alive, dead, wiped or replaced.
func (t *trial) randomRemovals(controlPlanes int) {
	if t.random.IntN(3) > 0 {
		return
	}

	for i := range t.random.IntN(4) {
		role := step.Worker
		if t.random.IntN(2) == 0 && controlPlanes > 0 {
			role = step.ControlPlane
		}

		name := fmt.Sprintf("old-%d", i+1)
		b := t.newBox(name, role)
		t.live(b)
		t.meant[name] = b

		m := cluster.Machine{Name: name, Role: role, Wanted: cluster.Wanted{Address: b.addr, UUID: b.uuid}, Remembered: cluster.Remembered{NodeName: b.name}}

		switch t.random.IntN(4) {
		case 0:
		default:
			m.MemberID = b.member
		}

		t.want.Removed = append(t.want.Removed, m)

		fate := t.random.IntN(8)
		if t.whole && role == step.ControlPlane {
			fate = 3 // without it there might be no quorum
		}

		switch fate {
		case 0:
			b.life = off
		case 1:
			b.wipe()
			b.life = maintenance
		case 2:
			b.life = off

			if !t.pods {
				t.replace(m)
			}
		case 3:
			t.want.Removed[i].MemberID = "gone" // it left and joined again after it was recorded
		}
	}
}

// replace puts other hardware in the place of a machine: a new one of the spec, one of another resource, or one of
// another cluster.
func (t *trial) replace(gone cluster.Machine) {
	name := "new-" + gone.Name

	switch t.random.IntN(3) {
	case 0:
		grown := len(t.want.Machines)
		created := t.created
		t.created = false
		t.addMachine(name, gone.Role)
		t.created = created
		t.meant[name].addr, t.want.Machines[grown].Address = gone.Address, gone.Address

		if t.random.IntN(2) == 0 {
			t.want.Removed[len(t.want.Removed)-1].UUID = "" // as for containers
		}
	case 1:
		b := t.newBox(name, step.Worker)
		b.addr = gone.Address
		t.live(b)
	case 2:
		b := t.newBox(name, gone.Role)
		b.addr, b.foreign, b.life = gone.Address, true, running
	}
}

// randomFaults breaks machines and the cluster.
func (t *trial) randomFaults() {
	if t.whole {
		return
	}

	for _, b := range t.boxes {
		if !b.up() || b.foreign || !t.chance(t.ail) {
			continue
		}

		b.repair = []string{"", "config", "upgrade"}[t.random.IntN(3)]

		switch t.random.IntN(8) {
		case 7:
			b.impostor = !t.pods && slices.ContainsFunc(t.want.Machines,
				func(m cluster.Machine) bool { return t.meant[m.Name] == b })
		case 0:
			b.life = off
		case 1, 2:
			b.sick = !t.noCNI // it could not be observed
		case 3:
			b.etcdBroken, b.life = b.controlPlane, booting
		case 4:
			if m := t.memberOf(b); m != nil {
				m.learner, b.stuck = true, t.random.IntN(2) == 0
			}
		case 5:
			b.wipe()
			b.life = maintenance
		case 6:
			t.goAway(b, booting)
		}
	}

	t.alarm, t.split, t.apiDown = t.random.IntN(20) == 0, t.random.IntN(20) == 0, t.random.IntN(12) == 0
}
