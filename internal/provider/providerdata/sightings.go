package providerdata

import (
	"context"
	"sync"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
)

// sightings are what a run saw of control planes, by the mark of the secrets of their cluster: who looks at the cluster
// in the same run does not ask them again. The CLIs begin a process for each run. It is safe for concurrent use.
type sightings struct {
	mu sync.Mutex
	by map[string]*sighting
}

// of is what was seen of a cluster.
func (s *sightings) of(mark string) *sighting {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.by[mark] == nil {
		s.by[mark] = &sighting{states: map[string]cluster.MachineState{}, answers: map[string]*answer{}}
	}

	return s.by[mark]
}

// forget is for what changes clusters, before and after: what was seen holds no longer, and what is being asked
// meanwhile is not found by who asks later.
func (s *sightings) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()

	clear(s.by)
}

// sighting is what a run saw of one cluster.
type sighting struct {
	mu sync.Mutex
	// states are how control planes answered when the run refreshed them, by their addresses.
	states map[string]cluster.MachineState
	// answers are what their members of etcd said, by address and question.
	answers map[string]*answer
}

// answer is nil until somebody whose turn it is has it.
type answer struct {
	turn  chan struct{}
	value any
}

// KeepSightings keeps how control planes of a cluster and their members of etcd answered, for who asks for them in this
// run. One that did not answer is asked again. mark is that of the secrets of the cluster.
func (m *ProviderData) KeepSightings(mark string, machines []cluster.Machine, have cluster.Snapshot) {
	seen := m.sightings.of(mark)

	seen.mu.Lock()
	defer seen.mu.Unlock()

	for _, machine := range machines {
		if machine.Role != step.ControlPlane {
			continue
		}

		state := have.Machines[machine.Name]
		if state.Access == step.Member {
			seen.states[machine.Address] = state
		} else {
			delete(seen.states, machine.Address)
		}

		view, asked := have.Etcd.Views[state.MemberID]
		seen.keep(machine.Address+viewed, view, asked)
		seen.keep(machine.Address+listed, have.Etcd.Members, have.Etcd.Known && asked)
	}
}

// What members of etcd are asked.
const (
	viewed = " view"
	listed = " members"
)

// keep notes an answer, or that there is none any more.
func (s *sighting) keep(question string, value any, answered bool) {
	if !answered {
		delete(s.answers, question)

		return
	}

	s.answers[question] = &answer{turn: make(chan struct{}, 1), value: value}
}

// Sighted is a fleet that answers for machines of a cluster as they were seen in this run, and asks all others.
func (m *ProviderData) Sighted(mark string, fleet lifecycle.Fleet) lifecycle.Fleet {
	return sightedFleet{fleet, m.sightings.of(mark)}
}

type sightedFleet struct {
	lifecycle.Fleet
	seen *sighting
}

// Machine implements [lifecycle.Fleet].
func (f sightedFleet) Machine(m cluster.Machine) lifecycle.Machine {
	return sightedMachine{f.Fleet.Machine(m), m.Address, f.seen}
}

type sightedMachine struct {
	lifecycle.Machine
	address string
	seen    *sighting
}

// Observe implements [lifecycle.Machine].
func (m sightedMachine) Observe(ctx context.Context) cluster.MachineState {
	m.seen.mu.Lock()
	state, seen := m.seen.states[m.address]
	m.seen.mu.Unlock()

	if seen {
		return state
	}

	return m.Machine.Observe(ctx)
}

// EtcdView implements [lifecycle.Machine].
func (m sightedMachine) EtcdView(ctx context.Context) (etcdstate.View, error) {
	return once(ctx, m.seen, m.address+viewed, m.Machine.EtcdView)
}

// EtcdMembers implements [lifecycle.Machine].
func (m sightedMachine) EtcdMembers(ctx context.Context) ([]etcdstate.Member, error) {
	return once(ctx, m.seen, m.address+listed, m.Machine.EtcdMembers)
}

// once asks what nobody has an answer to: who asks for the same meanwhile waits for that, and asks when there is none.
func once[T any](
	ctx context.Context, seen *sighting, question string, ask func(context.Context) (T, error),
) (T, error) {
	seen.mu.Lock()

	a := seen.answers[question]
	if a == nil {
		a = &answer{turn: make(chan struct{}, 1)}
		seen.answers[question] = a
	}

	seen.mu.Unlock()

	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		var none T

		return none, ctx.Err()
	}

	if known, ok := a.value.(T); ok {
		return known, nil
	}

	said, err := ask(ctx)
	if err == nil {
		a.value = said
	}

	return said, err
}
