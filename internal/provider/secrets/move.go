package secrets

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/provider/officialstate"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

var _ resource.ResourceWithMoveState = (*secretsResource)(nil)

// MoveState takes the secrets over from a resource of the official provider, in a `moved` block: it asks no machine
// and changes no key.
func (r *secretsResource) MoveState(context.Context) []resource.StateMover {
	return []resource.StateMover{{StateMover: moveOfficial}}
}

func moveOfficial(ctx context.Context, req resource.MoveStateRequest, resp *resource.MoveStateResponse) {
	if req.SourceTypeName != officialstate.SecretsType || !officialstate.Is(req.SourceProviderAddress) ||
		req.SourceRawState == nil {
		return
	}

	bundle, err := officialstate.Secrets(req.SourceRawState.JSON)
	if err != nil {
		resp.Diagnostics.Append(tf.Diagnostic(secretsNotMoved.With(finding.Args{"cause": err.Error()})))

		return
	}

	resp.Diagnostics.Append(storeSecrets(ctx, bundle, types.BoolValue(true), types.ObjectNull(rotateTypes),
		&resp.TargetState, resp.TargetPrivate)...)
}
