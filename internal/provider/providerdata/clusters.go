package providerdata

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// Clusters are the clusters of the provider's configuration.
type Clusters struct {
	// Unknown is true while the set of clusters is unknown.
	Unknown bool
	// By their names.
	By map[string]ProvidedCluster
}

// ProvidedCluster is the provider's configuration for a cluster, which is in no state. Each value may be null.
type ProvidedCluster struct {
	Secrets    types.String `tfsdk:"secrets"`
	Kubeconfig types.String `tfsdk:"kubeconfig"`
	Patches    types.List   `tfsdk:"config_patches"`
	// Machines are by host name.
	Machines types.Map `tfsdk:"machines"`
}

// ProvidedMachine is the provider's configuration for one machine, which is in no state.
type ProvidedMachine struct {
	Patches types.List `tfsdk:"config_patches"`
	Meta    types.Map  `tfsdk:"meta"`
}

// RecordedSecrets is what state records of the secrets of the last read of the machines.
type RecordedSecrets record.Secrets

// of reports whether secrets are those of the cluster, possibly after a rotation.
func (r RecordedSecrets) of(secrets types.String) bool {
	if r.Identity == "" {
		return false
	}

	bundle, err := pki.Parse([]byte(secrets.ValueString()))

	return err == nil && bundle.Identity() == r.Identity &&
		(r.Digest == "" || bundle.CurrentDigest() == r.Digest || bundle.Rotates())
}

// find finds a cluster by what is recorded of its secrets, even under another name, and otherwise by its name.
func (c Clusters) find(name string, recorded RecordedSecrets) (found ProvidedCluster, proven, ok bool) {
	for _, one := range c.By {
		if recorded.of(one.Secrets) {
			return one, true, true
		}
	}

	found, ok = c.By[name]

	return found, false, ok
}

// ProvideSettings gives the machines of a cluster their settings from the provider's configuration. recorded is as
// in SecretsOf. Until all of it is known, the set is unknown.
func (m *ProviderData) ProvideSettings(
	ctx context.Context, p *machineset.Set, name types.String, recorded RecordedSecrets,
) {
	switch {
	case m == nil:
		return
	case m.Clusters.Unknown:
		p.Unknown.Note(machineset.UnknownConfiguration, true)

		return
	case name.IsUnknown():
		return
	}

	found, _, _ := m.Clusters.find(name.ValueString(), recorded)
	r := &tf.Reader{}

	p.Settings.ProvidedPatches = r.Texts(found.Patches)
	own := tf.Objects[ProvidedMachine](ctx, r, found.Machines)

	*p = p.Each(func(_ string, machine *machineset.Machine) {
		given := own[machine.Config.Hostname]
		machine.Config.ProvidedPatches, machine.Meta.Provided = r.Texts(given.Patches), r.TextMap(given.Meta)
	})

	p.Unknown.Note(machineset.UnknownConfiguration, r.Unknown)
}

// SecretsOf are the secrets of a cluster without its own: those under its name in the provider's configuration. With
// recorded secrets, the bundle of another cluster is an error, and the right one is found even under another name.
// The secrets are unknown until the provider is configured with known values.
func (m *ProviderData) SecretsOf(
	name types.String, recorded RecordedSecrets, at finding.Path,
) (types.String, finding.List) {
	if m == nil || m.Clusters.Unknown || name.IsUnknown() {
		return types.StringUnknown(), nil
	}

	found, proven, ok := m.Clusters.find(name.ValueString(), recorded)

	switch {
	case !ok || found.Secrets.IsNull():
		return types.StringUnknown(), finding.List{m.noSecrets(name.ValueString(), at)}
	case recorded.Identity != "" && !proven && !found.Secrets.IsUnknown():
		return types.StringUnknown(), finding.List{otherSecrets(name.ValueString(), at)}
	default:
		return found.Secrets, nil
	}
}

// LacksSecretsOf reports whether the configuration of the provider is known and has no secrets of a cluster: they
// were moved to its resources, or are missing.
func (m *ProviderData) LacksSecretsOf(name types.String, recorded RecordedSecrets) bool {
	if m == nil || m.Clusters.Unknown || name.IsUnknown() {
		return false
	}

	found, _, ok := m.Clusters.find(name.ValueString(), recorded)

	return !ok || found.Secrets.IsNull()
}

// StateLacksSecrets reports whether the cluster of a state has no secrets there, and the provider has none either.
func (m *ProviderData) StateLacksSecrets(ctx context.Context, cluster types.Object) bool {
	handle, diags := clusterhandle.AccessFrom(ctx, cluster)

	return !diags.HasError() && handle.Secrets.IsNull() && m.LacksSecretsOf(handle.Name, RecordedSecrets{})
}

// NotReadWithoutSecrets warns of an object of a cluster that a refresh could not read, because neither its state nor
// the provider has the secrets.
func NotReadWithoutSecrets(name types.String) finding.Finding {
	return finding.Warn("Cluster was not read", fmt.Sprintf("The secrets of cluster %s are neither in state nor in the "+
		"provider's configuration. State keeps what was read before. Where they were moved to the resource, this apply "+
		"stores them, and the next refresh reads the cluster.", finding.Quote(name.ValueString())))
}

// Is reports whether secrets of a configuration may be those that were recorded; true when nothing was.
func (r RecordedSecrets) Is(secrets string) bool {
	return r.Identity == "" || r.of(types.StringValue(secrets))
}

// NoSecretsInState is the error of an operation on a state without secrets, when the provider has none either.
func (m *ProviderData) NoSecretsInState(name types.String) finding.Finding {
	return finding.Invalid(finding.Path{}, "secrets", fmt.Sprintf("found none for cluster %s: state has none, and %s",
		finding.Quote(name.ValueString()), m.providerHas(name.ValueString())),
		"a machine can only be removed with the secrets that it joined with",
		fmt.Sprintf("give `clusters = { %s = { secrets = … } }` to the provider; where the secrets were moved to the "+
			"resource, apply that first", finding.Quote(name.ValueString())))
}

// KubeconfigOf is the kubeconfig of a cluster in the provider's configuration: unknown while that is, null for none.
func (m *ProviderData) KubeconfigOf(name types.String) types.String {
	if m == nil || m.Clusters.Unknown || name.IsUnknown() {
		return types.StringUnknown()
	}

	return m.Clusters.By[name.ValueString()].Kubeconfig
}

func (m *ProviderData) noSecrets(name string, at finding.Path) finding.Finding {
	return finding.Invalid(at, "secrets", fmt.Sprintf("found none for cluster %s: none are given here, and %s",
		finding.Quote(name), m.providerHas(name)),
		"allowed are secrets here, which are stored in state, or in the provider block, which are stored nowhere",
		fmt.Sprintf("give secrets here, or `clusters = { %s = { secrets = … } }` to the provider", finding.Quote(name)))
}

// providerHas describes what the configuration of the provider has instead of the secrets of a cluster.
func (m *ProviderData) providerHas(name string) string {
	if _, ok := m.Clusters.By[name]; ok {
		return "what the provider has of it has none"
	}

	if names := slices.Sorted(maps.Keys(m.Clusters.By)); len(names) > 0 {
		return "`clusters` of the provider has " + strings.Join(names, ", ")
	}

	return "the provider has no `clusters`"
}

func otherSecrets(name string, at finding.Path) finding.Finding {
	return finding.Refused(at, "Other secrets than those of the cluster",
		fmt.Sprintf("the provider has secrets for cluster %s that are not those with which its machines were last read",
			finding.Quote(name)),
		"Machines trust nothing but their own secrets, and whatever answers to others is another cluster",
		"Give the provider the secrets of this cluster. Those whose keys were turned over list them in `rotated`, for "+
			"good. `state rm` is for a cluster that is gone")
}

// AccessFrom decodes access, with the secrets of the provider's configuration when it has none.
func (m *ProviderData) AccessFrom(
	ctx context.Context, value types.Object,
) (clusterhandle.AccessModel, diag.Diagnostics) {
	handle, diags := clusterhandle.AccessFrom(ctx, value)

	if handle.Secrets.IsNull() && !diags.HasError() {
		secrets, found := m.SecretsOf(handle.Name, RecordedSecrets{}, finding.Root("cluster").AtName("secrets"))
		handle.Secrets = secrets
		diags.Append(tf.Diagnostics(found)...)
	}

	return handle, diags
}

// ClusterOf reads a handle and the secrets of its cluster, which have to be known.
func (m *ProviderData) ClusterOf(
	ctx context.Context, value types.Object,
) (clusterhandle.AccessModel, *pki.Bundle, diag.Diagnostics) {
	handle, diags := m.AccessFrom(ctx, value)
	if diags.HasError() {
		return handle, nil, diags
	}

	bundle, err := pki.Parse([]byte(handle.Secrets.ValueString()))
	if err != nil {
		diags.Append(tf.InvalidSecrets(path.Root("cluster").AtName("secrets"), err))
	}

	return handle, bundle, diags
}
