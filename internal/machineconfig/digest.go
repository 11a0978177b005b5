package machineconfig

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fieldpath"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
	"github.com/talosop/terraform-provider-talosop/internal/tree"
)

// ErrNoDocuments means that a text contains no configuration.
var ErrNoDocuments = errors.New("no configuration documents")

// Digest is a fingerprint of what a configuration says: "sha256:" and hex. It does not depend on comments,
// the order of documents or keys, or on how a value is written (1m0s or 60s, a network): documents the machinery
// library can load are compared as it understands them. All others, those of unknown kinds or with fields of a
// newer Talos, are compared as YAML data. The digest reveals nothing of the secrets.
//
// The images of Kubernetes (see Images) are no part of it: which version of Kubernetes a machine runs is compared by
// itself, and the same configuration stays the same when that version changes. A section that has nothing but such an
// image counts as one that is empty or not there, whatever the role of the machine. So WithImages never changes a
// digest.
//
// Nor are the keys that can be rotated (see Keys): which of them a machine carries is compared by itself, too, and
// WithKeys never changes a digest.
//
// It is meant for comparing what is wanted with what a machine has, both computed by the same build.
func Digest(cfg []byte) (string, error) {
	documents, err := load(cfg)
	if err != nil {
		return "", fmt.Errorf("digest configuration: %w", err)
	}

	if len(documents) == 0 {
		return "", fmt.Errorf("digest configuration: %w", ErrNoDocuments)
	}

	var canonical []string

	for _, document := range documents {
		// encoding/json sorts the keys of maps.
		encoded, err := json.Marshal(withoutKeys(document.id, document.content))
		if err != nil {
			return "", fmt.Errorf("digest configuration: document %s: %w", document.id, errNotData)
		}

		canonical = append(canonical, string(encoded))
	}

	slices.Sort(canonical)

	sum := sha256.Sum256([]byte(strings.Join(canonical, "\n")))

	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// load reads a configuration as data, without the images of Kubernetes. Errors do not quote values.
func load(cfg []byte) ([]document, error) {
	documents, err := loadWhole(cfg)

	for i, d := range documents {
		documents[i].content = withInstallReboot(d.id, withoutImages(d.id, d.content))
	}

	return documents, err
}

// loadWhole is load with the images.
func loadWhole(cfg []byte) ([]document, error) {
	read, err := readAll(cfg)
	if err != nil {
		return nil, err
	}

	var documents []document

	for _, r := range read {
		if r.node == nil {
			continue
		}

		loaded, err := r.loaded()
		if err != nil {
			return nil, err
		}

		loaded.content = tree.Clone(loaded.content)
		documents = append(documents, loaded)
	}

	return documents, nil
}

// loaded is a document as data.
func (c chunk) loaded() (document, error) {
	loaded := document{id: identify(c.node), node: c.node}

	// An error means a newer Talos (or a typo, which is not for a comparison to judge).
	if provider, err := configloader.NewFromBytes([]byte(c.text)); err == nil {
		loaded.provider = provider

		if loaded.content, err = contentOf(provider, c); err != nil {
			return loaded, fmt.Errorf("document %s: %w", loaded.id, err)
		}
	} else if loaded.content, err = decodeNode(c.node); err != nil {
		return loaded, fmt.Errorf("document %s: %w", loaded.id, err)
	}

	loaded.content = withCanonicalNetworks(loaded.id, loaded.content)

	return loaded, nil
}

// contentOf is the data of a provider of one document, as the machinery library writes it. source is what
// may have been written by it already, as everything from Generate was: then it is not parsed again.
func contentOf(provider config.Provider, source chunk) (any, error) {
	encoded, err := provider.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}

	if string(encoded) == strings.TrimPrefix(source.text, "---\n") {
		return decodeNode(source.node)
	}

	node, err := parseDocument(string(encoded))
	if err != nil {
		return nil, fmt.Errorf("read encoded document: %w", errNotData)
	}

	return decodeNode(node)
}

// HasImage reports whether a document has the image of a component of Kubernetes at a path.
func (d Document) HasImage(path fieldpath.Path) bool {
	return slices.ContainsFunc(places.Images(), func(f places.Fact) bool { return f.Covers(d.Kind, path) })
}
