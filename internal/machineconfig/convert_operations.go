package machineconfig

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
)

// mergeOfOperations writes JSON 6902 operations as the main document that merges with the same effect. Operations that
// replace whole sections or lists, or elements by their position, have no such form.
func mergeOfOperations(field string, operations *yaml.Node) (*yaml.Node, error) {
	merge := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}

	for i, operation := range operations.Content {
		if reason := addOperation(merge, operation); reason != "" {
			return nil, &FieldError{
				Field: field,
				Found: fmt.Sprintf("operation %d of a JSON 6902 patch, %s %s, which %s", i, scalarAt(operation, "op"),
					scalarAt(operation, "path"), reason),
				Allowed: "operations that set or remove one value, or append one to a list",
				Fix:     "write the part of the configuration that changes as YAML", Err: ErrMultiDocument,
			}
		}
	}

	return merge, nil
}

// addOperation writes an operation into a merge. The reason is why it has no such form.
func addOperation(merge, operation *yaml.Node) (reason string) {
	op, value := scalarAt(operation, "op"), places.Node(operation, "value")

	steps := strings.Split(strings.TrimPrefix(scalarAt(operation, "path"), "/"), "/")
	for i, step := range steps {
		steps[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)

		if _, err := strconv.Atoi(step); err == nil || step == "-" && i < len(steps)-1 {
			return "is about an element of a list by its position"
		}
	}

	appends := steps[len(steps)-1] == "-"
	if appends {
		steps = steps[:len(steps)-1]
	}

	switch {
	case op == "remove" && !appends:
		value = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{
			{Kind: yaml.ScalarNode, Tag: "!!str", Value: patchKey}, {Kind: yaml.ScalarNode, Tag: "!!str", Value: deleteValue},
		}}
	case op != "add" && op != "replace" || op == "replace" && appends:
		return "has no form as a merge"
	case appends:
		value = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: []*yaml.Node{value}}
	case value.Kind != yaml.ScalarNode:
		return "replaces a whole section or list, with which a merge would merge"
	case value.Value == "" || value.Value == "0" || value.ShortTag() == "!!null":
		return "sets an empty value, which a merge passes over"
	}

	return setOperation(merge, steps, operation, value)
}

func setOperation(at *yaml.Node, steps []string, operation, value *yaml.Node) (reason string) {
	for i, step := range steps {
		present := places.Node(at, step)

		switch last := i == len(steps)-1; {
		case present == nil:
			next := value
			if !last {
				next = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
			}

			key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: step}
			if last {
				key.HeadComment = operation.HeadComment
			}

			at.Content, present = append(at.Content, key, next), next
		case last && present.Kind == yaml.SequenceNode && value.Kind == yaml.SequenceNode:
			present.Content = append(present.Content, value.Content...)
		case last || present.Kind != yaml.MappingNode || scalarAt(present, patchKey) != "":
			return "changes what an operation before it does"
		}

		at = present
	}

	return ""
}
