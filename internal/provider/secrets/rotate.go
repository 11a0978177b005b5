package secrets

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

// rotateModel is the triggers of new keys.
type rotateModel struct {
	TalosCA           types.String `tfsdk:"talos_ca"`
	KubernetesCA      types.String `tfsdk:"kubernetes_ca"`
	AggregatorCA      types.String `tfsdk:"aggregator_ca"`
	ServiceAccountKey types.String `tfsdk:"service_account_key"`
	ClusterToken      types.String `tfsdk:"cluster_token"`
}

// triggers are the texts by kind of rotation.
func (m rotateModel) triggers() map[rotation.Kind]types.String {
	return map[rotation.Kind]types.String{
		rotation.TalosCA: m.TalosCA, rotation.KubernetesCA: m.KubernetesCA, rotation.AggregatorCA: m.AggregatorCA,
		rotation.ServiceAccountKey: m.ServiceAccountKey, rotation.ClusterToken: m.ClusterToken,
	}
}

func rotateAttribute() schema.SingleNestedAttribute {
	trigger := func(key, beside string) schema.StringAttribute {
		return tf.OptionalString("Any text; a change creates a new " + key + "." + beside)
	}

	return tf.OptionalObject("Key rotation: set or change a text on existing secrets, and the next apply creates that "+
		"key again and machines accept it. The second apply lets machines use the new key, and the third removes the old "+
		"one. See the [guide](../guides/secrets-and-state.md#rotate-keys).", map[string]schema.Attribute{
		"talos_ca":      trigger("authority of the Talos API", ""),
		"kubernetes_ca": trigger("authority of Kubernetes", ""),
		"aggregator_ca": trigger("authority of the aggregation layer", ""),
		"service_account_key": trigger("key that signs service account tokens", " Talos up to 1.13 accepts one key at a "+
			"time: API servers refuse pod requests for minutes, until all have it and kubelets restarted."),
		"cluster_token": trigger("token that nodes use to join Kubernetes", ""),
	})
}

// turned lists what a plan rotates: a text that differs from state, or that state does not have.
func turned(
	ctx context.Context, plan, state secretsModel,
) (kinds []rotation.Kind, unknown bool, diags diag.Diagnostics) {
	var wanted, had rotateModel

	if plan.Rotate.IsUnknown() {
		return nil, true, nil
	}

	for from, into := range map[*types.Object]*rotateModel{&plan.Rotate: &wanted, &state.Rotate: &had} {
		if !from.IsNull() {
			diags.Append(from.As(ctx, into, basetypes.ObjectAsOptions{})...)
		}
	}

	texts, before := wanted.triggers(), had.triggers()

	for _, kind := range rotation.Kinds() {
		switch text := texts[kind]; {
		case text.IsUnknown():
			unknown = true
		case !text.IsNull() && text.ValueString() != before[kind].ValueString():
			kinds = append(kinds, kind)
		}
	}

	return kinds, unknown, diags
}

// planUpdate plans the bundle: next keys are unknown until the apply that generates them. Each later plan takes a
// rotation one step further.
func (r *secretsResource) planUpdate(
	ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse,
) {
	var plan, state secretsModel

	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)

	if resp.Diagnostics.HasError() {
		return
	}

	kinds, unknown, diags := turned(ctx, plan, state)
	resp.Diagnostics.Append(diags...)

	bundle, err := pki.Parse([]byte(state.Bundle.ValueString()))
	if err != nil || diags.HasError() {
		return // the refresh reports it
	}

	switch {
	case unknown || len(kinds) > 0:
		resp.Diagnostics.Append(tf.Diagnostics(refuseSecondRotation(bundle, kinds))...)
		r.Ledger().PlanRotation(bundle, kinds)

		plan.Bundle, plan.Authorities = types.StringUnknown(), types.MapUnknown(authorityType)
	case len(bundle.Turning()) > 0:
		next, err := secretsOf(bundle.Advance(), plan.DeletionProtection)
		if err != nil {
			resp.Diagnostics.Append(tf.Bug("a valid secrets bundle could not be encoded: " + err.Error()))

			return
		}

		plan.Bundle, plan.Authorities = next.Bundle, next.Authorities
	default:
		return
	}

	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
}

// refuseSecondRotation refuses to rotate a key during its rotation: machines support no further one.
func refuseSecondRotation(bundle *pki.Bundle, kinds []rotation.Kind) finding.List {
	var under []string

	for _, kind := range kinds {
		if slices.Contains(bundle.Turning(), kind) {
			under = append(under, string(kind))
		}
	}

	if len(under) == 0 {
		return nil
	}

	return finding.List{rotationUnfinished.At(finding.Root("rotate"), finding.Args{"keys": under})}
}

// turn is the bundle after an apply.
func turn(ctx context.Context, plan, state secretsModel) (*pki.Bundle, diag.Diagnostics) {
	kinds, _, diags := turned(ctx, plan, state)

	bundle, err := pki.Parse([]byte(state.Bundle.ValueString()))
	if err != nil || diags.HasError() {
		return nil, append(diags, tf.Diagnostic(secretsUnreadable.With(finding.Args{"cause": fmt.Sprint(err)})))
	}

	turned, err := bundle.Rotate(kinds...)
	if err != nil {
		return nil, append(diags, tf.Diagnostic(rotationFailed.At(
			finding.Root("rotate"), finding.Args{"cause": err.Error()})))
	}

	return turned, diags
}
