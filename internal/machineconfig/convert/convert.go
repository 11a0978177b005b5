// Package convert turns parts of the main document of a patch into the documents that newer contracts have for them.
// The table of package places says which part becomes what. This package has the form of those that change more than
// their place. Pure.
//
// Talos merges patches one after the other, and some documents merge in another way than the parts that they replace.
// So one Converter takes all patches of a machine, in their order, and remembers what came before.
package convert

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/container"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fields"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
)

// Note is a part of a main document that did not become one of another document, or cannot.
type Note struct {
	Path string
	Why  string
}

// Result is what becomes of a main document.
type Result struct {
	// Changed is set where the main document is not what it was.
	Changed bool
	// Main is the rest of it, nil where nothing is left.
	Main *yaml.Node
	// Documents are those that it becomes, each of them once.
	Documents []*yaml.Node
	// Kept stay in the main document. Removed have no effect.
	Kept, Removed []Note
	// Mistakes are the parts that cannot be converted with the same effect.
	Mistakes []Note
}

// Converter converts the main documents of the patches of one machine.
type Converter struct {
	controlPlane bool
	minor        uint64
	// find is the expression that finds the disk of an installation.
	find func(*v1alpha1.InstallConfig) (string, error)

	state
	// What follows is about the present document.
	main      *yaml.Node
	documents []*document
	result    Result
}

// document is a document in the making, with the line of the patch that it begins with.
type document struct {
	kind, name string
	node       *yaml.Node
	line       int
}

// New is for the patches of a machine of a role, whose contract is v1.<minor>. All are the main documents of the
// patches: some parts depend on what other patches have.
func New(
	controlPlane bool, minor uint64, all []*yaml.Node, find func(*v1alpha1.InstallConfig) (string, error),
) *Converter {
	return &Converter{controlPlane: controlPlane, minor: minor, find: find, state: newState(all)}
}

// Convert converts the next main document, which it changes.
func (c *Converter) Convert(main *yaml.Node) Result {
	c.main, c.documents, c.result = main, nil, Result{}

	for _, f := range conversions() {
		if section := c.deleted(f.Main.Path); section != nil {
			c.mistake(section, "$patch: delete of a section with parts in several documents cannot be converted: "+
				"delete each part in its document")
			c.take(section)
		}

		if c.value(f.Main.Path) != nil {
			c.convert(f)
		}
	}

	c.prune()

	if len(main.Content) > 0 {
		c.result.Main = main
	}

	slices.SortStableFunc(c.documents, func(a, b *document) int { return a.line - b.line })

	for _, d := range c.documents {
		c.result.Documents = append(c.result.Documents, d.node)
	}

	return c.result
}

// conversions are the rows of the table that say what becomes of a part.
var conversions = sync.OnceValue(func() []places.Fact {
	return slices.DeleteFunc(slices.Clone(places.All()), func(f places.Fact) bool { return f.Conversion == "" })
})

// deleted is the path of a section around a part that the patch deletes as a whole; nil where there is none.
func (c *Converter) deleted(path []string) []string {
	for i := 1; i < len(path); i++ {
		if section := c.value(path[:i]); section != nil && isDelete(section) {
			return path[:i]
		}
	}

	return nil
}

// value is what the document has at a path; nil where there is nothing.
func (c *Converter) value(path []string) *yaml.Node { return places.Node(c.main, path...) }

// convert handles one part that the document has.
func (c *Converter) convert(f places.Fact) {
	value := c.value(f.Main.Path)

	switch {
	case isNull(value):
		c.take(f.Main.Path)
	case f.Conversion == places.Stays:
		c.keep(f.Main.Path, f.Why)
	case !c.controlPlane && OfControlPlanes(f):
		c.remove(f.Main.Path, "it has no effect on workers")
	case f.Document.Kind != "" && Since(f) > c.minor:
		c.keep(f.Main.Path, fmt.Sprintf("documents have it from contract v1.%d", Since(f)))
	case f.Conversion == places.Removed:
		c.remove(f.Main.Path, f.Why)
	case f.Conversion == places.Lost:
		c.mistake(f.Main.Path, f.Why)
	case f.Conversion == places.Rewritten:
		rewrites[f.Main.String()](c, f.Main.Path)
	default:
		c.move(f)
	}
}

// Since is the minor version from which contracts have a document for a part.
func Since(f places.Fact) uint64 { return fields.SinceField(f.Document.Kind, f.Document.Path) }

// move puts a value into its document.
func (c *Converter) move(f places.Fact) {
	path, value := f.Main.Path, c.value(f.Main.Path)

	switch {
	case isDelete(value):
		c.mistake(path, "$patch: delete of the whole field may have another effect on "+f.Document.String()+
			": delete it in the document")

		return
	case f.Whole && c.again(f.Main.String()):
		c.mistake(path, "it merges across patches, and "+f.Document.String()+" is replaced as a whole: write it in one patch")

		return
	}

	if f.Appended {
		value = c.accumulated(f.Main.String(), value)
	}

	if f.Conversion == places.Inverts {
		value = scalar(fmt.Sprint(!isTrue(value)), "!!bool", value)
	}

	c.put(f.Document.Kind, "", f.Document.Path, c.take(path), value)
}

// put adds a value to a document; a value at its root is a mapping, whose fields are added.
func (c *Converter) put(kind, name string, path []string, key, value *yaml.Node) {
	if len(path) == 0 {
		at := c.documentOf(kind, name, key)
		for i := 0; i+1 < len(value.Content); i += 2 {
			set(at, []string{value.Content[i].Value}, value.Content[i], value.Content[i+1])
		}

		return
	}

	set(c.document(kind, name, key.Line), path, key, value)
}

// documentOf is a document that takes the place of an element or section, with its comment.
func (c *Converter) documentOf(kind, name string, of *yaml.Node) *yaml.Node {
	node := c.document(kind, name, of.Line)
	node.Content[0].HeadComment = joined(node.Content[0].HeadComment, of.HeadComment)
	of.HeadComment = ""

	return node
}

// document is a document of the result, which is made where there is none.
func (c *Converter) document(kind, name string, line int) *yaml.Node {
	for _, d := range c.documents {
		if d.kind == kind && d.name == name {
			return d.node
		}
	}

	node := mapping("apiVersion", "v1alpha1", "kind", kind)
	if name != "" {
		node.Content = append(node.Content, mapping("name", name).Content...)
	}

	c.documents = append(c.documents, &document{kind, name, node, line})

	return node
}

// drop adds a document that deletes one.
func (c *Converter) drop(kind, name string, key *yaml.Node) {
	node := c.documentOf(kind, name, key)
	node.Content = append(node.Content, mapping("$patch", "delete").Content...)
}

// take removes a part from the main document, with the sections that are empty without it. Their comments go to the key
// that is returned.
func (c *Converter) take(path []string) *yaml.Node {
	c.result.Changed = true

	return take(c.main, path)
}

// prune removes the sections that were converted and are empty: documents have taken their place. A main document
// always has one of its two sections.
func (c *Converter) prune() {
	for _, f := range places.All() {
		for i := len(f.Main.Path); i > 1 && f.Conversion != places.Stays; i-- {
			if isEmpty(c.value(f.Main.Path[:i])) {
				c.take(f.Main.Path[:i])
			}
		}
	}

	if !c.result.Changed {
		return
	}

	if !hasOtherThan(c.main, "version") {
		c.main.Content = nil
	}

	for _, section := range []string{"machine", "cluster"} {
		if isEmpty(c.value([]string{section})) && hasOtherThan(c.main, section, "version", "debug", "persist") {
			c.take([]string{section})
		}
	}

	if isEmpty(c.value([]string{"machine"})) && !hasOtherThan(c.main, "machine", "version") {
		c.main.Content = nil
	}
}

func (c *Converter) keep(path []string, why string) {
	c.result.Kept = append(c.result.Kept, Note{strings.Join(path, "."), why})
}

func (c *Converter) remove(path []string, why string) {
	c.take(path)
	c.result.Removed = append(c.result.Removed, Note{strings.Join(path, "."), why})
}

func (c *Converter) mistake(path []string, why string) {
	c.result.Mistakes = append(c.result.Mistakes, Note{strings.Join(path, "."), why})
}

// OfControlPlanes reports whether a part has an effect on control planes alone: its document, or that of a section
// around it, is of those that Talos refuses or ignores on workers.
func OfControlPlanes(f places.Fact) bool {
	return slices.ContainsFunc(places.All(), func(around places.Fact) bool {
		return controlPlaneKinds()[around.Document.Kind] && len(around.Main.Path) > 0 &&
			len(around.Main.Path) <= len(f.Main.Path) && slices.Equal(around.Main.Path, f.Main.Path[:len(around.Main.Path)])
	})
}

// controlPlaneKinds are the kinds of documents that Talos refuses on workers (machinery 1.14, container/validate.go),
// and the one that it accepts there and applies on control planes alone (Talos 1.14, controllers/k8s/control_plane.go).
var controlPlaneKinds = sync.OnceValue(func() map[string]bool {
	kinds := map[string]bool{}

	for _, kind := range fields.Kinds() {
		loaded, err := configloader.NewFromBytes([]byte("apiVersion: v1alpha1\nkind: "+kind+"\n"),
			configloader.WithNoValidation())
		if err != nil || len(loaded.Documents()) == 0 {
			continue // the main document
		}

		_, refused := loaded.Documents()[0].(container.ControlplaneOnlyConfig)
		kinds[kind] = refused || kind == k8s.KubeInlineManifestConfig
	}

	return kinds
})
