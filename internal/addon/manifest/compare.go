package manifest

// Verb is what becomes of an object.
type Verb string

// What becomes of objects.
const (
	Add    Verb = "add"
	Alter  Verb = "change"
	Remove Verb = "remove"
)

// Change of an object between two manifests.
type Change struct {
	Verb Verb
	// Object is the new one, or the old one where there is no new one.
	Object Object
	// Fields that change, with Alter.
	Fields []Field
}

// Field of an object that changes. Old and New are JSON, empty for what is not there.
type Field struct{ Path, Old, New string }

// Key tells objects apart. The version of the API is no part of it.
type Key struct{ Group, Kind, Namespace, Name string }

// Key of the object.
func (o Object) Key() Key { return Key{} }

// Compare says what becomes of the objects.
func Compare(old, new []Object, redact func(string) string) []Change { return nil }

// String is for people.
func (c Change) String() string { return string(c.Verb) + " " + c.Object.String() }
