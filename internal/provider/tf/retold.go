package tf

import (
	"reflect"
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
)

// Some attributes are described in one place and also appear in others: an installation for all machines and for
// each, the settings of a cluster in its handle. There one sentence is enough.

// Retold are the same attributes, nested ones included, with the descriptions that tell makes from theirs.
func Retold(in map[string]schema.Attribute, tell func(description string) string) map[string]schema.Attribute {
	return edited(in, described(tell))
}

// described replaces the description of an attribute.
func described(tell func(description string) string) func(a reflect.Value) {
	return func(a reflect.Value) {
		description := a.FieldByName("MarkdownDescription")
		description.SetString(tell(description.String()))
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
	return Retold(in, func(string) string { return "As there." })
}

// Briefly are attributes with the first sentences of their descriptions.
func Briefly(in map[string]schema.Attribute) map[string]schema.Attribute {
	return Retold(in, FirstSentence)
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
