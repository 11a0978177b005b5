package providerdata

import (
	"context"
	"maps"
	"sync"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
)

// sightings are how control planes answered when a run last refreshed them, by the mark of the secrets of their cluster
// and by their addresses: who looks at the cluster in the same run does not ask them again. The CLIs begin a process
// for each run. It is safe for concurrent use.
type sightings struct {
	mu sync.Mutex
	by map[string]map[string]cluster.MachineState
}

// KeepSightings keeps how members of a cluster answered that are control planes, for who asks for them in this run. One
// that did not answer is asked again. mark is that of the secrets of the cluster.
func (m *ProviderData) KeepSightings(mark string, machines []cluster.Machine, have cluster.Snapshot) {
	m.sightings.mu.Lock()
	defer m.sightings.mu.Unlock()

	if m.sightings.by[mark] == nil {
		m.sightings.by[mark] = map[string]cluster.MachineState{}
	}

	for _, machine := range machines {
		if state := have.Machines[machine.Name]; machine.Role == cluster.ControlPlane && state.Access == cluster.Member {
			m.sightings.by[mark][machine.Address] = state
		} else {
			delete(m.sightings.by[mark], machine.Address)
		}
	}
}

// forgetSightings is for what changes clusters: what was seen before holds no longer.
func (m *ProviderData) forgetSightings() {
	m.sightings.mu.Lock()
	defer m.sightings.mu.Unlock()

	clear(m.sightings.by)
}

// Sighted is a fleet that answers for machines of a cluster as they were seen in this run, and asks all others.
func (m *ProviderData) Sighted(mark string, fleet lifecycle.Fleet) lifecycle.Fleet {
	m.sightings.mu.Lock()
	defer m.sightings.mu.Unlock()

	return sightedFleet{fleet, maps.Clone(m.sightings.by[mark])}
}

type sightedFleet struct {
	lifecycle.Fleet
	states map[string]cluster.MachineState // by address
}

// Machine implements [lifecycle.Fleet].
func (f sightedFleet) Machine(m cluster.Machine) lifecycle.Machine {
	machine := f.Fleet.Machine(m)
	if state, seen := f.states[m.Address]; seen {
		return sightedMachine{machine, state}
	}

	return machine
}

type sightedMachine struct {
	lifecycle.Machine
	state cluster.MachineState
}

// Observe implements [lifecycle.Machine].
func (m sightedMachine) Observe(context.Context) cluster.MachineState { return m.state }
