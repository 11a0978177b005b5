package machineconfig

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
)

// Several machines can have one configuration. What names a machine in its own stays there.

// WithHostnameOf is a configuration that names its machine as another configuration does, in the same form. Where the
// other one is empty, it does not name the machine. Without a change the result is cfg itself. Errors do not quote the
// configurations.
func WithHostnameOf(cfg, other []byte) ([]byte, error) {
	e, err := edit(cfg)
	if err != nil {
		return nil, fmt.Errorf("put host name: %w", err)
	}

	theirs, err := edit(other)
	if err != nil {
		return nil, fmt.Errorf("put host name: current machine configuration: %w", err)
	}

	for _, f := range []places.Fact{places.Hostname, places.StableHostname} {
		if err := e.take(f.Main, theirs); err != nil {
			return nil, fmt.Errorf("put host name: %w", err)
		}
	}

	if len(e.changed) > 0 {
		if cfg, err = e.encode(); err != nil {
			return nil, fmt.Errorf("put host name: %w", err)
		}
	}

	return withDocumentOf(cfg, theirs, places.Hostname.Document.Kind)
}

// take makes a scalar of the main document the same as in another configuration. Sections that it leaves empty count as
// missing.
func (e edited) take(at places.Spot, theirs edited) error {
	own, wanted := e.node(at), theirs.node(at)

	switch {
	case own == nil && wanted == nil, own != nil && wanted != nil && own.Value == wanted.Value:
		return nil
	case wanted == nil:
		e.changed[at.Kind] = true
		removeIn(e.roots[at.Kind], at.Path)

		return nil
	}

	if err := e.putScalar(at, wanted.Value); err != nil {
		return err
	}

	e.node(at).Tag = wanted.Tag

	return nil
}

// removeIn removes the value at a path of mappings, and the mappings that are empty then.
func removeIn(node *yaml.Node, path []string) {
	next := places.Node(node, path[0])
	if len(path) > 1 && next != nil {
		removeIn(next, path[1:])
	}

	if next == nil || len(path) > 1 && len(next.Content) > 0 {
		return
	}

	places.Remove(node, path[0])
}

// withDocumentOf is a configuration with the document of a kind from another one, or without one.
func withDocumentOf(cfg []byte, theirs edited, kind string) ([]byte, error) {
	own, err := readAll(cfg)
	if err != nil {
		return nil, err
	}

	ofKind := func(c *reading) bool { return c.node != nil && identify(c.node).kind == kind }
	had, gets := slices.IndexFunc(own, ofKind), slices.IndexFunc(theirs.chunks, ofKind)

	if had < 0 && gets < 0 || had >= 0 && gets >= 0 && own[had].text == theirs.chunks[gets].text {
		return cfg, nil
	}

	var documents []string

	for _, c := range slices.DeleteFunc(own, ofKind) {
		documents = append(documents, withoutSeparator(c.text))
	}

	if gets >= 0 {
		documents = append(documents, withoutSeparator(theirs.chunks[gets].text))
	}

	return []byte(strings.Join(documents, "---\n")), nil
}

// Identity is whose a configuration is; each part is empty where it does not say so.
type Identity struct {
	Role                    Role
	ClusterSecret, Hostname string
}

// Identify reads the identity in a configuration. Errors do not quote it.
func Identify(cfg []byte) (Identity, error) {
	e, err := edit(cfg)
	if err != nil {
		return Identity{}, fmt.Errorf("identify configuration: %w", err)
	}

	found := Identity{Role: Role(e.scalar(places.MachineType.Main)),
		ClusterSecret: e.scalar(places.ClusterSecret.In(e.has)), Hostname: e.scalar(places.Hostname.Main)}

	for _, c := range e.chunks {
		if at := places.Hostname.Document; c.node != nil && identify(c.node).kind == at.Kind {
			found.Hostname = scalarIn(c.node, at.Path)
		}
	}

	return found, nil
}
