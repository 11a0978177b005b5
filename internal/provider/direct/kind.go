package direct

import (
	"bytes"
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

// values is the schema of a resource, its type in the protocol, and the attributes that each pass may change.
type values struct {
	schema                         schema.Schema
	typ                            tftypes.Type
	completed, computed, modifiers attributes
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

				return valuesOf(ctx, resp.Schema)
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

func valuesOf(ctx context.Context, s schema.Schema) values {
	of := func(affects func(*attribute) bool) attributes { return attributesOf(ctx, s.Attributes, affects) }

	return values{
		schema: s, typ: s.Type().TerraformType(ctx),
		completed: of(func(a *attribute) bool { return a.writeOnly || a.fallback != nil }),
		computed:  of(func(a *attribute) bool { return a.computed && a.fallback == nil }),
		modifiers: of(func(a *attribute) bool { return len(a.strings) > 0 || len(a.objects) > 0 }),
	}
}

// plan is the exchange of a plan of a create or an update; ok is false for any other plan.
func (k *kind) plan(req *tfprotov6.PlanResourceChangeRequest) (x *exchange, ok bool) {
	if k == nil || req.Config == nil || req.PriorState == nil || req.ProposedNewState == nil {
		return nil, false
	}

	known := k.values()

	config, err := req.Config.Unmarshal(known.typ)
	state, first := req.PriorState.Unmarshal(known.typ)
	proposal, second := state, error(nil)

	if len(req.PriorState.MsgPack) == 0 || !bytes.Equal(req.PriorState.MsgPack, req.ProposedNewState.MsgPack) {
		proposal, second = req.ProposedNewState.Unmarshal(known.typ)
	}

	if err != nil || first != nil || second != nil || proposal.IsNull() {
		return nil, false
	}

	plan := known.proposed(config, state, proposal)

	return &exchange{values: known, config: config, state: state, plan: plan, result: plan}, true
}

// exchange is the values of a request and its response.
type exchange struct {
	values
	config, state, plan, result tftypes.Value
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
	req.Plan = tfsdk.Plan{Raw: x.plan, Schema: x.schema}
	req.Plan.Raw = x.modified(ctx, req, resp)

	if x.result = req.Plan.Raw; resp.Diagnostics.HasError() {
		return
	}

	resp.Plan = req.Plan

	e.whole.ModifyPlan(ctx, req, resp)

	x.result, resp.Plan = resp.Plan.Raw, outer
}
