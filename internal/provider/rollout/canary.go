package rollout

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

type upgradeModel struct {
	Canary types.Object `tfsdk:"canary"`
}

type canaryModel struct {
	Pool types.String `tfsdk:"pool"`
	Soak types.String `tfsdk:"soak"`
}

// UpgradeAttribute is how rollouts go through the pools of a cluster.
func UpgradeAttribute() schema.SingleNestedAttribute {
	canary := tf.RequiredObject("Pool that changes first, before control planes and other pools; machines that do not "+
		"work may change earlier. See the [guide](../guides/talos-upgrades#canary).", map[string]schema.Attribute{
		"pool": tf.RequiredString("Name of the pool in `workers`."),
		"soak": tf.RequiredString("How long its machines must work and `health_checks` must pass before others follow, such "+
			"as `30m`. A failure ends the apply, and the next one begins the soak again.", PositiveDuration),
	})

	return tf.OptionalObject("Order in which changes take machines out of service (default: control planes, then all "+
		"pools)."+tf.TerraformOnly, map[string]schema.Attribute{"canary": canary})
}

// NoUpgrade is the attribute without a value.
func NoUpgrade() types.Object {
	return types.ObjectNull(tf.ObjectOf(UpgradeAttribute().Attributes).AttrTypes)
}

// PutUpgrade puts the attribute into a set.
func PutUpgrade(ctx context.Context, from types.Object, p *machineset.Set) {
	r := &tf.Reader{}

	upgrade, given := tf.Object[upgradeModel](ctx, r, from)
	if given {
		canary, _ := tf.Object[canaryModel](ctx, r, upgrade.Canary)
		soak, _ := time.ParseDuration(r.Text(canary.Soak)) // its validator reports mistakes
		p.Changes.Canary = cluster.Canary{Pool: r.Text(canary.Pool), Soak: soak}
	}

	if r.Unknown {
		p.Changes.Canary, p.Changes.CanaryUnknown = cluster.Canary{}, true
	}
}
