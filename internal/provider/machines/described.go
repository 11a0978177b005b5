package machines

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fieldpath"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/remainder"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterimport"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// Described is a cluster as an import of its machines puts it into state, without what only the machines tell.
type Described struct {
	Schema schema.Schema
	State  tftypes.Value
	// Secret are the patches for `clusters` of the provider, with what the import leaves out because it may be secret:
	// those of all machines, and those of single ones by host name.
	Secret        []string
	SecretMachine map[string][]string
	// Differs are the places, by machine, where state and secret patches together make another configuration.
	Differs map[string][]fieldpath.Place
}

// Describe describes a cluster from the configurations of its machines. It contacts none.
func Describe(
	ctx context.Context, name, secrets string, planes map[string]clusterimport.Recognized,
	pools map[string]map[string]clusterimport.Recognized,
) (Described, diag.Diagnostics) {
	provided := providerdata.ProvidedCluster{Secrets: types.StringValue(secrets),
		Patches: types.ListNull(types.StringType), Machines: types.MapNull(providedMachineType())}
	r := &describer{name: name, planes: planes, pools: pools, found: maps.Clone(planes)}

	for pool, machines := range pools {
		for key, machine := range machines {
			r.found[pool+machineset.PoolSeparator+key] = machine
		}
	}

	// Without secret patches, everything secret is left over. With them, nothing is.
	model, rest, diags := r.model(ctx, provided)
	if diags.HasError() {
		return Described{}, diags
	}

	d := Described{Differs: map[string][]fieldpath.Place{}}

	common := remainder.Common(slices.Collect(maps.Values(rest.remainders))...)
	diags.Append(d.provide(ctx, common, rest, &provided)...)

	if model, rest, diags = r.model(ctx, provided); diags.HasError() {
		return d, diags
	}

	for name, left := range rest.remainders {
		if !left.Empty() {
			d.Differs[name] = left.Places()
		}
	}

	d.Schema = schema.Schema{Attributes: tf.WithTypes(clusterResourceAttributes(ctx))}
	state := tfsdk.State{Schema: d.Schema, Raw: tftypes.NewValue(d.Schema.Type().TerraformType(ctx), nil)}
	diags.Append(state.Set(ctx, &model)...)
	d.State = state.Raw

	return d, diags
}

// describer describes one cluster, with and without patches in the configuration of the provider.
type describer struct {
	name   string
	planes map[string]clusterimport.Recognized
	pools  map[string]map[string]clusterimport.Recognized
	found  map[string]clusterimport.Recognized
}

// leftOver is what machines have beyond a model, by name, and their host names.
type leftOver struct {
	remainders map[string]remainder.Remainder
	hosts      map[string]string
}

func (r *describer) model(
	ctx context.Context, provided providerdata.ProvidedCluster,
) (ClusterModel, leftOver, diag.Diagnostics) {
	m := &providerdata.ProviderData{Clusters: providerdata.Clusters{
		By: map[string]providerdata.ProvidedCluster{r.name: provided}}}

	file, err := clusterimport.Source{Cluster: r.name}.Read(m)
	if err != nil {
		return ClusterModel{}, leftOver{}, clusterimport.ImportFailed("read the secrets", err, "")
	}

	model, diags := clusterFrom(ctx, file, r.planes, r.pools)
	if diags.HasError() {
		return model, leftOver{}, diags
	}

	p, _, more := patchesInto(ctx, m, &model, file, r.found)
	if more.HasError() {
		return model, leftOver{}, more
	}

	rest, err := r.leftOver(p)
	if err != nil {
		return model, rest, clusterimport.ImportFailed("compare the configurations", err, "")
	}

	return model, rest, append(diags, model.derive(ctx)...)
}

func (r *describer) leftOver(p machineset.Set) (leftOver, error) {
	rest := leftOver{remainders: map[string]remainder.Remainder{}, hosts: map[string]string{}}

	made, err := p.Configurations()
	if err != nil {
		return rest, err
	}

	for name, machine := range r.found {
		rest.hosts[name] = p.Machines[name].Config.Hostname

		if rest.remainders[name], err = remainder.Revealed(made.Configs[name], machine.Config); err != nil {
			return rest, fmt.Errorf("%s: %w", name, err)
		}
	}

	return rest, nil
}

// provide puts secret patches into the configuration of the provider. A machine without a host name has none there.
func (d *Described) provide(
	ctx context.Context, common remainder.Remainder, rest leftOver, provided *providerdata.ProvidedCluster,
) (diags diag.Diagnostics) {
	var err error
	if d.Secret, err = common.Patches(); err != nil {
		return clusterimport.ImportFailed("write patches", err, "")
	}

	provided.Patches = tf.TextList(d.Secret)
	d.SecretMachine = map[string][]string{}
	own := map[string]attr.Value{}

	for name, left := range rest.remainders {
		texts, err := left.Without(common).Patches()
		if err != nil {
			return clusterimport.ImportFailed("write patches", err, "")
		}

		if host := rest.hosts[name]; host != "" && len(texts) > 0 {
			d.SecretMachine[host] = texts

			one, more := types.ObjectValueFrom(ctx, providedMachineType().AttrTypes,
				providerdata.ProvidedMachine{Patches: tf.TextList(texts), Meta: types.MapNull(types.StringType)})
			diags.Append(more...)

			own[host] = one
		}
	}

	provided.Machines = types.MapValueMust(providedMachineType(), own)

	return diags
}

func providedMachineType() types.ObjectType {
	return types.ObjectType{AttrTypes: map[string]attr.Type{"config_patches": types.ListType{ElemType: types.StringType},
		"meta": types.MapType{ElemType: types.StringType}}}
}
