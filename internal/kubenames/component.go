package kubenames

import "slices"

// Component is a part of Kubernetes whose image a machine configuration names. The values
// are the names of the images and, for static pods, those of the pods.
type Component string

// The components, in the order in which an upgrade of Kubernetes reaches them.
const (
	KubeAPIServer         Component = "kube-apiserver"
	KubeControllerManager Component = "kube-controller-manager"
	KubeScheduler         Component = "kube-scheduler"
	// KubeProxy runs as a DaemonSet. The configuration of the control planes names its
	// image, and the bootstrap manifests bring it to the nodes.
	KubeProxy Component = "kube-proxy"
	Kubelet   Component = "kubelet"
)

// Components are all of them, in the order in which an upgrade of Kubernetes reaches them.
func Components() []Component { return append([]Component{KubeAPIServer}, BehindAPIServer()...) }

// BehindAPIServer are those that are never newer than a kube-apiserver, in the same order.
func BehindAPIServer() []Component {
	return []Component{KubeControllerManager, KubeScheduler, KubeProxy, Kubelet}
}

// StaticPods are those that run as static pods of control planes.
func StaticPods() []Component {
	return []Component{KubeAPIServer, KubeControllerManager, KubeScheduler}
}

// StaticPod reports whether the component runs as a pod that Talos gives the kubelet.
func (c Component) StaticPod() bool {
	return slices.Contains(StaticPods(), c)
}

// Images are the images of Kubernetes in a machine configuration, by component: the
// kubelet's on every machine, and on control planes those of all components that are not
// disabled.
type Images map[Component]string

// At are the images of another version of Kubernetes, where version is the one that these
// name; see [ImageAt].
func (i Images) At(version, other string) Images {
	if i == nil {
		return nil
	}

	out := make(Images, len(i))
	for c, image := range i {
		out[c] = ImageAt(image, version, other)
	}

	return out
}
