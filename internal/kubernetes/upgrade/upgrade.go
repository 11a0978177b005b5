package upgrade

import (
	"sync"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/diagnose"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/nodes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
)

// Upgrade is what an upgrade of Kubernetes does in the API of one cluster. It is safe for concurrent use.
type Upgrade struct {
	api       *api.Client
	nodes     *nodes.Nodes
	objects   *objects.Objects
	diagnosis *diagnose.Diagnosis

	mu sync.Mutex
	// steady are the containers of API servers that were seen to run for long enough.
	steady map[string]bool
}

// New is for the cluster of a client; it does no I/O.
func New(c *api.Client, n *nodes.Nodes, o *objects.Objects, d *diagnose.Diagnosis) *Upgrade {
	return &Upgrade{api: c, nodes: n, objects: o, diagnosis: d}
}
