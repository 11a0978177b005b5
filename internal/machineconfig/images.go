package machineconfig

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
)

// imageField is where the main document names the image of a component of Kubernetes.
type imageField struct {
	component cluster.Component
	path      [3]string
	// off is the switch that takes the component from a machine; nil when there is none.
	off []string
	// workers have the component, too.
	workers bool
}

// Talos 1.13, controllers/k8s: control_plane.go has the static pods and kube-proxy with their switches,
// kubelet_config.go the kubelet.
var imageFields = []imageField{
	{component: cluster.KubeAPIServer, path: [3]string{"cluster", "apiServer", "image"}},
	{
		component: cluster.KubeControllerManager, path: [3]string{"cluster", "controllerManager", "image"},
		off: []string{"machine", "controlPlane", "controllerManager", "disabled"},
	},
	{
		component: cluster.KubeScheduler, path: [3]string{"cluster", "scheduler", "image"},
		off: []string{"machine", "controlPlane", "scheduler", "disabled"},
	},
	{component: cluster.KubeProxy, path: [3]string{"cluster", "proxy", "image"},
		off: []string{"cluster", "proxy", "disabled"}},
	{component: cluster.Kubelet, path: [3]string{"machine", "kubelet", "image"}, workers: true},
}

// Images reads the images of Kubernetes that a configuration names, by component: those that a machine of its role
// runs, and of these only the ones that are not disabled. A configuration without a main document names none.
//
// A component that runs and whose image is not written is left out as well: Talos takes its own default then, of the
// DefaultKubernetesVersion that the machine's Talos was built with (machinery 1.13, KubeletConfig.Image and the
// like in types/v1alpha1), and no other version of the library knows which that is. Errors do not quote the
// configuration.
func Images(cfg []byte) (map[string]string, error) {
	main, err := readMain(cfg)
	if err != nil {
		return nil, fmt.Errorf("read images: %w", err)
	}

	images := map[string]string{}

	for _, field := range imageFields {
		if image := scalarIn(main.root, field.path[:]); image != "" && main.has(field) {
			images[string(field.component)] = image
		}
	}

	return images, nil
}

// WithImages is a configuration with other images of Kubernetes, by component; see Images. Components that are not
// given keep the image they have, and those that the machine has not, by its role or because they are disabled, are
// passed over. Nothing but these fields is different in the result, so that it has the Digest of cfg: other documents
// stay as they are written, and the main one loses its comments. When nothing is to be changed the result is cfg
// itself. Errors do not quote the configuration.
func WithImages(cfg []byte, images map[string]string) ([]byte, error) {
	main, err := readMain(cfg)
	if err != nil {
		return nil, fmt.Errorf("put images: %w", err)
	}

	changed := false

	for _, field := range imageFields {
		image := images[string(field.component)]
		if image == "" || !main.has(field) || scalarIn(main.root, field.path[:]) == image {
			continue
		}

		if err := putScalar(main.root, field.path[:], image); err != nil {
			return nil, fmt.Errorf("put images: %w", err)
		}

		changed = true
	}

	if !changed {
		return cfg, nil
	}

	return main.encode()
}

// mainOf is the main document of a configuration, as YAML without aliases and comments.
type mainOf struct {
	chunks []chunk
	index  int
	// root is nil when there is no main document.
	root *yaml.Node
}

func readMain(cfg []byte) (mainOf, error) {
	chunks, err := split(string(cfg))
	if err != nil {
		return mainOf{}, fmt.Errorf("not YAML: %s", withoutQuotes(err.Error()))
	}

	for i, c := range chunks {
		if c.node == nil || c.node.Kind != yaml.MappingNode || identify(c.node).kind != "" {
			continue
		}

		root, err := plainNode(c.node)
		if err != nil {
			return mainOf{}, fmt.Errorf("document %s: %w", mainDocument, err)
		}

		return mainOf{chunks: chunks, index: i, root: root}, nil
	}

	return mainOf{}, nil
}

// has reports whether the machine runs a component, as far as its configuration decides.
func (m mainOf) has(field imageField) bool {
	if m.root == nil {
		return false
	}

	kind, err := machine.ParseType(scalarIn(m.root, []string{"machine", "type"}))
	if err != nil || !kind.IsControlPlane() && (kind != machine.TypeWorker || !field.workers) {
		return false
	}

	// Without the section no machine has the role: Talos refuses the configuration (types/v1alpha1, Config.Validate).
	if section := valueAt(m.root, field.path[0]); section == nil || section.Kind != yaml.MappingNode {
		return false
	}

	var off bool
	if node := nodeIn(m.root, field.off); len(field.off) > 0 && node != nil && node.Decode(&off) != nil {
		return true // no boolean: Talos refuses the configuration
	}

	return !off
}

// encode writes the main document anew among the others, which stay as they are.
func (m mainOf) encode() ([]byte, error) {
	encoded, err := encodeNode(m.root)
	if err != nil {
		return nil, fmt.Errorf("encode document %s: %w", mainDocument, errNotData)
	}

	// A machine's whole configuration goes through here, and a value that comes out as another one would be
	// applied.
	if again, err := parseDocument(string(encoded)); err != nil || !sameNode(m.root, again) {
		return nil, fmt.Errorf("encode document %s: %w", mainDocument, errNotSame)
	}

	var out strings.Builder

	for i, c := range m.chunks {
		switch {
		case i != m.index:
			out.WriteString(c.text)

			continue
		case isSeparator(strings.SplitN(c.text, "\n", 2)[0]):
			out.WriteString("---\n")
		}

		out.Write(encoded)
	}

	return []byte(out.String()), nil
}

// nodeIn finds the value at a path of mappings, nil when there is none.
func nodeIn(node *yaml.Node, path []string) *yaml.Node {
	for _, key := range path {
		if node == nil {
			return nil
		}

		node = valueAt(node, key)
	}

	return node
}

func scalarIn(root *yaml.Node, path []string) string {
	if root == nil {
		return ""
	}

	if node := nodeIn(root, path); node != nil && node.Kind == yaml.ScalarNode && node.Tag != "!!null" {
		return node.Value
	}

	return ""
}

var (
	errNotSection = errors.New("not a section")
	errNotSame    = errors.New("the YAML library does not read what it wrote")
)

// putScalar sets the value at a path, with the mappings on the way to it that are missing or null.
func putScalar(node *yaml.Node, path []string, value string) error {
	for i, key := range path {
		next := valueAt(node, key)
		if next == nil {
			next = &yaml.Node{}
			node.Content = append(node.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, next)
		}

		switch last := i == len(path)-1; {
		case last:
			*next = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
		case next.Kind == 0 || next.Tag == "!!null":
			*next = yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		case next.Kind != yaml.MappingNode:
			return fmt.Errorf("%s: %w", strings.Join(path[:i+1], "."), errNotSection)
		}

		node = next
	}

	return nil
}

// errMerged says that a document has keys which Talos refuses (machinery 1.13, decoder: unknown keys), so that no
// machine has it. They are not understood here either.
var errMerged = errors.New("merged keys (<<)")

// plainNode is a copy of a node in which nothing is shared, so that a change in one place is none in another: aliases
// are written out. Comments are left behind.
func plainNode(node *yaml.Node) (*yaml.Node, error) {
	if holds(node, func(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!merge" }) {
		return nil, errMerged
	}

	// The library refuses aliases that contain themselves or would grow without bounds.
	if holds(node, func(n *yaml.Node) bool { return n.Kind == yaml.AliasNode }) {
		if _, err := decodeNode(node); err != nil {
			return nil, err
		}
	}

	return copyNode(node), nil
}

func holds(node *yaml.Node, what func(*yaml.Node) bool) bool {
	return what(node) || slices.ContainsFunc(node.Content, func(n *yaml.Node) bool { return holds(n, what) })
}

func copyNode(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return copyNode(node.Alias)
	}

	out := &yaml.Node{Kind: node.Kind, Style: node.Style, Tag: node.Tag, Value: node.Value}

	// The library (v4.0.0-rc.4) loses blanks at the start of what it writes as a block.
	if strings.Contains(node.Value, "\n") && strings.TrimLeft(node.Value, " \t\n") != node.Value {
		out.Style = yaml.DoubleQuotedStyle
	}

	for _, inner := range node.Content {
		out.Content = append(out.Content, copyNode(inner))
	}

	return out
}

// encodeNode writes a node that is used afterwards: the library (v4.0.0-rc.6) takes the tags off the nodes it writes.
func encodeNode(node *yaml.Node) ([]byte, error) {
	return yaml.Marshal(cloneNode(node, map[*yaml.Node]*yaml.Node{}))
}

// cloneNode is a copy with everything that a node has; aliases lead to the copies of what they lead to.
func cloneNode(node *yaml.Node, known map[*yaml.Node]*yaml.Node) *yaml.Node {
	if node == nil {
		return nil
	}

	if copied, ok := known[node]; ok {
		return copied
	}

	copied := *node
	known[node] = &copied
	copied.Alias, copied.Content = cloneNode(node.Alias, known), nil

	for _, inner := range node.Content {
		copied.Content = append(copied.Content, cloneNode(inner, known))
	}

	return &copied
}

func sameNode(a, b *yaml.Node) bool {
	return a != nil && b != nil && a.Kind == b.Kind && a.Tag == b.Tag && a.Value == b.Value &&
		slices.EqualFunc(a.Content, b.Content, sameNode)
}

// withoutImages takes the images of Kubernetes out of the content of a main document, and the sections around them
// that have nothing else: Talos takes an empty section as one that is not there, and WithImages makes those that are
// missing.
func withoutImages(content any) any {
	root, ok := content.(map[string]any)
	if !ok {
		return content
	}

	for _, field := range imageFields {
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
