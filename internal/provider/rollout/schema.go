// Package rollout is the arguments for changes of running machines: upgrades, drains, budgets and trials.
package rollout

import (
	"context"
	"time"

	"github.com/blang/semver/v4"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/healthchecks"
	"github.com/talosop/terraform-provider-talosop/internal/provider/hooks"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// Changes is how a resource changes running machines.
type Changes struct {
	ApplyMode      types.String `tfsdk:"apply_mode"`
	Reboot         types.String `tfsdk:"reboot"`
	Drain          types.Object `tfsdk:"drain"`
	UpgradeVia     types.List   `tfsdk:"upgrade_via"`
	AllowDowngrade types.Bool   `tfsdk:"allow_downgrade"`
	AllowUntested  types.Bool   `tfsdk:"allow_untested"`
	SnapshotFolder types.String `tfsdk:"etcd_snapshot_folder"`
	KubernetesVia  types.List   `tfsdk:"kubernetes_upgrade_via"`
	DrainKubelet   types.Bool   `tfsdk:"drain_before_kubelet_upgrade"`
	PruneManifests types.Bool   `tfsdk:"prune_bootstrap_manifests"`
	HealthChecks   types.Map    `tfsdk:"health_checks"`
	Hooks          types.Map    `tfsdk:"hooks"`
	Window         types.Object `tfsdk:"maintenance_window"`
	AppearWithin   types.String `tfsdk:"appear_within"`
}

type drainModel struct {
	Enabled        types.Bool   `tfsdk:"enabled"`
	WaitForVolumes types.Bool   `tfsdk:"wait_for_volumes"`
	Timeout        types.String `tfsdk:"timeout"`
	OnTimeout      types.String `tfsdk:"on_timeout"`
}

// The choices of apply_mode.
const (
	applyAuto = "auto"
	applyTry  = "try"
)

// The choices of reboot.
const (
	rebootNow    = "now"
	rebootStaged = "staged"
)

// Attributes are those of Changes. They have no defaults in state: without a value they mean what their description
// says, in every version of the provider.
func Attributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"apply_mode": tf.OptionalString("How a changed configuration is applied to running machines: `auto` (the "+
			"default) permanently, `try` on trial if no reboot is needed, then kept if reachable."+
			tf.TerraformOnly, stringvalidator.OneOf(applyAuto, applyTry)),
		"reboot": tf.OptionalString("When a machine reboots if its configuration needs it: `now` (the default), drained "+
			"and in its turn, or `staged`, at its next boot ([guide](../guides/holding-changes#until-the-next-reboot))."+
			tf.TerraformOnly, stringvalidator.OneOf(rebootNow, rebootStaged)),
		"drain": tf.OptionalObject("How nodes are drained before their machines reboot, upgrade or leave; nodes are "+
			"always cordoned. When you destroy a whole pool of workers, only `enabled` counts."+tf.TerraformOnly,
			map[string]schema.Attribute{
				"enabled": tf.OptionalBool("Whether to evict pods before the disruption (default `true`)."),
				"wait_for_volumes": tf.OptionalBool("Whether a drain also waits until the volumes of the evicted pods are " +
					"detached from the node (default `true`; [guide](../guides/talos-upgrades#volumes))."),
				"timeout": tf.OptionalString("Time to drain one node, including the wait for volumes, such as `90s` (default "+
					"`5m`).", PositiveDuration),
				"on_timeout": tf.OptionalString("What happens to pods and volumes that remain after `timeout`, such as pods "+
					"that a PodDisruptionBudget protects. `fail` (the default) uncordons the node and ends the run. `force` "+
					"deletes the pods despite their budgets, and `skip` leaves them; both continue while volumes are attached.",
					stringvalidator.OneOf(
						string(cluster.DrainFail), string(cluster.DrainForce), string(cluster.DrainSkip))),
			}),
		"health_checks": healthchecks.Attribute(PositiveDuration),
		"hooks":         hooks.Attribute(PositiveDuration),
		"upgrade_via": tf.OptionalStrings("Talos releases for upgrades across more than one minor version, such as "+
			"`[\"v1.12.6\"]`, at most one per minor version. Default: the newest known release of each; for an unknown "+
			"minor version, its first release."+tf.TerraformOnly,
			talosVia),
		"etcd_snapshot_folder": tf.OptionalString("Folder on the computer that runs Terraform, such as `./snapshots`, " +
			"for a verified etcd snapshot before a control plane goes down (default: none). Snapshots contain every Secret " +
			"of the cluster, and talosop never deletes them." + tf.TerraformOnly),
		"allow_downgrade": tf.OptionalBool("Whether machines may downgrade Talos, one minor version at a time " +
			"([guide](../guides/metal-machines)), and Kubernetes to a lower patch version (default `false`)." +
			tf.TerraformOnly),
		"allow_untested": tf.OptionalBool("Whether `talos_version` may be newer than " + machineset.NewestTalos + " " +
			"(default `false`)." + tf.TerraformOnly),
		"kubernetes_upgrade_via": tf.OptionalStrings("Kubernetes releases for upgrades across more than one minor "+
			"version, such as `[\"v1.35.6\"]`, at most one per minor version. Default: the newest known release of each; "+
			"for an unknown minor version, its first release."+tf.TerraformOnly, kubernetesVia),
		"maintenance_window": windowAttribute(),
		"appear_within": tf.OptionalString("How long machines and disks may take to appear (default `10s`), such as `5m` "+
			"for VMs of the same apply."+tf.TerraformOnly, PositiveDuration),
		"prune_bootstrap_manifests": tf.OptionalBool("Whether a sync deletes objects that are no longer among the " +
			"bootstrap manifests (default `true`; Talos 1.13 and newer)." + tf.TerraformOnly),
		"drain_before_kubelet_upgrade": tf.OptionalBool("Whether to drain a node, as `drain` sets, before its kubelet " +
			"changes (default `false`)." + tf.TerraformOnly),
	}
}

// KubernetesUpgrade says what another version of Kubernetes does.
const KubernetesUpgrade = "A change upgrades Kubernetes on running machines, without a reboot, one minor version " +
	"at a time: see the [guide](../guides/kubernetes-upgrades). A complete upgrade to another minor version cannot be " +
	"downgraded; a lower patch version needs `allow_downgrade`."

// ManifestsAttribute is the version of a cluster's bootstrap manifests.
func ManifestsAttribute() schema.StringAttribute {
	return tf.ComputedString("Kubernetes version of the bootstrap manifests (such as kube-proxy and CoreDNS) that the " +
		"cluster got last. Null on workers.")
}

// MaxUnavailable limits how many workers are disrupted at once.
func MaxUnavailable() schema.StringAttribute {
	return tf.OptionalString("How many workers of the pool may be out of service at once, for any reason (default "+
		"`1`). It is a number, or a percentage such as `20%`, rounded down but at least one."+tf.TerraformOnly, budget)
}

// Unset is Changes without a value.
func Unset() Changes {
	drain, ok := Attributes()["drain"].(schema.SingleNestedAttribute)
	if !ok {
		panic("provider: drain is not a nested attribute")
	}

	return Changes{
		ApplyMode: types.StringNull(), Reboot: types.StringNull(),
		Drain:      types.ObjectNull(tf.ObjectOf(drain.Attributes).AttrTypes),
		UpgradeVia: types.ListNull(types.StringType), AllowDowngrade: types.BoolNull(), AllowUntested: types.BoolNull(),
		SnapshotFolder: types.StringNull(), KubernetesVia: types.ListNull(types.StringType), DrainKubelet: types.BoolNull(),
		PruneManifests: types.BoolNull(),
		AppearWithin:   types.StringNull(),
		HealthChecks:   healthchecks.Unset(),
		Hooks:          hooks.Unset(),
		Window:         types.ObjectNull(tf.ObjectOf(windowAttribute().Attributes).AttrTypes),
	}
}

// Put puts the changes of a model into a set.
func (m Changes) Put(ctx context.Context, p *machineset.Set) {
	r := &tf.Reader{}

	p.Changes.TryConfig = r.Text(m.ApplyMode) == applyTry
	p.Changes.StageReboots = r.Text(m.Reboot) == rebootStaged
	p.Changes.AllowDowngrade = r.Truth(m.AllowDowngrade, false)
	p.Changes.AllowUntested = r.Truth(m.AllowUntested, false)
	p.Changes.Snapshots = r.Text(m.SnapshotFolder)
	p.Changes.DrainForKubelet = r.Truth(m.DrainKubelet, false)
	p.Changes.KeepManifests = !r.Truth(m.PruneManifests, true)
	p.Changes.HealthChecks = healthchecks.Read(ctx, m.HealthChecks)
	p.Changes.Hooks, p.Changes.HooksUnknown = hooks.Read(ctx, m.Hooks), m.Hooks.IsUnknown()

	for _, text := range r.Texts(m.UpgradeVia) {
		if v, err := machineconfig.ParseTalosVersion(text); err == nil {
			p.Changes.Via = append(p.Changes.Via, v)
		}
	}

	for _, text := range r.Texts(m.KubernetesVia) {
		if v, err := machineconfig.ParseKubernetesVersion(text); err == nil {
			p.Changes.KubernetesVia = append(p.Changes.KubernetesVia, v)
		}
	}

	if drain, ok := tf.Object[drainModel](ctx, r, m.Drain); ok {
		p.Changes.Drain.Skip = !r.Truth(drain.Enabled, true)
		p.Changes.Drain.IgnoreVolumes = !r.Truth(drain.WaitForVolumes, true)
		p.Changes.Drain.OnTimeout = cluster.DrainTimeout(r.Text(drain.OnTimeout))
		p.Changes.Drain.Timeout, _ = time.ParseDuration(r.Text(drain.Timeout)) // its validator reports mistakes
	}

	p.Changes.AppearWithin, _ = time.ParseDuration(r.Text(m.AppearWithin)) // as above

	putWindow(ctx, r, m.Window, &p.Changes)

	p.Unknown.Note(machineset.UnknownChanges, r.Unknown)
	p.Unknown.Note(machineset.UnknownConfiguration, r.Unknown)
}

// budget accepts the format of ReadBudget.
var budget = tf.StringCheck{
	Allowed: "value must be a number of at least 1, or a percentage from 1% to 100%",
	Check: func(at path.Path, value string) diag.Diagnostic {
		if _, ok := machineset.ReadBudget(value); ok && value != "" {
			return nil
		}

		return tf.Diagnostic(invalidBudget.At(tf.PathOf(at), finding.Args{"value": value}))
	},
}

// PositiveDuration accepts durations greater than zero.
var PositiveDuration = tf.StringCheck{
	Allowed: "value must be a duration such as 90s or 10m",
	Check: func(at path.Path, value string) diag.Diagnostic {
		if d, err := time.ParseDuration(value); err == nil && d > 0 {
			return nil
		}

		return tf.Diagnostic(invalidDuration.At(tf.PathOf(at), finding.Args{"value": value}))
	},
}

// oneOfEachMinor accepts a list with at most one release of each minor version of product. It is for lists, so that
// two elements can be compared.
type oneOfEachMinor struct {
	product, example string
	parse            func(string) (semver.Version, error)
}

var (
	talosVia = oneOfEachMinor{
		product: "Talos", example: "v1.12.6",
		parse: func(text string) (semver.Version, error) {
			v, err := machineconfig.ParseTalosVersion(text)

			return v.Version, err
		},
	}
	kubernetesVia = oneOfEachMinor{
		product: "Kubernetes", example: "v1.35.6",
		parse: func(text string) (semver.Version, error) {
			v, err := machineconfig.ParseKubernetesVersion(text)

			return v.Version, err
		},
	}
)

func (o oneOfEachMinor) Description(context.Context) string {
	return "value must be " + o.product + " versions such as " + o.example + ", at most one of each minor version"
}

func (o oneOfEachMinor) MarkdownDescription(ctx context.Context) string { return o.Description(ctx) }

// ValidateList skips unknown releases.
func (o oneOfEachMinor) ValidateList(_ context.Context, req validator.ListRequest, resp *validator.ListResponse) {
	seen := map[uint64]semver.Version{}

	for i, element := range req.ConfigValue.Elements() {
		text, ok := element.(types.String)
		if !ok || tf.IsBlank(text.ValueString()) {
			continue // unknown, or refused by tf.BlankTexts
		}

		at := req.Path.AtListIndex(i)

		v, err := o.parse(text.ValueString())
		if err != nil {
			resp.Diagnostics.Append(tf.Diagnostics(finding.MistakesAt(tf.PathOf(at), err))...)

			continue
		}

		if other, twice := seen[v.Minor]; twice {
			resp.Diagnostics.Append(tf.Diagnostic(releaseTwice.At(
				tf.PathOf(at), finding.Args{"version": v, "other": other})))
		}

		seen[v.Minor] = v
	}
}
