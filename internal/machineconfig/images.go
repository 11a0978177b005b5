package machineconfig

import (
	"fmt"

	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
)

// imageField is where a configuration names the image of a component of Kubernetes.
type imageField struct {
	component kubenames.Component
	// path is that in the main document, and kind the document that takes its place (since Talos 1.14).
	path [3]string
	kind string
	// off is the switch in the main document that takes the component from a machine; nil when there is none.
	off []string
	// workers have the component, too.
	workers bool
}

// Names of the fields that documents of components have in common.
const (
	imageKey   = "image"
	enabledKey = "enabled"
)

// Talos 1.13 and 1.14, controllers/k8s: control_plane.go has the static pods and kube-proxy with their switches,
// kubelet_config.go the kubelet.
var imageFields = []imageField{
	{
		component: kubenames.KubeAPIServer, path: [3]string{"cluster", "apiServer", "image"}, kind: k8s.KubeAPIServerConfig,
	},
	{
		component: kubenames.KubeControllerManager, path: [3]string{"cluster", "controllerManager", "image"},
		kind: k8s.KubeControllerManagerConfig,
		off:  []string{"machine", "controlPlane", "controllerManager", "disabled"},
	},
	{
		component: kubenames.KubeScheduler, path: [3]string{"cluster", "scheduler", "image"}, kind: k8s.KubeSchedulerConfig,
		off: []string{"machine", "controlPlane", "scheduler", "disabled"},
	},
	{
		component: kubenames.KubeProxy, path: [3]string{"cluster", "proxy", "image"}, kind: k8s.KubeProxyConfig,
		off: []string{"cluster", "proxy", "disabled"},
	},
	{
		component: kubenames.Kubelet, path: [3]string{"machine", "kubelet", "image"}, kind: k8s.KubeletConfig, workers: true,
	},
}

// Images reads the images of Kubernetes that a configuration names, by component: those that a machine of its role
// runs, and of these only the ones that are not disabled. A configuration without a main document names none.
//
// A component that runs and whose image is not written is left out as well: Talos takes its own default then, of the
// DefaultKubernetesVersion that the machine's Talos was built with (machinery 1.13, KubeletConfig.Image and the
// like in types/v1alpha1), and no other version of the library knows which that is. Errors do not quote the
// configuration.
func Images(cfg []byte) (kubenames.Images, error) {
	e, err := edit(cfg)
	if err != nil {
		return nil, fmt.Errorf("read images: %w", err)
	}

	images := kubenames.Images{}

	for _, field := range imageFields {
		at, runs := e.image(field)
		if image := e.scalar(at); runs && image != "" {
			images[field.component] = image
		}
	}

	return images, nil
}

// WithImages is a configuration with other images of Kubernetes, by component; see Images. Components that are not
// given keep the image they have, and those that the machine has not, by its role or because they are disabled, are
// passed over. Nothing but these fields is different in the result, so that it has the Digest of cfg: other documents
// stay as they are written, and the main one loses its comments. When nothing is to be changed the result is cfg
// itself. Errors do not quote the configuration.
func WithImages(cfg []byte, images kubenames.Images) ([]byte, error) {
	e, err := edit(cfg)
	if err != nil {
		return nil, fmt.Errorf("put images: %w", err)
	}

	changed := false

	for _, field := range imageFields {
		at, runs := e.image(field)

		image := images[field.component]
		if image == "" || !runs || e.scalar(at) == image {
			continue
		}

		if err := e.putScalar(at, image); err != nil {
			return nil, fmt.Errorf("put images: %w", err)
		}

		changed = true
	}

	if !changed {
		return cfg, nil
	}

	return e.encode()
}

// image is where the image of a component is, and whether the machine runs the component, as far as its configuration
// decides.
func (e edited) image(field imageField) (at spot, runs bool) {
	main := e.roots[""]
	if main == nil {
		return spot{}, false
	}

	kind, err := machine.ParseType(scalarIn(main, []string{"machine", "type"}))
	if err != nil || !kind.IsControlPlane() && (kind != machine.TypeWorker || !field.workers) {
		return spot{}, false
	}

	if e.has(field.kind) {
		off := e.node(spot{field.kind, []string{enabledKey}})

		return spot{field.kind, []string{imageKey}}, off == nil || truth(off, true)
	}

	// Without the section no machine has the role: Talos refuses the configuration (types/v1alpha1, Config.Validate).
	if section := valueAt(main, field.path[0]); section == nil || section.Kind != yaml.MappingNode {
		return spot{}, false
	}

	// A configuration of documents has no component but those that it names.
	if e.has(k8s.KubeClusterConfig) && nodeIn(main, field.path[:2]) == nil {
		return spot{}, false
	}

	off := nodeIn(main, field.off)

	return spot{path: field.path[:]}, len(field.off) == 0 || off == nil || !truth(off, false)
}

// truth reads a boolean; what is none, and Talos refuses, is taken for fallback.
func truth(node *yaml.Node, fallback bool) bool {
	var value bool
	if node.Decode(&value) != nil {
		return fallback
	}

	return value
}

// withoutImages takes the images of Kubernetes out of the content of a document. In the main one it takes the sections
// around them that have nothing else as well: Talos takes an empty section as one that is not there, and WithImages
// makes those that are missing.
func withoutImages(id identity, content any) any {
	root, ok := content.(map[string]any)
	if !ok {
		return content
	}

	for _, field := range imageFields {
		if id.kind == field.kind {
			delete(root, imageKey)
		}

		if id.kind != "" {
			continue
		}

		outer, ok := root[field.path[0]].(map[string]any)
		if !ok {
			continue
		}

		section, ok := outer[field.path[1]].(map[string]any)
		if delete(section, field.path[2]); len(section) == 0 && (ok || outer[field.path[1]] == nil) {
			delete(outer, field.path[1])
		}
	}

	return root
}
