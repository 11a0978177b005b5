package finding

import (
	"fmt"
	"slices"
	"strings"
)

// Path names an attribute of a configuration, from the outermost one inward. The zero Path is the whole resource.
// Paths are immutable: the methods return longer paths.
type Path struct{ steps []Step }

// Step is one element of a Path: a Name, a Key or an Index.
type Step interface{ step() }

// Name is the step to an attribute of an object.
type Name string

// Key is the step to an element of a map.
type Key string

// Index is the step to an element of a list.
type Index int

func (Name) step()  {}
func (Key) step()   {}
func (Index) step() {}

// Root is the path of an attribute of the resource itself.
func Root(name string) Path { return Path{}.AtName(name) }

// AtName is the path of an attribute of the object at a path.
func (p Path) AtName(name string) Path { return p.at(Name(name)) }

// AtMapKey is the path of an element of the map at a path.
func (p Path) AtMapKey(key string) Path { return p.at(Key(key)) }

// AtListIndex is the path of an element of the list at a path.
func (p Path) AtListIndex(index int) Path { return p.at(Index(index)) }

// Steps are the elements of a path, the outermost first.
func (p Path) Steps() []Step { return slices.Clone(p.steps) }

// Equal reports whether two paths name the same attribute.
func (p Path) Equal(other Path) bool { return slices.Equal(p.steps, other.steps) }

func (p Path) at(step Step) Path {
	return Path{steps: append(slices.Clone(p.steps), step)}
}

// String writes a path as Terraform does: machines["cp-1"].config_patches[0].
func (p Path) String() string {
	var b strings.Builder

	for i, step := range p.steps {
		switch step := step.(type) {
		case Name:
			if i > 0 {
				b.WriteByte('.')
			}

			b.WriteString(string(step))
		case Key:
			fmt.Fprintf(&b, "[%q]", string(step))
		case Index:
			fmt.Fprintf(&b, "[%d]", int(step))
		}
	}

	return b.String()
}

// Common is the innermost attribute that contains all of these; the attribute itself if there is one.
func Common(paths []Path) Path {
	if len(paths) == 0 {
		return Path{}
	}

	common := paths[0].steps
	for _, p := range paths[1:] {
		same := 0
		for same < min(len(common), len(p.steps)) && common[same] == p.steps[same] {
			same++
		}

		common = common[:same]
	}

	return Path{steps: slices.Clone(common)}
}

// withoutKeys is the attribute that several elements of a map or list have at this path.
func (p Path) withoutKeys() string {
	var same Path

	for _, step := range p.steps {
		if name, ok := step.(Name); ok {
			same = same.AtName(string(name))
		}
	}

	return same.String()
}

// Last is the innermost attribute of a path; "value" where it has none.
func (p Path) Last() string {
	for _, step := range slices.Backward(p.steps) {
		if name, ok := step.(Name); ok {
			return string(name)
		}
	}

	return "value"
}
