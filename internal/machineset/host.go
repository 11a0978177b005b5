package machineset

import "github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"

// HostConnection is how a host cluster is reached.
type HostConnection struct {
	// Path and Content are those of a kubeconfig, and Context the one in it that is meant; empty for its current one.
	Path    string
	Content []byte
	Context string
	// InCluster is true for the cluster that talosop runs in.
	InCluster bool
	// Unknown is true when any of it is not known yet.
	Unknown bool
}

// Given is whether it says where the host cluster is.
func (c HostConnection) Given() bool { return c.InCluster || c.Path != "" || len(c.Content) > 0 }

// Under completes a connection of a resource or a handle with that of the provider, which a way of its own excludes.
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

// Host is the host cluster of the machines of a set, in plain values. Values that are not known yet are their zero.
type Host struct {
	Connection      HostConnection
	Namespace       string
	CreateNamespace bool
	Domain          string
	Access          workload.Access
	// Endpoint is the Service in front of the control planes; nil in pools that have none.
	Endpoint *workload.EndpointService
	// Image has no tag.
	Image               string
	PullSecrets         []string
	Labels, Annotations map[string]string
	// Missing is true when nothing at all is said of the host cluster.
	Missing bool
	// Recorded is the host cluster that has the machines, as state knows it; zero where it does not.
	Recorded workload.Identity
}

// NameOf is the host name of a machine, and what its objects are called; empty when it is not known yet.
func (h *Host) NameOf(clusterName string, m workload.Machine) string {
	if clusterName == "" || m.Pool == "" {
		return ""
	}

	return workload.Spec{Cluster: clusterName}.HostName(m)
}

// AddressOf is the name of a machine in the DNS of the host cluster; empty when it is not known yet.
func (h *Host) AddressOf(clusterName string, m workload.Machine) string {
	if clusterName == "" || m.Pool == "" || h.Namespace == "" || h.Domain == "" {
		return ""
	}

	return workload.Spec{Cluster: clusterName, Namespace: h.Namespace, Domain: h.Domain}.Address(m)
}
