package provider

import (
	"strconv"
	"sync"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster"
)

// hosts are the host clusters that a process is connected to. Operations that go on at the same
// time share a connection, and the last one of them ends it. It is safe for concurrent use.
type hosts struct {
	// open makes a connection; it asks nobody.
	open func(o hostcluster.Options) (host, error)

	mu sync.Mutex
	by map[string]*sharedHost
}

// sharedHost is a connection with the number of those that use it.
type sharedHost struct {
	host

	users int
}

// newHosts connects to real ones.
func newHosts() *hosts {
	return &hosts{open: func(o hostcluster.Options) (host, error) { return hostcluster.Open(o) }, by: map[string]*sharedHost{}}
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
