package direct

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// modified is the plan of a request after the plan modifiers of the schema (fwserver.SchemaModifyPlan).
func (v values) modified(
	ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse,
) tftypes.Value {
	change := func(a *attribute, s sides) (tftypes.Value, bool) {
		switch {
		case len(a.strings) > 0:
			return modifiedString(ctx, a, s, req, resp)
		case len(a.objects) > 0:
			return modifiedObject(ctx, a, s, req, resp)
		default:
			return s.plan, false
		}
	}

	plan, _ := walk{v.modifiers, change, true}.object(
		sides{config: req.Config.Raw, state: req.State.Raw, plan: req.Plan.Raw})

	return plan
}

func modifiedString(
	ctx context.Context, a *attribute, s sides, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse,
) (tftypes.Value, bool) {
	one := planmodifier.StringRequest{
		Path: s.at, PathExpression: s.at.Expression(), Config: req.Config, Plan: req.Plan, State: req.State,
		Private:     req.Private,
		ConfigValue: valueOf[basetypes.StringValue](ctx, a, s.config, &resp.Diagnostics),
		PlanValue:   valueOf[basetypes.StringValue](ctx, a, s.plan, &resp.Diagnostics),
		StateValue:  valueOf[basetypes.StringValue](ctx, a, s.state, &resp.Diagnostics),
	}

	for _, m := range a.strings {
		made := planmodifier.StringResponse{PlanValue: one.PlanValue, Private: resp.Private}

		m.PlanModifyString(ctx, one, &made)
		resp.Diagnostics.Append(made.Diagnostics...)

		if one.PlanValue = made.PlanValue; made.RequiresReplace {
			resp.RequiresReplace.Append(s.at)
		}
	}

	return changed(ctx, s.plan, one.PlanValue, &resp.Diagnostics)
}

func modifiedObject(
	ctx context.Context, a *attribute, s sides, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse,
) (tftypes.Value, bool) {
	one := planmodifier.ObjectRequest{
		Path: s.at, PathExpression: s.at.Expression(), Config: req.Config, Plan: req.Plan, State: req.State,
		Private:     req.Private,
		ConfigValue: valueOf[basetypes.ObjectValue](ctx, a, s.config, &resp.Diagnostics),
		PlanValue:   valueOf[basetypes.ObjectValue](ctx, a, s.plan, &resp.Diagnostics),
		StateValue:  valueOf[basetypes.ObjectValue](ctx, a, s.state, &resp.Diagnostics),
	}

	for _, m := range a.objects {
		made := planmodifier.ObjectResponse{PlanValue: one.PlanValue, Private: resp.Private}

		m.PlanModifyObject(ctx, one, &made)
		resp.Diagnostics.Append(made.Diagnostics...)

		if one.PlanValue = made.PlanValue; made.RequiresReplace {
			resp.RequiresReplace.Append(s.at)
		}
	}

	return changed(ctx, s.plan, one.PlanValue, &resp.Diagnostics)
}

// valueOf is a value of an attribute for its plan modifiers; null for one that is not there.
func valueOf[V any](ctx context.Context, a *attribute, raw tftypes.Value, diags *diag.Diagnostics) V {
	if raw.Type() == nil {
		raw = tftypes.NewValue(a.typ, nil)
	}

	value, err := a.of.ValueFromTerraform(ctx, raw)
	typed, ok := value.(V)

	if err != nil || !ok {
		diags.AddError("Internal error", "direct: a plan modifier gets no value") // no value of the schema has another type
	}

	return typed
}

// changed is a value after its plan modifiers, and whether they changed it.
func changed(
	ctx context.Context, plan tftypes.Value, value interface {
		ToTerraformValue(context.Context) (tftypes.Value, error)
	}, diags *diag.Diagnostics,
) (tftypes.Value, bool) {
	raw, err := value.ToTerraformValue(ctx)
	if err != nil {
		diags.AddError("Internal error", err.Error())

		return plan, false
	}

	return raw, !same(raw, plan)
}
