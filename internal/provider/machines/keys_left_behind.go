package machines

import (
	"fmt"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

// keysLeftBehind is the error of an update after which machines still use keys that the secrets of the plan do not
// contain, not even as former ones: state keeps its secrets.
func keysLeftBehind(p machineset.Set, done run) error {
	if !done.want.Rotates {
		return nil
	}

	bundle, err := pki.Parse([]byte(p.Secrets))
	if err != nil {
		return fmt.Errorf("read the secrets of the plan: %w", err)
	}

	var names []string

	for _, m := range done.want.Machines {
		s := done.result.Snapshot.Machines[m.Name]
		if s.Access == step.Member && len(bundle.KnowingFormer(s.Keys).Unknown(s.Keys)) > 0 {
			names = append(names, m.Name)
		}
	}

	if len(names) == 0 {
		return nil
	}

	return fmt.Errorf("%s still work with keys that the secrets do not have any more, because other machines of the "+
		"cluster do not accept the new ones yet: apply the resources of these, and then this one again",
		finding.Describe(names))
}

// warnOfPendingKeys reports what a rotation waits for that this resource cannot do.
func warnOfPendingKeys(want cluster.Spec, have cluster.Snapshot) finding.List {
	names := cluster.KeysPending(want, have)
	if len(names) == 0 {
		return nil
	}

	return finding.List{pendingKeys.Report(finding.Path{},
		finding.Args{"cluster": want.Name, "annotation": rotation.Annotation},
		finding.Report{Now: []string{
			"the machines have the keys that are safe beside these nodes: " + finding.Describe(names),
		}})}
}
