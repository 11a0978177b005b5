package providerdata

import (
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/talosop/terraform-provider-talosop/internal/containers"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// hosts are the host clusters that a process is connected to. Operations that go on at the same
// time share a connection, and the last one of them ends it. It is safe for concurrent use.
type hosts struct {
	// Open makes a connection; it asks nobody.
	Open func(o hostcluster.Options) (containers.Host, error)

	Mu sync.Mutex
	By map[string]*sharedHost
	// claimed are the pools that resources of this process have made or changed.
	claimed map[string]bool
}

// sharedHost is a connection with the number of those that use it.
type sharedHost struct {
	containers.Host

	users int
}

// NewHosts connects to real ones.
func NewHosts() *hosts {
	return &hosts{Open: func(o hostcluster.Options) (containers.Host, error) { return hostcluster.Open(o) },
		By: map[string]*sharedHost{}, claimed: map[string]bool{}}
}

// Join takes part in a connection. leave has to be called once.
func (h *hosts) Join(o hostcluster.Options) (joined containers.Host, leave func(), err error) {
	h.Mu.Lock()
	defer h.Mu.Unlock()

	key := tf.DigestOf(o.Kubeconfig.Path, string(o.Kubeconfig.Content), o.Kubeconfig.Context,
		strconv.FormatBool(o.InCluster))

	shared := h.By[key]
	if shared == nil {
		opened, err := h.Open(o)
		if err != nil {
			return nil, nil, err
		}

		shared = &sharedHost{Host: opened}
		h.By[key] = shared
	}

	shared.users++

	return shared, func() { h.Leave(key, shared) }, nil
}

func (h *hosts) Leave(key string, shared *sharedHost) {
	h.Mu.Lock()
	defer h.Mu.Unlock()

	if shared.users--; shared.users > 0 {
		return
	}

	delete(h.By, key)
	shared.Close()
}

// Claim takes the pools of a route for one resource. One that is new must not take what another resource of this
// process has: it would be made of the same pods. taken is the name of such a pool, and empty when there is none.
func (h *hosts) Claim(r Route, fresh bool) (taken string) {
	h.Mu.Lock()
	defer h.Mu.Unlock()

	pools := poolsOf(r)

	for _, key := range slices.Sorted(maps.Keys(pools)) {
		if fresh && h.claimed[key] {
			return pools[key]
		}
	}

	for key := range pools {
		h.claimed[key] = true
	}

	return ""
}

// Release gives the pools of a route back.
func (h *hosts) Release(r Route) {
	h.Mu.Lock()
	defer h.Mu.Unlock()

	for key := range poolsOf(r) {
		delete(h.claimed, key)
	}
}

// Unclaim gives the pools of machines back that are left as they are.
func (m *ProviderData) Unclaim(p machineset.Set) {
	bundle, err := pki.Parse([]byte(p.Secrets))
	if err != nil || p.Host == nil {
		return // none can have been claimed
	}

	m.Hosts.Release(Route{Spec: p.HostSpec(machineset.PriorState{}, bundle.Mark())})
}

// poolsOf are the names of the pools of a route, by what tells them from all others. On metal there are none.
func poolsOf(r Route) map[string]string {
	pools := map[string]string{}

	for _, m := range r.Spec.Machines {
		pools[tf.DigestOf(r.Spec.Mark, r.Spec.Namespace, r.Spec.Cluster, m.Pool)] = m.Pool
	}

	return pools
}

// PoolTakenError is that two resources have the same pool.
type PoolTakenError struct{ Pool string }

func (e *PoolTakenError) Error() string {
	return "another resource of this configuration has a pool " + e.Pool +
		" in this cluster, and its pods would be the same: give one of them another name"
}
