// Package step is what an apply does to machines: one effect on one machine each, as small values that are compared
// and that a user approves. Each kind has its own file with its values, its text, its impact and its effects: on the
// observation of its machine (MachineState), in a forecast, and in a plan. Package cluster decides which steps run,
// and when. It is pure.
package step

import (
	"fmt"
	"slices"
	"time"
)

// Step is one effect on one machine. Steps are small comparable values, so that two plans can be compared, and a user
// approves their String.
type Step interface {
	fmt.Stringer
	// On names the machine of the step.
	On() string
	// Disrupts reports whether the step takes the machine out of service. Such steps of different runs and resources
	// need one lock.
	Disrupts() bool
	// OneByOne reports whether a step that takes nothing out of service still reaches the machines of a cluster one at a
	// time. So an error in another control plane configuration, or another network in META, does not reach all of them.
	// The planner makes sure of that within a resource, and the lock of the disruptive steps between resources.
	OneByOne() bool
	// Impact is the effect of the step on a machine in service.
	Impact() Impact
	// ChangesEtcd reports whether the step affects the etcd of all control planes.
	ChangesEtcd() bool
	// Outdates is whose state may have changed once the step has ended on a machine of a role.
	Outdates(role Role) Reach
	// Purpose identifies what a reboot was for; empty for steps that reboot nothing, or that cannot end where they
	// began.
	Purpose() string
	// UpgradesKubernetes reports whether the step is part of a Kubernetes upgrade.
	UpgradesKubernetes() bool
	// ChangesMembers reports whether etcd gains or loses a member by the step. One such step runs at a time.
	ChangesMembers() bool
	// TakesOut reports whether a control plane leaves its cluster by the step.
	TakesOut() bool
	// OnLost reports whether the machine is already lost, so that the step takes no working machine out of service.
	OnLost() bool
	// ShowsInState reports whether the effect of the step shows in the state of its machine. Other effects show in
	// Kubernetes, where a lagging API server may still show the old state once more, or in the etcd members.
	ShowsInState() bool

	// begins records on the machine what holds from now on, even if the step fails.
	begins(*MachineState)
	// ends records on the machine what the step did, until the machine is asked again.
	ends(s *MachineState, at time.Time)
	// forecast runs the step in a model, and shows records the changes of its machine's attributes.
	forecast(m Model)
	shows(f *Shown)
	// sums adds the step to the totals of a plan.
	sums(t *Total)
	// on is the step with other names in its text; nil for a step that always has a line of its own.
	on(machines string) Step
}

// Alike reports whether two steps differ only in their machines, so that one line of a plan names both.
func Alike(a, b Step) bool {
	x, y := a.on(""), b.on("")

	return x != nil && y != nil && x.String() == y.String()
}

// TextOn is the text of alike steps, whose machines have the given names.
func TextOn(op Step, machines string) string { return op.on(machines).String() }

// Reach is whose state may have changed once a step has ended.
type Reach int

// The reaches.
const (
	ItsMachine       Reach = iota // only the machine on which it ran
	AndKubernetes                 // and what Kubernetes reports
	AndControlPlanes              // and what the control planes report, such as the etcd members
)

// Impact is the effect of a step on a machine in service.
type Impact struct {
	// Drains is true when its node is drained first.
	Drains bool
	// Reboots is true for a reboot, with or without a drain.
	Reboots bool
	// Upgrades is true for another Talos, or the same from another image.
	Upgrades bool
	// UpgradesKubernetes is true for another image of a component of Kubernetes.
	UpgradesKubernetes bool
	// Wipes is true when its data is lost.
	Wipes bool
	// ReplacesPod is true when the pod of a machine in a container is recreated.
	ReplacesPod bool
	// EndsCluster is true for the reset of the last control plane.
	EndsCluster bool
}

// plain is a step that leaves its machine in service. Other kinds override its methods.
type plain struct{}

// Disrupts is false.
func (plain) Disrupts() bool { return false }

// OneByOne is false.
func (plain) OneByOne() bool { return false }

// Impact is none.
func (plain) Impact() Impact { return Impact{} }

// ChangesEtcd is false.
func (plain) ChangesEtcd() bool { return false }

// Outdates is everything that the machine takes part in.
func (plain) Outdates(role Role) Reach {
	if role == Worker {
		return AndKubernetes
	}

	return AndControlPlanes
}

// Purpose is empty.
func (plain) Purpose() string { return "" }

// UpgradesKubernetes is false.
func (plain) UpgradesKubernetes() bool { return false }

// ChangesMembers is false.
func (plain) ChangesMembers() bool { return false }

// TakesOut is false.
func (plain) TakesOut() bool { return false }

// OnLost is false.
func (plain) OnLost() bool { return false }

// ShowsInState is true.
func (plain) ShowsInState() bool { return true }

func (plain) begins(*MachineState) {}

func (plain) ends(*MachineState, time.Time) {}

func (plain) forecast(Model) {}

func (plain) shows(*Shown) {}

func (plain) sums(*Total) {}

func (plain) on(string) Step { return nil }

// BeginsEtcd reports whether a step makes a control plane the first member of a new etcd.
func BeginsEtcd(step Step) bool {
	switch step.(type) {
	case Bootstrap, Restore:
		return true
	default:
		return false
	}
}

// Restores reports whether any of the steps restores etcd.
func Restores(steps []Step) bool {
	return slices.ContainsFunc(steps, func(s Step) bool { _, is := s.(Restore); return is })
}

// Evacuation is what happens on a machine before it is taken out of service.
type Evacuation struct {
	// Node that is cordoned; empty where there is none, or no API to cordon it.
	Node string
	// Drain is true when the node is drained too, and Volumes when the drain waits until its volumes are detached.
	Drain, Volumes bool
	// HandOver is true for the etcd leader, which transfers the leadership.
	HandOver bool
	// Soaks is true for a canary machine, which is observed afterwards.
	Soaks bool
}

// Steps lists what comes before the disruption, such as "drain, wait for volumes"; empty when nothing does.
func (e Evacuation) Steps() string {
	switch {
	case e.Drain && e.Volumes:
		return "drain, wait for volumes"
	case e.Drain:
		return "drain"
	default:
		return ""
	}
}

// and lists the evacuation of a machine, with what follows.
func (e Evacuation) and(end string) string {
	if !e.Drain {
		return end
	}

	return e.Steps() + ", " + end
}

// does is Steps of a machine that leaves, in a sentence about it.
func (e Evacuation) does() string {
	switch {
	case e.Drain && e.Volumes:
		return "drains it, waits for volumes"
	case e.Drain:
		return "drains it"
	default:
		return ""
	}
}
