// Package places is the table of where configurations say what: in the main document, and in the documents that
// newer versions of Talos have. Generating, reading back, keys, images, digests, differences and import derive from
// it, so that each place is written once. Pure.
package places

import (
	"slices"
	"strings"
	"sync"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fieldpath"
)

// Spot is where a configuration has a value: a document, by its kind, and the keys on the way to the value in it. The
// main document has no kind, elements of lists have no step of their own, and without keys it is the whole document.
type Spot struct {
	Kind string
	Path []string
}

// String is the spot for people.
func (s Spot) String() string { return strings.TrimSpace(s.Kind + " " + strings.Join(s.Path, ".")) }

// Under is the spot of a key of the value.
func (s Spot) Under(key string) Spot { return Spot{s.Kind, append(slices.Clone(s.Path), key)} }

// Covers reports whether a path in the document leads to the value or into it.
func (s Spot) Covers(path fieldpath.Path) bool {
	rest := s.Path

	for _, step := range path {
		key, named := step.(string)

		switch {
		case len(rest) == 0:
			return true
		case !named:
		case key != rest[0]:
			return false
		default:
			rest = rest[1:]
		}
	}

	return len(rest) == 0
}

// Fact is something that configurations say.
type Fact struct {
	// Main is where the main document says it; it has no path where nothing of the main document does.
	Main Spot
	// Document is the place in a separate document; it has no kind where there is none.
	Document Spot
	// Beside is the kind of the document beside which the part of the main one is refused, or has no effect
	// (machinery 1.14, V1Alpha1ConflictValidate of the documents and v1alpha1_k8s_bridge.go).
	Beside string
	// Instead is where users say it when that is not, or not only, Document.
	Instead string
	// Image is the component of Kubernetes whose image it is, and Off the switch in the main document that takes the
	// component from a machine. Documents have one that is called enabled.
	Image kubenames.Component
	Off   Spot
	// Workers have the component, too.
	Workers bool
	// Rotated is a key that can be rotated.
	Rotated bool
	// Secret is a value that carries secrets without Talos treating it as one (machinery 1.13 and 1.14, RedactSecrets
	// leaves it in clear text). Plain is one that people put in reviews.
	Secret, Plain bool
	// Whole is a part that merges across patches, and whose document later patches replace (machinery 1.14, the tag
	// `merge:"replace"`). Appended is one that patches append to, with a document that later patches replace.
	Whole, Appended bool
	// Conversion is what becomes of the value where a patch of the main document is written as documents; it is empty for
	// sections whose parts have rows of their own. Why is the reason where the value does not move, or what its form is.
	Conversion Conversion
	Why        string
}

// Conversion is what becomes of a value of the main document in a contract with separate documents.
type Conversion string

// The kinds of conversions.
const (
	// Moves to its document unchanged.
	Moves Conversion = "moves"
	// Inverts moves the opposite of a boolean.
	Inverts Conversion = "inverts"
	// Rewritten needs another form, which package convert has.
	Rewritten Conversion = "rewritten"
	// Stays in the main document, where it is valid beside all documents.
	Stays Conversion = "stays"
	// Removed has no effect any more.
	Removed Conversion = "removed"
	// Lost has no successor, and cannot stay.
	Lost Conversion = "lost"
)

// Of is where documents of a kind say it; ok is false where they do not.
func (f Fact) Of(kind string) (at Spot, ok bool) {
	if kind == "" {
		return f.Main, len(f.Main.Path) > 0
	}

	return f.Document, f.Document.Kind == kind
}

// In is the place of the fact in a configuration: the separate document where it exists, or else the main one.
func (f Fact) In(has func(kind string) bool) Spot {
	if f.Document.Kind != "" && has(f.Document.Kind) {
		return f.Document
	}

	return f.Main
}

// Covers reports whether a path in a document of a kind leads to the value or into it.
func (f Fact) Covers(kind string, path fieldpath.Path) bool {
	at, ok := f.Of(kind)

	return ok && at.Covers(path)
}

// All are all facts. A part of the main document comes before its parent.
var All = sync.OnceValue(func() []Fact {
	sorted := slices.Clone(facts)
	slices.SortStableFunc(sorted, func(a, b Fact) int { return len(b.Main.Path) - len(a.Main.Path) })

	return sorted
})

// Images are the facts that are images of components of Kubernetes, and Rotated the keys that can be rotated.
var (
	Images  = sync.OnceValue(func() []Fact { return with(func(f Fact) bool { return f.Image != "" }) })
	Rotated = sync.OnceValue(func() []Fact { return with(func(f Fact) bool { return f.Rotated }) })
	secrets = sync.OnceValue(func() []Fact { return with(func(f Fact) bool { return f.Secret }) })
	plains  = sync.OnceValue(func() []Fact { return with(func(f Fact) bool { return f.Plain }) })
)

func with(is func(Fact) bool) []Fact {
	return slices.DeleteFunc(slices.Clone(All()), func(f Fact) bool { return !is(f) })
}

// Secret reports whether the value at a path in a document of a kind carries secrets.
func Secret(kind string, path fieldpath.Path) bool { return covered(secrets(), kind, path) }

// Plain reports whether the value at a path in a document of a kind is one that people put in reviews.
func Plain(kind string, path fieldpath.Path) bool { return covered(plains(), kind, path) }

func covered(by []Fact, kind string, path fieldpath.Path) bool {
	return slices.ContainsFunc(by, func(f Fact) bool { return f.Covers(kind, path) })
}
