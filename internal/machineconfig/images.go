package machineconfig

import (
	"fmt"

	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
)

// enabledKey is the switch of documents of components.
const enabledKey = "enabled"

// Images reads the images of Kubernetes that a configuration names, by component: those of enabled components that
// a machine of its role runs. A configuration without a main document names none.
//
// It also leaves out a running component without an image. Talos then uses its own default, of the
// DefaultKubernetesVersion that the machine's Talos was built with (machinery 1.13, KubeletConfig.Image and the
// like in types/v1alpha1), and no other version of the library knows that default. Errors do not quote the
// configuration.
func Images(cfg []byte) (kubenames.Images, error) {
	e, err := edit(cfg)
	if err != nil {
		return nil, fmt.Errorf("read images: %w", err)
	}

	images := kubenames.Images{}

	for _, f := range places.Images() {
		at, runs := e.image(f)
		if image := e.scalar(at); runs && image != "" {
			images[f.Image] = image
		}
	}

	return images, nil
}

// WithImages is a configuration with other images of Kubernetes, by component; see Images. Components that are not
// given keep their image. Components that the machine lacks, by its role or because they are disabled, are
// skipped. Only these fields differ in the result, so that it has the Digest of cfg. Other documents stay
// unchanged, and the main one loses its comments. Without a change the result is cfg itself. Errors do not quote
// the configuration.
func WithImages(cfg []byte, images kubenames.Images) ([]byte, error) {
	e, err := edit(cfg)
	if err != nil {
		return nil, fmt.Errorf("put images: %w", err)
	}

	changed := false

	for _, f := range places.Images() {
		at, runs := e.image(f)

		image := images[f.Image]
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
func (e edited) image(f places.Fact) (at places.Spot, runs bool) {
	main := e.roots[""]
	if main == nil {
		return places.Spot{}, false
	}

	kind, err := machine.ParseType(e.scalar(places.MachineType.Main))
	if err != nil || !kind.IsControlPlane() && (kind != machine.TypeWorker || !f.Workers) {
		return places.Spot{}, false
	}

	if kind := f.Document.Kind; e.has(kind) {
		off := e.node(places.Spot{Kind: kind, Path: []string{enabledKey}})

		return f.Document, off == nil || truth(off, true)
	}

	// Without the section no machine has the role: Talos refuses the configuration (types/v1alpha1, Config.Validate).
	if section := places.Node(main, f.Main.Path[0]); section == nil || section.Kind != yaml.MappingNode {
		return places.Spot{}, false
	}

	// A configuration of documents has no component but those that it names.
	if e.has(places.ClusterName.Document.Kind) && places.Node(main, f.Main.Path[:2]...) == nil {
		return places.Spot{}, false
	}

	off := places.Node(main, f.Off.Path...)

	return f.Main, len(f.Off.Path) == 0 || off == nil || !truth(off, false)
}

// truth reads a boolean; any other value, which Talos refuses, counts as fallback.
func truth(node *yaml.Node, fallback bool) bool {
	var value bool
	if node.Decode(&value) != nil {
		return fallback
	}

	return value
}

// withoutImages removes the images of Kubernetes from the content of a document. In the main one it also removes
// sections that contain nothing else: Talos treats an empty section as missing, and WithImages adds missing ones.
func withoutImages(id identity, content any) any {
	root, ok := content.(map[string]any)
	if !ok {
		return content
	}

	for _, f := range places.Images() {
		if id.kind == f.Document.Kind {
			deleteAt(root, f.Document.Path)
		}

		if id.kind != "" {
			continue
		}

		path := f.Main.Path

		outer, ok := root[path[0]].(map[string]any)
		if !ok {
			continue
		}

		section, ok := outer[path[1]].(map[string]any)
		if delete(section, path[2]); len(section) == 0 && (ok || outer[path[1]] == nil) {
			delete(outer, path[1])
		}
	}

	return root
}
