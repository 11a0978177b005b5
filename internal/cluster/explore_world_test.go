package cluster_test

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
)

// world is one state of an exploration: a cluster of the model, what the run that works on it remembers, and the steps
// that it carries out.
type world struct {
	*trial
	watch   *observer
	running []runningStep
	// left is how many faults may still happen.
	left int
	// idle is true once time passed and nothing came of it.
	idle bool
	// last is the last decision, and end is how the run ended, "" while it goes on.
	last     cluster.Decision
	etcdSeen etcdstate.State // on which it was decided
	end      string
}

// runningStep is a step that began, and how many of its phases are over.
type runningStep struct {
	step    step.Step
	machine cluster.Machine
	phase   int
	access  step.Access // how the machine answered when the step began
}

// The choices of the model that an exploration does not vary: each takes the first, so that delays are the shortest.
// The order in which machines progress is what varies.
type firstChoice struct{}

func (firstChoice) Uint64() uint64 { return 1 << 33 }

// clone is a copy that shares nothing that changes.
func (w *world) clone() *world {
	c := *w
	t, j, s, o := *w.trial, *w.trial.judge, *w.trial.site, *w.watch
	boxes := make(map[*box]*box, len(s.boxes))
	s.boxes, s.members, s.nodes = slices.Clone(s.boxes), slices.Clone(s.members), slices.Clone(s.nodes)

	for i, b := range s.boxes {
		b2 := *b
		b2.kube = b.kube.clone()

		if b.pod != nil {
			pod := *b.pod
			b2.pod = &pod
		}

		boxes[b], s.boxes[i] = &b2, &b2
	}

	for i, m := range s.members {
		m2 := *m
		m2.box = boxes[m.box]
		s.members[i] = &m2
	}

	for i, n := range s.nodes {
		n2 := *n
		n2.box = boxes[n.box]
		s.nodes[i] = &n2
	}

	s.trace, s.broken = nil, nil
	j.site, j.meant = &s, make(map[string]*box, len(w.meant))

	for name, b := range w.meant {
		j.meant[name] = boxes[b]
	}

	j.succeeded, j.pulled = maps.Clone(j.succeeded), maps.Clone(j.pulled)
	j.unsoaked, j.soaking.boots = maps.Clone(j.unsoaked), maps.Clone(j.soaking.boots)
	t.judge, t.vain, t.done = &j, maps.Clone(t.vain), nil
	t.want.Machines = slices.Clone(t.want.Machines)
	o.site, o.want, o.states, o.views = &s, t.want, maps.Clone(o.states), maps.Clone(o.views)
	c.trial, c.watch, c.running = &t, &o, slices.Clone(w.running)

	return &c
}

func (k *kubeBox) clone() *kubeBox {
	c := &kubeBox{images: k.images, runs: make(map[kubenames.Component]*process, len(k.runs)),
		shown: maps.Clone(k.shown), faulty: maps.Clone(k.faulty)}

	for component, p := range k.runs {
		p2 := *p
		c.runs[component] = &p2
	}

	return c
}

// decide observes, asks the planner and begins its steps, as a run does after each event.
func (w *world) decide() {
	for w.announce() || w.tickEtcd() || w.showAll() {
		continue
	}

	w.recovered(func(b *box) bool {
		return !slices.ContainsFunc(w.running, func(r runningStep) bool { return w.meant[r.machine.Name] == b })
	})
	w.oneAtATime()

	have := w.watch.observe()
	have.Elsewhere = w.elsewhere()
	w.etcdSeen = have.Etcd
	w.last = cluster.Plan(w.want, have, w.policy)

	w.keeps(w.last)
	w.leavesBehind(w.last)
	w.wellFormed(w.last)

	switch {
	case len(w.last.Refusals) > 0:
		w.end = "refused"
		w.refused(w.last)

		return
	case w.last.Done() && len(w.running) == 0:
		w.end = "done"

		for _, missing := range w.unreached() {
			w.fail("done, but %s", missing)
		}

		w.nothingLeft(w.watch.manifests)

		return
	case w.stuck():
		w.end = "stuck"

		return
	}

	for _, next := range w.last.Steps {
		if slices.ContainsFunc(w.running, func(r runningStep) bool { return r.machine.Name == next.On() }) {
			w.fail("%q on a machine that is busy", next)

			continue
		}

		w.say("step %s", next)

		if !confirmed(next) {
			w.check(next)
		}

		w.running = append(w.running, runningStep{step: next, machine: w.watch.machine(next.On()),
			access: w.watch.states[next.On()].Access})
		w.begins(next)
		w.idle = false
	}
}

// begins records the beginning of a step. That etcd was asked to begin is recorded when that is confirmed.
func (w *world) begins(next step.Step) {
	before := w.watch.states[next.On()]
	w.watch.began(next)

	if step.BeginsEtcd(next) {
		state := w.watch.states[next.On()]
		state.BeginsEtcd, state.BootstrapSent, state.Fresh = true, before.BootstrapSent, before.Fresh
		w.watch.states[next.On()] = state
	}
}

// confirms is the last check before the effect of a step, as in lifecycle: all machines are observed again, busy ones
// too. What the planner still permits then keeps the invariants.
func (w *world) confirms(op step.Step) bool {
	if !op.Disrupts() && !confirmed(op) {
		return true
	}

	watch := *w.watch
	watch.states = maps.Clone(watch.states)

	for name, s := range watch.states {
		s.Busy = ""
		watch.states[name] = s
	}

	have := watch.observe()
	have.Elsewhere = w.elsewhere()

	for name, s := range have.Machines {
		s.Busy = w.watch.states[name].Busy
		have.Machines[name] = s
	}

	if !have.Etcd.Known && len(w.etcdSeen.Members) == 1 {
		have.Etcd = w.etcdSeen
	}

	if reason := cluster.Preflight(w.want, have, w.policy, op); reason != "" {
		w.say("%s: %s", op, reason)

		return false
	}

	w.check(op)

	if step.BeginsEtcd(op) {
		state := w.watch.states[op.On()]
		state.BootstrapSent, state.Fresh = true, false
		w.watch.states[op.On()] = state
	}

	return true
}

// confirmed is true for a step that is decided without the answers of busy machines, which its confirmation has.
func confirmed(op step.Step) bool { return op.ChangesEtcd() || step.BeginsEtcd(op) }

// phase carries out the next phase of a running step, and reports whether anything happened.
func (w *world) phase(i int, how failure) bool {
	r := &w.running[i]
	op := w.operate(r.machine, r.step, how)

	if r.phase >= len(op.phases) {
		return w.callsOff(i) // the machine no longer answers
	}

	target := w.target(r.machine, r.step)
	silent := actsOnMachine(r.step) && target == nil

	// A connection with certificates fails in maintenance mode, and one without them outside of it.
	if actsOnMachine(r.step) && target != nil && target.pod == nil &&
		(target.life == maintenance) != (r.access == step.Maintenance) {
		return w.callsOff(i)
	}

	if r.phase == effectOf(op) && !silent && !w.confirms(r.step) {
		return w.callsOff(i)
	}

	last := len(op.phases) - 1
	err := op.phases[r.phase]()

	switch {
	case silent:
		return w.callsOff(i)
	case err != nil:
		return w.ends(i, err)
	case len(op.phases)-1 > last: // it still waits
		return false
	case r.phase == last:
		return w.ends(i, nil)
	default:
		r.phase++

		return true
	}
}

// callsOff ends a step before its effect.
func (w *world) callsOff(i int) bool {
	w.cordon(evacuated(w.running[i].step), false)

	if b := w.meant[w.running[i].machine.Name]; b != nil && b.inRun == w.judge.run && w.running[i].step.Disrupts() {
		b.disrupted = false
	}

	return w.ends(i, errAgain)
}

// effectOf is the phase of a step that has its effect: the first one, or the one after the evacuation.
func effectOf(op *operation) int {
	if evacuated(op.step) != "" && len(op.phases) > 1 {
		return 1
	}

	return 0
}

// ends is the end of a running step. After an error for good, the next apply begins.
func (w *world) ends(i int, err error) bool {
	over := w.running[i]
	w.running = slices.Delete(w.running, i, i+1)

	w.ended(w.watch, over.step, err)

	if state := w.watch.states[over.step.On()]; state.BeginsEtcd {
		state.BeginsEtcd = false
		w.watch.states[over.step.On()] = state
	}

	if err == errFatal {
		w.apply()
	}

	return true
}

// evacuated is the node that a step cordons first.
func evacuated(s step.Step) string {
	switch s := s.(type) {
	case step.ApplyConfig:
		return s.Node
	case step.Upgrade:
		return s.Node
	case step.UpgradeComponent:
		return s.Node
	case step.LeaveEtcd:
		return s.Node
	case step.Reset:
		return s.Node
	default:
		return ""
	}
}

// apply ends the run, and begins another one.
func (w *world) apply() {
	w.running, w.idle = nil, false
	w.watch = w.beginRun()
}

// machineGoesOn lets a machine and its kubelet progress, and reports whether they did.
func (w *world) machineGoesOn(b *box) bool {
	moved := w.progress(b)

	return b.up() && !b.foreign && b.kube.ticks(w.site) || moved
}

// later lets an hour pass: what was waited for did not happen.
func (w *world) later() {
	w.now = w.now.Add(time.Hour)
	w.idle = true

	for i := len(w.running) - 1; i >= 0; i-- {
		if step.Soaks(w.running[i].step) && w.api() {
			continue // it is what the time passes for
		}

		if w.running[i].phase > 0 || len(w.operate(w.running[i].machine, w.running[i].step, fine).phases) == 1 {
			w.ends(i, errInVain)
		}
	}
}

// key identifies a state. What differs only in names of boots, members and runs is the same one.
func (w *world) key(seed maphash.Seed) uint64 {
	var h maphash.Hash

	h.SetSeed(seed)
	put := func(values ...any) {
		for _, v := range values {
			w.hash(&h, reflect.ValueOf(v))
		}
	}

	index := make(map[*box]int, len(w.boxes))
	for i, b := range w.boxes {
		index[b] = i
		stale := b.member != "" && w.memberOf(b) == nil
		put(string(b.life), string(b.next), b.timer, b.addr, b.foreign, b.impostor, b.wiped, b.controlPlane, b.version,
			b.schematic, b.digest, b.staged, b.needsReboot, b.sick, b.etcdBroken, b.stuck, b.repair, b.data, b.left, b.asked,
			stale, !b.restored.IsZero(), b.dataOf, b.disrupted, b.inRun == w.judge.run, b.hop)
		put(b.kube.images, b.kube.shown, b.kube.faulty)

		for _, c := range append(slices.Clone(staticPods), kubenames.Kubelet) {
			if p := b.kube.runs[c]; p != nil {
				put(string(c), p.image, p.ready, p.timer)
			}
		}

		if b.pod != nil {
			put(b.pod.outdated, b.pod.bad, b.pod.lost, b.pod.ran)
		}
	}

	for _, m := range w.members {
		put("member", index[m.box], m.id == m.box.member, m.learner, m.peer == m.box.peer())
	}

	for _, n := range w.nodes {
		put("node", n.name, index[n.box], n.ours, n.foreign, n.soak, n.soak.Since.IsZero(), n.marked)
	}

	put(w.etcd.cluster, w.etcd.target, w.manifests, w.madeFrom, w.proxy, w.watch.manifests, w.left, w.idle, w.end,
		slices.Sorted(maps.Keys(w.succeeded)), slices.Sorted(maps.Keys(w.unsoaked)), w.pulled, w.downAtFirst, w.settled)

	for _, m := range w.watch.machines() {
		w.hashState(&h, m, w.watch.states[m.Name])
	}

	for _, r := range w.running {
		put("running", fmt.Sprintf("%#v", r.step), r.phase)

		for name, boot := range w.soaking.boots {
			if step.Soaks(r.step) && w.meant[name].boot != boot {
				put("rebooted", name)
			}
		}
	}

	for op, times := range w.vain {
		put(op.Machine, string(op.Component), times)
	}

	return h.Sum64()
}

// hashState is a machine as the run remembers it. Boots have no names there, only whether they are the same.
func (w *world) hashState(h *maphash.Hash, m cluster.Machine, s step.MachineState) {
	now := ""
	if b := w.meant[m.Name]; b != nil {
		now = b.bootID()
	}

	same := func(boot string) string {
		switch boot {
		case "", "nothing":
			return boot
		case now:
			return "this"
		case s.BootID:
			return "observed"
		default:
			return "another"
		}
	}

	from, upgraded, seen := same(s.RebootedFrom), same(s.Upgraded.BootID), s.BootID != "" && s.BootID == now
	s.RebootedFrom, s.Upgraded.BootID, s.BootID = from, upgraded, fmt.Sprint(seen)

	h.WriteString(m.Name)
	w.hash(h, reflect.ValueOf(s))
}

// hash adds a value. Times are ages of up to an hour.
func (w *world) hash(h *maphash.Hash, v reflect.Value) {
	number := func(n uint64) {
		var b [8]byte

		binary.LittleEndian.PutUint64(b[:], n)
		h.Write(b[:])
	}

	switch v.Kind() {
	case reflect.String:
		number(uint64(v.Len()))
		h.WriteString(v.String())
	case reflect.Bool:
		if v.Bool() {
			h.WriteByte(1)
		} else {
			h.WriteByte(0)
		}
	case reflect.Int, reflect.Int64:
		number(uint64(v.Int()))
	case reflect.Uint8, reflect.Uint64:
		number(v.Uint())
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			h.WriteByte(0)
		} else {
			w.hash(h, v.Elem())
		}
	case reflect.Slice, reflect.Array:
		number(uint64(v.Len()))

		for i := range v.Len() {
			w.hash(h, v.Index(i))
		}
	case reflect.Map:
		w.hashMap(h, v)
	case reflect.Struct:
		if at, ok := reflect.TypeAssert[time.Time](v); ok {
			w.hash(h, reflect.ValueOf(!at.IsZero() && w.now.Sub(at) >= time.Hour))

			return
		}

		for i := range v.NumField() {
			w.hash(h, v.Field(i))
		}
	default:
		panic("an exploration has no key for a " + v.Kind().String())
	}
}

// hashMap adds the entries of a map in any order.
func (w *world) hashMap(h *maphash.Hash, v reflect.Value) {
	var sum uint64

	for entries := v.MapRange(); entries.Next(); {
		var one maphash.Hash

		one.SetSeed(h.Seed())
		w.hash(&one, entries.Key())
		w.hash(&one, entries.Value())
		sum += one.Sum64()
	}

	w.hash(h, reflect.ValueOf(sum))
	w.hash(h, reflect.ValueOf(v.Len()))
}

// newWorld is a cluster without machines, and what is wanted for it.
func newWorld(faults int) *world {
	s := &site{random: rand.New(firstChoice{}), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		pinned: map[string]string{}, pins: map[naming]string{}}
	t := &trial{random: s.random, judge: &judge{site: s, meant: map[string]*box{},
		soaking: soaking{unsoaked: map[string]time.Time{}}}, policy: cluster.DefaultPolicy(),
		created: true, digest: newDigest}

	t.policy.RegisterTimeout = 24 * time.Hour // an hour passes while machines boot, and no node is ever lost
	t.old.TalosVersion, t.old.Schematic = "v1.13.0", "s1"
	t.new = t.old
	t.want = cluster.Spec{Name: "prod", NodesBecomeReady: true, Bootstrapped: true, Pools: map[string]cluster.Budget{}}
	t.kube = kubeChange{before: naming{registry: "registry.k8s.io"}, then: naming{registry: "registry.k8s.io"},
		versions: []string{"v1.35.4"}, alone: true}
	t.joinVersion, t.joinNaming, t.wanted = "v1.35.4", t.kube.before, t.kube.then

	return &world{trial: t, left: faults}
}

// add adds a wanted machine. A blank one is not in the cluster yet.
func (w *world) add(name string, role step.Role, blank bool) {
	b := w.newBox(name, role)
	w.meant[name] = b

	m := cluster.Machine{Name: name, Role: role, Wanted: cluster.Wanted{Address: b.addr},
		Configured: cluster.Configured{ConfigDigest: newDigest},
		Installation: cluster.Installation{InstallTarget: "/dev/sda", TalosVersion: w.new.TalosVersion,
			Schematic: w.new.Schematic, Via: w.mid, AllowDowngrade: w.new.AllowDowngrade},
	}

	if !w.kube.alone {
		m.Images = w.images(role, w.kube.final(), w.kube.then)
	}

	if !blank {
		w.lives(b)
		m.UUID, m.NodeName = b.uuid, b.name
	}

	w.want.Machines = append(w.want.Machines, m)
}

// remove adds a machine of the cluster that the resource gave up.
func (w *world) remove(name string, role step.Role) {
	b := w.newBox(name, role)
	w.meant[name] = b
	w.lives(b)

	w.want.Removed = append(w.want.Removed, cluster.Machine{Name: name, Role: role,
		Wanted:     cluster.Wanted{Address: b.addr, UUID: b.uuid},
		Remembered: cluster.Remembered{NodeName: b.name, MemberID: b.member}})
}

// lives makes a box part of the cluster, with the configuration and the versions from before the change.
func (w *world) lives(b *box) {
	b.life, b.version, b.schematic, b.digest, b.needsReboot = running, w.old.TalosVersion, w.old.Schematic, w.digest,
		w.reboot
	w.register(b)
	w.liveKubernetes(b)

	if b.controlPlane {
		w.addMember(b, false)
	}
}
