package migration

import (
	"context"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider/machines"
)

// writer writes a resource. Its patches are in files of their own.
type writer struct {
	ctx   context.Context //nolint:containedctx // for the types of the framework, which do no I/O
	files []file
}

func (w *writer) resource(name string, d machines.Described) (string, error) {
	body, err := w.object(nil, d.Schema.Attributes, d.State)

	return fmt.Sprintf("\nresource \"talosop_cluster\" %s %s\n", quoted(name), body), err
}

// object writes what can be configured of an object: all but null and what the provider computes.
func (w *writer) object(at []string, attributes map[string]schema.Attribute, value tftypes.Value) (string, error) {
	var values map[string]tftypes.Value
	if err := value.As(&values); err != nil {
		return "", err
	}

	lines, blocks := "", ""

	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		attribute, inner := attributes[name], values[name]
		if !attribute.IsOptional() && !attribute.IsRequired() || inner.IsNull() || !inner.IsKnown() {
			continue
		}

		text, err := w.attribute(append(at, name), attribute, inner)
		if err != nil {
			return "", err
		}

		if line := fmt.Sprintf("%s = %s\n", name, text); strings.HasPrefix(text, "{") {
			blocks += separated(lines+blocks) + line
		} else {
			lines += line
		}
	}

	return "{\n" + lines + blocks + "}", nil
}

// separated is an empty line behind other lines.
func separated(before string) string {
	if before == "" {
		return ""
	}

	return "\n"
}

func (w *writer) attribute(at []string, attribute schema.Attribute, value tftypes.Value) (string, error) {
	if name := at[len(at)-1]; name == "config_patches" || name == "cluster_config_patches" {
		return w.patches(at, value)
	}

	nested, ok := attribute.(schema.NestedAttribute)
	if !ok {
		return plain(value)
	}

	inner := map[string]schema.Attribute{}
	for name, one := range nested.GetNestedObject().GetAttributes() {
		inner[name] = one
	}

	if !value.Type().Is(tftypes.Map{}) {
		if value.Type().Is(tftypes.Object{}) {
			return w.object(at, inner, value)
		}

		return plain(value)
	}

	var elements map[string]tftypes.Value
	if err := value.As(&elements); err != nil {
		return "", err
	}

	text := ""

	for _, key := range slices.Sorted(maps.Keys(elements)) {
		one, err := w.object(append(at, key), inner, elements[key])
		if err != nil {
			return "", err
		}

		text += fmt.Sprintf("%s = %s\n", quoted(key), one)
	}

	return "{\n" + text + "}", nil
}

// patches are references to files with the patches of a level.
func (w *writer) patches(at []string, value tftypes.Value) (string, error) {
	var elements []tftypes.Value
	if err := value.As(&elements); err != nil {
		return "", err
	}

	level := "cluster"

	switch steps := at[:len(at)-1]; {
	case len(steps) == 1:
		level = "control-plane"
	case len(steps) > 1 && steps[len(steps)-2] == "machines":
		level = "machine-" + steps[len(steps)-1]
	case len(steps) > 1:
		level = "pool-" + steps[len(steps)-1]
	}

	var names []string

	for i, element := range elements {
		var text string
		if err := element.As(&text); err != nil {
			return "", err
		}

		name := "patches/" + level + ".yaml"
		if i > 0 {
			name = fmt.Sprintf("patches/%s-%d.yaml", level, i+1)
		}

		w.files = append(w.files, file{name: name, text: text})
		names = append(names, fmt.Sprintf("file(\"${path.module}/%s\")", name))
	}

	return "[" + strings.Join(names, ", ") + "]", nil
}

// plain writes a value as it is.
func plain(value tftypes.Value) (string, error) {
	switch {
	case value.IsNull():
		return "null", nil
	case value.Type().Is(tftypes.String):
		var text string
		err := value.As(&text)

		return quoted(text), err
	case value.Type().Is(tftypes.Bool):
		var truth bool
		err := value.As(&truth)

		return fmt.Sprint(truth), err
	case value.Type().Is(tftypes.Number):
		var number big.Float
		err := value.As(&number)

		return number.Text('f', -1), err
	case value.Type().Is(tftypes.List{}), value.Type().Is(tftypes.Set{}):
		return plainList(value)
	default:
		return plainMap(value)
	}
}

func plainList(value tftypes.Value) (string, error) {
	var elements []tftypes.Value
	if err := value.As(&elements); err != nil {
		return "", err
	}

	var texts []string

	for _, element := range elements {
		text, err := plain(element)
		if err != nil {
			return "", err
		}

		texts = append(texts, text)
	}

	return "[" + strings.Join(texts, ", ") + "]", nil
}

func plainMap(value tftypes.Value) (string, error) {
	var elements map[string]tftypes.Value
	if err := value.As(&elements); err != nil {
		return "", err
	}

	text := ""

	for _, key := range slices.Sorted(maps.Keys(elements)) {
		if elements[key].IsNull() {
			continue
		}

		one, err := plain(elements[key])
		if err != nil {
			return "", err
		}

		text += fmt.Sprintf("%s = %s\n", quoted(key), one)
	}

	return "{\n" + text + "}", nil
}
