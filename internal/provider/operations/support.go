package operations

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/support"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
)

// occupied refuses an existing path, which a bundle would not replace.
func (a asked) occupied(ctx context.Context, diags *diag.Diagnostics) bool {
	if a.path.IsNull() || a.path.IsUnknown() || a.overwrite.IsUnknown() {
		return false
	}

	err := support.Vacant(ctx, a.path.ValueString(), a.overwrite.ValueBool())
	if errors.Is(err, support.ErrExists) {
		diags.Append(a.exists(err))

		return true
	}

	return false // writing the file reports other mistakes
}

func (a asked) exists(err error) diag.Diagnostic {
	return tf.Diagnostic(pathExists.At(
		finding.Root("path"), finding.Args{"path": a.path.ValueString(), "cause": err.Error()}))
}

// collect makes a support bundle. A warning names what does not answer.
func (a asked) collect(
	ctx context.Context, m *providerdata.ProviderData, tell func(string),
) (outcome, diag.Diagnostics) {
	handle, bundle, diags := m.ClusterOf(ctx, a.cluster)

	p := providerdata.OfHandle(handle, a.kind.name, &diags)
	if diags.HasError() {
		return outcome{}, diags
	}

	ctx = tf.MaskSecrets(ctx, handle.Secrets.ValueString())

	c, err := m.ClientsOf(ctx, pki.Collecting, p, machineset.PriorState{}, bundle, api.Options{})
	if err != nil {
		return outcome{}, append(diags, a.failed(ctx, p, nil, lifecycle.Result{}, err))
	}

	defer c.Close()

	machines, missing, err := a.machinesOf(ctx, p, c.API)
	if err != nil {
		return outcome{}, append(diags, a.failed(ctx, p, nil, lifecycle.Result{}, err))
	}

	missing, err = support.Collect(ctx, support.Request{
		Path: a.path.ValueString(), Overwrite: a.overwrite.ValueBool(), Cluster: p.Settings.Name,
		Secrets: tf.MasksOf(handle.Secrets.ValueString()), Machines: apisOf(c.Machines, machines), Missing: missing,
		Kubernetes: c.API.SupportFiles, Tell: tell,
	})

	switch {
	case errors.Is(err, support.ErrExists):
		return outcome{}, append(diags, a.exists(support.ErrExists))
	case err != nil:
		return outcome{}, append(diags, a.failed(ctx, p, nil, lifecycle.Result{}, err))
	case len(missing) > 0:
		diags.Append(a.incomplete(missing))
	}

	return outcome{done: a.collected(machines, missing)}, diags
}

// machinesOf are the machines to ask, and those known to be missing. An API that does not answer hides workers,
// unless they are named by address.
func (a asked) machinesOf(
	ctx context.Context, p machineset.Set, api *kubernetes.Client,
) ([]cluster.Machine, []support.Missing, error) {
	want := providerdata.ControlPlanesOf(p)
	nodes := api.Observe(ctx)
	want.Machines = append(want.Machines, a.workersOf(p, nodes)...)

	var missing []support.Missing

	if !nodes.Reachable {
		for _, name := range a.named() {
			known := slices.ContainsFunc(want.Machines, func(m cluster.Machine) bool { return m.Name == name })
			if _, err := netip.ParseAddr(name); err == nil && !known {
				want.Machines = append(want.Machines, cluster.Machine{Name: name, Role: step.Worker,
					Wanted: cluster.Wanted{Address: name, Through: a.through()}})
			}
		}

		if len(a.named()) == 0 {
			missing = append(missing, support.Missing{From: "workers", Cause: errors.New(
				"which ones there are is not known: the Kubernetes API does not answer")})
		}
	}

	chosen, err := a.chosen(p, want, nodes)
	if err != nil {
		return nil, nil, err
	}

	machines := slices.DeleteFunc(want.Machines, func(m cluster.Machine) bool { return !slices.Contains(chosen, m.Name) })

	for i, m := range machines {
		for _, node := range nodes.Nodes {
			if isNodeOf(p, m, node) {
				machines[i].NodeName = node.Name
			}
		}
	}

	return machines, missing, nil
}

// folderOf is the folder of a machine in a bundle: the name of its node, or its address.
func folderOf(m cluster.Machine) string {
	if m.NodeName != "" {
		return m.NodeName
	}

	return strings.ReplaceAll(m.Address, ":", "-")
}

func apisOf(fleet *talos.Fleet, machines []cluster.Machine) map[string]support.Machine {
	apis := map[string]support.Machine{}
	for _, m := range machines {
		apis[folderOf(m)] = fleet.Machine(m)
	}

	return apis
}

// collected lists the machines whose files are in the bundle.
func (a asked) collected(machines []cluster.Machine, missing []support.Missing) []string {
	var done []string

	for _, m := range machines {
		lost := func(one support.Missing) bool { return one.From == folderOf(m) && one.What == "" }
		if !slices.ContainsFunc(missing, lost) {
			done = append(done, a.operation().On(m.Name, ""))
		}
	}

	return done
}

func (a asked) incomplete(missing []support.Missing) diag.Diagnostic {
	var lines []string
	for _, one := range missing {
		lines = append(lines, one.String())
	}

	return tf.Diagnostic(bundleIncomplete.With(finding.Args{"path": a.path.ValueString(), "missing": lines}))
}
