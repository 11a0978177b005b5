package diff

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"
	yamlreader "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/talosop/terraform-provider-talosop/internal/expansion"
)

// Parse reads the objects of a manifest that Helm rendered, in their order. Documents without content are
// passed over; lists become their items. An object without a namespace gets the given one, that of the
// release. Errors name the template and the line below its Source comment.
func Parse(manifest, namespace string) ([]Object, error) {
	// the reader that Helm's client reads manifests with
	reader := yamlreader.NewYAMLReader(bufio.NewReader(strings.NewReader(manifest)))

	var objects []Object

	for count := 1; ; count++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}

		if err != nil {
			return nil, fmt.Errorf("read document %d of the manifest: %w", count, err)
		}

		source, text := sourceOf(document)
		if source == "" {
			source = fmt.Sprintf("document %d of the manifest", count)
		}

		content, err := decode(text)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", source, err)
		}

		if objects, err = appendObjects(objects, content, namespace); err != nil {
			return nil, fmt.Errorf("read %s: %w", source, err)
		}
	}
}

// sourceOf finds the template of a document, and what follows the comment that names it.
func sourceOf(document []byte) (string, []byte) {
	rest := document

	for len(rest) > 0 {
		line, after, _ := bytes.Cut(rest, []byte("\n"))

		if source, found := bytes.CutPrefix(line, []byte("# Source: ")); found {
			return string(bytes.TrimSpace(source)), after
		}

		if text := bytes.TrimSpace(line); len(text) > 0 && text[0] != '#' && !bytes.HasPrefix(text, []byte("---")) {
			break
		}

		rest = after
	}

	return "", document
}

// decode reads a document with integers as int64, as everything does that works with objects of any kind.
func decode(document []byte) (map[string]any, error) {
	if err := expansion.CheckYAML(document); err != nil {
		return nil, err
	}

	encoded, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, err
	}

	var content any
	if err := json.Unmarshal(encoded, &content); err != nil {
		return nil, err
	}

	switch content := content.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return content, nil
	default:
		return nil, errors.New("expected an object, found a list or a scalar")
	}
}

// appendObjects appends the object of a document, or those of a list.
func appendObjects(objects []Object, content map[string]any, namespace string) ([]Object, error) {
	if len(content) == 0 {
		return objects, nil
	}

	found := object(content, namespace)
	if found.Kind == "" || found.APIVersion == "" {
		return nil, errors.New("an object without kind or apiVersion")
	}

	items, isList, err := Items(content)
	if !isList || err != nil {
		return append(objects, found), err
	}

	for i, item := range items {
		if objects, err = appendObjects(objects, item, namespace); err != nil {
			return nil, fmt.Errorf("item %d of %s: %w", i, found.Kind, err)
		}
	}

	return objects, nil
}

// Items are the objects in a list, with the kind and version of the list, as the API's own decoder returns them
// (apimachinery 0.36, unstructured, detectList and decodeToList). A list whose items are null has none: templates
// that render nothing leave null.
func Items(list map[string]any) (items []map[string]any, isList bool, err error) {
	kind, _ := list["kind"].(string)
	value, there := list["items"]
	all, ok := value.([]any)

	if !there || value != nil && !ok || !strings.HasSuffix(kind, "List") {
		return nil, false, nil
	}

	for i, item := range all {
		inner, ok := item.(map[string]any)
		if !ok {
			return nil, true, fmt.Errorf("item %d of %s is not an object", i, kind)
		}

		if one := strings.TrimSuffix(kind, "List"); one != "" && inner["kind"] == nil && inner["apiVersion"] == nil {
			inner["kind"], inner["apiVersion"] = one, list["apiVersion"]
		}

		items = append(items, inner)
	}

	return items, true, nil
}
