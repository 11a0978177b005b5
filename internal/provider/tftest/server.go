package tftest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	resourcepkg "github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/containers"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/preflight"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/upgrade"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider"
	"github.com/talosop/terraform-provider-talosop/internal/provider/direct"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/secrets"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/secretstest"
)

// QuickProviderData has short timeouts and polls often. A request has enough time for a busy computer: in these
// tests an unreachable server refuses connections.
func QuickProviderData() *providerdata.ProviderData {
	m := NewProviderData()
	m.Interval = 10 * time.Millisecond
	m.Policy.DeadAfter = 5 * time.Second
	m.Policy.AppearWithin = 10 * time.Minute // a machine of a killed run may take long to boot on a busy computer
	m.Policy.OthersGrace = 10 * time.Second
	m.Talos.Timeouts = talos.Timeouts{
		Connect: 10 * time.Second, Call: 10 * time.Second, Observe: 10 * time.Second, Settle: 15 * time.Second,
		Poll: 10 * time.Millisecond,
	}

	return m
}

// NewProviderData is the data of a process that treats the secrets of Bundle and NewBundle as new, and asks no Image
// Factory.
func NewProviderData() *providerdata.ProviderData {
	m := providerdata.NewProviderData()
	m.Schematics = nil
	first, err := firstBundle()

	newSecrets.mu.Lock()
	defer newSecrets.mu.Unlock()

	for _, bundle := range append(slices.Clone(newSecrets.bundles), first) {
		if err == nil {
			m.Ledger().NoteUnused(bundle)
		}
	}

	newSecrets.processes = append(newSecrets.processes, m)

	return m
}

// quickProvider is what NewQuickProvider returns.
type quickProvider struct{ direct.Provider }

// NewQuickProvider is a provider with given data that generates secrets without a slow key.
func NewQuickProvider(m *providerdata.ProviderData) direct.Provider {
	return quickProvider{provider.NewOf("test", m)}
}

func (p quickProvider) Resources(ctx context.Context) []func() resourcepkg.Resource {
	all := p.Provider.Resources(ctx)

	for i, newResource := range all {
		var named resourcepkg.MetadataResponse
		if newResource().Metadata(ctx, resourcepkg.MetadataRequest{ProviderTypeName: "talosop"},
			&named); named.TypeName == "talosop_secrets" {
			all[i] = func() resourcepkg.Resource { return secrets.NewResourceOf(secretstest.Generate) }
		}
	}

	return all
}

// Serve is a provider with a configuration, on QuickProviderData.
func Serve(t *testing.T, provider Config) tfprotov6.ProviderServer {
	t.Helper()

	return ServeWith(t, QuickProviderData(), provider)
}

// Walk is a provider in one walk of a CLI: CLIs start and configure it for each plan and each apply.
type Walk struct {
	tfprotov6.ProviderServer

	// Next is the provider of the next walk, in the same process.
	Next func(*testing.T) tfprotov6.ProviderServer
}

// ServeWith is a provider with a configuration, on given data.
func ServeWith(t *testing.T, m *providerdata.ProviderData, config Config) tfprotov6.ProviderServer {
	t.Helper()

	server := provider.Serve(provider.NewOf("test", m))
	given := Dynamic(t, ValueOf(t, Schemas(t).Provider.ValueType(), config))

	resp, err := server.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{Config: given})
	if err != nil || len(resp.Diagnostics) > 0 {
		t.Fatal(err, Show(resp.Diagnostics))
	}

	return Walk{server, func(t *testing.T) tfprotov6.ProviderServer {
		t.Helper()

		return ServeWith(t, m, config)
	}}
}

// PlanData is the data of a process whose plans ask neither machines nor hosts. A plan with an upgrade to Removing
// finds what blocks it; a host cluster has room for everything.
func PlanData() *providerdata.ProviderData {
	m := NewProviderData()

	m.Removals = func(_ context.Context, _ *providerdata.ProviderData, _ machineset.Set,
		u machineset.UpgradeOf) (providerdata.UpgradeObstacles, error) {
		if u.Path.To.String() != Removing {
			return providerdata.UpgradeObstacles{}, nil
		}

		return providerdata.UpgradeObstacles{
			Obstacles: upgrade.Obstacles{Settings: []upgrade.RemovedSetting{
				{Kind: "flag", Name: "--a-flag", Component: "kube-apiserver", Nodes: []string{"cp-1"}, RemovedIn: "1.36"},
			}},
			Behind: []kubestate.Node{{Name: "elsewhere", KubeletVersion: "v1.32.1"}},
		}, errors.New("a worker did not answer")
	}

	m.Hosts.Open = func(hostcluster.Options) (containers.Host, error) { return roomyHost{}, nil }

	return m
}

// roomyHost is a host cluster with room for everything. Plans need no more of it.
type roomyHost struct{ containers.Host }

func (roomyHost) Check(context.Context, workload.Spec) ([]preflight.Finding, error) {
	return nil, nil
}

func (roomyHost) Close() {}

// Configure configures a provider without values.
func Configure(server tfprotov6.ProviderServer) error {
	config, err := nothingConfigured()
	if err != nil {
		return err
	}

	resp, err := server.ConfigureProvider(context.Background(), &tfprotov6.ConfigureProviderRequest{Config: config})
	if err == nil && len(resp.Diagnostics) > 0 {
		err = errors.New(Show(resp.Diagnostics))
	}

	return err
}

// nothingConfigured is a provider configuration without values.
var nothingConfigured = sync.OnceValues(func() (*tfprotov6.DynamicValue, error) {
	server, err := providerserver.NewProtocol6WithError(provider.NewOf("test", nil))()
	if err != nil {
		return nil, err
	}

	schemas, err := server.GetProviderSchema(context.Background(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		return nil, err
	}

	nothing := map[string]tftypes.Value{}
	for _, a := range schemas.Provider.Block.Attributes {
		nothing[a.Name] = tftypes.NewValue(a.ValueType(), nil)
	}

	typ := schemas.Provider.ValueType()
	config, err := tfprotov6.NewDynamicValue(typ, tftypes.NewValue(typ, nothing))

	return &config, err
})

// Removing is a Kubernetes version that removes a flag in use, for Server.
const Removing = "v1.36.2"

// Server is a provider for the plans of one run of a CLI, on PlanData.
func Server(t *testing.T) tfprotov6.ProviderServer {
	t.Helper()

	server := provider.Serve(provider.NewOf("test", PlanData()))
	Must(t, Configure(server))

	return server
}

// NewServer is a provider that knows only its plans in this test: it treats no bundle as new.
func NewServer(t *testing.T) tfprotov6.ProviderServer {
	t.Helper()

	server := provider.Serve(provider.NewOf("test", providerdata.NewProviderData()))
	if err := Configure(server); err != nil {
		t.Fatal(err)
	}

	return server
}
