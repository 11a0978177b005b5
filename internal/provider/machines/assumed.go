package machines

import (
	"context"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// assumed completes a forecast while arguments are unknown, with what the plan does if they stay as in state.
func (r *machinesResource[M, P]) assumed(
	ctx context.Context, f machineset.Forecast, asked machineset.Set, prior writtenSet, state, config M,
	req resource.ModifyPlanRequest,
) (machineset.Forecast, finding.List, diag.Diagnostics) {
	open, added := unknownArguments(req.Config.Raw, req.State.Raw)

	filled, err := tf.FilledFrom(req.Plan.Raw, req.State.Raw)
	if err != nil {
		return f, nil, diag.Diagnostics{tf.Diagnostic(finding.Bug(err.Error()))}
	}

	var likely M

	diags := (&tfsdk.Plan{Raw: filled, Schema: req.Plan.Schema}).Get(ctx, &likely)
	P(&likely).align(config, &state)

	p, more := r.set(ctx, &likely)
	diags.Append(more...)

	remembered, more := readSurroundings(ctx, req.Private)
	diags.Append(more...)
	p.recall(remembered)

	if diags.HasError() || p.Unknown.Has(machineset.UnknownMachines) || p.Unknown.Has(machineset.UnknownSecrets) ||
		p.Unknown.Has(machineset.UnknownConfiguration) && len(added) == 0 {
		return f, nil, diags
	}

	if len(added) > 0 {
		p.Set = p.Located()
	}

	// Only the keys that the same plan rotates are unknown, and their values do not affect the forecast.
	turned, turns := r.Ledger().RotationOf(p.Secrets)
	if turns {
		p.Secrets = turned
	}

	known, found := planUpdate(ctx, p, prior, P(&likely).common(), P(&state).common(), cluster.DefaultPolicy())
	onlySecrets := turns && !slices.ContainsFunc(open, func(at string) bool { return !strings.HasSuffix(at, "secrets") })

	f, found = asked.Assuming(f, known, found, open, len(added) == len(open) || onlySecrets)

	return f, found, diags
}

// unknownArguments lists the unknown arguments of a configuration, and those among them that only identify the
// hardware of a new machine.
func unknownArguments(config, state tftypes.Value) (all, added []string) {
	_ = tftypes.Walk(config, func(at *tftypes.AttributePath, v tftypes.Value) (bool, error) {
		if v.IsKnown() {
			return true, nil
		}

		all = append(all, tf.ArgumentPath(at).String())

		last, named := at.LastStep().(tftypes.AttributeName)
		_, _, err := tftypes.WalkAttributePath(state, at.WithoutLastStep())

		if named && err != nil && slices.Contains([]string{"address", "uuid", "fingerprint"}, string(last)) {
			added = append(added, tf.ArgumentPath(at).String())
		}

		return false, nil
	})

	return all, added
}
