package providerdata

import (
	"context"
	"maps"
	"slices"

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
	return clusterNotRead.With(finding.Args{"cluster": name.ValueString()})
}

// Is reports whether secrets of a configuration may be those that were recorded; true when nothing was.
func (r RecordedSecrets) Is(secrets string) bool {
	return r.Identity == "" || r.of(types.StringValue(secrets))
}

// NoSecretsInState is the error of an operation on a state without secrets, when the provider has none either.
func (m *ProviderData) NoSecretsInState(name types.String) finding.Finding {
	_, entry := m.Clusters.By[name.ValueString()]

	return secretsNotInState.With(
		finding.Args{"cluster": name.ValueString(), "entry": entry, "others": m.otherClusters(entry)})
}

// KubeconfigOf is the kubeconfig of a cluster in the provider's configuration: unknown while that is, null for none.
func (m *ProviderData) KubeconfigOf(name types.String) types.String {
	if m == nil || m.Clusters.Unknown || name.IsUnknown() {
		return types.StringUnknown()
	}

	return m.Clusters.By[name.ValueString()].Kubeconfig
}

func (m *ProviderData) noSecrets(name string, at finding.Path) finding.Finding {
	_, entry := m.Clusters.By[name]

	return secretsMissing.At(at, finding.Args{"cluster": name, "entry": entry, "others": m.otherClusters(entry)})
}

// otherClusters are the clusters of the provider, unless one of them is the wanted one.
func (m *ProviderData) otherClusters(listed bool) []string {
	if listed {
		return nil
	}

	return slices.Sorted(maps.Keys(m.Clusters.By))
}

func otherSecrets(name string, at finding.Path) finding.Finding {
	return secretsOfAnotherCluster.At(at, finding.Args{"cluster": name})
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
