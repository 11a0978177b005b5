package ledger_test

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/ledger"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/secretstest"
)

// A process may be configured more than once: what its resources hold counts in every walk, what they plan in one.
func TestLedger_newWalk(t *testing.T) {
	t.Parallel()

	bundle, err := secretstest.Generate()
	if err != nil {
		t.Fatal(err)
	}

	first := ledger.New()
	first.NoteUnused(bundle)

	next := first.NewWalk()
	if !next.Unused(bundle) || next.Recorded(bundle) {
		t.Error("what was noted of secrets before the walk is not known in it, or more is")
	}

	next.NoteRecorded(bundle)
	next.Founding("prod").Claim(cluster.Machine{Wanted: cluster.Wanted{Address: "10.0.0.11"}})
	next.Claim(machineset.Set{Resource: cluster.Resource{Owner: "one"}}, []cluster.Machine{{Wanted: cluster.Wanted{Address: "10.0.0.11"}}})

	if first.Recorded(bundle) {
		t.Error("a walk knows what only another one learned of secrets")
	}

	if founder, ok := first.Founding("prod").Founder(); !ok || founder.Address != "10.0.0.11" {
		t.Errorf("the machine that began etcd is %q in another walk", founder.Address)
	}

	two := machineset.Set{Resource: cluster.Resource{Owner: "two"}}
	if first.ClaimedByOthers(two)(cluster.Machine{Wanted: cluster.Wanted{Address: "10.0.0.11"}}) {
		t.Error("a machine is taken that only another walk has taken")
	}
}
