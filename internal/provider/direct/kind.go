package direct

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// whole is what a resource that is served directly implements.
type whole interface {
	resource.ResourceWithConfigure
	resource.ResourceWithModifyPlan
	resource.ResourceWithIdentity
}

// kind is a type of resources.
type kind struct {
	create func() whole
	// values describes the values. A process that plans no such resource needs no schema of it.
	values func() values
}

// values is the schema of a resource, its type in the protocol, and its defaults.
type values struct {
	schema    schema.Schema
	typ       tftypes.Type
	fallbacks fallbacks
}

// kindsOf are the kinds of a provider with these names.
func kindsOf(p Provider, names []string) map[string]*kind {
	ctx, kinds := context.Background(), map[string]*kind{}

	var of provider.MetadataResponse

	p.Metadata(ctx, provider.MetadataRequest{}, &of)

	for _, create := range p.Resources(ctx) {
		var named resource.MetadataResponse
		if create().Metadata(ctx, resource.MetadataRequest{ProviderTypeName: of.TypeName},
			&named); !slices.Contains(names, named.TypeName) {
			continue
		}

		kinds[named.TypeName] = &kind{
			create: func() whole {
				one, ok := create().(whole)
				if !ok {
					panic(fmt.Sprintf("direct: %s plans nothing, or has no identity", named.TypeName))
				}

				return one
			},
			values: sync.OnceValue(func() values {
				var resp resource.SchemaResponse

				create().Schema(ctx, resource.SchemaRequest{}, &resp)

				return values{resp.Schema, resp.Schema.Type().TerraformType(ctx), fallbacksOf(ctx, resp.Schema.Attributes)}
			}),
		}
	}

	return kinds
}

// read is the exchange of a read; ok is false for one of the framework.
func (k *kind) read(req *tfprotov6.ReadResourceRequest) (x *exchange, ok bool) {
	if k == nil || req.CurrentState == nil {
		return nil, false
	}

	known := k.values()

	state, err := req.CurrentState.Unmarshal(known.typ)
	if err != nil || state.IsNull() {
		return nil, false
	}

	return &exchange{values: known, state: state, result: state}, true
}

// unchanged is the exchange of a plan that proposes the prior state; ok is false for any other plan.
func (k *kind) unchanged(req *tfprotov6.PlanResourceChangeRequest) (x *exchange, ok bool) {
	if k == nil || req.Config == nil {
		return nil, false
	}

	decode := func(v *tfprotov6.DynamicValue) (tftypes.Value, error) { return v.Unmarshal(k.values().typ) }
	if !same(req.PriorState, req.ProposedNewState, decode) {
		return nil, false
	}

	state, err := decode(req.PriorState)
	config, wrong := decode(req.Config)

	if err != nil || wrong != nil || state.IsNull() || !k.values().fallbacks.reached(config, state) {
		return nil, false
	}

	return &exchange{values: k.values(), config: config, state: state, result: state}, true
}

// exchange is the values of a request and its response.
type exchange struct {
	values
	config, state, result tftypes.Value
}

// encoded is the result in the protocol.
func (x *exchange) encoded() (*tfprotov6.DynamicValue, error) {
	v, err := tfprotov6.NewDynamicValue(x.typ, x.result)

	return &v, err
}

type exchangeKey struct{}

// within is a context that carries an exchange to the resource.
func within(ctx context.Context, x *exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

// exchanged is the exchange of a request.
func exchanged(ctx context.Context) *exchange {
	x, ok := ctx.Value(exchangeKey{}).(*exchange)
	if !ok {
		panic("direct: a request without values")
	}

	return x
}

// envelope is a resource whose values the framework does not see.
type envelope struct{ whole }

// Schema implements resource.Resource.
func (envelope) Schema(context.Context, resource.SchemaRequest, *resource.SchemaResponse) {}

// Read implements resource.Resource. The framework would also compare the texts of durations and times in the new
// state with those in the former one, and keep equal ones. A read stores both as it found them in state.
func (e envelope) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	x, outer := exchanged(ctx), resp.State
	req.State = tfsdk.State{Raw: x.state, Schema: x.schema}
	resp.State = req.State

	e.whole.Read(ctx, req, resp)

	x.result, resp.State = resp.State.Raw, outer
}

// ModifyPlan implements resource.ResourceWithModifyPlan.
func (e envelope) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	x, outer := exchanged(ctx), resp.Plan
	req.Config = tfsdk.Config{Raw: x.config, Schema: x.schema}
	req.State = tfsdk.State{Raw: x.state, Schema: x.schema}
	req.Plan = tfsdk.Plan{Raw: x.state, Schema: x.schema}
	resp.Plan = req.Plan

	e.whole.ModifyPlan(ctx, req, resp)

	x.result, resp.Plan = resp.Plan.Raw, outer
}
