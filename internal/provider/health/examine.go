package health

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/datasource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	clusterhealth "github.com/talosop/terraform-provider-talosop/internal/cluster/health"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// What the data sources that observe a living cluster share. Only mistakes in the configuration are errors, never
// the answers or the silence of a cluster.

// defaultExamination is the default timeout for observing a cluster.
const defaultExamination = 10 * time.Second

// examined is a cluster as observed from outside.
type examined struct {
	Name string
	want cluster.Spec
	have cluster.Snapshot
	// authorities are those in the secrets of the cluster.
	authorities []clusterhealth.Certificate
	// talos and kubernetes are the versions of the cluster; empty when unknown.
	talos, kubernetes string
}

// examine asks the control planes of a handle, unless this run refreshed them, the members of etcd and, if
// requested, the Kubernetes API, within a timeout.
func examine(
	ctx context.Context, m *providerdata.ProviderData, value types.Object, limits timeouts.Value, withNodes bool,
) (examined, diag.Diagnostics) {
	handle, bundle, diags := m.ClusterOf(ctx, value)

	limit, more := tf.ReadLimit(ctx, limits, defaultExamination)
	diags.Append(more...)

	p := providerdata.OfHandle(handle, "cluster", &diags)

	if diags.HasError() {
		return examined{}, diags
	}

	ctx = tf.MaskSecrets(ctx, handle.Secrets.ValueString())
	seen := examined{Name: p.Settings.Name, want: providerdata.ControlPlanesOf(p), authorities: authoritiesOf(bundle),
		talos: handle.TalosVersion.ValueString(), kubernetes: handle.KubernetesVersion.ValueString()}

	over := false
	if seen.have, over = ended(seen.want, bundle, time.Now()); over {
		return seen, diags
	}

	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	reading := *m
	reading.Talos.TrustNodeNames, reading.Talos.Digest, reading.Talos.Images = true, nil, nil

	c, err := reading.ClientsOf(ctx, pki.Examining, p, machineset.PriorState{}, bundle,
		api.Options{EachServer: withNodes, Progress: func(message string) { tf.LogInfo(ctx, message) }})
	if err != nil {
		at := finding.Root("cluster")
		if errors.As(err, &providerdata.EndpointError{}) {
			at = at.AtName("endpoint")
		}

		return examined{}, append(diags, tf.Diagnostic(clusterNotRead.At(
			at, finding.Args{"cluster": p.Settings.Name, "cause": err.Error()})))
	}

	defer c.Close()

	r := &lifecycle.Runner{Fleet: m.Ledger().Cached(bundle.Mark(), providerdata.Fleet{Fleet: c.Machines})}
	if withNodes {
		r.Kubernetes = c.API
	}

	seen.have = r.Examine(ctx, seen.want)

	return seen, diags
}

// partly warns of what did not answer; nothing when all answered. attribute has what is known.
func (e examined) partly(silent []string, attribute string) diag.Diagnostics {
	if len(silent) == 0 {
		return nil
	}

	return diag.Diagnostics{tf.Diagnostic(partsSilent.With(
		finding.Args{"cluster": e.Name, "silent": silent, "attribute": attribute}))}
}

// examinedTimeout describes the time that they take.
const examinedTimeout = "Time for all answers together. A server that does not answer in this time counts as silent. " +
	"Default: `10s`."

// examinedAttributes are the arguments of the data sources that observe a cluster, except timeouts.
func examinedAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"cluster": tf.RequiredObject("Handle of the cluster: `cluster` of `talosop_control_plane` or `talosop_cluster`, "+
			"or an object that you write with at least `name`, `endpoint`, `secrets` and `talos_endpoints`. While parts of "+
			"the handle are unknown, such as during a create, the read happens in the apply. With `depends_on`, it happens "+
			"after the workers.", clusterhandle.AccessAttributes()),
	}
}
