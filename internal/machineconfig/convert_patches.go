package machineconfig

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/convert"
)

// Converted are patches in the form of another contract, one for each, and what of them did not become documents.
type Converted struct {
	Patches       []string
	Kept, Removed []ConvertedPart
}

// ConvertedPart is a part of a patch, by its index, and why it was kept or removed.
type ConvertedPart struct {
	Patch int
	convert.Note
}

// ConvertPatches writes patches for machines of a role in the form of a contract, from one that is not newer. The
// result has the same effect. What cannot be written with the same effect is an error. Errors are FieldErrors.
func ConvertPatches(patches []string, role Role, from, to string) (Converted, error) {
	minor, err := conversion(role, from, to)
	if err != nil {
		return Converted{}, err
	}

	if err := ValidatePatches(patches, from); err != nil {
		return Converted{}, err
	}

	return convertPatches(patches, role, minor)
}

func convertPatches(patches []string, role Role, minor uint64) (Converted, error) {
	var (
		read  = make([]commented, len(patches))
		found problems
		mains []*yaml.Node
		err   error
	)

	for i, text := range patches {
		if read[i], err = readCommented(at("patches", i), text); err != nil {
			found = append(found, err)
		}

		for _, d := range read[i] {
			if d.main != nil {
				mains = append(mains, d.main)
			}
		}
	}

	if len(found) > 0 {
		return Converted{}, found.err()
	}

	converter := convert.New(role == ControlPlane, minor, mains, diskExpressionOf)
	all := Converted{Patches: []string{}}

	for i := range read {
		text, err := all.add(i, patches[i], read[i], converter)
		found = append(found, notConverted(i, minor, err)...)
		all.Patches = append(all.Patches, text)
	}

	return all, found.err()
}

// conversion checks what a conversion is asked for, and returns the minor version of the target.
func conversion(role Role, from, to string) (minor uint64, err error) {
	var found problems

	if role != ControlPlane && role != Worker {
		found.add("role", quoted(string(role)), quoted(string(ControlPlane))+" or "+quoted(string(Worker)),
			"patches of all machines are converted once for each role")
	}

	older, err := parseContract(from)
	if err != nil {
		found = append(found, inField("from_contract", err))
	}

	newer, err := parseContract(to)
	if err != nil {
		found = append(found, inField("to_contract", err))
	}

	if len(found) > 0 {
		return 0, found.err()
	}

	if older.Greater(newer) {
		found.add("to_contract", quoted(to)+" after "+from, "the same contract or a newer one",
			"keep the patches of the old contract to go back")
	}

	return uint64(newer.Minor), found.err() //nolint:gosec // parseContract knows its contracts
}

func inField(field string, err error) error {
	for _, mistake := range FieldErrors(err) {
		mistake.Field = field
	}

	return err
}

// diskExpressionOf finds the disk of an installation of the main document.
func diskExpressionOf(install *v1alpha1.InstallConfig) (string, error) {
	if install.InstallDiskSelector != nil {
		found, err := install.DiskMatchExpression()
		if err != nil {
			return "", fmt.Errorf("find a disk by its properties: %w", err)
		}

		return found.String(), nil
	}

	found, err := Install{Disk: install.InstallDisk}.expression()

	return found.String(), err
}

// commented is a patch, as documents with their comments.
type commented []commentedDocument

// commentedDocument is a document of a patch. Main is nil where it is no main document, and made of operations where
// the patch has these.
type commentedDocument struct {
	text       string
	root, main *yaml.Node
	operations bool
}

func readCommented(field, text string) (commented, error) {
	chunks, err := split(text)
	if err != nil {
		return nil, fmt.Errorf("read patch: %w", errNotData)
	}

	var documents commented

	for _, c := range chunks {
		d := commentedDocument{text: c.text}

		if c.node != nil && identify(c.node).kind == "" {
			d.root = &yaml.Node{}
			if err := yaml.Unmarshal([]byte(c.text), d.root); err != nil {
				return nil, fmt.Errorf("read patch: %w", errNotData)
			}

			d.main = writtenOut(d.root.Content[0])

			if d.operations = d.main.Kind == yaml.SequenceNode; d.operations {
				if d.main, err = mergeOfOperations(field, d.main); err != nil {
					return nil, err
				}
			}
		}

		documents = append(documents, d)
	}

	return documents, nil
}

// add converts a patch.
func (all *Converted) add(index int, text string, documents commented, by *convert.Converter) (string, error) {
	var (
		texts   []string
		changed bool
		found   problems
	)

	for _, d := range documents {
		var result convert.Result
		if d.main != nil {
			result = by.Convert(d.main)
		}

		all.Kept = append(all.Kept, parts(index, result.Kept)...)
		all.Removed = append(all.Removed, parts(index, result.Removed)...)

		for _, mistake := range result.Mistakes {
			found.add(mistake.Path, "", mistake.Why, "")
		}

		if !result.Changed && !d.operations {
			texts = append(texts, withoutSeparator(d.text))

			continue
		}

		written, err := d.written(result)
		if err != nil {
			return "", err
		}

		texts, changed = append(texts, written...), true
	}

	if !changed {
		return text, found.err()
	}

	return strings.Join(texts, "---\n"), found.err()
}

func parts(index int, notes []convert.Note) (all []ConvertedPart) {
	for _, note := range notes {
		all = append(all, ConvertedPart{index, note})
	}

	return all
}

// written are the documents that a main document became.
func (d commentedDocument) written(result convert.Result) (texts []string, err error) {
	documents := result.Documents
	if result.Main != nil {
		documents = slices.Insert(slices.Clone(documents), 0, result.Main)
	}

	for i, node := range documents {
		root := &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{node}}
		if i == 0 {
			root.HeadComment = d.root.HeadComment
		}

		if i == len(documents)-1 {
			root.FootComment = d.root.FootComment
		}

		var text bytes.Buffer

		encoder := yaml.NewEncoder(&text)
		encoder.SetIndent(indent)

		if err := encoder.Encode(cloneNode(root, map[*yaml.Node]*yaml.Node{})); err != nil {
			return nil, fmt.Errorf("encode patch: %w", err)
		}

		texts = append(texts, text.String())
	}

	return texts, nil
}

// indent is that of converted patches.
const indent = 2

// withoutSeparator is the text of a document of a stream.
func withoutSeparator(text string) string {
	first, rest, _ := strings.Cut(text, "\n")
	if isSeparator(first) && strings.Trim(first, "- \t") == "" {
		text = rest
	}

	return strings.TrimRight(text, "\n") + "\n"
}

// notConverted are the errors of a patch with parts that cannot be converted.
func notConverted(index int, minor uint64, err error) (found problems) {
	for _, mistake := range FieldErrors(err) {
		found = append(found, &FieldError{
			Field: at("patches", index),
			Found: fmt.Sprintf("%s, which has no form with the same effect in contract v1.%d (%s)", mistake.Field, minor,
				mistake.Allowed),
			Fix: "remove it, or write the documents yourself", Err: ErrInvalidConfig,
		})
	}

	if err != nil && len(found) == 0 {
		found = append(found, err)
	}

	return found
}
