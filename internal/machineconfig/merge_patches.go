package machineconfig

import (
	"fmt"
	"reflect"
	"slices"

	coreconfig "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"
	"go.yaml.in/yaml/v4"
)

// apply changes the configuration by a patch.
func (d *documents) apply(field string, p *patch) error {
	if p.operations != nil {
		encoded, err := d.encode()
		if err != nil {
			return err
		}

		_, err = d.applyOperations(field, encoded, p.operations)

		return err
	}

	if p.merge != nil {
		d.ignoreDeletes(field, p.merge)

		// Before the library reports that the path does not exist.
		if useless, err := p.uselessDelete(d.known); err != nil {
			return err
		} else if useless != nil {
			generated := d.generated == nil || d.generated.Has(useless.Beside)

			return refusal(*useless, field, generated, DocumentsContract)
		}

		merged, err := configpatcher.StrategicMerge(d.known, p.merge)
		if err != nil {
			return applyError(field, err)
		}

		d.known = merged
	}

	for _, document := range p.unknown {
		if err := d.mergeUnknown(field, document); err != nil {
			return err
		}
	}

	return nil
}

// applyOperations returns the encoded configuration after the operations.
func (d *documents) applyOperations(field string, encoded []byte, operations configpatcher.Patch) ([]byte, error) {
	if d.count() != 1 {
		return nil, multiDocumentError(field)
	}

	output, err := configpatcher.Apply(configpatcher.WithBytes(encoded), []configpatcher.Patch{operations})
	if err != nil {
		return nil, applyError(field, err)
	}

	patched, err := output.Bytes()
	if err != nil {
		return nil, fmt.Errorf("encode configuration: %w", err)
	}

	d.known, err = configloader.NewFromBytes(patched)
	if err != nil {
		return nil, loadError(field, err)
	}

	return patched, nil
}

// ignoreDeletes notes a $patch: delete of a document that is not there, which machinery 1.14 passes over
// (configpatcher/strategic.go): a patch of a cluster may delete what only one role has. Documents that the patch adds
// before count.
func (d *documents) ignoreDeletes(field string, p configpatcher.StrategicMergePatch) {
	present := map[identity]bool{}
	for _, document := range d.known.Documents() {
		present[identityOf(document)] = true
	}

	for _, document := range p.Documents() {
		name := identityOf(document)

		if _, ok := document.(configloader.Selector); !ok {
			present[name] = true
		}

		if !present[name] {
			name.apiVersion = ""
			d.ignoreDelete(field, name)
		}
	}
}

func (d *documents) ignoreDelete(field string, name identity) {
	d.ineffective = append(d.ineffective, &FieldError{
		Field: field, Found: fmt.Sprintf("$patch: delete for the document %s, which does not exist", name),
		Fix: "check kind and name if the document should exist",
	})
}

// mergeUnknown puts a document of a patch among those of unknown kinds, by the rules Talos has for known
// ones: a document with the same identity is changed, another one is added. Maps merge, lists append, scalars
// replace, and $patch: delete removes the map or the document it stands in.
func (d *documents) mergeUnknown(field string, patch rawDocument) error {
	changes, err := patch.decode()
	if err != nil {
		return err
	}

	index := -1

	for i, present := range d.unknown {
		if present.identity == patch.identity {
			index = i
		}
	}

	switch {
	case index < 0 && changes[patchKey] == deleteValue:
		d.ignoreDelete(field, patch.identity)

		return nil
	case index < 0 && hasDelete(changes):
		d.ignoreDelete(field, patch.identity)
		d.unknown, index = append(d.unknown, rawDocument{identity: patch.identity}), len(d.unknown)
	case index < 0:
		d.unknown = append(d.unknown, patch)

		return nil
	case changes[patchKey] == deleteValue:
		d.unknown = append(d.unknown[:index:index], d.unknown[index+1:]...)

		return nil
	}

	present, err := d.unknown[index].decode()
	if err != nil {
		return err
	}

	encoded, err := yaml.Marshal(mergeMaps(present, changes))
	if err != nil {
		return fmt.Errorf("encode document %s: %w", patch.identity, err)
	}

	d.unknown[index].text = string(encoded)

	return nil
}

func mergeMaps(into, changes map[string]any) map[string]any {
	for key, change := range changes {
		switch change := change.(type) {
		case map[string]any:
			if change[patchKey] == deleteValue {
				delete(into, key)

				continue
			}

			present, ok := into[key].(map[string]any)
			if !ok {
				present = map[string]any{}
			}

			into[key] = mergeMaps(present, change)
		case []any:
			present, _ := into[key].([]any)
			into[key] = appended(present, change)
		case nil:
			// As in Talos, null does not delete.
			if _, ok := into[key]; !ok {
				into[key] = nil
			}
		default:
			into[key] = change
		}
	}

	return into
}

// appended is a list with the elements of a change, and without those that it deletes.
func appended(present, change []any) []any {
	list := slices.Clone(present)

	for _, element := range change {
		selector, ok := element.(map[string]any)
		if !ok || selector[patchKey] != deleteValue {
			list = append(list, element)

			continue
		}

		list = slices.DeleteFunc(list, func(present any) bool { return isSelected(present, selector) })
	}

	return list
}

// isSelected reports whether an element of a list has the values of a deletion.
func isSelected(element any, selector map[string]any) bool {
	content, ok := element.(map[string]any)

	for key, value := range selector {
		ok = ok && (key == patchKey || reflect.DeepEqual(plain(content[key]), plain(value)))
	}

	return ok
}

// plain is the text of a scalar node, which has its place as well.
func plain(value any) any {
	if node, ok := value.(*yaml.Node); ok {
		return node.Value
	}

	return value
}

func identityOf(document coreconfig.Document) identity {
	id := identity{apiVersion: document.APIVersion(), kind: document.Kind()}
	if named, ok := document.(coreconfig.NamedDocument); ok {
		id.name = named.Name()
	}

	return id
}

func hasDelete(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		if value[patchKey] == deleteValue {
			return true
		}

		for _, inner := range value {
			if hasDelete(inner) {
				return true
			}
		}
	case []any:
		for _, inner := range value {
			if hasDelete(inner) {
				return true
			}
		}
	}

	return false
}
