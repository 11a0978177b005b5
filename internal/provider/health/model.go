package health

import (
	"github.com/hashicorp/terraform-plugin-framework-timeouts/datasource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	clusterhealth "github.com/talosop/terraform-provider-talosop/internal/cluster/health"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/health/picture"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/provider/unmanaged"
)

type clusterHealthModel struct {
	Cluster       types.Object   `tfsdk:"cluster"`
	ExpiresWithin tf.Duration    `tfsdk:"expires_within"`
	Operations    types.List     `tfsdk:"operations"`
	Timeouts      timeouts.Value `tfsdk:"timeouts"`
	Healthy       types.Bool     `tfsdk:"healthy"`
	Summary       types.String   `tfsdk:"summary"`
	Conditions    types.List     `tfsdk:"conditions"`
	Certificates  types.List     `tfsdk:"certificates"`
	Unmanaged     types.Map      `tfsdk:"unmanaged"`
	Staged        types.List     `tfsdk:"staged"`
	Markdown      types.String   `tfsdk:"markdown"`
	SVG           types.String   `tfsdk:"svg"`
}

func clusterHealthAttributes() map[string]schema.Attribute {
	attributes := examinedAttributes()

	attributes["expires_within"] = tf.OptionalDuration("How much time is left of a certificate that is due, such as " +
		"`2160h`; a third of its lifetime where that is shorter, so that one that Talos renews every 12 hours is due when " +
		"that did not happen. Default: `720h`; at most `43800h`.")
	attributes["healthy"] = tf.ComputedBool("Whether every condition is `True`.")
	attributes["summary"] = tf.ComputedString("`Ready`; or `Degraded: ` and the conditions that are not `True`, with " +
		"their reasons; or the same after `Unreachable: ` when no control plane and no Kubernetes API answers. For the " +
		"`error_message` of a `check` block.")
	attributes["conditions"] = tf.ComputedObjectList("The conditions, always all of them and in the same order.",
		conditionAttributes())
	attributes["certificates"] = certificatesAttribute()
	attributes["unmanaged"] = unmanaged.Described("Nodes that no resource of talosop has, by their names: of " +
		"autoscalers and instance groups ([guide](../guides/autoscaling)), and those that a resource did not mark as its " +
		"own yet. They count in every condition. Null when the Kubernetes API does not answer.")
	attributes["staged"] = tf.ComputedStrings("Names of the nodes on whose machines a configuration waits for their " +
		"next boot ([guide](../guides/holding-changes.md#until-the-next-reboot)), as the last apply noted on them; none is " +
		"named any more once it has booted. Null when the Kubernetes API does not answer.")
	attributes["operations"] = tf.OptionalStrings("What a plan holds for the machines, to be drawn as pending: " +
		"`operations` of the resources of the cluster, several of them with `concat`, and through a `local`, as the " +
		"cluster too: what refers to a resource directly is read during the apply when that changes. Without it nothing is " +
		"said of them.")
	attributes["markdown"] = tf.ComputedString("How the cluster is, for a comment on a pull request: its machines by " +
		"role with stage, versions, node and member of etcd, `operations`, certificates that end and the conditions. It " +
		"changes when the cluster does. What machines say is in code spans, so that none of it is a link, a mention or HTML.")
	attributes["svg"] = tf.ComputedString("The same as an image, in light or dark colours as its reader has them. It " +
		"runs nothing and loads nothing.")

	return attributes
}

func conditionAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"name":   tf.ComputedString("Name of the condition, as listed above."),
		"status": tf.ComputedString("`True`, which is good, `False`, or `Unknown` when those who would know do not answer."),
		"reason": tf.ComputedString("Text for people: who is not as it should be and why, or how many are. It stays the " +
			"same as long as the cluster does."),
		"last_change": tf.ComputedTime("When the status changed by the records of the source itself (RFC 3339, UTC), never " +
			"the time of reading. Null where the source keeps no record, as Talos and etcd do not."),
	}
}

var conditionType = tf.ObjectOf(conditionAttributes())

// Fill puts the assessment of a cluster into the model.
func (m *clusterHealthModel) Fill(health clusterhealth.Cluster) {
	m.Healthy = types.BoolValue(health.Healthy())
	m.Summary = types.StringValue(health.Summary())

	conditions := make([]attr.Value, len(health.Conditions))
	for i, c := range health.Conditions {
		since := timetypes.NewRFC3339Null()
		if !c.Since.IsZero() {
			since = timetypes.NewRFC3339TimeValue(c.Since.UTC())
		}

		conditions[i] = types.ObjectValueMust(conditionType.AttrTypes, map[string]attr.Value{
			"name": types.StringValue(c.Name), "status": types.StringValue(string(c.Status)),
			"reason": types.StringValue(c.Reason), "last_change": since,
		})
	}

	m.Conditions = types.ListValueMust(conditionType, conditions)
	m.Certificates = certificatesOf(health.Certificates)
	m.Unmanaged = unmanaged.Of(health.Unmanaged)

	m.Staged = types.ListNull(types.StringType)
	if health.Staged != nil {
		m.Staged = tf.TextList(health.Staged)
	}
}

// Draw puts the pictures into the model.
func (m *clusterHealthModel) Draw(want cluster.Spec, health clusterhealth.Cluster) {
	seen := picture.Observation{Name: want.Name, Endpoint: want.Endpoint, Health: health}

	if !m.Operations.IsNull() {
		operations, _ := tf.KnownStrings(m.Operations) // nothing in the configuration of a read is unknown
		seen.Operations = append([]string{}, operations...)
	}

	m.Markdown, m.SVG = types.StringValue(picture.Markdown(seen)), types.StringValue(picture.SVG(seen))
}
