package machineconfig

import (
	"fmt"

	"github.com/siderolabs/talos/pkg/machinery/config"
	coreconfig "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"go.yaml.in/yaml/v4"
)

// apply changes the configuration by a patch.
func (d *documents) apply(field string, p *patch) error {
	if p.operations != nil {
		return d.applyOperations(field, p.operations)
	}

	if p.merge != nil {
		if err := checkDeletes(field, d.known, p.merge); err != nil {
			return err
		}

		// Before the library says that there is nothing at the path.
		if useless, err := p.uselessDelete(d.known); err != nil {
			return err
		} else if useless != nil {
			return refusal(*useless, field, DocumentsContract)
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

func (d *documents) applyOperations(field string, operations configpatcher.Patch) error {
	if d.count() != 1 {
		return multiDocumentError(field)
	}

	encoded, err := d.known.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
	if err != nil {
		return fmt.Errorf("encode configuration: %w", err)
	}

	output, err := configpatcher.Apply(configpatcher.WithBytes(encoded), []configpatcher.Patch{operations})
	if err != nil {
		return applyError(field, err)
	}

	patched, err := output.Config()
	if err != nil {
		return loadError(field, err)
	}

	d.known = patched

	return nil
}

// checkDeletes refuses a $patch: delete of a document that is not there, which machinery 1.14 passes over
// (configpatcher/strategic.go). Documents that the patch adds before count.
func checkDeletes(field string, current config.Provider, p configpatcher.StrategicMergePatch) error {
	present := map[identity]bool{}
	for _, document := range current.Documents() {
		present[identityOf(document)] = true
	}

	for _, document := range p.Documents() {
		name := identityOf(document)

		if _, ok := document.(configloader.Selector); !ok {
			present[name] = true
		}

		if present[name] {
			continue
		}

		name.apiVersion = ""

		return &FieldError{
			Field: field, Found: fmt.Sprintf("$patch: delete for the document %s, which is not there", name),
			Allowed: "deleting what the generated configuration or earlier patches have",
			Fix:     "remove it, or check kind and name", Err: ErrNotPatch,
		}
	}

	return nil
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
	case index < 0 && hasDelete(changes):
		return &FieldError{
			Field: field, Found: fmt.Sprintf("$patch: delete for the document %s, which is not there", patch.identity),
			Allowed: "deleting what earlier patches added", Fix: "remove it, or check kind and name", Err: ErrNotPatch,
		}
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
			into[key] = append(present[:len(present):len(present)], change...)
		case nil:
			// As in Talos, null does not delete.
		default:
			into[key] = change
		}
	}

	return into
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
