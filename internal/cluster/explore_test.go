package cluster_test

import (
	"flag"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// move is what happens next in a state: a phase of a step, progress of a machine, time, or a fault.
type move struct {
	kind  moveKind
	which uint8
	how   failure
}

type moveKind uint8

const (
	stepGoesOn moveKind = iota
	machineGoesOn
	timePasses
	runIsKilled
	machineDies
	machineReboots
	machineIsWiped
	machineMoves
	memberLosesData
	memberIsRemoved
	nodeIsCordoned
	nodeIsUncordoned
	settingChanges
)

func (m move) fault() bool { return m.kind > timePasses || m.how != fine }

// name is the move in words, in the state in which it happens.
func (m move) name(w *world) string {
	switch m.kind {
	case stepGoesOn:
		return fmt.Sprintf("%s: phase %d, %s", w.running[m.which].step, w.running[m.which].phase,
			[]string{"fine", "fails before", "answer lost", "refused", "never returns", "rolled back"}[m.how])
	case timePasses:
		return "an hour passes"
	case runIsKilled:
		return "the run is killed, and the next one begins"
	default:
		return w.boxes[m.which].name + map[moveKind]string{machineGoesOn: " goes on", machineDies: " dies",
			machineReboots: " reboots", machineIsWiped: " is wiped", machineMoves: " gets another address",
			memberLosesData: " loses the data of etcd", memberIsRemoved: " is removed from etcd by hand",
			nodeIsCordoned: " is cordoned by hand", nodeIsUncordoned: " is uncordoned by hand",
			settingChanges: " gets another configuration by hand"}[m.kind]
	}
}

// make does a move, and reports whether anything changed.
func (w *world) make(m move) bool {
	if m.fault() {
		w.left--
		w.whole = false
	}

	switch m.kind {
	case stepGoesOn:
		return w.phase(int(m.which), m.how)
	case timePasses:
		w.later()
	case runIsKilled:
		w.apply()
	case machineGoesOn:
		return w.machineGoesOn(w.boxes[m.which])
	default:
		return w.breaks(w.boxes[m.which], m.kind)
	}

	return true
}

// breaks is what happens to a machine from outside, and reports whether it can.
func (w *world) breaks(b *box, kind moveKind) bool {
	node, member := w.nodeOf(b), w.memberOf(b)

	switch {
	case b.life == off || b.life == gone || b.foreign:
		return false
	case kind == machineDies:
		b.life = off
	case kind == machineReboots && b.up():
		w.goAway(b, booting)
	case kind == machineIsWiped && b.up():
		b.wipe()
		b.life, b.wiped = maintenance, true
	case kind == machineMoves && b.up() && b.pod == nil && !strings.HasSuffix(b.addr, "9"):
		b.addr += "9"
	case kind == memberLosesData && b.up() && b.data:
		b.data, b.life = false, booting
	case kind == memberIsRemoved && member != nil && w.quorum() && len(w.members) > 1:
		w.dropMember(member.id)
	case kind == nodeIsCordoned && node != nil && !node.ours && !node.foreign:
		node.foreign = true
	case kind == nodeIsUncordoned && node != nil && node.ours:
		node.ours = false
	case kind == settingChanges && b.up() && b.digest == newDigest:
		b.digest = "old"
		maps.DeleteFunc(w.succeeded, func(why string, _ bool) bool { return strings.HasPrefix(why, b.name+" configuration") })
	default:
		return false
	}

	return true
}

// next are the states that follow, each with its move.
func (w *world) next() (out []*world, by []move) {
	if w.end != "" || len(w.broken) > 0 {
		return nil, nil
	}

	try := func(m move) bool {
		c := w.clone()
		if !c.make(m) {
			return false
		}

		c.decide()
		out, by = append(out, c), append(by, m)

		return true
	}

	moving := false

	for i := range w.running {
		moving = try(move{stepGoesOn, uint8(i), fine}) || moving
	}

	for i := range w.boxes {
		moving = try(move{machineGoesOn, uint8(i), fine}) || moving
	}

	switch {
	case moving:
	case !w.idle || len(w.running) > 0:
		try(move{timePasses, 0, fine})
	default:
		w.end = "held"
		w.held(w.last)
	}

	if w.left > 0 && w.end == "" {
		w.faultsOf(try)
	}

	return out, by
}

// faultsOf tries all faults that may happen in a state.
func (w *world) faultsOf(try func(move) bool) {
	try(move{runIsKilled, 0, fine})

	for i, r := range w.running {
		op := w.clone().operate(r.machine, r.step, fine)
		if r.phase != effectOf(op) {
			continue // only the effect of a step fails
		}

		for how := failsBefore; how <= rolledBack; how++ {
			if how < neverBack || leavesService(r.step) {
				try(move{stepGoesOn, uint8(i), how})
			}
		}
	}

	for i := range w.boxes {
		for kind := machineDies; kind <= settingChanges; kind++ {
			try(move{kind, uint8(i), fine})
		}
	}
}

// leavesService is true for a step after which a machine may not return, or return as it was.
func leavesService(s step.Step) bool {
	switch s := s.(type) {
	case step.Upgrade, step.UpgradeComponent:
		return true
	case step.ApplyConfig:
		return s.Reboot != ""
	default:
		return false
	}
}

// exploration is a search through all states, in breadth, so that a counterexample is a shortest one.
type exploration struct {
	most int // states
	// parent and by are how each state was reached first, and ends how many states ended how.
	parent []int32
	by     []move
	before [][]int32 // the states from which each is reached
	ends   map[string]int
	final  []bool
	whole  bool // every state was visited
}

func explore(first func() *world, most int) (*exploration, string) {
	x := &exploration{most: most, ends: map[string]int{}}
	seed := maphash.MakeSeed()
	known := map[uint64]int32{}

	add := func(w *world, from int32, by move) (int32, bool) {
		key := w.key(seed)
		at, old := known[key]

		if !old {
			at = int32(len(x.parent))
			known[key] = at
			x.parent, x.by, x.before = append(x.parent, from), append(x.by, by), append(x.before, nil)
			x.final = append(x.final, false)
		}

		if from >= 0 {
			x.before[at] = append(x.before[at], from)
		}

		return at, !old
	}

	type open struct {
		at int32
		w  *world
	}

	begin := first()
	at, _ := add(begin, -1, move{})
	queue := []open{{at, begin}}

	for len(queue) > 0 && len(x.parent) < x.most {
		o := queue[0]
		queue[0].w, queue = nil, queue[1:]

		worlds, by := o.w.next()

		if len(o.w.broken) > 0 {
			return x, x.story(first, o.at, 0) + strings.Join(o.w.broken, "\n")
		}

		if o.w.end != "" {
			x.ends[o.w.end]++
			x.final[o.at] = true
		}

		for i, w := range worlds {
			if at, fresh := add(w, o.at, by[i]); fresh {
				queue = append(queue, open{at, w})
			}
		}
	}

	x.whole = len(queue) == 0

	for _, o := range queue { // not visited, and not judged
		x.final[o.at] = true
	}

	return x, x.livelock(first)
}

// livelock tells how to reach a state from which no end can be reached.
func (x *exploration) livelock(first func() *world) string {
	reaches := slices.Clone(x.final)

	var queue []int32

	for at, final := range x.final {
		if final {
			queue = append(queue, int32(at))
		}
	}

	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]

		for _, from := range x.before[at] {
			if !reaches[from] {
				reaches[from] = true
				queue = append(queue, from)
			}
		}
	}

	if at := slices.Index(reaches, false); at >= 0 {
		return x.story(first, int32(at), 8) + "no end can be reached from here"
	}

	return ""
}

// story is how a state is reached, and some moves after it: what the planner decides after each, and what was observed
// last.
func (x *exploration) story(first func() *world, at int32, after int) string {
	var moves []move

	for ; x.parent[at] >= 0; at = x.parent[at] {
		moves = append(moves, x.by[at])
	}

	var b strings.Builder

	w := first()
	fmt.Fprintf(&b, "%s%s\n", w.trial, render(w.last))

	for _, m := range slices.Backward(moves) {
		fmt.Fprintf(&b, "-- %s --\n", m.name(w))
		w.make(m)
		w.decide()
		b.WriteString(render(w.last))
	}

	fmt.Fprintf(&b, "%+v\n", w.watch.states)

	for range after {
		worlds, by := w.next()
		if len(worlds) == 0 {
			break
		}

		fmt.Fprintf(&b, "-- then, such as: %s --\n%s", by[0].name(w), render(worlds[0].last))
		w = worlds[0]
	}

	return b.String()
}

// explored are the changes, each with the cluster that it begins with.
var explored = map[string]func(controlPlanes, workers, faults int) *world{
	"create": func(controlPlanes, workers, faults int) *world {
		w := newWorld(faults)
		w.want.Bootstrapped = false
		w.addAll(controlPlanes, workers, true)

		return w
	},
	"grow": func(controlPlanes, workers, faults int) *world {
		w := newWorld(faults)
		w.addAll(1, 0, false)

		for i := range controlPlanes - 1 {
			w.add(fmt.Sprintf("cp-%d", i+2), step.ControlPlane, true)
		}

		w.addAll(0, workers, true)

		return w
	},
	"shrink": func(controlPlanes, workers, faults int) *world {
		w := newWorld(faults)
		w.addAll(max(1, controlPlanes-1), max(0, workers-1), false)

		if controlPlanes > 1 {
			w.remove("old-cp", step.ControlPlane)
		}

		if workers > 0 {
			w.remove("old-w", step.Worker)
		}

		return w
	},
	"replace": func(controlPlanes, workers, faults int) *world {
		w := newWorld(faults)
		w.addAll(controlPlanes-1, workers, false)
		w.remove("old-cp", step.ControlPlane)
		w.add("new-cp", step.ControlPlane, true)

		return w
	},
	"upgrade": func(controlPlanes, workers, faults int) *world {
		w := newWorld(faults)
		w.old.TalosVersion = "v1.12.3"
		w.addAll(controlPlanes, workers, false)

		return w
	},
	"upgrade over two minors": func(controlPlanes, workers, faults int) *world {
		w := newWorld(faults)
		w.old.TalosVersion, w.mid = "v1.11.6", []cluster.Release{{Version: "v1.12.4"}}
		w.addAll(controlPlanes, workers, false)

		return w
	},
	"upgrade with a canary": func(controlPlanes, workers, faults int) *world {
		w := newWorld(faults)
		w.old.TalosVersion = "v1.12.3"
		w.addAll(controlPlanes, workers, false)
		w.canary()

		return w
	},
	"kubernetes with a canary": func(controlPlanes, workers, faults int) *world {
		w := newWorld(faults)
		w.upgradeKubernetes()
		w.addAll(controlPlanes, workers, false)
		w.canary()

		return w
	},
	"downgrade of etcd": func(controlPlanes, workers, faults int) *world {
		w := newWorld(faults)
		w.old.TalosVersion, w.new.TalosVersion, w.new.AllowDowngrade = "v1.14.1", "v1.13.6", true
		w.addAll(controlPlanes, workers, false)

		return w
	},
	"kubernetes": func(controlPlanes, workers, faults int) *world {
		w := newWorld(faults)
		w.upgradeKubernetes()
		w.addAll(controlPlanes, workers, false)

		return w
	},
	"configuration": func(controlPlanes, workers, faults int) *world {
		w := newWorld(faults)
		w.digest = "old"
		w.addAll(controlPlanes, workers, false)

		return w
	},
	"configuration with a reboot": func(controlPlanes, workers, faults int) *world {
		w := newWorld(faults)
		w.digest, w.reboot = "old", true
		w.addAll(controlPlanes, workers, false)

		return w
	},
	"restore": func(controlPlanes, workers, faults int) *world {
		w := newWorld(faults)
		w.want.RestoreFrom = "key"
		w.addAll(controlPlanes, workers, true)

		return w
	},
}

// upgradeKubernetes makes the machines that are added then want the next minor version.
func (w *world) upgradeKubernetes() {
	w.kube.alone, w.kube.versions = false, []string{"v1.35.4", "v1.36.3"}
	w.wantedVersion, w.manifests = "v1.36.3", "v1.35.4"
	w.want.Kubernetes = cluster.KubernetesSpec{Version: "v1.36.3", Manifests: "v1.35.4"}
}

// canary makes a pool of the first worker, which changes before the others.
func (w *world) canary() {
	w.want.Canary = cluster.Canary{Pool: "canary", Soak: 30 * time.Minute}

	for i, m := range w.want.Machines {
		if m.Name == "w-1" {
			w.want.Machines[i].Pool = "canary"
		}
	}

	w.want.Owner = "us"

	for _, n := range w.nodes {
		n.marked = true
	}
}

func (w *world) addAll(controlPlanes, workers int, blank bool) {
	for i := range controlPlanes {
		w.add(fmt.Sprintf("cp-%d", i+1), step.ControlPlane, blank)
	}

	for i := range workers {
		w.add(fmt.Sprintf("w-%d", i+1), step.Worker, blank)
	}
}

// begun is the world at the beginning of the first apply.
func (w *world) begun(lowest string) *world {
	w.whole = true
	w.etcd = versionsOfEtcd{cluster: lowest}

	for _, m := range w.members {
		w.etcd.cluster = m.box.etcdMinor()
		m.box.dataOf = w.etcd.cluster
	}

	w.beginProxy()
	w.watch = w.beginRun()
	w.decide()

	return w
}

var (
	exploredShape = flag.String("explore", "",
		"explore clusters of this shape only: control planes, workers and faults, such as 3-2-2")
	exploredStates = flag.Int("states", 0, "explore this many states of each change")
)

// TestPlan_exploresEveryState visits the states of small clusters under every change: each order in which steps and
// machines go on, with up to two faults. No step breaks an invariant of the design, every end is one that the model
// confirms, and an end can be reached from every state.
func TestPlan_exploresEveryState(t *testing.T) {
	most, shapes := 3_000, [][3]int{{1, 1, 2}, {3, 1, 1}}
	if testenv.Everything() {
		most, shapes = 400_000, [][3]int{{1, 2, 2}, {2, 1, 2}, {3, 0, 2}, {3, 2, 2}}
	}

	if *exploredShape != "" {
		var shape [3]int
		if _, err := fmt.Sscanf(*exploredShape, "%d-%d-%d", &shape[0], &shape[1], &shape[2]); err != nil {
			t.Fatal(err)
		}

		shapes = [][3]int{shape}
	}

	if *exploredStates > 0 {
		most = *exploredStates
	}

	for name, change := range explored {
		for _, shape := range shapes {
			t.Run(fmt.Sprintf("%s/%d-%d", name, shape[0], shape[1]), func(t *testing.T) {
				begin := time.Now()
				x, found := explore(func() *world { return change(shape[0], shape[1], shape[2]).begun("") }, most)

				t.Logf("%d states (all: %t), ends %v, %s", len(x.parent), x.whole, x.ends,
					time.Since(begin).Round(time.Millisecond))

				if found != "" {
					t.Fatal(found)
				}

				if x.whole && x.ends["done"] == 0 && shape[0] != 2 { // two control planes never disrupt one
					t.Error("no state is done, so that nothing is proven")
				}
			})
		}
	}
}
