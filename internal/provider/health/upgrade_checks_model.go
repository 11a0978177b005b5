package health

import (
	"cmp"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/datasource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/upgrade"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

type upgradeChecksModel struct {
	Cluster           types.Object   `tfsdk:"cluster"`
	KubernetesVersion types.String   `tfsdk:"kubernetes_version"`
	Extensions        types.List     `tfsdk:"extensions"`
	Timeouts          timeouts.Value `tfsdk:"timeouts"`
	Complete          types.Bool     `tfsdk:"complete"`
	Problems          types.List     `tfsdk:"problems"`
}

func upgradeChecksAttributes() map[string]schema.Attribute {
	attributes := examinedAttributes()

	attributes["kubernetes_version"] = tf.OptionalString("Kubernetes version to upgrade to, for the problems "+
		"`removed_setting`, `removed_resource`, `removed_request` and `chart_incompatible`. Default: none, so these are "+
		"not checked.", kubernetesVersion)
	attributes["extensions"] = tf.OptionalStrings("System extensions of the new image, such as `siderolabs/gvisor`, for " +
		"the problem `extension_missing`. Default: none, so it is not checked.")
	attributes["complete"] = tf.ComputedBool("Whether every source answered. Otherwise, a warning names those that did " +
		"not, and `problems` may lack some.")
	attributes["problems"] = tf.ComputedObjectList("The problems, sorted by code and object.", problemAttributes())

	return attributes
}

func problemAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"code":   tf.ComputedString("Kind of the problem, such as `eviction_blocked`. The guide lists them."),
		"object": tf.ComputedString("What has the problem, such as `PodDisruptionBudget shop/web`."),
		"reason": tf.ComputedString("Text for people: what is wrong. Content of Secrets is hidden."),
	}
}

var problemType = tf.ObjectOf(problemAttributes())

// kubernetesVersion accepts a version of Kubernetes.
var kubernetesVersion = tf.StringCheck{
	Allowed: "value must be a Kubernetes version such as " + machineconfig.CurrentKubernetes,
	Check: func(at path.Path, value string) diag.Diagnostic {
		if _, err := machineconfig.ParseKubernetesVersion(value); err != nil {
			return tf.Diagnostic(finding.MistakesAt(tf.PathOf(at), err)[0])
		}

		return nil
	},
}

// Fill puts the problems into the model, each once.
func (m *upgradeChecksModel) Fill(problems []upgrade.Problem, complete bool) {
	slices.SortFunc(problems, func(a, b upgrade.Problem) int {
		return cmp.Or(strings.Compare(a.Code, b.Code), strings.Compare(a.String(), b.String()))
	})

	values := []attr.Value{}

	for _, p := range slices.Compact(problems) {
		values = append(values, types.ObjectValueMust(problemType.AttrTypes, map[string]attr.Value{
			"code": types.StringValue(p.Code), "object": types.StringValue(p.Object), "reason": types.StringValue(p.Reason),
		}))
	}

	m.Complete, m.Problems = types.BoolValue(complete), types.ListValueMust(problemType, values)
}
