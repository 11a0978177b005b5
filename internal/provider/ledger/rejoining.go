package ledger

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
)

// Replacement is what the run of one object with machines at these addresses knows of replaced control planes: those
// that this process removed from its cluster to create them again. The object reports its own through it. The CLIs
// destroy and create several objects in parallel, and only the process knows that a machine which left comes back.
func (l *Ledger) Replacement(identity, object string, addresses []string) Replacement {
	return Replacement{l, part{identity, object}, part{identity, strings.Join(addresses, " ")}}
}

// Replacement is the part of one object in the replacements of its cluster.
type Replacement struct {
	ledger            *Ledger
	object, addresses part
}

// Leaves notes the control planes of other objects that remain when the machines of the object leave their cluster.
func (r Replacement) Leaves(beside []cluster.Machine) { r.ledger.beside.put(r.addresses, beside) }

// Beside are the control planes that remained when machines at the same addresses left their cluster in this
// process: they join it again. It is empty for other machines, which may be a second cluster with the same secrets.
func (r Replacement) Beside() []cluster.Machine {
	beside, _ := r.ledger.beside.get(r.addresses)

	return beside
}

// Others are the control planes of other objects that are about to rejoin.
func (r Replacement) Others() []cluster.Rejoining {
	others := r.ledger.rejoining.all()
	maps.DeleteFunc(others,
		func(p part, _ cluster.Rejoining) bool { return p.cluster != r.object.cluster || p == r.object })

	return slices.SortedFunc(maps.Values(others),
		func(a, b cluster.Rejoining) int { return strings.Compare(a.Name, b.Name) })
}

// Begun notes that a step removes a control plane from its cluster.
func (r Replacement) Begun(e lifecycle.Event) {
	if e.State == lifecycle.StepStarted && e.Step.TakesOut() {
		r.change(true, func(*cluster.Rejoining) {})
	}
}

// Removed notes how the removal ended.
func (r Replacement) Removed(err error) {
	r.change(false, func(m *cluster.Rejoining) { m.Since, m.Failed = time.Now(), err != nil })
}

// Joins notes that the create of the object started.
func (r Replacement) Joins() { r.change(false, func(m *cluster.Rejoining) { m.Joins = true }) }

// Joined notes how the create ended.
func (r Replacement) Joined(err error) {
	if err != nil {
		r.change(false, func(m *cluster.Rejoining) { m.Failed = true })

		return
	}

	r.ledger.rejoining.drop(r.object)
}

// change changes what is known of the object; with makes it starts to be known.
func (r Replacement) change(makes bool, change func(*cluster.Rejoining)) {
	r.ledger.mu.Lock()
	defer r.ledger.mu.Unlock()

	known, ok := r.ledger.rejoining.by[r.object]
	if !ok && !makes {
		return
	}

	known.Name = r.object.name
	change(&known)
	r.ledger.rejoining.by[r.object] = known
}
