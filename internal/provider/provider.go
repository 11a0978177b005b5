package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	resourceschema "github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/talosop/terraform-provider-talosop/internal/environ"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/provider/addon"
	"github.com/talosop/terraform-provider-talosop/internal/provider/backupschedule"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/credentials"
	"github.com/talosop/terraform-provider-talosop/internal/provider/direct"
	"github.com/talosop/terraform-provider-talosop/internal/provider/etcdbackup"
	"github.com/talosop/terraform-provider-talosop/internal/provider/functions"
	"github.com/talosop/terraform-provider-talosop/internal/provider/health"
	"github.com/talosop/terraform-provider-talosop/internal/provider/images"
	"github.com/talosop/terraform-provider-talosop/internal/provider/machineinfo"
	"github.com/talosop/terraform-provider-talosop/internal/provider/machines"
	"github.com/talosop/terraform-provider-talosop/internal/provider/machines/configdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/machines/discovery"
	"github.com/talosop/terraform-provider-talosop/internal/provider/machines/unmanagedworkers"
	"github.com/talosop/terraform-provider-talosop/internal/provider/operations"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/secrets"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

var _ direct.Provider = (*talosopProvider)(nil)

// New returns a constructor of the provider, as providerserver.Serve takes it.
// version is that of the release, "dev" for any other build.
func New(version string) func() provider.Provider {
	return func() provider.Provider { return NewOf(version, providerdata.NewProviderData()) }
}

// NewOf is New for a provider that reaches machines, clusters and hosts through the given data.
func NewOf(version string, data *providerdata.ProviderData) direct.Provider {
	return &talosopProvider{version: version, ProviderData: data}
}

// talosopProvider has an optional configuration: credentials for buckets and host clusters, the secrets of clusters
// that stay out of state, and the route into their network. Every resource carries the addresses it needs, so no
// fact about a cluster has to be known before the provider starts.
type talosopProvider struct {
	version      string
	ProviderData *providerdata.ProviderData
}

func (p *talosopProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "talosop"
	resp.Version = p.version
}

func (p *talosopProvider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	attributes := tf.ProviderAttributes(map[string]resourceschema.Attribute{
		"s3": providerStore(), "clusters": providerClusters(),
		"static_kubeconfigs": tf.OptionalBool("Refuse kubeconfigs of addons and host clusters whose user runs a command " +
			"(`exec`, `auth-provider`) or reads a file (`tokenFile`, `client-certificate`, `client-key`). Use it where " +
			"others write the configuration, such as pull requests that Atlantis plans. The environment variable `" +
			staticKubeconfigs + "=true` has the same effect; configuration cannot override it."),
		"progress_file": providerProgress(), "metrics_file": providerMetrics(), "proxy_url": providerProxy(),
		"jump_host":             providerJumpHost(),
		"unreachable_endpoints": providerEndpoints(), "factory_url": providerFactory(),
	})
	attributes["host"] = clusterhandle.ProviderHost()

	resp.Schema = schema.Schema{
		MarkdownDescription: "talosop creates, grows, upgrades, repairs and removes [Talos Linux](https://www.talos.dev) " +
			"Kubernetes clusters through the Talos API, without a management cluster. State stores what the provider " +
			"observed, and the secrets unless they are in `clusters`. The provider block is optional: use it for shared " +
			"bucket credentials, host cluster connections, a proxy or an SSH jump host.",
		Attributes: attributes,
	}
}

// ConfigValidators implements the framework.
func (p *talosopProvider) ConfigValidators(context.Context) []provider.ConfigValidator {
	return []provider.ConfigValidator{tf.BlankTexts{}}
}

// staticKubeconfigs is the environment variable that forces static_kubeconfigs, for machines that run untrusted
// configurations.
const staticKubeconfigs = "TALOSOP_STATIC_KUBECONFIGS"

// refusesCommands reports whether kubeconfigs may neither run commands nor read files. It is true while that is
// unknown, or cannot be read from the environment.
func (m providerModel) refusesCommands() (bool, diag.Diagnostics) {
	forced, err := environ.Switch(staticKubeconfigs)
	if err != nil {
		return true, diag.Diagnostics{tf.Diagnostic(invalidEnvironment.With(finding.Args{"cause": err.Error()}))}
	}

	return forced || m.StaticKubeconfigs.IsUnknown() || m.StaticKubeconfigs.ValueBool(), nil
}

// Configure creates a machinery for this configuration: another one may be in use at the same time.
func (p *talosopProvider) Configure(
	ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse,
) {
	var config providerModel

	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)

	m := p.ProviderData.WithNewWalk()
	m.Stores, m.Host = config.storeCredentials(), config.hostConnection()
	m.Clusters = config.clusters(ctx)
	m.Dial, m.Gateway = config.dial(), config.gateway()
	m.OutOfReach, m.Factory = config.outOfReach(), config.factory()
	if m.Dial != nil {
		m.Talos.Dial = m.Dial
	}

	var diagnostics diag.Diagnostics
	m.StaticKubeconfigs, diagnostics = config.refusesCommands()
	resp.Diagnostics.Append(diagnostics...)

	m.Progress, diagnostics = p.follower(ctx, config)
	resp.Diagnostics.Append(diagnostics...)

	resp.ResourceData, resp.DataSourceData, resp.EphemeralResourceData, resp.ActionData = &m, &m, &m, &m
	resp.ListResourceData = &m
}

func (p *talosopProvider) Resources(context.Context) []func() resource.Resource {
	return append([]func() resource.Resource{
		secrets.NewResource, machines.NewClusterResource, machines.NewControlPlaneResource, machines.NewWorkerResource,
		machines.NewMachineResource, unmanagedworkers.NewResource, etcdbackup.NewResource, backupschedule.NewResource,
		addon.NewResource, credentials.NewKubeconfigFile, credentials.NewTalosconfigFile,
	}, operations.NewResources()...)
}

func (p *talosopProvider) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{machineinfo.NewDataSource, health.NewClusterHealthDataSource,
		health.NewEtcdMembersDataSource, health.NewUpgradeChecksDataSource,
		etcdbackup.NewDataSource, images.NewImageDataSource, images.NewBootDataSource,
		images.NewVersionsDataSource, configdata.NewDataSource}
}

func (p *talosopProvider) EphemeralResources(context.Context) []func() ephemeral.EphemeralResource {
	return []func() ephemeral.EphemeralResource{credentials.NewKubeconfigEphemeral, credentials.NewTalosconfigEphemeral}
}

// Actions implements the framework.
func (p *talosopProvider) Actions(context.Context) []func() action.Action {
	return operations.NewActions()
}

// ListResources implements the framework.
func (p *talosopProvider) ListResources(context.Context) []func() list.ListResource {
	return []func() list.ListResource{discovery.NewListResource, etcdbackup.NewListResource}
}

// Functions implements the framework.
func (p *talosopProvider) Functions(context.Context) []func() function.Function {
	return functions.All()
}
