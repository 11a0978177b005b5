package cluster_test

import (
	"maps"
	"slices"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
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
	// story records what the planner saw and decided; nil where nothing is printed.
	story *story
	// planted is a fault of the planner or of the run, to prove that it is found.
	planted planted
	// had and wanted are the keys of machines.
	had, wantedKeys string
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
		b2, kube := *b, *b.kube
		b2.kube = &kube

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

// decide observes, asks the planner and begins its steps, as a run does after each event.
func (w *world) decide() {
	for w.announce() || w.tickEtcd() || w.showAll() {
		continue
	}

	w.recovered(func(b *box) bool {
		return !slices.ContainsFunc(w.running, func(r runningStep) bool { return w.meant[r.machine.Name] == b })
	})
	w.oneAtATime()

	if w.want.Rotates {
		w.trusted()
	}

	have := w.watch.observe()
	have.Elsewhere = w.elsewhere()
	w.etcdSeen = have.Etcd
	w.last = w.plan(have)
	w.story.decided(w, have)

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
		w.done(have)

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

// plan is the decision of the planner.
func (w *world) plan(have cluster.Snapshot) cluster.Decision {
	decide := cluster.Plan
	if w.destroys {
		decide = cluster.PlanTeardown
	}

	if w.planted.plan != nil {
		return w.planted.plan(decide, w.want, have, w.policy)
	}

	return decide(w.want, have, w.policy)
}

// done checks the end of a run that reports that it is done.
func (w *world) done(have cluster.Snapshot) {
	missing := w.unreached
	if w.destroys {
		missing = func() []string { return w.notDestroyed(have, w.policy) }
	}

	for _, text := range missing() {
		w.fail("done, but %s", text)
	}

	if !w.destroys {
		w.nothingLeft(w.watch.manifests)
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
	switch {
	case !op.Disrupts() && !confirmed(op):
		return true
	case w.planted.unconfirmed:
		w.check(op)

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

	reason := cluster.Preflight(w.want, have, w.policy, op)
	w.story.confirmed(have, op, reason)

	if reason != "" {
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

	if r.phase == op.effect && !silent && !w.confirms(r.step) {
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

// apply ends the run, and begins another one. By then Talos has rendered the static pods of its configuration.
func (w *world) apply() {
	w.running, w.idle = nil, false

	for _, b := range w.boxes {
		if b.up() {
			b.renders()
		}
	}

	w.watch = w.beginRun()
}

// machineGoesOn lets a machine and its kubelet progress, and reports whether they did.
func (w *world) machineGoesOn(b *box) bool {
	moved := w.progress(b) || b.up() && b.renders()

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
