package ledger

import (
	"cmp"
	"context"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
)

// answers is what a run observed of the control planes of one cluster. Other readers of the cluster in the same run
// do not ask them again.
type answers struct {
	// states are the answers of control planes to the refresh of the run, by address.
	states facts[string, step.MachineState]
	// answers are those of their etcd members, by address and question.
	answers facts[string, *answer]
}

// cacheOf returns the observations of a cluster, by the mark of its secrets.
func (l *Ledger) cacheOf(mark string) *answers {
	return l.cached.change(mark, func(seen *answers) *answers {
		return cmp.Or(seen, &answers{none[string, step.MachineState](l.mu), none[string, *answer](l.mu)})
	})
}

// ForgetCached is called before and after changes of clusters: earlier observations are no longer valid, and
// later readers do not get answers to requests that are in progress.
func (l *Ledger) ForgetCached() {
	l.cached.dropWhere(func(string, *answers) bool { return true })
}

// answer has a nil value until the first caller has its answer.
type answer struct {
	turn  chan struct{}
	value any
}

// KeepCached keeps the answers of control planes of a cluster and their etcd members for other readers in this
// run. A control plane that did not answer is asked again. mark is that of the secrets of the cluster.
func (l *Ledger) KeepCached(mark string, machines []cluster.Machine, have cluster.Snapshot) {
	seen := l.cacheOf(mark)

	l.mu.Lock()
	defer l.mu.Unlock()

	for _, machine := range machines {
		if machine.Role != step.ControlPlane {
			continue
		}

		state := have.Machines[machine.Name]
		if state.Access == step.Member {
			seen.states.by[machine.Address] = state
		} else {
			delete(seen.states.by, machine.Address)
		}

		view, asked := have.Etcd.Views[state.MemberID]
		seen.keep(machine.Address+viewed, view, asked)
		seen.keep(machine.Address+listed, have.Etcd.Members, have.Etcd.Known && asked)
	}
}

// The questions to members of etcd.
const (
	viewed = " view"
	listed = " members"
)

// keep records an answer, or that there is none any more.
func (s *answers) keep(question string, value any, answered bool) {
	if !answered {
		delete(s.answers.by, question)

		return
	}

	s.answers.by[question] = &answer{turn: make(chan struct{}, 1), value: value}
}

// Cached is a fleet that answers for machines of a cluster as observed in this run, and asks all others.
func (l *Ledger) Cached(mark string, fleet lifecycle.Fleet) lifecycle.Fleet {
	return cachedFleet{fleet, l.cacheOf(mark)}
}

type cachedFleet struct {
	lifecycle.Fleet
	seen *answers
}

// Machine implements [lifecycle.Fleet].
func (f cachedFleet) Machine(m cluster.Machine) lifecycle.Machine {
	return cachedMachine{f.Fleet.Machine(m), m.Address, f.seen}
}

type cachedMachine struct {
	lifecycle.Machine
	address string
	seen    *answers
}

// Observe implements [lifecycle.Machine].
func (m cachedMachine) Observe(ctx context.Context) step.MachineState {
	if state, seen := m.seen.states.get(m.address); seen {
		return state
	}

	return m.Machine.Observe(ctx)
}

// EtcdView implements [lifecycle.Machine].
func (m cachedMachine) EtcdView(ctx context.Context) (etcdstate.View, error) {
	return once(ctx, m.seen, m.address+viewed, m.Machine.EtcdView)
}

// EtcdMembers implements [lifecycle.Machine].
func (m cachedMachine) EtcdMembers(ctx context.Context) ([]etcdstate.Member, error) {
	return once(ctx, m.seen, m.address+listed, m.Machine.EtcdMembers)
}

// once asks a question without an answer. Concurrent callers wait for the answer, and ask themselves if there is
// none.
func once[T any](
	ctx context.Context, seen *answers, question string, ask func(context.Context) (T, error),
) (T, error) {
	a := seen.answers.change(question, func(a *answer) *answer {
		return cmp.Or(a, &answer{turn: make(chan struct{}, 1)})
	})

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

	value, err := ask(ctx)
	if err == nil {
		a.value = value
	}

	return value, err
}
