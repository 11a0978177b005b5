package machineset

import (
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// HostConnection is the connection to a host cluster.
type HostConnection struct {
	// Path and Content are those of a kubeconfig, and Context its context; empty for the current one.
	Path    string
	Content []byte
	Context string
	// InCluster is true for the cluster that talosop runs in.
	InCluster bool
	// Unknown is true when any part of it is unknown.
	Unknown bool
}

// Given reports whether it names a host cluster.
func (c HostConnection) Given() bool { return c.InCluster || c.Path != "" || len(c.Content) > 0 }

// Under completes a connection of a resource or a handle with that of the provider, unless it names a host cluster
// itself.
func (c HostConnection) Under(own HostConnection) HostConnection {
	if own.Given() {
		return own
	}

	completed := c
	completed.Unknown = completed.Unknown || own.Unknown

	if own.Context != "" {
		completed.Context = own.Context
	}

	return completed
}

// Host is the host cluster of the machines of a set, in plain values. Unknown values are zero.
type Host struct {
	Connection      HostConnection
	Namespace       string
	CreateNamespace bool
	Domain          string
	Access          workload.Access
	// Endpoint is the Service in front of the control planes; nil in pools without one.
	Endpoint *workload.EndpointService
	// Image has no tag.
	Image               string
	PullSecrets         []string
	Labels, Annotations map[string]string
	// Missing is true when no host cluster is configured.
	Missing bool
	// Recorded is the recorded host cluster of the machines; zero where state has none.
	Recorded workload.Identity
}

// NameOf is the hostname of a machine and the name of its objects; empty when unknown.
func (h *Host) NameOf(clusterName string, m workload.Machine) string {
	if clusterName == "" || m.Pool == "" {
		return ""
	}

	return workload.Spec{Cluster: clusterName}.HostName(m)
}

// AddressOf is the DNS name of a machine in the host cluster; empty when unknown.
func (h *Host) AddressOf(clusterName string, m workload.Machine) string {
	if clusterName == "" || m.Pool == "" || h.Namespace == "" || h.Domain == "" {
		return ""
	}

	return workload.Spec{Cluster: clusterName, Namespace: h.Namespace, Domain: h.Domain}.Address(m)
}

// AddressOfNode is an address that the machine of a node keeps when it restarts: on a host, the DNS name of the
// machine, after which the node is named, and elsewhere its own address.
func (p Set) AddressOfNode(node kubestate.Node) string {
	if p.Host == nil {
		return node.Address()
	}

	return workload.Spec{Namespace: p.Host.Namespace, Domain: p.Host.Domain}.AddressOf(node.Name)
}
