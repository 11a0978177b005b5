package tf

import (
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
)

// What is described in one place is shown in others, too: an installation for all machines and for each, the settings
// of a cluster in its handle. There one sentence is enough.

// Retold are the same attributes, nested ones included, with the descriptions that tell makes of theirs.
func Retold(in map[string]schema.Attribute, tell func(description string) string) map[string]schema.Attribute {
	return retold(in, tell, tell)
}

// retold are the same attributes with the descriptions that tell makes of theirs, and nested of those below them.
func retold(in map[string]schema.Attribute, tell, nested func(description string) string) map[string]schema.Attribute {
	out := make(map[string]schema.Attribute, len(in))

	for name, attribute := range in {
		switch a := attribute.(type) {
		case schema.StringAttribute:
			a.MarkdownDescription = tell(a.MarkdownDescription)
			out[name] = a
		case schema.BoolAttribute:
			a.MarkdownDescription = tell(a.MarkdownDescription)
			out[name] = a
		case schema.Int64Attribute:
			a.MarkdownDescription = tell(a.MarkdownDescription)
			out[name] = a
		case schema.ListAttribute:
			a.MarkdownDescription = tell(a.MarkdownDescription)
			out[name] = a
		case schema.MapAttribute:
			a.MarkdownDescription = tell(a.MarkdownDescription)
			out[name] = a
		case schema.SingleNestedAttribute:
			a.MarkdownDescription = tell(a.MarkdownDescription)
			a.Attributes = Retold(a.Attributes, nested)
			out[name] = a
		case schema.MapNestedAttribute:
			a.MarkdownDescription = tell(a.MarkdownDescription)
			a.NestedObject.Attributes = Retold(a.NestedObject.Attributes, nested)
			out[name] = a
		case schema.ListNestedAttribute:
			a.MarkdownDescription = tell(a.MarkdownDescription)
			a.NestedObject.Attributes = Retold(a.NestedObject.Attributes, nested)
			out[name] = a
		default:
			panic(Unconverted(name, a))
		}
	}

	return out
}

// AsIn are attributes that are described elsewhere, and refer to there.
func AsIn(where string, in map[string]schema.Attribute) map[string]schema.Attribute {
	return retold(in, func(string) string { return "See `" + where + "`." }, asThere)
}

// AsThere are attributes of one whose own description says where they are described.
func AsThere(in map[string]schema.Attribute) map[string]schema.Attribute { return Retold(in, asThere) }

func asThere(string) string { return "As there." }

// Briefly are attributes with the first sentences of their descriptions.
func Briefly(in map[string]schema.Attribute) map[string]schema.Attribute {
	return Retold(in, FirstSentence)
}

// endOfSentence is where another sentence begins; texts in code style may have dots in them, but no space after one.
var endOfSentence = regexp.MustCompile("\\.\\s+[A-Z`]")

// FirstSentence is the first sentence of a description.
func FirstSentence(description string) string {
	if end := endOfSentence.FindStringIndex(description); end != nil {
		return description[:end[0]+1]
	}

	return description
}
