package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
)

// What the data sources share that look at a living cluster. They fail for mistakes in
// the configuration and for nothing that a cluster does or does not answer.

// defaultExamination bounds a look at a cluster when the user says nothing.
const defaultExamination = 10 * time.Second

// examined is how a cluster looks from outside.
type examined struct {
	name string
	want cluster.Spec
	have cluster.Snapshot
}

// examine asks the control planes of a handle, the members of etcd and, if wanted, the
// Kubernetes API, within a time.
func (m *machinery) examine(ctx context.Context, value types.Object, timeout timetypes.GoDuration, withNodes bool) (examined, diag.Diagnostics) {
	handle, bundle, diags := clusterOf(ctx, value)
	limit := limitOf(timeout, &diags)
	p := ofHandle(handle, "cluster", &diags)

	if diags.HasError() {
		return examined{}, diags
	}

	ctx = maskSecrets(ctx, handle.Secrets.ValueString())

	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	reading := *m
	reading.talos.TrustNodeNames, reading.talos.Digest = true, nil

	c, err := reading.clientsOf(ctx, p, recordedPool{}, bundle, kubernetes.Options{Progress: func(message string) { tflog.Info(ctx, message) }})
	if err != nil {
		at := path.Root("cluster")
		if errors.As(err, &endpointError{}) {
			at = at.AtName("endpoint")
		}

		return examined{}, append(diags, unableAt(at, "read", "cluster", report{Cause: []string{err.Error()}}))
	}

	defer c.close()

	r := &lifecycle.Runner{Fleet: fleet{c.machines}}
	if withNodes {
		r.Kubernetes = c.api
	}

	want := controlPlanesOf(p)

	return examined{name: p.settings.Name, want: want, have: r.Examine(ctx, want)}, diags
}

// controlPlanesOf is a cluster as far as its handle tells, each control plane by its address.
func controlPlanesOf(p pool) cluster.Spec {
	want := cluster.Spec{Name: p.settings.Name, Endpoint: p.settings.Endpoint}
	for _, address := range p.endpoints {
		want.Machines = append(want.Machines, cluster.Machine{Name: address, Role: cluster.ControlPlane, Address: address})
	}

	return want
}

// ofHandle is a cluster that is known by its handle alone, as a pool without machines. object
// names in texts what is worked on.
func ofHandle(handle handleModel, object string, diags *diag.Diagnostics) pool {
	p := pool{object: object, endpoints: endpointsOf(handle, diags), host: hostOf(&reader{}, &reader{}, handle, types.ObjectNull(nil), nil)}
	p.settings.Name, p.settings.Endpoint = handle.Name.ValueString(), handle.Endpoint.ValueString()

	return p
}

// endpointsOf are the control planes of a handle, each once.
func endpointsOf(handle handleModel, diags *diag.Diagnostics) []string {
	var endpoints []string

	given, _ := knownStrings(handle.TalosEndpoints)

	for i, address := range given {
		host, err := canonicalHost(address)
		if err != nil {
			diags.Append(invalid(path.Root("cluster").AtName("talos_endpoints").AtListIndex(i), "address", "found "+quote(address),
				"allowed is an IP address or a host name, without scheme, port or brackets", err.Error()))

			continue
		}

		if !slices.Contains(endpoints, host) {
			endpoints = append(endpoints, host)
		}
	}

	return endpoints
}

func limitOf(timeout timetypes.GoDuration, diags *diag.Diagnostics) time.Duration {
	if timeout.IsNull() || timeout.IsUnknown() {
		return defaultExamination
	}

	limit, more := timeout.ValueGoDuration()
	diags.Append(more...)

	if !more.HasError() && limit <= 0 {
		diags.Append(invalid(path.Root("timeout"), "timeout", "found "+quote(timeout.ValueString()),
			"allowed is a duration of more than nothing, such as 10s or 1m", "write the time that the answers may take"))
	}

	return limit
}

// partly warns of what was asked and did not answer; nothing when all did.
func (e examined) partly(silent []string, instead string) diag.Diagnostics {
	if len(silent) == 0 {
		return nil
	}

	return diag.Diagnostics{unsettled("Parts of the cluster do not answer", report{
		Attempted: fmt.Sprintf("look at cluster %q", e.name),
		Cause:     silent,
		Next:      "Nothing was changed, and nothing waits for an answer. " + instead,
	}.String())}
}

// examinedAttributes are the arguments of the data sources that look at a cluster.
func examinedAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"cluster": schema.SingleNestedAttribute{
			Required: true,
			MarkdownDescription: "Handle of the cluster: `cluster` of `talosop_control_plane` or `talosop_cluster`, or an object written by hand with at least `name`, `endpoint`, " +
				"`secrets` and `talos_endpoints`. While the handle is not wholly known, as when the cluster is being made, it is read during the apply; with `depends_on` on the " +
				"workers, after them.",
			Attributes: dataSourceAttributes(observedHandle()),
		},
		"timeout": schema.StringAttribute{
			Optional:   true,
			CustomType: timetypes.GoDurationType{},
			MarkdownDescription: "Time that all answers together may take, such as `5s` or `1m`. Who has not answered by then counts as silent; nothing is waited for beyond " +
				"that. Default: `10s`.",
		},
	}
}
