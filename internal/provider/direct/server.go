// Package direct serves reads and plans of resources without the passes of the plugin framework over all values. For a
// plan, the framework (1.19) walks, copies and looks up each value several times, and copies all of them once more for
// each attribute of the resource (fwserver.SchemaModifyPlan calls SetAttribute, which transforms the whole plan). This
// package does the same in three walks that visit only the attributes that they may change: defaults and write-only
// values, unknown values of computed attributes, and plan modifiers.
//
// The resource itself runs as in the framework, with the same request. A second server of the framework passes on
// private state, identity and diagnostics. It gets the values of the resource as an empty object, and the resource
// gets its values through the context.
package direct

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// Provider is all that the provider offers.
type Provider interface {
	provider.ProviderWithActions
	provider.ProviderWithConfigValidators
	provider.ProviderWithEphemeralResources
	provider.ProviderWithFunctions
	provider.ProviderWithListResources
	provider.ProviderWithValidateConfig
}

// Server is all that the framework serves of a Provider.
type Server interface {
	tfprotov6.ProviderServer
	tfprotov6.ActionServer
	tfprotov6.ListResourceServer
}

// NewServer serves a provider. It serves the resources with these names directly.
func NewServer(p Provider, names ...string) Server {
	configured := &configured{Provider: p}

	all, ok := providerserver.NewProtocol6(configured)().(Server)
	if !ok {
		panic("direct: the framework serves no actions, or no lists")
	}

	kinds := kindsOf(p, names)

	return server{Server: all, kinds: kinds,
		direct: providerserver.NewProtocol6(carrier{provider: configured, kinds: kinds})()}
}

// server is the server of all requests, and beside it the one that carries requests to resources directly.
type server struct {
	Server

	direct tfprotov6.ProviderServer
	kinds  map[string]*kind
}

// empty and null are an object without attributes, and none, in the protocol.
//
//nolint:gochecknoglobals // constants
var (
	empty = &tfprotov6.DynamicValue{MsgPack: []byte{0x80}}
	null  = &tfprotov6.DynamicValue{MsgPack: []byte{0xc0}}
)

// ConfigureProvider implements tfprotov6.ProviderServer, like all methods below.
func (s server) ConfigureProvider(
	ctx context.Context, req *tfprotov6.ConfigureProviderRequest,
) (*tfprotov6.ConfigureProviderResponse, error) {
	resp, err := s.Server.ConfigureProvider(ctx, req)
	if err != nil {
		return resp, err
	}

	own := *req
	own.Config = empty
	_, err = s.direct.ConfigureProvider(ctx, &own)

	return resp, err
}

func (s server) StopProvider(
	ctx context.Context, req *tfprotov6.StopProviderRequest,
) (*tfprotov6.StopProviderResponse, error) {
	if resp, err := s.direct.StopProvider(ctx, req); err != nil {
		return resp, err
	}

	return s.Server.StopProvider(ctx, req)
}

func (s server) ReadResource(
	ctx context.Context, req *tfprotov6.ReadResourceRequest,
) (*tfprotov6.ReadResourceResponse, error) {
	x, ok := s.kinds[req.TypeName].read(req)
	if !ok {
		return s.Server.ReadResource(ctx, req)
	}

	own := *req
	own.CurrentState = empty

	resp, err := s.direct.ReadResource(within(ctx, x), &own)
	if err != nil {
		return resp, err
	}

	resp.NewState, err = x.encoded()

	return resp, err
}

func (s server) PlanResourceChange(
	ctx context.Context, req *tfprotov6.PlanResourceChangeRequest,
) (*tfprotov6.PlanResourceChangeResponse, error) {
	x, ok := s.kinds[req.TypeName].plan(req)
	if !ok {
		return s.Server.PlanResourceChange(ctx, req)
	}

	own := *req
	if own.Config, own.PriorState, own.ProposedNewState = empty, empty, empty; x.state.IsNull() {
		own.PriorState = null
	}

	resp, err := s.direct.PlanResourceChange(within(ctx, x), &own)
	if err != nil {
		return resp, err
	}

	resp.PlannedState, err = x.encoded()

	return resp, err
}

// configured keeps what the provider passes to its resources.
type configured struct {
	Provider

	data any
}

func (c *configured) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	c.Provider.Configure(ctx, req, resp)
	c.data = resp.ResourceData
}

// carrier is the provider of the second server.
type carrier struct {
	provider *configured
	kinds    map[string]*kind
}

func (c carrier) Metadata(ctx context.Context, req provider.MetadataRequest, resp *provider.MetadataResponse) {
	c.provider.Metadata(ctx, req, resp)
}

func (carrier) Schema(context.Context, provider.SchemaRequest, *provider.SchemaResponse) {}

func (c carrier) Configure(_ context.Context, _ provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	resp.ResourceData = c.provider.data
}

func (carrier) DataSources(context.Context) []func() datasource.DataSource { return nil }

func (c carrier) Resources(context.Context) (all []func() resource.Resource) {
	for _, k := range c.kinds {
		all = append(all, func() resource.Resource { return envelope{k.create()} })
	}

	return all
}
