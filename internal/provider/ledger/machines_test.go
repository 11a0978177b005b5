package ledger_test

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/ledger"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/secretstest"
)

// The destroy of a deposed object is planned after its replacement has claimed the machines: it resets none of them,
// even while Kubernetes does not answer.
func TestLedger_deposedObject(t *testing.T) {
	t.Parallel()

	bundle, err := secretstest.Generate()
	if err != nil {
		t.Fatal(err)
	}

	encoded, err := bundle.YAML()
	if err != nil {
		t.Fatal(err)
	}

	l := ledger.New()
	machines := []cluster.Machine{{Name: "cp-1", Wanted: cluster.Wanted{Address: "10.0.0.11"}}}
	deposed := machineset.Set{Secrets: string(encoded), Resource: cluster.Resource{Owner: "old"}}
	created := machineset.Set{Secrets: string(encoded)}

	if found := l.PlanMade(created, `talosop_control_plane "prod"`, machines); len(found) > 0 {
		t.Error(found)
	}

	if found := l.PlanWiped(deposed, `talosop_control_plane "prod"`, machines); !found.HasError() {
		t.Error("machines may be reset that the same plan makes another object of")
	}

	created.Owner = "new"
	l.Claim(created, machines)

	if found := l.PlanWiped(deposed, `talosop_control_plane "prod"`, machines); len(found) > 0 {
		t.Error(found)
	}
}
