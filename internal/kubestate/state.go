// Package kubestate is Kubernetes as its API shows it: nodes, static pods and certificates of API servers. Pure.
package kubestate

import (
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

// Node is a Kubernetes node.
type Node struct {
	Name      string
	Addresses []string
	Ready     bool
	// ReadyReason is the reason of the Ready condition, and ReadySince its last transition. They are empty and zero
	// where Kubernetes reports none.
	ReadyReason string
	ReadySince  time.Time
	// Unschedulable is true for a cordoned node, since UnschedulableSince, which is zero where Kubernetes does not
	// report it.
	Unschedulable      bool
	UnschedulableSince time.Time
	// Cordoned is true when talosop cordoned the node and did not uncordon it. Another client may have: see
	// [Node.HeldBack]. CordonedAt and CordonedBy are the time and the resource; zero and empty where the node does not
	// have them.
	Cordoned   bool
	CordonedAt time.Time
	CordonedBy string
	// ControlPlane is true for control plane nodes.
	ControlPlane bool
	// ProviderID is the machine's ID at its cloud; empty without a cloud.
	ProviderID string
	// Labels are read-only.
	Labels map[string]string
	// TalosVersion is empty where the node runs another operating system.
	KubeletVersion, TalosVersion string
	BootID                       string
	// ResetAt is when talosop last began to wipe volumes of the machine, which stayed in the cluster; zero for never.
	ResetAt time.Time
	// Staged is true where the node reports a configuration for the next boot of its machine.
	Staged bool
	// Soak is that of a canary machine after its change.
	Soak Soak
	// Keys are those that the node reports for its machine; zero where it reports none.
	Keys rotation.Keys
	// StaticPods are the control plane's pods on the node, by name; nil when they were not read.
	StaticPods map[string]StaticPod
}

// HeldBack is true for a node that talosop cordoned and that is still cordoned. The mark alone does not count:
// another client may have uncordoned the node.
func (n Node) HeldBack() bool { return n.Cordoned && n.Unschedulable }

// Address is the first address of the node; empty where it has none.
func (n Node) Address() string {
	if len(n.Addresses) == 0 {
		return ""
	}

	return n.Addresses[0]
}

// APIServer is the version of the API server on the node, from the image of its pod.
func (n Node) APIServer() (version string, known bool) {
	return kubenames.ImageVersion(n.StaticPods[string(kubenames.KubeAPIServer)].Image)
}

// Soak is how long the machine of a node was observed after its change, before other machines follow. Its zero value is
// no soak.
type Soak struct {
	// Due is true from before the change until the soak has ended.
	Due bool
	// Since is when it began; zero before.
	Since time.Time
}

// StaticPod is a pod of the control plane as Kubernetes shows it.
type StaticPod struct {
	// Stamp identifies the pod's configuration, as in the static pods that Talos wants.
	Stamp string
	// Image is the image of its first container.
	Image string
	Ready bool
}

// State is what the Kubernetes API of a cluster answered.
type State struct {
	Reachable bool
	Cause     string
	// Since is when Reachable last changed, as observed by this run.
	Since time.Time
	Nodes []Node
	// Owners are the IDs of the resources that own nodes, by node name, as this run last observed them; nil when the
	// nodes were not listed. Each mark is authenticated by a key of the cluster.
	Owners map[string]string
	// Unproven are the owners in marks that do not count: a kubelet wrote or copied the mark, or its object was deleted
	// and created again.
	Unproven map[string]string
	// Manifests is the Kubernetes version whose bootstrap manifests this run synced last; empty when it synced none.
	Manifests string
	// KubeProxy is the image of the DaemonSet kube-proxy; empty where there is none, or where it was not read.
	KubeProxy string
	// Certificates are those that the API servers present, ordered by URL; none where they were not read.
	Certificates []ServerCertificate
	// Unready are API servers that answer, and report that they are not ready. Where the observation did not ask each of
	// them, it has one only while none is ready.
	Unready []UnreadyServer
	// Endpoint is the last answer of the cluster endpoint. The rest of the state may come from a control plane.
	Endpoint Endpoint
}

// UnreadyServer is an API server that reports that it is not ready.
type UnreadyServer struct {
	// URL is empty where it is not known which server answered.
	URL string
	// Checks are the readiness checks that fail, such as etcd.
	Checks []string
}

// Endpoint is the last answer of the cluster endpoint, which kubeconfigs use, to requests of talosop.
type Endpoint struct {
	URL string
	// Asked is true when a request to it ended, with or without an answer.
	Asked bool
	// OutOfReach is true for an endpoint that is known to be unreachable from here. Its silence proves nothing.
	OutOfReach bool
	// Cause is why it did not answer; empty when it did.
	Cause string
}

// Silent is true for an endpoint that should have answered and did not.
func (e Endpoint) Silent() bool { return e.Asked && !e.OutOfReach && e.Cause != "" }
