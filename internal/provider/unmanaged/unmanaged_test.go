package unmanaged

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// The record of nodes is what a plan needs to know of them.
func TestRecorded_isWhatWasSeen(t *testing.T) {
	t.Parallel()

	nodes := []kubestate.Node{
		{Name: "auto-1", Addresses: []string{"10.0.0.30"}, Ready: true, TalosVersion: "v1.13.0", KubeletVersion: "v1.35.2",
			ProviderID: "aws:///a/i-1", Labels: map[string]string{"example.com/group": "spot"}},
		{Name: "auto-2", ControlPlane: true, Cordoned: true, Unschedulable: true},
	}
	r := &tf.Reader{}

	if diff := cmp.Diff(nodes, Recorded(t.Context(), r, Of(nodes))); diff != "" || r.Unknown || r.Diags.HasError() {
		t.Errorf("%s%v", diff, r.Diags)
	}

	have := cluster.Snapshot{Kubernetes: kubestate.State{Nodes: nodes}}
	if last := Of(nodes); !Seen(cluster.Spec{}, have, last).Equal(last) {
		t.Error("while Kubernetes does not answer nothing is remembered")
	}

	if seen := Seen(cluster.Spec{}, have, Unknown()); !seen.IsNull() {
		t.Errorf("no node was ever seen, and state has %s", seen)
	}
}

func TestUpgrade_mistakesAreReported(t *testing.T) {
	t.Parallel()

	for value, right := range map[string]bool{
		"example.com/group=spot": true, "group in (spot, batch)": true, "!system": true, "": false, "group in (": false,
	} {
		if mistake := selector.Check(path.Root("selector"), value); (mistake == nil) != right {
			t.Errorf("selector %q: %v", value, mistake)
		}
	}

	const digest = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

	for value, right := range map[string]bool{
		"ghcr.io/siderolabs/installer": true, "registry.local:5000/installer:v1.13.0": true, "": false, "Not An Image": false,
		"ghcr.io/siderolabs/installer" + digest: false,
	} {
		if mistake := installer.Check(path.Root("image"), value); (mistake == nil) != right {
			t.Errorf("image %q: %v", value, mistake)
		}
	}
}

func TestPutUpgrade_knowsWhatIsNotKnown(t *testing.T) {
	t.Parallel()

	given := func(selector attr.Value) types.Object {
		return types.ObjectValueMust(upgradeType(), map[string]attr.Value{"selector": selector,
			"image": types.StringValue("ghcr.io/siderolabs/installer"), "max_unavailable": types.StringValue("20%")})
	}

	var unknown, known, none machineset.Set

	PutUpgrade(t.Context(), given(types.StringUnknown()), &unknown)
	PutUpgrade(t.Context(), given(types.StringValue("group=spot")), &known)
	PutUpgrade(t.Context(), NoUpgrade(), &none)

	if !unknown.Unknown.Has(machineset.UnknownConfiguration) || unknown.Unmanaged != nil {
		t.Error("a selector that is not known selects")
	}

	if known.Unknown != 0 || known.Unmanaged == nil || known.Unmanaged.Budget != (cluster.Budget{Percent: 20}) ||
		!known.Unmanaged.Selects(map[string]string{"group": "spot"}) || known.Unmanaged.Selects(nil) {
		t.Errorf("it is read as %+v", known.Unmanaged)
	}

	if none.Unknown != 0 || none.Unmanaged != nil {
		t.Error("no upgrade is wanted, and there is one")
	}
}
