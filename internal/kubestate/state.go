// Package kubestate is Kubernetes as its API shows it: nodes, static pods and the certificates of API servers. Pure.
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
	// ReadyReason is the word that Kubernetes has for Ready being as it is, and ReadySince
	// when it became so; empty and zero where it does not say.
	ReadyReason string
	ReadySince  time.Time
	// Unschedulable is true for a cordoned node, since UnschedulableSince; that is zero where Kubernetes does not say.
	Unschedulable      bool
	UnschedulableSince time.Time
	// Cordoned is true when talosop made the node unschedulable and did not take that back:
	// somebody else may have, see [Node.HeldBack]. CordonedAt and CordonedBy say since when and
	// for which resource; zero and empty where the node does not say.
	Cordoned   bool
	CordonedAt time.Time
	CordonedBy string
	// ControlPlane is true for nodes of control planes.
	ControlPlane bool
	// ProviderID is what the cloud that made the machine calls it; empty where no cloud says so.
	ProviderID string
	// Labels are not to be changed.
	Labels map[string]string
	// TalosVersion is empty where the node runs another system.
	KubeletVersion, TalosVersion string
	BootID                       string
	// Staged is true where the node says that its machine has a configuration for its next boot.
	Staged bool
	// Keys are those that the node says its machine carries; zero where it says nothing.
	Keys rotation.Keys
	// StaticPods is what Kubernetes shows of the control plane's pods on the node, by
	// their names; nil when nobody asked.
	StaticPods map[string]StaticPod
}

// HeldBack is true for a node that takes no pods because talosop cordoned it. A mark that
// outlived the cordon, because somebody uncordoned the node, holds nobody back.
func (n Node) HeldBack() bool { return n.Cordoned && n.Unschedulable }

// Address is the first of its addresses; empty where it has none.
func (n Node) Address() string {
	if len(n.Addresses) == 0 {
		return ""
	}

	return n.Addresses[0]
}

// APIServer is the version of the API server on the node, by the image of its pod.
func (n Node) APIServer() (version string, known bool) {
	return kubenames.ImageVersion(n.StaticPods[string(kubenames.KubeAPIServer)].Image)
}

// StaticPod is a pod of the control plane as Kubernetes shows it.
type StaticPod struct {
	// Stamp names the configuration that it runs with, as the static pods that Talos wants do.
	Stamp string
	// Image is that of its first container.
	Image string
	Ready bool
}

// State is what the Kubernetes API of a cluster answered.
type State struct {
	Reachable bool
	Cause     string
	// Since is when Reachable last changed, as far as this run saw.
	Since time.Time
	Nodes []Node
	// Owners are the ids of resources that marked nodes as those of machines of their own, by the
	// names of the nodes, as last seen by this run; nil when the nodes were not listed. A key of the cluster authenticates
	// each of these marks.
	Owners map[string]string
	// Unproven are the owners that other marks name: a kubelet wrote or copied one, or an object with the mark was
	// deleted and created again. Such a mark does not count.
	Unproven map[string]string
	// Manifests is the version of Kubernetes whose bootstrap manifests this run synced last; empty when it did not.
	Manifests string
	// KubeProxy is the image that the DaemonSet kube-proxy has; empty where there is none, or nobody asked.
	KubeProxy string
	// Certificates are those that API servers show, ordered by URL; none where nobody asked.
	Certificates []ServerCertificate
	// Endpoint is how the endpoint of the cluster answered last; the rest may come from a control plane.
	Endpoint Endpoint
}

// Endpoint is how the endpoint of a cluster, where kubeconfigs lead, answers from where talosop runs.
type Endpoint struct {
	URL string
	// Asked is whether a request to it ended, be it without an answer.
	Asked bool
	// OutOfReach is whether it is known not to be reachable from here: nothing follows from its silence.
	OutOfReach bool
	// Cause is why it gave no answer; empty when it did.
	Cause string
}

// Silent is true for an endpoint that gave no answer and should have.
func (e Endpoint) Silent() bool { return e.Asked && !e.OutOfReach && e.Cause != "" }
