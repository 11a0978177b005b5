package cluster

import "github.com/talosop/terraform-provider-talosop/internal/kubenames"

// The components of Kubernetes and their images.
type (
	Component = kubenames.Component
	Images    = kubenames.Images
)

// The components, in the order in which an upgrade of Kubernetes reaches them.
const (
	KubeAPIServer         = kubenames.KubeAPIServer
	KubeControllerManager = kubenames.KubeControllerManager
	KubeScheduler         = kubenames.KubeScheduler
	KubeProxy             = kubenames.KubeProxy
	Kubelet               = kubenames.Kubelet
)
