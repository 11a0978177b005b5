package machines_test

import (
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// A worker whose provider was killed when it joined is in no state. A configuration without it has nothing to do.
// The refresh names the node and says how to keep or to remove it, with and without the mark of the resource.
func TestRefresh_nodeOfAKilledJoin(t *testing.T) {
	t.Parallel()

	s, d, config := placesSite(t)
	both := config(s.Workers[0].Address().String(), s.Workers[1].Address().String())
	one := config(s.Workers[0].Address().String(), s.Workers[1].Address().String())
	delete(machinesOfBatch(t, one), "w-2")

	d.Apply(t, one).Must(t)
	d.Refresh(t).Must(t)

	prior := d.State

	d.Apply(t, both).Must(t)

	warns := func(want string) {
		t.Helper()

		d.State, d.Private = prior, nil // as the CLIs keep it after the provider was killed

		diagnostics := tftest.Show(d.Refresh(t).Must(t).Diagnostics)
		if !strings.Contains(diagnostics, want) || !strings.Contains(diagnostics, s.Workers[1].Address().String()) {
			t.Errorf("the refresh says %q, want %q", diagnostics, want)
		}
	}

	warns("[nodes_not_in_state]")

	bundle, _ := one["secrets"].(string)
	s.UnmarkNodes(t, bundle)
	warns("[nodes_joined]")

	// The solution that the warning names.
	d.Apply(t, both).Must(t)
	d.Apply(t, one).Must(t)
	d.ExpectEmpty(t, "after the machine was removed", one)

	if s.Workers[1].Configured() {
		t.Error("the machine was not reset")
	}
}
