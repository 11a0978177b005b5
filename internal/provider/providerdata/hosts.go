package providerdata

import (
	"strconv"
	"sync"

	"github.com/talosop/terraform-provider-talosop/internal/containers"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// hosts are the host clusters that a process is connected to. Concurrent operations share a connection, and the last
// one closes it. It is safe for concurrent use.
type hosts struct {
	// Open makes a connection; it does no I/O.
	Open func(o hostcluster.Options) (containers.Host, error)

	Mu sync.Mutex
	By map[string]*sharedHost
}

// sharedHost is a connection with the number of its users.
type sharedHost struct {
	containers.Host

	users int
}

// NewHosts connects to real ones.
func NewHosts() *hosts {
	return &hosts{Open: func(o hostcluster.Options) (containers.Host, error) { return hostcluster.Open(o) },
		By: map[string]*sharedHost{}}
}

// Join joins a connection. The caller must call leave once.
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
