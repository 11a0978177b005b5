package cluster_test

import (
	"fmt"
	"maps"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
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
		w.breaks(w.boxes[m.which], m.kind)
	}

	return true
}

// breakable reports whether something can happen to a machine from outside.
func (w *world) breakable(b *box, kind moveKind) bool {
	if b.life == off || b.life == gone || b.foreign {
		return false
	}

	node, member := w.nodeOf(b), w.memberOf(b)

	switch kind {
	case machineDies:
		return true
	case machineReboots, machineIsWiped:
		return b.up()
	case machineMoves:
		return b.up() && b.pod == nil && !strings.HasSuffix(b.addr, "9")
	case memberLosesData:
		return b.up() && b.data
	case memberIsRemoved:
		return member != nil && w.quorum() && len(w.members) > 1
	case nodeIsCordoned:
		return node != nil && !node.ours && !node.foreign
	case nodeIsUncordoned:
		return node != nil && node.ours
	default:
		return b.up() && b.digest == newDigest
	}
}

// breaks is what happens to a machine from outside.
func (w *world) breaks(b *box, kind moveKind) {
	switch kind {
	case machineDies:
		b.life = off
	case machineReboots:
		w.goAway(b, booting)
		w.configurationFails(b)
	case machineIsWiped:
		b.wipe()
		b.life, b.wiped = maintenance, true
	case machineMoves:
		b.addr += "9"
	case memberLosesData:
		b.data, b.life = false, booting
	case memberIsRemoved:
		w.dropMember(b.member)
	case nodeIsCordoned:
		w.nodeOf(b).foreign = true
	case nodeIsUncordoned:
		w.nodeOf(b).ours = false
	default:
		b.digest = "old"
		maps.DeleteFunc(w.succeeded, func(why string, _ bool) bool { return strings.HasPrefix(why, b.name+" configuration") })
	}
}

// configurationFails ends the call of a configuration without a reboot, which takes less time than that of the machine.
func (w *world) configurationFails(b *box) {
	for i, r := range w.running {
		if config, is := r.step.(step.ApplyConfig); is && !config.Disrupts() && w.meant[r.machine.Name] == b {
			w.callsOff(i)

			return
		}
	}
}

// next are the states that follow before their decisions, each with its move.
func (w *world) next() (out []*world, by []move) {
	if w.end != "" || len(w.broken) > 0 {
		return nil, nil
	}

	try := func(m move) bool {
		c := w.clone()
		if !c.make(m) {
			return false
		}

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
		if r.phase != w.operate(r.machine, r.step, fine).effect {
			continue // only the effect of a step fails
		}

		for how := failsBefore; how <= rolledBack; how++ {
			if how < neverBack || leavesService(r.step) {
				try(move{stepGoesOn, uint8(i), how})
			}
		}
	}

	for i, b := range w.boxes {
		for kind := machineDies; kind <= settingChanges; kind++ {
			if w.breakable(b, kind) {
				try(move{kind, uint8(i), fine})
			}
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
