package providerdata

import (
	"sync"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
)

// runs are the runs of a process that are at work, by the identity of their cluster. It is safe for concurrent
// use.
type runs struct {
	mu sync.Mutex
	by map[string]map[*runOf]cluster.Standing
}

func newRuns() *runs { return &runs{by: map[string]map[*runOf]cluster.Standing{}} }

// Of are the runs on the cluster with an identity.
func (r *runs) Of(identity string) lifecycle.Peers { return runsOf{r, identity} }

type runsOf struct {
	all     *runs
	cluster string
}

// Enter implements [lifecycle.Peers].
func (r runsOf) Enter(s cluster.Standing) lifecycle.Peer {
	run := &runOf{r}

	r.all.mu.Lock()
	defer r.all.mu.Unlock()

	if r.all.by[r.cluster] == nil {
		r.all.by[r.cluster] = map[*runOf]cluster.Standing{}
	}

	r.all.by[r.cluster][run] = s

	return run
}

// runOf is one of them.
type runOf struct{ runsOf }

// Tell implements [lifecycle.Peer].
func (r *runOf) Tell(s cluster.Standing) {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()

	r.all.by[r.cluster][r] = s
}

// Others implements [lifecycle.Peer].
func (r *runOf) Others() cluster.Standing {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()

	var others cluster.Standing

	for run, s := range r.all.by[r.cluster] {
		if run != r {
			others = others.And(s)
		}
	}

	return others
}

// Leave implements [lifecycle.Peer].
func (r *runOf) Leave() {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()

	delete(r.all.by[r.cluster], r)
}
