package provider

import (
	"strconv"
	"sync"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

// hosts are the host clusters that a process is connected to. Operations that go on at the same
// time share a connection, and the last one of them ends it. It is safe for concurrent use.
type hosts struct {
	// open makes a connection; it asks nobody.
	open func(o hostcluster.Options) (host, error)

	mu sync.Mutex
	by map[string]*sharedHost
	// claimed are the pools that resources of this process have made or changed.
	claimed map[string]bool
}

// sharedHost is a connection with the number of those that use it.
type sharedHost struct {
	host

	users int
}

// newHosts connects to real ones.
func newHosts() *hosts {
	return &hosts{open: func(o hostcluster.Options) (host, error) { return hostcluster.Open(o) }, by: map[string]*sharedHost{}, claimed: map[string]bool{}}
}

// join takes part in a connection. leave has to be called once.
func (h *hosts) join(o hostcluster.Options) (joined host, leave func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()

	key := digestOf(o.Kubeconfig.Path, string(o.Kubeconfig.Content), o.Kubeconfig.Context, strconv.FormatBool(o.InCluster))

	shared := h.by[key]
	if shared == nil {
		opened, err := h.open(o)
		if err != nil {
			return nil, nil, err
		}

		shared = &sharedHost{host: opened}
		h.by[key] = shared
	}

	shared.users++

	return shared, func() { h.leave(key, shared) }, nil
}

func (h *hosts) leave(key string, shared *sharedHost) {
	h.mu.Lock()
	defer h.mu.Unlock()

	if shared.users--; shared.users > 0 {
		return
	}

	delete(h.by, key)
	shared.Close()
}

// claim takes the pools of a route for one resource. One that is new must not take what another resource of this process has: it would
// be made of the same pods. taken is the name of such a pool, and empty when there is none.
func (h *hosts) claim(r route, fresh bool) (taken string) {
	h.mu.Lock()
	defer h.mu.Unlock()

	pools := poolsOf(r)

	for _, key := range sortedNames(pools) {
		if fresh && h.claimed[key] {
			return pools[key]
		}
	}

	for key := range pools {
		h.claimed[key] = true
	}

	return ""
}

// release gives the pools of a route back.
func (h *hosts) release(r route) {
	h.mu.Lock()
	defer h.mu.Unlock()

	for key := range poolsOf(r) {
		delete(h.claimed, key)
	}
}

// unclaim gives the pools of machines back that are left as they are.
func (m *machinery) unclaim(p pool) {
	bundle, err := pki.Parse([]byte(p.secrets))
	if err != nil || p.host == nil {
		return // none can have been claimed
	}

	m.hosts.release(route{spec: p.hostSpec(recordedPool{}, bundle.Mark())})
}

// poolsOf are the names of the pools of a route, by what tells them from all others. On metal there are none.
func poolsOf(r route) map[string]string {
	pools := map[string]string{}

	for _, m := range r.spec.Machines {
		pools[digestOf(r.spec.Mark, r.spec.Namespace, r.spec.Cluster, m.Pool)] = m.Pool
	}

	return pools
}

// poolTakenError is that two resources have the same pool.
type poolTakenError struct{ pool string }

func (e *poolTakenError) Error() string {
	return "another resource of this configuration has a pool " + e.pool + " in this cluster, and its pods would be the same: give one of them another name"
}
