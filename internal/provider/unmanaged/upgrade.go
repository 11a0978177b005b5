package unmanaged

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/image"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/rollout"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// upgrade is the argument upgrade_unmanaged.
type upgrade struct {
	Selector       types.String `tfsdk:"selector"`
	Image          types.String `tfsdk:"image"`
	MaxUnavailable types.String `tfsdk:"max_unavailable"`
}

// UpgradeAttribute is the argument upgrade_unmanaged of a resource that creates clusters.
func UpgradeAttribute() schema.SingleNestedAttribute {
	budget := rollout.MaxUnavailable()
	budget.MarkdownDescription = "How many of the nodes may be out of service at once, in the format of " +
		"`max_unavailable` of workers (default `1`)."

	return tf.OptionalObject("Workers in `observed_others` that an apply upgrades if their Talos is older than "+
		"`talos_version`. After all machines of the resource, it drains and reboots each one, through a control plane; "+
		"the plan lists them ([guide](../guides/autoscaling))."+tf.TerraformOnly, map[string]schema.Attribute{
		"selector": Selector("."),
		"image": tf.RequiredString("Installer image with the extensions that the machines need, such as "+
			"`factory.talos.dev/metal-installer/<schematic>`. Each version on the upgrade path replaces the tag.", installer),
		"max_unavailable": budget,
	})
}

// Selector is the argument that selects nodes; more is what a change of it does.
func Selector(more string) schema.StringAttribute {
	return tf.RequiredString("Label selector of their nodes, in the format of `kubectl get nodes -l`, such as "+
		"`karpenter.sh/nodepool=default`"+more, selector)
}

// Selects is what a selector selects by the labels of a node.
func Selects(text string) (func(map[string]string) bool, error) {
	parsed, err := labels.Parse(text)

	return func(of map[string]string) bool { return err == nil && parsed.Matches(labels.Set(of)) }, err
}

// selector accepts label selectors of Kubernetes, except the one that selects everything.
var selector = tf.StringCheck{
	Allowed: "value must be a label selector",
	Check: func(at path.Path, value string) diag.Diagnostic {
		parsed, err := labels.Parse(value)
		if err == nil && !parsed.Empty() {
			return nil
		}

		cause := ""
		if err != nil {
			cause = err.Error()
		}

		return tf.Diagnostic(invalidSelector.At(tf.PathOf(at), finding.Args{"value": value, "cause": cause}))
	},
}

// installer accepts images to which a version can be appended.
var installer = tf.StringCheck{
	Allowed: "value must be an image without a digest",
	Check: func(at path.Path, value string) diag.Diagnostic {
		reference, err := image.ParseReference(value)
		if err == nil && reference.Digest == "" {
			return nil
		}

		return tf.Diagnostic(invalidInstaller.At(tf.PathOf(at), finding.Args{"value": value}))
	},
}

// NoUpgrade is the argument without a value.
func NoUpgrade() types.Object { return types.ObjectNull(upgradeType()) }

func upgradeType() map[string]attr.Type { return tf.ObjectOf(UpgradeAttribute().Attributes).AttrTypes }

// PutUpgrade puts the argument into a set. Its validators report mistakes.
func PutUpgrade(ctx context.Context, given types.Object, p *machineset.Set) {
	r := &tf.Reader{}

	wanted, ok := tf.Object[upgrade](ctx, r, given)
	p.Unknown.Note(machineset.UnknownConfiguration, r.Unknown)

	if !ok {
		return
	}

	selects, err := Selects(r.Text(wanted.Selector))
	budget, _ := machineset.ReadBudget(r.Text(wanted.MaxUnavailable))
	from := r.Text(wanted.Image)
	p.Unknown.Note(machineset.UnknownConfiguration, r.Unknown)

	if err != nil || r.Unknown {
		return
	}

	p.Unmanaged = &machineset.UnmanagedUpgrade{Budget: budget, Image: from, Selects: selects}
}
