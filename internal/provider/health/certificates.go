package health

import (
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	clusterhealth "github.com/talosop/terraform-provider-talosop/internal/cluster/health"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// The default and maximum of the window for certificates that are due: authorities last ten years.
const (
	defaultWindow = 30 * 24 * time.Hour
	longestWindow = 5 * 365 * 24 * time.Hour
)

// within is the window for certificates that are due.
func (m *clusterHealthModel) within(diags *diag.Diagnostics) time.Duration {
	if m.ExpiresWithin.IsNull() || m.ExpiresWithin.IsUnknown() {
		return defaultWindow
	}

	window, more := m.ExpiresWithin.ValueGoDuration()
	diags.Append(more...)

	if !more.HasError() && (window < 0 || window > longestWindow) {
		diags.Append(tf.Diagnostic(invalidWindow.At(
			finding.Root("expires_within"), finding.Args{"value": m.ExpiresWithin.ValueString()})))
	}

	return window
}

func certificatesAttribute() schema.Attribute {
	return tf.ComputedObjectList("The observed certificates: the authorities in the secrets of the cluster, and the "+
		"certificates of control planes and API servers, also expired ones. An output of these values changes whenever "+
		"Talos renews a certificate.", certificateAttributes())
}

func certificateAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"name": tf.ComputedString("`Talos CA`, `Kubernetes CA`, `etcd CA` or `aggregator CA`, in this order; then `Talos " +
			"API` for each control plane, sorted, and `Kubernetes API` for each reachable API server."),
		"server": tf.ComputedString("Server of the certificate: a control plane as in the conditions, such as `cp-1 " +
			"(10.0.0.11)`, or the URL of an API server. Null for an authority."),
		"not_after": tf.ComputedTime("When the certificate expires (RFC 3339, UTC)."),
		"due":       tf.ComputedBool("Whether the certificate expires within `expires_within`, or has expired."),
	}
}

var certificateType = tf.ObjectOf(certificateAttributes())

func certificatesOf(seen []clusterhealth.Certificate) types.List {
	out := make([]attr.Value, len(seen))
	for i, c := range seen {
		out[i] = types.ObjectValueMust(certificateType.AttrTypes, map[string]attr.Value{
			"name": types.StringValue(c.Name), "server": tf.TextOrNull(c.Server),
			"not_after": timetypes.NewRFC3339TimeValue(c.NotAfter.UTC().Truncate(time.Second)), "due": types.BoolValue(c.Due),
		})
	}

	return types.ListValueMust(certificateType, out)
}

// authorityNames are those for people.
var authorityNames = map[string]string{"talos": "Talos CA", "kubernetes": "Kubernetes CA", "etcd": "etcd CA",
	"aggregator": "aggregator CA"}

// authoritiesOf are those in the secrets of a cluster.
func authoritiesOf(bundle *pki.Bundle) []clusterhealth.Certificate {
	var out []clusterhealth.Certificate

	for _, a := range bundle.Authorities() {
		out = append(out, clusterhealth.Certificate{Name: authorityNames[a.Name],
			Certificate: kubestate.Certificate{NotBefore: a.NotBefore, NotAfter: a.NotAfter}})
	}

	return out
}

// ended is a cluster that cannot be asked because an authority that signs for clients has expired; ok is false for
// any other cluster.
func ended(want cluster.Spec, bundle *pki.Bundle, now time.Time) (have cluster.Snapshot, ok bool) {
	for _, name := range []string{"talos", "kubernetes"} {
		authority := bundle.Authority(name)
		if now.Before(authority.NotAfter) {
			continue
		}

		cause := fmt.Sprintf("it is not asked, because the %s ended at %s, and no client certificate can be made",
			authorityNames[name], authority.NotAfter.Format(time.RFC3339))
		have = cluster.Snapshot{Time: now, Machines: map[string]step.MachineState{},
			Kubernetes: kubestate.State{Cause: cause}}

		for _, m := range want.Machines {
			have.Machines[m.Name] = step.MachineState{Access: step.Unreachable, Cause: cause}
		}

		return have, true
	}

	return cluster.Snapshot{}, false
}
