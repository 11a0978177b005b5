package providerdata

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
)

// replacements are the control planes that this process took out of their clusters to create them again, by the
// identity of the cluster and the object. The CLIs destroy and create several objects side by side, and only the
// process knows that a machine which left comes back. It is safe for concurrent use.
type replacements struct {
	mu sync.Mutex
	by map[string]map[string]cluster.Rejoining
	// beside are the control planes that other objects have, by the identity of the cluster and the addresses of the
	// machines that left it.
	beside map[[2]string][]cluster.Machine
}

func newReplacements() *replacements {
	return &replacements{by: map[string]map[string]cluster.Rejoining{}, beside: map[[2]string][]cluster.Machine{}}
}

// Of is what the run of one object with machines at these addresses knows of the replacements of its cluster, and tells
// about its own.
func (r *replacements) Of(identity, object string, addresses []string) Replacement {
	return Replacement{all: r, cluster: identity, object: object, addresses: strings.Join(addresses, " ")}
}

// Replacement is the part that one object has in the replacements of its cluster.
type Replacement struct {
	all                        *replacements
	cluster, object, addresses string
}

// Leaves notes the control planes of other objects beside which the machines of the object leave their cluster.
func (r Replacement) Leaves(beside []cluster.Machine) {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()

	r.all.beside[[2]string{r.cluster, r.addresses}] = beside
}

// Beside are the control planes beside which machines at the same addresses left their cluster in this process: they
// join it again. It has none for other machines, which may be a second cluster with the same secrets.
func (r Replacement) Beside() []cluster.Machine {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()

	return r.all.beside[[2]string{r.cluster, r.addresses}]
}

// Others are the control planes of other objects that are on their way back.
func (r Replacement) Others() []cluster.Rejoining {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()

	others := maps.Clone(r.all.by[r.cluster])
	delete(others, r.object)

	return slices.SortedFunc(maps.Values(others),
		func(a, b cluster.Rejoining) int { return strings.Compare(a.Name, b.Name) })
}

// Begun notes that a step takes a control plane out of its cluster.
func (r Replacement) Begun(e lifecycle.Event) {
	switch op := e.Step.(type) {
	case step.LeaveEtcd, step.RemoveMember:
	case step.Reset:
		if op.Role != step.ControlPlane {
			return
		}
	default:
		return
	}

	if e.State == lifecycle.StepStarted {
		r.change(true, func(*cluster.Rejoining) {})
	}
}

// Removed notes how the removal ended.
func (r Replacement) Removed(err error) {
	r.change(false, func(m *cluster.Rejoining) { m.Since, m.Failed = time.Now(), err != nil })
}

// Joins notes that the create of the object began.
func (r Replacement) Joins() { r.change(false, func(m *cluster.Rejoining) { m.Joins = true }) }

// Joined notes how the create ended.
func (r Replacement) Joined(err error) {
	if err != nil {
		r.change(false, func(m *cluster.Rejoining) { m.Failed = true })

		return
	}

	r.all.mu.Lock()
	defer r.all.mu.Unlock()

	delete(r.all.by[r.cluster], r.object)
}

// change changes what is known of the object; it becomes known where it makes is true.
func (r Replacement) change(makes bool, change func(*cluster.Rejoining)) {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()

	known, ok := r.all.by[r.cluster][r.object]
	if !ok && !makes {
		return
	}

	if !ok {
		known = cluster.Rejoining{Name: r.object}
	}

	change(&known)

	if r.all.by[r.cluster] == nil {
		r.all.by[r.cluster] = map[string]cluster.Rejoining{}
	}

	r.all.by[r.cluster][r.object] = known
}
