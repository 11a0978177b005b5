package discovery

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterimport"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
)

// model is the configuration of a list of machines.
type model struct {
	Addresses      types.List   `tfsdk:"addresses"`
	Networks       types.List   `tfsdk:"networks"`
	MaxAddresses   types.Int64  `tfsdk:"max_addresses"`
	Connections    types.Int64  `tfsdk:"connections"`
	ConnectTimeout tf.Duration  `tfsdk:"connect_timeout"`
	Cluster        types.String `tfsdk:"cluster"`
	SecretsFile    types.String `tfsdk:"secrets_file"`
	Maintenance    types.Bool   `tfsdk:"maintenance"`
}

const (
	defaultMaxAddresses   = 1024
	mostAddresses         = 65536
	defaultConnections    = 64
	mostConnections       = 1024
	defaultConnectTimeout = 2 * time.Second
)

func attributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"addresses": tf.OptionalStrings("IP addresses (v4 or v6, without brackets) or hostnames to query, at port 50000. " +
			"An address without a machine is a warning."),
		"networks": tf.OptionalStrings("Networks to query, in CIDR notation, such as `10.0.0.0/24`. Set at least one of " +
			"`addresses` and `networks`."),
		"max_addresses": tf.OptionalNumber("How many addresses `networks` may contain in total (default 1024, at most "+
			"65536). A larger list is refused before any query.", int64validator.Between(1, mostAddresses)),
		"connections": tf.OptionalNumber("How many addresses the provider queries in parallel (default 64, at most 1024).",
			int64validator.Between(1, mostConnections)),
		"connect_timeout": tf.OptionalDuration("How long an address may take to accept a connection (default `2s`). " +
			"After that, it counts as unused."),
		"cluster": tf.OptionalString("Name of the cluster in `clusters` of the provider whose members the list " +
			"recognizes. Default: all `clusters` that have `secrets`."),
		"secrets_file": tf.OptionalString("Path of a file with the secrets of another cluster whose members the list " +
			"recognizes. It is a file of `talosctl gen secrets`, a control-plane machine configuration, or the state Secret " +
			"of talos-operator."),
		"maintenance": tf.OptionalBool("Whether to list only machines in maintenance mode (`true`), or only all others " +
			"(`false`). Default: both."),
	}
}

// targets are the addresses to ask, as far as they are known.
func (m model) targets() ([]target, diag.Diagnostics) {
	r := &tf.Reader{}
	addresses, networks := r.Texts(m.Addresses), r.Texts(m.Networks)

	if len(addresses)+len(networks) == 0 && !r.Unknown {
		return nil, diag.Diagnostics{tf.Diagnostic(noTargets.At(finding.Root("addresses"), nil))}
	}

	return targetsOf(addresses, networks, orDefault(m.MaxAddresses, defaultMaxAddresses))
}

func orDefault(v types.Int64, fallback int64) int64 {
	if v.IsNull() || v.IsUnknown() {
		return fallback
	}

	return v.ValueInt64()
}

// scan asks with the credentials of the clusters.
func (m model) scan(options talos.Options, sources []source) scan {
	options.Timeouts.Connect = defaultConnectTimeout

	if timeout := (&tf.Reader{}).Duration(m.ConnectTimeout); timeout > 0 {
		options.Timeouts.Connect = timeout
	}

	return scan{options: options, sources: sources, atOnce: orDefault(m.Connections, defaultConnections)}
}

// sources are the clusters whose members the list recognizes. The context hides their secrets from logs.
func (m model) sources(ctx context.Context, data *providerdata.ProviderData) (
	context.Context, []source, diag.Diagnostics,
) {
	var sources []source

	given, diags := m.given(data)

	for _, from := range given {
		file, err := from.Read(data)
		if err != nil {
			diags.Append(secretsUnread(err))

			continue
		}

		ctx = tf.MaskSecrets(ctx, file.Text) //nolint:fatcontext // the secrets of each are hidden

		credentials, err := providerdata.TalosCredentials(ctx, file.Bundle, pki.Inspecting.Talos)
		if err != nil {
			diags.Append(secretsUnread(err))
		}

		sources = append(sources, source{from, credentials})
	}

	return ctx, sources, diags
}

// secretsUnread is the error of a list that asked no machine.
func secretsUnread(err error) diag.Diagnostic {
	return tf.Diagnostic(secretsNotRead.With(finding.Args{"causes": strings.Split(err.Error(), "\n")}))
}

// given locates the secrets of clusters.
func (m model) given(data *providerdata.ProviderData) ([]clusterimport.Source, diag.Diagnostics) {
	var given []clusterimport.Source

	switch {
	case !m.Cluster.IsNull():
		given = append(given, clusterimport.Source{Cluster: m.Cluster.ValueString()})
	case data.Clusters.Unknown:
		return nil, diag.Diagnostics{secretsUnread(errUnknownClusters)}
	default:
		for _, name := range slices.Sorted(maps.Keys(data.Clusters.By)) {
			if !data.Clusters.By[name].Secrets.IsNull() {
				given = append(given, clusterimport.Source{Cluster: name})
			}
		}
	}

	if !m.SecretsFile.IsNull() {
		given = append(given, clusterimport.Source{Secrets: m.SecretsFile.ValueString()})
	}

	return given, nil
}

// chosen are the machines to list.
func (m model) chosen(found []machine) []machine {
	if m.Maintenance.IsNull() {
		return found
	}

	return slices.DeleteFunc(slices.Clone(found), func(one machine) bool {
		return (one.Access == step.Maintenance) != m.Maintenance.ValueBool()
	})
}
