// Package values merges the values of a chart, compares them, and keeps secrets out of texts.
// It does no I/O.
package values

// Setting sets one value, as Helm's --set family does.
type Setting struct {
	// Name is a path such as image.tag or list[0].name, with Helm's escapes.
	Name string
	// Value as text; JSON for [JSON].
	Value string
	Type  Type
	// Sensitive keeps the value out of every text.
	Sensitive bool
}

// Type of a setting.
type Type string

// Types of settings.
const (
	// Auto takes numbers, true, false and null for what they read as (--set).
	Auto Type = "auto"
	// String takes the text (--set-string).
	String Type = "string"
	// Literal takes the text without any escapes (--set-literal).
	Literal Type = "literal"
	// JSON takes any JSON (--set-json).
	JSON Type = "json"
)

// Given is all that a user gives, in the order in which it counts: later wins.
type Given struct {
	// Documents are YAML mappings.
	Documents []string
	Settings  []Setting
	// Secret are YAML mappings whose leaves are all kept out of every text; they count last.
	Secret []string
}
