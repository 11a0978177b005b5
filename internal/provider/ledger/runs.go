package ledger

import (
	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
)

// Founding is what the runs on a cluster know of its one bootstrap, by its identity: two resources of one apply with
// bootstrap = true must not bootstrap twice.
func (l *Ledger) Founding(identity string) lifecycle.Founding { return founding{l, identity} }

type founding struct {
	ledger  *Ledger
	cluster string
}

// Founder implements [lifecycle.Founding].
func (f founding) Founder() (cluster.Machine, bool) { return f.ledger.founders.get(f.cluster) }

// Claim implements [lifecycle.Founding].
func (f founding) Claim(m cluster.Machine) bool {
	f.ledger.mu.Lock()
	defer f.ledger.mu.Unlock()

	if other, ok := f.ledger.founders.by[f.cluster]; ok && other.Address != m.Address {
		return false
	}

	f.ledger.founders.by[f.cluster] = m

	return true
}

// Release implements [lifecycle.Founding].
func (f founding) Release(m cluster.Machine) {
	f.ledger.founders.dropWhere(func(of string, founder cluster.Machine) bool {
		return of == f.cluster && founder.Address == m.Address
	})
}

// Peers are the active runs on the cluster with an identity.
func (l *Ledger) Peers(identity string) lifecycle.Peers { return peers{l, identity} }

// Enter implements [lifecycle.Peers].
func (p peers) Enter(s cluster.Standing) lifecycle.Peer {
	run := &peer{p}
	run.Tell(s)

	return run
}

// Tell implements [lifecycle.Peer].
func (p *peer) Tell(s cluster.Standing) { p.ledger.runs.put(p, s) }

// Others implements [lifecycle.Peer].
func (p *peer) Others() cluster.Standing {
	var others cluster.Standing

	for run, s := range p.ledger.runs.all() {
		if run != p && run.cluster == p.cluster {
			others = others.And(s)
		}
	}

	return others
}

// Leave implements [lifecycle.Peer].
func (p *peer) Leave() { p.ledger.runs.drop(p) }
