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

// ClaimRelease claims a Helm release for one resource, and returns a claim that distinguishes it from others; taken
// reports whether another one has it.
func (l *Ledger) ClaimRelease(release string) (claim string, taken bool) {
	claim = rand.Text()
	holder := l.releases.change(release, func(other string) string { return cmp.Or(other, claim) })

	return claim, holder != claim
}

// OfOther reports whether a resource of this process has made a release under another claim.
func (l *Ledger) OfOther(release, claim string) bool {
	holder, taken := l.releases.get(release)

	return taken && holder != claim
}

// UnclaimRelease releases a claim.
func (l *Ledger) UnclaimRelease(release string) { l.releases.drop(release) }

// Refreshed notes a refresh of a release.
func (l *Ledger) Refreshed(release string) { l.refreshed.put(release, true) }

// WasRefreshed reports whether this process has refreshed a release.
func (l *Ledger) WasRefreshed(release string) bool {
	refreshed, _ := l.refreshed.get(release)

	return refreshed
}

// ClaimPools claims the pools of pods of a cluster for one resource. A new resource must not claim what another
// resource of this process has, which is a [PoolTakenError]: both would have the same pods.
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

// UnclaimPools releases the pools of a cluster.
func (l *Ledger) UnclaimPools(spec workload.Spec) {
	pools := poolsOf(spec)

	l.pools.dropWhere(func(key string, _ bool) bool { return pools[key] != "" })
}

// UnclaimPoolsOf releases the pools of machines that are left unchanged.
func (l *Ledger) UnclaimPoolsOf(p machineset.Set) {
	bundle, err := pki.Parse([]byte(p.Secrets))
	if err != nil || p.Host == nil {
		return // no claim is possible
	}

	l.UnclaimPools(p.HostSpec(machineset.PriorState{}, bundle.Mark()))
}

// poolsOf are the names of the pools of a cluster, by a key that is unique among all clusters. On metal there are
// none.
func poolsOf(spec workload.Spec) map[string]string {
	pools := map[string]string{}

	for _, m := range spec.Machines {
		pools[tf.DigestOf(spec.Mark, spec.Namespace, spec.Cluster, m.Pool)] = m.Pool
	}

	return pools
}

// PoolTakenError says that two resources have the same pool.
type PoolTakenError struct{ Pool string }

func (e *PoolTakenError) Error() string {
	return "another resource of this configuration has a pool " + e.Pool +
		" in this cluster, and its pods would be the same: give one of them another name"
}
