package ledger

import (
	"fmt"
	"maps"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

// NoteUnused notes that the secrets of a bundle have no cluster.
func (l *Ledger) NoteUnused(bundle *pki.Bundle) { l.unused.put(bundle.Mark(), true) }

// Unused reports whether this walk knows that the secrets of a bundle have no cluster.
func (l *Ledger) Unused(bundle *pki.Bundle) bool {
	unused, _ := l.unused.get(bundle.Mark())

	return unused
}

// NoteRecorded notes that the state has the cluster of a bundle.
func (l *Ledger) NoteRecorded(bundle *pki.Bundle) { l.recorded.put(bundle.Mark(), true) }

// Recorded reports whether this walk read the cluster of a bundle from the state.
func (l *Ledger) Recorded(bundle *pki.Bundle) bool {
	recorded, _ := l.recorded.get(bundle.Mark())

	return recorded
}

// PlanExposed notes whether a plan exposes the Kubernetes API of the cluster of a bundle outside of its host cluster.
func (l *Ledger) PlanExposed(bundle *pki.Bundle, exposed bool) { l.exposed.put(bundle.Mark(), exposed) }

// ExposedByPlan reports whether a plan of this walk exposes the Kubernetes API of the cluster of a bundle.
func (l *Ledger) ExposedByPlan(bundle *pki.Bundle) bool {
	exposed, _ := l.exposed.get(bundle.Mark())

	return exposed
}

// PlanSecrets notes whether new secrets are planned and not generated yet.
func (l *Ledger) PlanSecrets(planned bool) { l.secretsPlanned.put(struct{}{}, planned) }

// SecretsPlanned reports whether new secrets are planned and not generated yet.
func (l *Ledger) SecretsPlanned() bool {
	planned, _ := l.secretsPlanned.get(struct{}{})

	return planned
}

// PlanRotation notes which keys of secrets have a planned rotation that is not applied yet.
func (l *Ledger) PlanRotation(of *pki.Bundle, kinds []rotation.Kind) {
	l.rotations.put(of.Mark(), plannedRotation{of, kinds})
}

// RotationOf is the secrets of a cluster after the planned rotation, which no machine will ever carry; false without
// one. The given secrets only identify the cluster: those in the state of a resource with machines are older after
// an apply that ended early.
func (l *Ledger) RotationOf(secrets string) (string, bool) {
	planned, _ := l.rotations.get(clusterKey(secrets))
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

// KeepMachines notes whether the machines of a resource keep running after a plan or an apply.
func (l *Ledger) KeepMachines(kind, id string, p machineset.Set, kept bool) {
	object := part{clusterKey(p.Secrets), fmt.Sprintf("%s %q", kind, id)}

	switch {
	case object.cluster == "":
	case kept:
		l.kept.put(object, fmt.Sprintf("%s of cluster %q (%s)", finding.Describe(p.Names()), p.Settings.Name, object.name))
	default:
		l.kept.drop(object)
	}
}

// KeptMachines names the machines that keep running with the secrets of a bundle, as far as this process knows.
func (l *Ledger) KeptMachines(bundle *pki.Bundle) []string {
	kept := l.kept.all()
	maps.DeleteFunc(kept, func(object part, _ string) bool { return object.cluster != bundle.Mark() })

	return slices.Sorted(maps.Values(kept))
}
