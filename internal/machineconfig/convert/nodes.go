package convert

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
)

// valueOf is the value of a key; nil where there is none, or null.
func valueOf(mapping *yaml.Node, key string) *yaml.Node {
	if i := places.KeyOf(mapping, key); i >= 0 && !isNull(mapping.Content[i+1]) {
		return mapping.Content[i+1]
	}

	return nil
}

// textOf is the text of the value of a key.
func textOf(mapping *yaml.Node, key string) string {
	if value := valueOf(mapping, key); value != nil {
		return value.Value
	}

	return ""
}

// take removes the value at a path, and the sections that are empty without it. It returns the key, to which the
// comments of these sections go.
func take(root *yaml.Node, path []string) *yaml.Node {
	parent := places.Node(root, path[:len(path)-1]...)
	i := places.KeyOf(parent, path[len(path)-1])
	key := parent.Content[i]
	parent.Content = slices.Delete(slices.Clone(parent.Content), i, i+2)

	if len(parent.Content) == 0 && len(path) > 1 {
		around := take(root, path[:len(path)-1])
		key.HeadComment = joined(around.HeadComment, around.LineComment, parent.HeadComment, parent.LineComment,
			key.HeadComment)
		key.FootComment = joined(key.FootComment, parent.FootComment, around.FootComment)
	}

	return key
}

func joined(comments ...string) string {
	return strings.Join(slices.DeleteFunc(comments, func(text string) bool { return text == "" }), "\n")
}

// set writes a value at a path of a mapping, under a key that takes the comments of another. A mapping that is there
// gets the fields of the value.
func set(root *yaml.Node, path []string, comments, value *yaml.Node) {
	for len(path) > 1 {
		if places.KeyOf(root, path[0]) < 0 {
			root.Content = append(root.Content, text(path[0]), &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"})
		}

		root, path = root.Content[places.KeyOf(root, path[0])+1], path[1:]
	}

	if i := places.KeyOf(root, path[0]); i >= 0 {
		root.Content[i+1].Content = append(root.Content[i+1].Content, value.Content...)

		return
	}

	key := *comments
	key.Kind, key.Value, key.Style, key.Tag, key.Anchor = yaml.ScalarNode, path[0], 0, "!!str", ""
	comments.HeadComment, comments.LineComment, comments.FootComment = "", "", ""
	root.Content = append(root.Content, &key, value)
}

func isDelete(node *yaml.Node) bool { return textOf(node, "$patch") == "delete" }

func isNull(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null" }

// isEmpty reports whether a section has nothing; one that is not there is not empty.
func isEmpty(section *yaml.Node) bool {
	return section != nil && len(section.Content) == 0 && (section.Kind == yaml.MappingNode || isNull(section))
}

func isTrue(node *yaml.Node) bool {
	var value bool

	return node.Decode(&value) == nil && value
}

func text(value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
}

// blank is a node without comments.
func blank() *yaml.Node { return text("") }

// scalar is another value with the comments of a node.
func scalar(value, tag string, comments *yaml.Node) *yaml.Node {
	node := &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value}
	node.HeadComment, node.LineComment, node.FootComment = comments.HeadComment, comments.LineComment, comments.FootComment

	return node
}

// mapping is a mapping of keys to texts.
func mapping(pairs ...string) *yaml.Node {
	node := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for _, pair := range pairs {
		node.Content = append(node.Content, text(pair))
	}

	return node
}

func list(elements ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: elements}
}

// textsOf are the texts of a list.
func textsOf(node *yaml.Node) (texts []string) {
	if node == nil {
		return nil
	}

	for _, element := range node.Content {
		texts = append(texts, element.Value)
	}

	return texts
}

// data is a value as a node.
func data(value any) *yaml.Node {
	node := &yaml.Node{}
	if err := node.Encode(value); err != nil {
		panic(err) // values of this package are maps, lists and scalars
	}

	return node
}
