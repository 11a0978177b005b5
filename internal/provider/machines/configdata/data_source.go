// Package configdata is the data source talosop_machine_config: the configuration of unmanaged machines.
package configdata

import (
	"cmp"
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// NewDataSource is the constructor of the data source.
func NewDataSource() datasource.DataSource {
	return &providerdata.DataSource[model]{
		Name: "machine_config",
		Description: "The configuration that `talosop_worker` sends to a machine, for machines that another " +
			"system creates: cloud user data, autoscalers, image builders. It contacts no machine, so a plan has the result " +
			"as soon as the arguments are known. Machines that boot with it join the cluster, and no talosop resource " +
			"manages them ([guide](../guides/autoscaling)).",
		Attributes: attributes,
		Check: func(ctx context.Context, config *model) diag.Diagnostics {
			p, diags := config.machineSet(ctx)

			return append(diags, tf.Diagnostics(validate(p))...)
		},
		Look: render,
	}
}

// render renders one configuration, without I/O.
func render(ctx context.Context, m *providerdata.ProviderData, config *model) diag.Diagnostics {
	p, diags := config.machineSet(ctx)
	diags.Append(tf.Diagnostics(provide(ctx, m, &p))...)

	if !diags.HasError() {
		diags.Append(tf.Diagnostics(config.render(p))...)
	}

	return diags
}

// machineSet reads the arguments as a set of one machine.
func (m model) machineSet(ctx context.Context) (machineset.Set, diag.Diagnostics) {
	handle, diags := clusterhandle.HandleFrom(ctx, m.Cluster)

	arguments := m.ConfiguredModel
	if arguments.Platform.IsNull() {
		arguments.Platform = types.StringValue(clusterhandle.MetalMode)
	}

	p, more := arguments.MachineSet(ctx, handle, cmp.Or(step.Role(m.Role.ValueString()), step.Worker))
	p.Object = "machines"
	p.Changes.AllowUntested = m.AllowUntested.ValueBool()
	p.Unknown.Note(machineset.UnknownChanges, m.AllowUntested.IsUnknown())
	p.Unknown.Note(machineset.UnknownConfiguration, m.Role.IsUnknown())

	return p, append(diags, more...)
}

// validate checks everything that is known.
func validate(p machineset.Set) finding.List {
	if p.Host != nil {
		return finding.List{configOfContainer.At(
			p.ClusterPath("mode"), finding.Args{"mode": clusterhandle.ContainerMode})}
	}

	var diags finding.List
	for _, g := range p.Groups {
		diags.Append(g.ValidateImage()...)
	}

	return append(append(diags, p.Validate()...), p.ValidateSecrets()...)
}

// provide fills in the provider's configuration for the cluster.
func provide(ctx context.Context, m *providerdata.ProviderData, p *machineset.Set) finding.List {
	name := types.StringValue(p.Settings.Name)
	m.ProvideSettings(ctx, p, name, providerdata.RecordedSecrets{})

	var diags finding.List

	if p.Provided {
		secrets, found := m.SecretsOf(name, providerdata.RecordedSecrets{}, p.ClusterPath("secrets"))
		p.Secrets = secrets.ValueString()
		p.Unknown.Note(machineset.UnknownSecrets, secrets.IsUnknown())
		diags = found
	}

	if !diags.HasError() && !p.Unknown.Renders() {
		diags.Append(configUnknown.With(finding.Args{"cluster": p.Settings.Name}))
	}

	return diags
}

// render fills in the results.
func (m *model) render(p machineset.Set) finding.List {
	if diags := validate(p); diags.HasError() {
		return diags
	}

	rendered, err := p.Configurations()
	if err != nil {
		return machineset.FieldDiagnostics(p, err)
	}

	for _, name := range p.Names() {
		redacted, err := machineconfig.Redacted(rendered.Configs[name])
		if err != nil {
			return finding.List{finding.Bug(err.Error())}
		}

		m.Config, m.Redacted = types.StringValue(string(rendered.Configs[name])), types.StringValue(redacted)
		m.Digest = types.StringValue(rendered.Machines[name].ConfigDigest)
	}

	return nil
}
