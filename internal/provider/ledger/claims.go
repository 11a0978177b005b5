package ledger

import (
	"cmp"
	"crypto/rand"
	"maps"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// ClaimRelease takes a Helm release for one resource, and returns what tells that from others; taken is whether another
// one has it.
func (l *Ledger) ClaimRelease(release string) (claim string, taken bool) {
	claim = rand.Text()
	holder := l.releases.change(release, func(other string) string { return cmp.Or(other, claim) })

	return claim, holder != claim
}

// OfOther is whether a resource of this process has made a release that is not the one of a claim.
func (l *Ledger) OfOther(release, claim string) bool {
	holder, taken := l.releases.get(release)

	return taken && holder != claim
}

// UnclaimRelease gives a claim back.
func (l *Ledger) UnclaimRelease(release string) { l.releases.drop(release) }

// Refreshed notes a refresh of a release.
func (l *Ledger) Refreshed(release string) { l.refreshed.put(release, true) }

// WasRefreshed is whether this process has refreshed a release.
func (l *Ledger) WasRefreshed(release string) bool {
	refreshed, _ := l.refreshed.get(release)

	return refreshed
}

// ClaimPools takes the pools of pods of a cluster for one resource. One that is new must not take what another resource
// of this process has, which is a [PoolTakenError]: it would be made of the same pods.
func (l *Ledger) ClaimPools(spec workload.Spec, fresh bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()

	pools := poolsOf(spec)

	for _, key := range slices.Sorted(maps.Keys(pools)) {
		if fresh && l.pools.by[key] {
			return &PoolTakenError{Pool: pools[key]}
		}
	}

	for key := range pools {
		l.pools.by[key] = true
	}

	return nil
}

// UnclaimPools gives the pools of a cluster back.
func (l *Ledger) UnclaimPools(spec workload.Spec) {
	pools := poolsOf(spec)

	l.pools.dropWhere(func(key string, _ bool) bool { return pools[key] != "" })
}

// UnclaimPoolsOf gives the pools of machines back that are left as they are.
func (l *Ledger) UnclaimPoolsOf(p machineset.Set) {
	bundle, err := pki.Parse([]byte(p.Secrets))
	if err != nil || p.Host == nil {
		return // none can have been claimed
	}

	l.UnclaimPools(p.HostSpec(machineset.PriorState{}, bundle.Mark()))
}

// poolsOf are the names of the pools of a cluster, by what tells them from all others. On metal there are none.
func poolsOf(spec workload.Spec) map[string]string {
	pools := map[string]string{}

	for _, m := range spec.Machines {
		pools[tf.DigestOf(spec.Mark, spec.Namespace, spec.Cluster, m.Pool)] = m.Pool
	}

	return pools
}

// PoolTakenError is that two resources have the same pool.
type PoolTakenError struct{ Pool string }

func (e *PoolTakenError) Error() string {
	return "another resource of this configuration has a pool " + e.Pool +
		" in this cluster, and its pods would be the same: give one of them another name"
}
