package providerdata

import (
	"sync"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
)

// founders are the machines on which runs of a process began the etcd of their cluster, by its identity:
// two resources of one apply that both say bootstrap = true must not make two. It is safe for concurrent use.
type founders struct {
	mu sync.Mutex
	by map[string]cluster.Machine
}

// Of is what the runs on one cluster share, see [machineset.Set.Identity].
func (f *founders) Of(identity string) lifecycle.Founding {
	return founding{f, identity}
}

type founding struct {
	all     *founders
	cluster string
}

// Founder implements [lifecycle.Founding].
func (f founding) Founder() (cluster.Machine, bool) {
	f.all.mu.Lock()
	defer f.all.mu.Unlock()

	m, ok := f.all.by[f.cluster]

	return m, ok
}

// Claim implements [lifecycle.Founding].
func (f founding) Claim(m cluster.Machine) bool {
	f.all.mu.Lock()
	defer f.all.mu.Unlock()

	if other, ok := f.all.by[f.cluster]; ok && other.Address != m.Address {
		return false
	}

	f.all.by[f.cluster] = m

	return true
}

// Release implements [lifecycle.Founding].
func (f founding) Release(m cluster.Machine) {
	f.all.mu.Lock()
	defer f.all.mu.Unlock()

	if f.all.by[f.cluster].Address == m.Address {
		delete(f.all.by, f.cluster)
	}
}
