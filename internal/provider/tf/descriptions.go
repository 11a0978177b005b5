package tf

import (
	"reflect"
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
)

// Some attributes are described in one place and also appear in others: an installation for all machines and for
// each, the settings of a cluster in its handle. There one sentence is enough.

// WithDescriptions are the same attributes, nested ones included, with rewritten descriptions.
func WithDescriptions(in map[string]schema.Attribute, rewrite func(string) string) map[string]schema.Attribute {
	return edited(in, described(rewrite))
}

// described replaces the description of an attribute.
func described(rewrite func(string) string) func(a reflect.Value) {
	return func(a reflect.Value) {
		description := a.FieldByName("MarkdownDescription")
		description.SetString(rewrite(description.String()))
	}
}

// AsIn are attributes that are described elsewhere, and refer to that place.
func AsIn(where string, in map[string]schema.Attribute) map[string]schema.Attribute {
	out := AsThere(in)

	for name, a := range out {
		out[name] = copied(a, described(func(string) string { return "See `" + where + "`." }))
	}

	return out
}

// AsThere are attributes nested in one whose description says where they are described.
func AsThere(in map[string]schema.Attribute) map[string]schema.Attribute {
	return WithDescriptions(in, func(string) string { return "As there." })
}

// Briefly are attributes with the first sentences of their descriptions.
func Briefly(in map[string]schema.Attribute) map[string]schema.Attribute {
	return WithDescriptions(in, FirstSentence)
}

// endOfSentence is where another sentence starts; text in code style may contain dots, but no space after one.
var endOfSentence = regexp.MustCompile("\\.\\s+[A-Z`]")

// FirstSentence is the first sentence of a description.
func FirstSentence(description string) string {
	if end := endOfSentence.FindStringIndex(description); end != nil {
		return description[:end[0]+1]
	}

	return description
}
