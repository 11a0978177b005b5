package postrender

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/util/json"
	yamlreader "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/talosop/terraform-provider-talosop/internal/expansion"
)

// Error is such as "patch 2: has to name its object …".
func (e *Error) Error() string { return fmt.Sprintf("patch %d: %v", e.Index+1, e.Err) }

// Unwrap gives the reason.
func (e *Error) Unwrap() error { return e.Err }

// Check finds patches that can match and change nothing, whatever the chart renders: those that cannot be
// read, that lack a target, or whose target is not one. The error is an [*Error].
func Check(patches []Patch) error {
	_, err := compile(patches)

	return err
}

// compiled is a patch that was read: merges or operations.
type compiled struct {
	target *selector
	// merges are strategic merge patches, each with a separate object unless there is a target.
	merges []map[string]any
	// operations of JSON 6902.
	operations jsonpatch.Patch
}

func compile(patches []Patch) ([]compiled, error) {
	read := make([]compiled, len(patches))

	for i, patch := range patches {
		var err error
		if read[i], err = compileOne(patch); err != nil {
			return nil, &Error{Index: i, Err: err}
		}
	}

	return read, nil
}

func compileOne(patch Patch) (compiled, error) {
	documents, err := split(patch.Patch)
	if err != nil {
		return compiled{}, err
	}

	read := compiled{}

	if patch.Target != nil {
		if read.target, err = newSelector(*patch.Target); err != nil {
			return compiled{}, fmt.Errorf("target: %w", err)
		}
	}

	if bytes.HasPrefix(documents[0], []byte("[")) {
		read.operations, err = operations(documents)
		if err == nil && read.target == nil {
			err = errors.New("a list of JSON 6902 operations needs a target")
		}

		return read, err
	}

	for _, document := range documents {
		merge, err := mergePatch(document, read.target != nil)
		if err != nil {
			return compiled{}, err
		}

		read.merges = append(read.merges, merge)
	}

	if read.target != nil && len(read.merges) > 1 {
		return compiled{}, errors.New("a patch with a target can have one document only: split it into several patches")
	}

	return read, nil
}

// split reads the documents of a patch as JSON, as the API server would: an unquoted yes is true.
func split(text string) ([][]byte, error) {
	if err := expansion.CheckYAML([]byte(text)); err != nil {
		return nil, err
	}

	reader := yamlreader.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))

	var documents [][]byte

	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}

		if err != nil {
			return nil, fmt.Errorf("is not YAML: %w", err)
		}

		encoded, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			return nil, fmt.Errorf("is not YAML: %w", err)
		}

		if !bytes.Equal(encoded, []byte("null")) {
			documents = append(documents, encoded)
		}
	}

	if len(documents) == 0 {
		return nil, errors.New("is empty")
	}

	return documents, nil
}

// mergePatch reads a strategic merge patch. Without a target it has to name its object.
func mergePatch(document []byte, targeted bool) (map[string]any, error) {
	var merge map[string]any
	if err := json.Unmarshal(document, &merge); err != nil {
		return nil, errors.New("is neither an object nor a list of JSON 6902 operations")
	}

	if len(merge) == 0 {
		return nil, errors.New("changes nothing")
	}

	if name := headOf(merge); !targeted && (name.version == "" || name.kind == "" || name.name == "") {
		return nil, errors.New("needs a target, or apiVersion, kind and metadata.name of its object")
	}

	return merge, nil
}

// operations reads a JSON 6902 patch: the library takes all kinds of things for operations.
func operations(documents [][]byte) (jsonpatch.Patch, error) {
	if len(documents) > 1 {
		return nil, errors.New("a list of JSON 6902 operations must be the only document: split it into several patches")
	}

	patch, err := jsonpatch.DecodePatch(documents[0])
	if err != nil {
		return nil, errors.New("is not a list of JSON 6902 operations")
	}

	if len(patch) == 0 {
		return nil, errors.New("changes nothing")
	}

	for i, operation := range patch {
		if err := checkOperation(operation); err != nil {
			return nil, fmt.Errorf("operation %d: %w", i+1, err)
		}
	}

	return patch, nil
}

func checkOperation(operation jsonpatch.Operation) error {
	kind := operation.Kind()
	if !slices.Contains([]string{"add", "remove", "replace", "move", "copy", "test"}, kind) {
		return errors.New("op must be add, remove, replace, move, copy or test")
	}

	if path, err := operation.Path(); err != nil || path != "" && !strings.HasPrefix(path, "/") {
		return errors.New("path must be a JSON pointer such as /spec/replicas")
	}

	switch kind {
	case "move", "copy":
		if from, err := operation.From(); err != nil || !strings.HasPrefix(from, "/") {
			return errors.New("from must be a JSON pointer such as /spec/replicas")
		}
	case "add", "replace", "test":
		if _, found := operation["value"]; !found {
			return errors.New("value is missing")
		}
	}

	return nil
}
