// Package step is what an apply does to machines: one effect on one machine each, as small values that are compared
// and that a person approves. Each kind has a file of its own: its values, its text, its impact, what it takes, and
// what it changes: in what is seen of its machine (MachineState), in a forecast, and in what a plan shows. Package
// cluster decides which steps are taken, and when. It is pure.
package step

import (
	"fmt"
	"slices"
	"time"
)

// Step is one effect on one machine. Steps are small comparable values, so that
// two plans can be compared, and their String is what a person approves.
type Step interface {
	fmt.Stringer
	// On names the machine the step acts on.
	On() string
	// Disrupts reports whether the step takes the machine out of service. Between runs and resources such steps happen
	// under one lock.
	Disrupts() bool
	// OneByOne reports whether a step, although it takes nothing out of service, reaches the machines of a cluster one at
	// a time, so that a mistake in it does not reach them all: another configuration of a control plane, another network
	// in META. Within a resource the planner sees to that, between resources it is the lock of the disruptive steps.
	OneByOne() bool
	// Impact is what the step does to a machine in service.
	Impact() Impact
	// ChangesEtcd reports whether the step concerns the etcd of all control planes.
	ChangesEtcd() bool
	// Outdates is whose state may be another one once the step has ended on a machine of a role.
	Outdates(role Role) Reach
	// Purpose tells what a reboot was for; empty for steps that reboot nothing, or that cannot end where they began.
	Purpose() string
	// UpgradesKubernetes reports whether the step is a part of an upgrade of Kubernetes.
	UpgradesKubernetes() bool
	// ChangesMembers reports whether etcd gains or loses a member by the step. One such step runs at a time.
	ChangesMembers() bool
	// TakesOut reports whether a control plane leaves its cluster by the step.
	TakesOut() bool
	// OnLost reports whether the machine is lost already, so that the step takes nothing out of service that is in it.
	OnLost() bool
	// ShowsInState reports whether the effect of the step is seen in the state of its machine. That of others is seen in
	// Kubernetes, where an API server that lags behind may still show the old one once more, or in the members of etcd.
	ShowsInState() bool

	// begins notes on the machine what holds from now on, also when the step fails.
	begins(*MachineState)
	// ends notes on the machine what the step did, before the machine is asked again.
	ends(s *MachineState, at time.Time)
	// forecast lets the step happen in a model, and shows notes what it changes in what people see of its machine.
	forecast(m Model)
	shows(f *Shown)
	// sums adds what the step does to what a plan comes to.
	sums(t *Total)
}

// Reach is whose state may be another one once a step has ended.
type Reach int

// The reaches.
const (
	ItsMachine       Reach = iota // only the machine on which it ran
	AndKubernetes                 // and what Kubernetes tells
	AndControlPlanes              // and what the control planes tell, such as of the members of etcd
)

// Impact is what a step does to a machine in service.
type Impact struct {
	// Drains is true when its pods are moved elsewhere first.
	Drains bool
	// Reboots is true for a reboot, with or without a drain.
	Reboots bool
	// Upgrades is true for another Talos, or the same from another image.
	Upgrades bool
	// Wipes is true when its data is lost.
	Wipes bool
	// ReplacesPod is true when the pod of a machine in a container is deleted and made again.
	ReplacesPod bool
	// EndsCluster is true for the reset of the last control plane.
	EndsCluster bool
}

// plain is a step that leaves its machine in service. Kinds that are otherwise say so themselves.
type plain struct{}

// Disrupts is false.
func (plain) Disrupts() bool { return false }

// OneByOne is false.
func (plain) OneByOne() bool { return false }

// Impact is none.
func (plain) Impact() Impact { return Impact{} }

// ChangesEtcd is false.
func (plain) ChangesEtcd() bool { return false }

// Outdates is all that the machine takes part in.
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

// Evacuation is what a machine goes through before it is taken out of service.
type Evacuation struct {
	// Node that is cordoned; empty where there is none, or no API to cordon it.
	Node string
	// Drain is true when the node is drained too.
	Drain bool
	// HandOver is true for the leader of etcd, which hands the leadership over.
	HandOver bool
}

// and lists what a machine goes through, with what follows.
func (e Evacuation) and(end string) string {
	if e.Drain {
		return "drain, " + end
	}

	return end
}
