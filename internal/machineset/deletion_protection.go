package machineset

import (
	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
)

// RefuseDestroy refuses to destroy a resource that is protected or has locked machines, unless its machines belong to
// another resource.
func (p Set) RefuseDestroy(kind, id string, record Record) finding.List {
	return p.refuseRemoval(kind, id, "destroyed", record)
}

// RefuseReplace is RefuseDestroy for a change that replaces the resource, such as that of its mode.
func (p Set) RefuseReplace(kind, id string, record Record) finding.List {
	found := p.refuseRemoval(kind, id, "replaced, and its machines reset", record)
	if loss := p.Removal(record, cluster.DefaultPolicy()); found.HasError() && loss != "" && !p.Preserves {
		found[0].Detail += " What it would do: " + loss
	}

	return found
}

func (p Set) refuseRemoval(kind, id, operation string, record Record) finding.List {
	switch {
	case record.LeftToOthers():
		return nil
	case !p.Protected || !p.Guarded():
		return finding.Locked(kind, id, operation, p.Locked())
	}

	if p.Single && p.OwnsControlPlane() {
		return finding.List{lastControlPlaneProtected.At(finding.Root("deletion_protection"),
			finding.Args{"kind": kind, "id": id, "operation": operation})}
	}

	return finding.List{finding.Protected(kind, id, operation)}
}

// WarnOfUnprotected warns about a plan that removes deletion protection. The CLIs show no warning in a plan of
// -replace, so this is the last warning about what is lost.
func (p Set) WarnOfUnprotected(prior Set, record Record, policy cluster.Policy) finding.List {
	if p.Protected || !prior.Protected || !prior.Guarded() {
		return nil
	}

	loss := prior.Removal(record, policy)
	if loss == "" {
		return nil
	}

	return finding.List{protectionDisabled.With(finding.Args{"cluster": p.Settings.Name, "loss": loss})}
}
