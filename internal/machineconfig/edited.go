package machineconfig

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fieldpath"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
)

// editedKinds are the documents that this package changes, beside the main one: those with keys and images. A
// configuration has one of each at most.
var editedKinds = sync.OnceValue(func() map[string]bool {
	kinds := map[string]bool{places.ClusterName.Document.Kind: true, places.ClusterSecret.Document.Kind: true}
	for _, f := range slices.Concat(places.Images(), places.Rotated()) {
		kinds[f.Document.Kind] = true
	}

	return kinds
})

// edited is a configuration as YAML: the main document and those of editedKinds without aliases and comments, all
// others as they are written.
type edited struct {
	chunks []*reading
	// roots are the documents by kind, and places where they are among the chunks.
	roots  map[string]*yaml.Node
	places map[string]int
	// changed are the kinds of the documents that are encoded again.
	changed map[string]bool
}

// Document is one document of a configuration as data, for those who compare configurations value by value.
type Document struct {
	// APIVersion, Kind and Name are its identity; the main one has no kind.
	APIVersion, Kind, Name string
	// Content is the rest of it, without the keys that are rotated.
	Content map[string]any
	// Hidden is whether the value at a path is secret, or often is.
	Hidden func(fieldpath.Path) bool
}

func edit(cfg []byte) (edited, error) {
	chunks, err := readAll(cfg)
	if err != nil {
		return edited{}, err
	}

	e := edited{chunks: chunks, roots: map[string]*yaml.Node{}, places: map[string]int{}, changed: map[string]bool{}}

	for i, c := range chunks {
		if c.node == nil || c.node.Kind != yaml.MappingNode {
			continue
		}

		id := identify(c.node)
		if _, twice := e.places[id.kind]; twice || id.kind != "" && !editedKinds()[id.kind] {
			continue
		}

		root, err := plainNode(c.node)
		if err != nil {
			return edited{}, fmt.Errorf("document %s: %w", id, err)
		}

		e.roots[id.kind], e.places[id.kind] = root, i
	}

	return e, nil
}

func (e edited) has(kind string) bool { return e.roots[kind] != nil }

// node finds the value at a spot, nil when there is none.
func (e edited) node(at places.Spot) *yaml.Node { return places.Node(e.roots[at.Kind], at.Path...) }

func (e edited) scalar(at places.Spot) string { return scalarIn(e.roots[at.Kind], at.Path) }

// putScalar sets the value at a spot, with the mappings on the way to it that are missing or null.
func (e edited) putScalar(at places.Spot, value string) error {
	root := e.roots[at.Kind]
	if root == nil {
		return fmt.Errorf("%s: %w", at, errNotSection)
	}

	e.changed[at.Kind] = true

	return putScalar(root, at.Path, value)
}

// putList sets a list in an existing section; an empty one removes its key.
func (e edited) putList(at places.Spot, elements []*yaml.Node) error {
	last := len(at.Path) - 1

	section, key := places.Node(e.roots[at.Kind], at.Path[:last]...), at.Path[last]
	if section == nil || section.Kind != yaml.MappingNode {
		return fmt.Errorf("%s: %w", at, errNotSection)
	}

	e.changed[at.Kind] = true

	places.Remove(section, key)

	if len(elements) > 0 {
		section.Content = append(section.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key},
			&yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: elements})
	}

	return nil
}

// encode encodes the changed documents, and keeps the others as they are.
func (e edited) encode() ([]byte, error) {
	replaced := map[int][]byte{}

	for kind := range e.changed {
		encoded, err := encodeAgain(e.roots[kind])
		if err != nil {
			return nil, fmt.Errorf("encode document %s: %w", identity{kind: kind}, err)
		}

		replaced[e.places[kind]] = encoded
	}

	var out strings.Builder

	for i, c := range e.chunks {
		encoded, changed := replaced[i]

		switch {
		case !changed:
			out.WriteString(c.text)

			continue
		case isSeparator(strings.SplitN(c.text, "\n", 2)[0]):
			out.WriteString("---\n")
		}

		out.Write(encoded)
	}

	return []byte(out.String()), nil
}

// encodeAgain writes a document. A machine's whole configuration goes through here, and a value that comes out as
// another one would be applied.
func encodeAgain(root *yaml.Node) ([]byte, error) {
	encoded, err := encodeNode(root)
	if err != nil {
		return nil, errNotData
	}

	if again, err := parseDocument(string(encoded)); err != nil || !sameNode(root, again) {
		return nil, errNotSame
	}

	return encoded, nil
}

func scalarIn(root *yaml.Node, path []string) string {
	if node := places.Node(root, path...); node != nil && node.Kind == yaml.ScalarNode && node.Tag != "!!null" {
		return node.Value
	}

	return ""
}

var (
	errNotSection = errors.New("not a section")
	errNotSame    = errors.New("the YAML library cannot read its own output")
)

// putScalar sets the value at a path, with the mappings on the way to it that are missing or null.
func putScalar(node *yaml.Node, path []string, value string) error {
	for i, key := range path {
		next := places.Node(node, key)
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

// plainNode is a copy of a node without shared parts, so that a change in one place changes no other: aliases are
// written out. It drops comments.
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

	for _, inner := range node.Content {
		out.Content = append(out.Content, copyNode(inner))
	}

	return out
}

// encodeNode encodes a node that is used afterwards: the library (v4.0.0) removes the tags of the nodes that
// it writes.
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

// Documents reads a configuration as data: its documents by the names that plans call them.
func Documents(cfg []byte) (map[string]Document, error) {
	documents, err := loadWhole(cfg)
	if err != nil {
		return nil, err
	}

	all := map[string]Document{}

	for _, d := range documents {
		hidden, err := hiddenPaths(d)
		if err != nil {
			return nil, err
		}

		content, _ := withoutKeys(d.id, withInstallReboot(d.id, d.content)).(map[string]any)
		maps.DeleteFunc(content, func(key string, _ any) bool { return d.identifies(fieldpath.Path{key}) })

		all[d.id.String()] = Document{APIVersion: d.id.apiVersion, Kind: d.id.kind, Name: d.id.name, Content: content,
			Hidden: hidden}
	}

	return all, nil
}
