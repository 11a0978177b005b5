// Package documents reads machine configurations as data, to find a value in them. Pure.
package documents

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/expansion"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/textkeys"
)

// Parse reads a configuration, or a part of one. It returns its documents by the names that plans use: "v1alpha1"
// for the main one, "kind" or "kind/name" for others. It contains only strings, numbers, booleans, lists, maps
// with string keys, and nil; what looks like a date stays a string. Errors are *machineconfig.FieldError of
// "config" and quote no values.
func Parse(config string) (parsed map[string]any, err error) {
	// The YAML library panics on some malformed input.
	defer func() {
		if recover() != nil {
			parsed, err = nil, wrong("invalid YAML", "check indentation and quoting")
		}
	}()

	if expansion.CheckYAML([]byte(config)) != nil {
		return nil, wrong("YAML with aliases that expand excessively", "replace the aliases with their values")
	}

	decoder := yaml.NewDecoder(strings.NewReader(config))
	parsed = map[string]any{}

	for n := 1; ; n++ {
		var document yaml.Node

		switch err := decoder.Decode(&document); {
		case errors.Is(err, io.EOF):
			return parsed, nil
		case err != nil:
			return nil, wrong(fmt.Sprintf("invalid YAML in document %d", n), "check indentation and quoting")
		}

		if err := add(parsed, document.Content); err != nil {
			return nil, err
		}
	}
}

// add adds the content of a document, which may be none.
func add(parsed map[string]any, content []*yaml.Node) error {
	if len(content) == 0 || content[0].ShortTag() == "!!null" {
		return nil
	}

	if content[0].Kind != yaml.MappingNode {
		return wrong("a document that is not a mapping", "set the configuration itself")
	}

	momentsAsTexts(content[0])

	var decoded any
	if content[0].Decode(&decoded) != nil {
		return wrong("a document that is not plain YAML data", "write plain YAML")
	}

	data, err := textkeys.Of(decoded)
	if err != nil { // textkeys.ErrTwice is the only one
		return wrong("two keys that are equal as strings", "keep one of them")
	}

	name := nameOf(data)
	if _, twice := parsed[name]; twice {
		return wrong("the document "+name+" twice", "Talos accepts each document once")
	}

	parsed[name] = data

	return nil
}

func wrong(found, fix string) error {
	return &machineconfig.FieldError{
		Field: "config", Found: found, Allowed: "the documents of a machine configuration", Fix: fix,
	}
}

// nameOf is the name of a document in plans.
func nameOf(data any) string {
	document, _ := data.(map[string]any)
	kind, _ := document["kind"].(string)
	name, _ := document["name"].(string)

	switch {
	case kind == "":
		return "v1alpha1"
	case name == "":
		return kind
	default:
		return kind + "/" + name
	}
}

// momentsAsTexts has what looks like a date decoded as it is written.
func momentsAsTexts(node *yaml.Node) {
	if node.Kind == yaml.ScalarNode && node.ShortTag() == "!!timestamp" {
		node.Tag = "!!str"
	}

	for _, child := range node.Content {
		momentsAsTexts(child)
	}
}
