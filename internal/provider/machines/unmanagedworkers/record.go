package unmanagedworkers

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// What the last refresh observed is in private state, because it has secrets: a plan starts from it and asks no
// machine.

const observedKey = "observed"

// recorded are the observed nodes, and each configuration once.
type recorded struct {
	Nodes   []recordedNode    `json:"nodes"`
	Configs map[string]string `json:"configs"`
}

type recordedNode struct {
	Name    string            `json:"name"`
	Address string            `json:"address"`
	Ready   bool              `json:"ready"`
	Held    bool              `json:"cordoned"`
	Talos   string            `json:"talos_version"`
	Labels  map[string]string `json:"labels"`
	Digest  string            `json:"digest"`
}

func store(ctx context.Context, private tf.PrivateStore, nodes []machineset.UnmanagedNode) diag.Diagnostics {
	out := recorded{Configs: map[string]string{}}

	for _, n := range nodes {
		out.Nodes = append(out.Nodes, recordedNode{n.Name, n.Address(), n.Ready, n.HeldBack(), n.TalosVersion, n.Labels,
			n.Digest})

		if n.Digest != "" {
			out.Configs[n.Digest] = n.Config
		}
	}

	return tf.StorePrivate(ctx, private, observedKey, out)
}

// hooksKey is the key of the hooks that an apply began and none ended.
const hooksKey = "hooks"

func (m *model) readHooks(ctx context.Context, private tf.PrivateState) diag.Diagnostics {
	if private == nil {
		return nil
	}

	return tf.ReadPrivate(ctx, private, hooksKey, &m.started)
}

func (m *model) storeHooks(ctx context.Context, private tf.PrivateStore) diag.Diagnostics {
	return tf.StorePrivate(ctx, private, hooksKey, m.started)
}

func recordedIn(ctx context.Context, private tf.PrivateState) ([]machineset.UnmanagedNode, diag.Diagnostics) {
	var (
		in    recorded
		nodes []machineset.UnmanagedNode
	)

	if private == nil {
		return nil, nil
	}

	diags := tf.ReadPrivate(ctx, private, observedKey, &in)

	for _, n := range in.Nodes {
		nodes = append(nodes, machineset.UnmanagedNode{Digest: n.Digest, Config: in.Configs[n.Digest],
			Node: kubestate.Node{Name: n.Name, Addresses: []string{n.Address}, Ready: n.Ready, TalosVersion: n.Talos,
				Labels: n.Labels, Cordoned: n.Held, Unschedulable: n.Held}})
	}

	return nodes, diags
}
