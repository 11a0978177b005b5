package providerdata

import (
	"maps"
	"sync"

	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

// secretsOrigin is what one walk of a CLI, a plan or an apply, learns about whether secrets have a cluster, by their
// mark. The CLIs repeat a plan within the apply without the first one's private state (Terraform 1.15, OpenTofu 1.12:
// node_resource_abstract_instance.go, plan), so the walk itself is the only place that tells new secrets from older
// ones. It is safe for concurrent use.
type secretsOrigin struct {
	mu sync.Mutex
	// unused are secrets that have no cluster: the walk made them, or reset all control planes of their cluster.
	unused map[string]bool
	// recorded are the secrets of clusters that the state has.
	recorded map[string]bool
}

func newSecretsOrigin() *secretsOrigin {
	return &secretsOrigin{unused: map[string]bool{}, recorded: map[string]bool{}}
}

// copy is what the next walk begins with.
func (o *secretsOrigin) copy() *secretsOrigin {
	o.mu.Lock()
	defer o.mu.Unlock()

	return &secretsOrigin{unused: maps.Clone(o.unused), recorded: maps.Clone(o.recorded)}
}

// WithNewWalk is provider data that knows nothing yet of where secrets come from, but what was noted before any
// configuration.
func (m ProviderData) WithNewWalk() ProviderData {
	m.origin = m.origin.copy()

	return m
}

// NoteUnused notes that the secrets of a bundle have no cluster.
func (m *ProviderData) NoteUnused(bundle *pki.Bundle) {
	if m != nil {
		m.origin.note(m.origin.unused, bundle)
	}
}

// NoteRecorded notes that the state has the cluster of a bundle.
func (m *ProviderData) NoteRecorded(bundle *pki.Bundle) {
	if m != nil {
		m.origin.note(m.origin.recorded, bundle)
	}
}

// Unused reports whether this walk knows that the secrets of a bundle have no cluster.
func (m *ProviderData) Unused(bundle *pki.Bundle) bool {
	return m != nil && m.origin.noted(m.origin.unused, bundle)
}

// Recorded reports whether this walk read the cluster of a bundle from the state.
func (m *ProviderData) Recorded(bundle *pki.Bundle) bool {
	return m != nil && m.origin.noted(m.origin.recorded, bundle)
}

func (o *secretsOrigin) note(in map[string]bool, bundle *pki.Bundle) {
	o.mu.Lock()
	defer o.mu.Unlock()

	in[bundle.Mark()] = true
}

func (o *secretsOrigin) noted(in map[string]bool, bundle *pki.Bundle) bool {
	o.mu.Lock()
	defer o.mu.Unlock()

	return in[bundle.Mark()]
}
