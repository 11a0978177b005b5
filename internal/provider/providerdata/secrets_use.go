package providerdata

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

// secretsUse is what the resources of a process tell each other about secrets. The CLIs plan and apply in processes of
// their own, in an order that follows from references alone: what is not known here may be true all the same.
type secretsUse struct {
	mu sync.Mutex
	// planned is whether the plan makes new secrets, and rotations what it turns over of others, by their mark.
	planned   bool
	rotations map[string]plannedRotation
	// kept is which machines go on running, in words, by the mark of their secrets and by their resource.
	kept map[string]map[string]string
}

// plannedRotation is the secrets before it, and what is turned over.
type plannedRotation struct {
	of    *pki.Bundle
	kinds []rotation.Kind
}

func newSecretsUse() *secretsUse {
	return &secretsUse{kept: map[string]map[string]string{}, rotations: map[string]plannedRotation{}}
}

// PlanSecrets takes note of whether new secrets are planned and not made yet.
func (m *ProviderData) PlanSecrets(planned bool) {
	if m == nil {
		return
	}

	m.secrets.mu.Lock()
	defer m.secrets.mu.Unlock()

	m.secrets.planned = planned
}

// SecretsPlanned is whether new secrets are planned and not made yet.
func (m *ProviderData) SecretsPlanned() bool {
	if m == nil {
		return false
	}

	m.secrets.mu.Lock()
	defer m.secrets.mu.Unlock()

	return m.secrets.planned
}

// PlanRotation takes note of which keys of secrets are planned to be turned over and are not yet.
func (m *ProviderData) PlanRotation(of *pki.Bundle, kinds []rotation.Kind) {
	if m == nil {
		return
	}

	m.secrets.mu.Lock()
	defer m.secrets.mu.Unlock()

	m.secrets.rotations[of.Mark()] = plannedRotation{of, kinds}
}

// RotationOf is the secrets of a cluster with the keys turned over that are planned to be, which no machine will ever
// carry; false where none are. The secrets that are given only say which cluster: those that a resource with machines
// has in state are older where an apply ended early.
func (m *ProviderData) RotationOf(secrets string) (string, bool) {
	bundle, err := pki.Parse([]byte(secrets))
	if m == nil || err != nil {
		return "", false
	}

	m.secrets.mu.Lock()
	planned := m.secrets.rotations[bundle.Mark()]
	m.secrets.mu.Unlock()

	if len(planned.kinds) == 0 {
		return "", false
	}

	turned, err := planned.of.Rotate(planned.kinds...)
	if err != nil {
		return "", false
	}

	text, err := turned.YAML()

	return string(text), err == nil
}

// KeepMachines takes note of whether the machines of a resource go on running after a plan or an apply.
func (m *ProviderData) KeepMachines(kind, id string, p machineset.Set, kept bool) {
	of := clusterKey(p.Secrets)
	if m == nil || of == "" {
		return
	}

	m.secrets.mu.Lock()
	defer m.secrets.mu.Unlock()

	object := fmt.Sprintf("%s %q", kind, id)
	if m.secrets.kept[of] == nil {
		m.secrets.kept[of] = map[string]string{}
	}

	delete(m.secrets.kept[of], object)

	if kept {
		m.secrets.kept[of][object] = fmt.Sprintf("%s of cluster %q (%s)", finding.Describe(p.Names()), p.Settings.Name,
			object)
	}
}

// KeptMachines names the machines that go on running with the secrets of a bundle, as far as this process knows.
func (m *ProviderData) KeptMachines(bundle *pki.Bundle) []string {
	if m == nil {
		return nil
	}

	m.secrets.mu.Lock()
	defer m.secrets.mu.Unlock()

	return slices.Sorted(maps.Values(m.secrets.kept[bundle.Mark()]))
}
