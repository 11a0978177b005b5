package health

import (
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/datasource/timeouts"
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
	Pools         types.Map      `tfsdk:"pools"`
	Drift         types.Map      `tfsdk:"drift"`
	Backups       types.List     `tfsdk:"backups"`
	Timeouts      timeouts.Value `tfsdk:"timeouts"`
	Healthy       types.Bool     `tfsdk:"healthy"`
	Summary       types.String   `tfsdk:"summary"`
	Conditions    types.List     `tfsdk:"conditions"`
	Certificates  types.List     `tfsdk:"certificates"`
	Nodes         types.Map      `tfsdk:"nodes"`
	Unmanaged     types.Map      `tfsdk:"unmanaged"`
	Staged        types.List     `tfsdk:"staged"`
	Markdown      types.String   `tfsdk:"markdown"`
	SVG           types.String   `tfsdk:"svg"`
	HTML          types.String   `tfsdk:"html"`
	Metrics       types.String   `tfsdk:"metrics"`
}

func clusterHealthAttributes() map[string]schema.Attribute {
	attributes := examinedAttributes()
	maps.Copy(attributes, pageAttributes())

	attributes["expires_within"] = tf.OptionalDuration("Remaining lifetime at which a certificate is due, such as " +
		"`2160h`, or a third of its lifetime if that is shorter. A certificate that Talos renews every 12 hours is " +
		"therefore due if its renewal failed. Default: `720h`; at most `43800h`.")
	attributes["healthy"] = tf.ComputedBool("Whether every condition is `True`.")
	attributes["summary"] = tf.ComputedString("`Ready`, or `Degraded: ` and the conditions that are not `True`, with " +
		"their reasons. The prefix is `Unreachable: ` if no control plane and no Kubernetes API answers. Use it as " +
		"`error_message` of a `check` block.")
	attributes["conditions"] = tf.ComputedObjectList("All conditions, always in the same order.",
		conditionAttributes())
	attributes["certificates"] = certificatesAttribute()
	attributes["nodes"] = nodesAttribute()
	attributes["unmanaged"] = unmanaged.Described("Nodes without a talosop resource, by name: nodes of autoscalers " +
		"and instance groups ([guide](../guides/autoscaling)), and nodes that a resource has not marked yet. They count " +
		"in every condition. Null if the Kubernetes API does not answer.")
	attributes["staged"] = tf.ComputedStrings("Names of the nodes whose machines apply a staged configuration at " +
		"their next boot ([guide](../guides/holding-changes.md#until-the-next-reboot)), as recorded by the last apply. A " +
		"node that has booted is no longer listed. Null if the Kubernetes API does not answer.")
	attributes["operations"] = tf.OptionalStrings("What a plan holds for the machines, shown as pending: `operations` " +
		"of the resources of the cluster, combined with `concat`. Pass it, and `cluster`, through a `local`: a direct " +
		"reference to a changed resource delays the read to the apply. Default: none.")
	attributes["markdown"] = tf.ComputedString("Report for a pull request comment: machines by role with stage, " +
		"versions, node and etcd member, `operations`, expiring certificates and the conditions. It changes when the " +
		"cluster does. Text from machines is in code spans, so none of it is a link, a mention or HTML.")
	attributes["svg"] = tf.ComputedString("The report as an image, in light or dark colors as the reader prefers. It " +
		"runs no code and loads nothing.")

	return attributes
}

func conditionAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"name":   tf.ComputedString("Name of the condition, as listed above."),
		"status": tf.ComputedString("`True` (good), `False`, or `Unknown` if the sources do not answer."),
		"reason": tf.ComputedString("Text for people: what is wrong and why, or how many are healthy. It stays the same " +
			"while the cluster does."),
		"last_change": tf.ComputedTime("When the status changed, by the records of the source (RFC 3339, UTC), never the " +
			"time of the read. Null if the source keeps no record, such as Talos and etcd."),
	}
}

var conditionType = tf.ObjectOf(conditionAttributes())

// Fill puts the assessment of a cluster into the model.
func (m *clusterHealthModel) Fill(health clusterhealth.Cluster) {
	m.Healthy = types.BoolValue(health.Healthy())
	m.Summary = types.StringValue(health.Summary())

	conditions := make([]attr.Value, len(health.Conditions))
	for i, c := range health.Conditions {
		conditions[i] = types.ObjectValueMust(conditionType.AttrTypes, map[string]attr.Value{
			"name": types.StringValue(c.Name), "status": types.StringValue(string(c.Status)),
			"reason": types.StringValue(c.Reason), "last_change": tf.MomentOrNull(c.Since),
		})
	}

	m.Conditions = types.ListValueMust(conditionType, conditions)
	m.Certificates = certificatesOf(health.Certificates)
	m.Nodes = nodesOf(health.Nodes)
	m.Unmanaged = unmanaged.Of(health.Unmanaged)

	m.Staged = types.ListNull(types.StringType)
	if health.Staged != nil {
		m.Staged = tf.TextList(health.Staged)
	}
}

// Draw puts the pictures into the model.
func (m *clusterHealthModel) Draw(want cluster.Spec, health clusterhealth.Cluster) {
	seen := picture.Observation{Name: want.Name, Endpoint: want.Endpoint, Health: health, Operations: m.operations()}

	m.Markdown, m.SVG = types.StringValue(picture.Markdown(seen)), types.StringValue(picture.SVG(seen))
}

// operations are those of the plan; nil where none are given.
func (m *clusterHealthModel) operations() []string {
	if m.Operations.IsNull() {
		return nil
	}

	operations, _ := tf.KnownStrings(m.Operations) // nothing in the configuration of a read is unknown

	return append([]string{}, operations...)
}
