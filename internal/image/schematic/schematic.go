// Package schematic reads what an Image Factory puts into images of Talos, and computes its id as the factory
// does.
//
// A schematic is a YAML document (docs/api.md of siderolabs/image-factory, POST /schematics). The factory decodes
// it and refuses unknown fields. It encodes it again, with its fields in a fixed order and without empty ones, and
// takes the SHA-256 of that text as the id (pkg/schematic of the same repository, v1.4.0). So the id depends on
// the content alone, not on its author or format. An Enterprise factory puts the caller into `owner`, which is
// part of the content, and so of the id.
//
// The package is pure. A computed id does not mean that a factory can make its images: the factory has to receive
// the content once.
package schematic

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/imager/imageropts"
	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/expansion"
	"github.com/talosop/terraform-provider-talosop/internal/image"
)

// Schematic is the content. Its fields are in the order in which the factory writes them, on which the id depends.
type Schematic struct {
	// Owner is the account that may use it, in an Enterprise factory.
	Owner         string        `yaml:"owner,omitempty"`
	Overlay       Overlay       `yaml:"overlay,omitempty"`
	Customization Customization `yaml:"customization"`
}

// Overlay is for single-board computers.
type Overlay struct {
	Image   string         `yaml:"image"`
	Name    string         `yaml:"name"`
	Options map[string]any `yaml:"options,omitempty"`
}

// Customization is the difference from plain Talos.
type Customization struct {
	EmbeddedMachineConfiguration string                    `yaml:"embeddedMachineConfiguration,omitempty"`
	ExtraKernelArgs              []string                  `yaml:"extraKernelArgs,omitempty"`
	Meta                         []MetaValue               `yaml:"meta,omitempty"`
	SystemExtensions             SystemExtensions          `yaml:"systemExtensions,omitempty"`
	Bootloader                   imageropts.BootloaderKind `yaml:"bootloader,omitempty"`
	SecureBoot                   SecureBoot                `yaml:"secureboot,omitempty"`
	DiskImage                    DiskImage                 `yaml:"diskImage,omitempty"`
}

// MetaValue is a value of META that the image begins with.
type MetaValue struct {
	Key   uint8  `yaml:"key"`
	Value string `yaml:"value"`
}

// SystemExtensions are the extensions, without versions: the factory takes those of the Talos version.
type SystemExtensions struct {
	OfficialExtensions []string `yaml:"officialExtensions,omitempty"`
}

// SecureBoot is how keys of UEFI are enrolled.
type SecureBoot struct {
	EnrollKeys                   string `yaml:"enrollKeys,omitempty"`
	IncludeWellKnownCertificates bool   `yaml:"includeWellKnownCertificates,omitempty"`
}

// DiskImage is the shape of disk images.
type DiskImage struct {
	SectorSize uint `yaml:"sectorSize,omitempty"`
}

// ErrInvalid is wrapped by every error about a text that is no schematic.
var ErrInvalid = errors.New("not a schematic")

// Parse reads the content of a schematic, YAML or JSON, as strictly as the factory does. Errors quote no values: a
// machine configuration may be embedded.
func Parse(content string) (parsed Schematic, err error) {
	// The YAML library panics on some malformed input.
	defer func() {
		if recover() != nil {
			parsed, err = Schematic{}, fmt.Errorf("%w: invalid YAML", ErrInvalid)
		}
	}()

	if err := expansion.CheckYAML([]byte(content)); err != nil {
		return Schematic{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}

	decoder := yaml.NewDecoder(bytes.NewReader([]byte(content)))
	decoder.KnownFields(true)

	switch err := decoder.Decode(&parsed); {
	case errors.Is(err, io.EOF):
		return Schematic{}, fmt.Errorf("%w: empty; use `customization: {}` for plain Talos", ErrInvalid)
	case err != nil:
		return Schematic{}, fmt.Errorf("%w: %s", ErrInvalid, reasonOf(err))
	}

	// The factory reads one document and drops the others without a word.
	if decoder.Decode(&yaml.Node{}) == nil {
		return Schematic{}, fmt.Errorf("%w: several documents, expected one", ErrInvalid)
	}

	return parsed, nil
}

// Content is the schematic as the factory stores it.
func (s Schematic) Content() (string, error) {
	encoded, err := yaml.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("encode schematic: %w", err)
	}

	return string(encoded), nil
}

// ID is the id that the factory gives.
func (s Schematic) ID() (string, error) {
	content, err := s.Content()
	if err != nil {
		return "", err
	}

	sum := sha256.Sum256([]byte(content))

	return hex.EncodeToString(sum[:]), nil
}

// IDOf is the id of a schematic that is given by its id or by its content.
func IDOf(idOrContent string) (string, error) {
	if LooksLikeID(idOrContent) {
		return idOrContent, image.CheckSchematic(idOrContent)
	}

	parsed, err := Parse(idOrContent)
	if err != nil {
		return "", err
	}

	return parsed.ID()
}

// Same is whether two texts, each an id or content, are the same schematic. Texts that are neither are when they are
// equal.
func Same(a, b string) bool {
	if a == b {
		return true
	}

	idA, errA := IDOf(a)
	idB, errB := IDOf(b)

	return errA == nil && errB == nil && idA == idB
}

// LooksLikeID reports whether a text is meant as an id and not as content. Content is a mapping and so has a
// colon, or is empty braces.
func LooksLikeID(text string) bool { return wordPattern.MatchString(text) }

var (
	wordPattern  = regexp.MustCompile(`^[0-9A-Za-z]+$`)
	placePattern = regexp.MustCompile(`line (\d+)`)
	fieldPattern = regexp.MustCompile(`field ([A-Za-z0-9_.-]+) not found`)
)

// reasonOf is the safe part of an error of the YAML library, which quotes values: the position and the field.
func reasonOf(err error) string {
	reason := "not YAML in the format of a schematic"
	if field := fieldPattern.FindStringSubmatch(err.Error()); field != nil {
		reason = fmt.Sprintf("unknown field %q", field[1])
	}

	if place := placePattern.FindStringSubmatch(err.Error()); place != nil {
		reason += " (line " + place[1] + ")"
	}

	return strings.TrimSpace(reason)
}
