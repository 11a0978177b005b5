package machineset

import (
	"errors"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/system"
	"github.com/talosop/terraform-provider-talosop/internal/record"
	"github.com/talosop/terraform-provider-talosop/internal/versions"
)

// Several machines without a resource have one configuration. Each keeps its host name, and its keys: those change only
// in the order of a rotation.

// UnmanagedNode is the node of a machine without a resource, and the configuration that its machine was observed with.
type UnmanagedNode struct {
	kubestate.Node

	// Config is the configuration without host name, and Digest its SharedDigest; empty while the machine did not answer.
	Config string
	Digest string
}

// SharedConfig is what a configuration says to all machines that have it, and its SharedDigest.
func SharedConfig(config []byte) (shared []byte, digest string, err error) {
	shared, err = machineconfig.WithHostnameOf(config, nil)
	if err != nil {
		return nil, "", err
	}

	digest, err = machineconfig.Digest(shared)
	if err != nil {
		return nil, "", err
	}

	images, err := machineconfig.Images(shared)

	return shared, digest + " " + images[kubenames.Kubelet], err
}

// SharedDigest identifies what a configuration says to all machines that have it: everything but host name and keys.
func SharedDigest(config []byte) (string, error) {
	_, digest, err := SharedConfig(config)

	return digest, err
}

// OfUnmanaged is the spec of machines without a resource that get a configuration, in a cluster that is known by its
// handle.
func (p Set) OfUnmanaged(nodes []UnmanagedNode, config []byte, budget cluster.Budget) (cluster.Spec, error) {
	want := cluster.Spec{Name: p.Settings.Name, Endpoint: p.Settings.Endpoint, Bootstrapped: true, NodesBecomeReady: true,
		Resource: cluster.Resource{Joins: true}, Pools: map[string]cluster.Budget{cluster.UnmanagedPool: budget}}

	for _, address := range p.Endpoints {
		want.OtherControlPlanes = append(want.OtherControlPlanes, cluster.MachineAt(address, step.ControlPlane, address))
	}

	digest, err := SharedDigest(config)
	if err != nil {
		return want, err
	}

	images, err := machineconfig.Images(config)

	for _, node := range nodes {
		m := cluster.Machine{Name: cluster.UnmanagedName(node.Name), Role: step.Worker, Pool: cluster.UnmanagedPool,
			Wanted:     cluster.Wanted{Address: node.Address(), Through: true},
			Remembered: cluster.Remembered{NodeName: node.Name}}

		if !p.tooOld(node) {
			m.Configured = cluster.Configured{ConfigDigest: digest, Images: images}
		}

		want.Unmanaged, want.ChangeOnly = append(want.Unmanaged, node.Node), append(want.ChangeOnly, m)
	}

	return want, err
}

// Outdated are the nodes whose machines were observed with another configuration than the wanted one, and know all
// documents of it, and those that an earlier run left cordoned.
func (p Set) Outdated(nodes []UnmanagedNode, config []byte) ([]UnmanagedNode, error) {
	digest, err := SharedDigest(config)

	return slices.DeleteFunc(slices.Clone(nodes), func(n UnmanagedNode) bool {
		return !n.HeldBack() && (n.Digest == "" || n.Digest == digest || p.tooOld(n))
	}), err
}

// tooOld reports whether the Talos of a node does not know all documents of the cluster's contract.
func (p Set) tooOld(n UnmanagedNode) bool {
	least := machineconfig.LeastTalos(p.Settings.Contract, system.Settings{})

	return least != "" && versions.Older(n.TalosVersion, least+".0-0")
}

// ForecastUnmanaged is what an apply does to machines without a resource, as the last refresh observed them.
func (p Set) ForecastUnmanaged(
	nodes []UnmanagedNode, config []byte, budget cluster.Budget, policy cluster.Policy,
) (Forecast, error) {
	shared, _, err := SharedConfig(config)
	if err != nil {
		return Forecast{}, err
	}

	outdated, err := p.Outdated(nodes, config)
	if err != nil {
		return Forecast{}, err
	}

	want, err := p.OfUnmanaged(outdated, config, budget)
	recorded, changes := map[string]step.MachineState{}, map[string][]machineconfig.Change{}

	for _, node := range outdated {
		name := cluster.UnmanagedName(node.Name)

		recorded[name] = step.MachineState{ConfigDigest: node.Digest}

		if node.Digest == "" {
			continue // it did not answer
		}

		differ, fields, wrong := comparison([]byte(node.Config), shared, nil, node.TalosVersion)
		err = errors.Join(err, wrong)
		recorded[name] = step.MachineState{ConfigDigest: node.Digest, RebootFor: fields}
		changes[name] = differ
	}

	steps, _ := cluster.Forecast(want, cluster.Assume(want, recorded), p.Policy(policy))

	operations := p.operationsOf(generally(p.unfinishedHooks()), steps, changes, nil)

	return Forecast{Operations: operations, Impact: ImpactOf(steps, nil)}, err
}

// DriftOfUnmanaged is how the machine of a node differs from a configuration.
func (p Set) DriftOfUnmanaged(node UnmanagedNode, config []byte) (record.Drift, error) {
	shared, digest, err := SharedConfig(config)
	if err != nil || node.Digest == "" || node.Digest == digest {
		return nil, err
	}

	changes, err := machineconfig.Diff([]byte(node.Config), shared)

	var drift record.Drift

	if p.tooOld(node) {
		drift = append(drift, record.Difference{Kind: record.TalosDiffers, Found: node.TalosVersion,
			Wanted: machineconfig.LeastTalos(p.Settings.Contract, system.Settings{}) + " or later"})
	}

	return slices.Concat(drift, driftAt(changes), driftOfKubelet(node, shared)), err
}

// driftOfKubelet compares the images of the kubelet.
func driftOfKubelet(node UnmanagedNode, config []byte) record.Drift {
	had, unread := machineconfig.Images([]byte(node.Config))
	wanted, err := machineconfig.Images(config)

	if unread != nil || err != nil || had[kubenames.Kubelet] == wanted[kubenames.Kubelet] {
		return nil
	}

	return record.Drift{{Kind: record.ImageDiffers, Component: kubenames.Kubelet, Found: had[kubenames.Kubelet],
		Wanted: wanted[kubenames.Kubelet]}}
}
