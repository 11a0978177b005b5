package cluster

import "github.com/talosop/terraform-provider-talosop/internal/kubenames"

// Component is a component of Kubernetes.
type Component = kubenames.Component

// Images are the images of the components.
type Images = kubenames.Images

// The components, in the order in which an upgrade of Kubernetes reaches them.
const (
	KubeAPIServer         = kubenames.KubeAPIServer
	KubeControllerManager = kubenames.KubeControllerManager
	KubeScheduler         = kubenames.KubeScheduler
	KubeProxy             = kubenames.KubeProxy
	Kubelet               = kubenames.Kubelet
)
