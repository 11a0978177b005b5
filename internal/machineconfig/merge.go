package machineconfig

import (
	"errors"
	"fmt"

	"github.com/siderolabs/talos/pkg/machinery/config/container"
)

// Merge applies patches to a configuration, one after the other, as Generate does; or to a patch, which makes one of
// all that does the same as applying each. The result has no field that neither base nor a patch writes. What needs a
// configuration to be applied to, which are deletions and JSON 6902 patches, is refused where base is a patch. Errors
// are *FieldError of "base" and "patches[n]".
func Merge(base string, patches []string) (string, error) {
	merged, err := partOf("base", base)
	if err != nil {
		return "", err
	}

	whole := merged.isWhole()

	for i, text := range patches {
		field := at("patches", i)

		parsed, err := parsePatch(field, text)
		if err != nil {
			return "", err
		}

		if !whole && (parsed.operations != nil || deletes(text)) {
			return "", &FieldError{
				Field: field, Found: "a deletion or a JSON 6902 patch, and base is a patch itself",
				Allowed: "configuration documents, as long as base is no whole machine configuration",
				Fix:     "keep this patch separate, or set the configuration that it changes as base", Err: ErrNotPatch,
			}
		}

		if err := merged.apply(field, parsed); err != nil {
			return "", err
		}
	}

	encoded, err := merged.encode()

	return string(encoded), err
}

// part is a configuration or a part of one, with what its sources write of documents of known kinds.
type part struct {
	documents

	written writtenFields
}

// partOf reads a configuration, or a part of one.
func partOf(field, text string) (*part, error) {
	parsed, err := parsePatch(field, text)
	if err != nil {
		return nil, err
	}

	if parsed.operations != nil || deletes(text) {
		return nil, &FieldError{
			Field: field, Found: "a deletion or a JSON 6902 patch, with nothing to apply it to",
			Allowed: "configuration documents", Fix: "put the configuration that it changes first", Err: ErrNotPatch,
		}
	}

	empty, err := container.New()
	if err != nil {
		return nil, fmt.Errorf("create a configuration: %w", err)
	}

	read := &part{documents{known: empty}, writtenFields{}}

	return read, read.apply(field, parsed)
}

// apply changes the part by a patch. JSON 6902 patches change what is written, as they do in talosctl.
func (p *part) apply(field string, patch *patch) error {
	if patch.operations == nil {
		p.written.add(patch.contents)

		return p.documents.apply(field, patch)
	}

	encoded, err := p.encode()
	if err != nil {
		return err
	}

	patched, err := p.applyOperations(field, encoded, patch.operations)
	if err != nil {
		return err
	}

	chunks, err := split(string(patched))
	if err != nil {
		return fmt.Errorf("read patched documents: %w", err)
	}

	p.written = writtenFields{}
	p.written.add(contentsOf(chunks))

	return nil
}

// encode writes all documents, without the fields that no source writes.
func (p *part) encode() ([]byte, error) {
	encoded, err := p.documents.encode()
	if err != nil {
		return nil, err
	}

	return p.written.only(encoded)
}

// isWhole is whether documents are the configuration of a machine, as opposed to a part of one: it has the role and the
// token by which the machine joins its cluster. Patches have no token, and may name the role.
func (d *documents) isWhole() bool {
	main := d.known.RawV1Alpha1()

	return main != nil && main.MachineConfig != nil && main.MachineConfig.MachineType != "" &&
		main.MachineConfig.MachineToken != ""
}

// deletes reports whether a patch takes something away. What cannot be read does not.
func deletes(text string) bool {
	chunks, err := split(text)
	if err != nil {
		return false
	}

	for _, c := range chunks {
		if content, err := decodeNode(c.node); err == nil && hasDelete(content) {
			return true
		}
	}

	return false
}

// notConfiguration is the error for an argument that cannot be read. It quotes nothing.
func notConfiguration(field string, err error) error {
	reason := withoutQuotes(err.Error())
	if errors.Is(err, errNotData) {
		reason = errNotData.Error()
	}

	return &FieldError{
		Field: field, Found: fmt.Sprintf("an invalid configuration (%s)", reason),
		Allowed: "the documents of a machine configuration", Fix: "check indentation and quoting", Err: ErrNotYAML,
	}
}
