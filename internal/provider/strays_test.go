package provider

import (
	"strings"
	"testing"
)

// A worker whose provider was killed when it joined is in no state. A configuration without it has nothing to do, and
// the refresh names the node and says how to keep or to remove it, with the mark of the resource and without one.
func TestRefresh_nodeOfAKilledJoin(t *testing.T) {
	t.Parallel()

	s, d, config := placesSite(t)
	both := config(s.workers[0].Address().String(), s.workers[1].Address().String())
	one := config(s.workers[0].Address().String(), s.workers[1].Address().String())
	delete(machinesOfBatch(t, one), "w-2")

	d.apply(t, one).must(t)
	d.refresh(t).must(t)

	prior := d.state

	d.apply(t, both).must(t)

	told := func(want string) {
		t.Helper()

		d.state, d.private = prior, nil // as the CLIs keep it where the provider was killed

		said := show(d.refresh(t).must(t).diagnostics)
		if !strings.Contains(said, want) || !strings.Contains(said, s.workers[1].Address().String()) {
			t.Errorf("the refresh says %q, want %q", said, want)
		}
	}

	told("Nodes of this resource are not in its state")

	bundle, _ := one["secrets"].(string)
	s.unmarkNodes(t, bundle)
	told("Nodes joined that no resource has")

	// The way out that the warning names.
	d.apply(t, both).must(t)
	d.apply(t, one).must(t)
	d.expectEmpty(t, "after the machine was removed", one)

	if s.workers[1].Configured() {
		t.Error("the machine was not reset")
	}
}
