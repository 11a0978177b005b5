package kubernetes

import (
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/diagnose"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/lock"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/nodes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/upgrade"
)

// Client is everything that is done with the Kubernetes API of one cluster. It is safe for concurrent use.
type Client struct {
	*api.Client
	*nodes.Nodes
	*objects.Objects
	*diagnose.Diagnosis
	*upgrade.Upgrade
}

// New prepares a client as [api.New] does.
func New(o api.Options) (*Client, error) { return of(api.New(o)) }

// NewFromKubeconfig prepares a client as [api.NewFromKubeconfig] does.
func NewFromKubeconfig(k api.Kubeconfig, o api.Options) (*Client, error) {
	return of(api.NewFromKubeconfig(k, o))
}

func of(c *api.Client, err error) (*Client, error) {
	if err != nil {
		return nil, err
	}

	n, o := nodes.New(c), objects.New(c)
	d := diagnose.New(c, o)

	return &Client{c, n, o, d, upgrade.New(c, n, o, d)}, nil
}

// Lock is the right to disrupt machines of the cluster, see [lock.New].
func (c *Client) Lock(o lock.Options) *lock.Lock { return lock.New(c.Client, o) }
