package machines

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// schemaVersion is that of the resources with machines. Version 1 has the attribute record; before, its content was
// in observed.
const schemaVersion = 1

// formerKeys are the former keys in private state for each value of the surroundings, which are one value now.
// Remove it with its callers in the first release that no longer reads such states.
func formerKeys(s *record.Surroundings) map[string]any {
	return map[string]any{
		"secrets": &s.Secrets.Digest, "cluster_identity": &s.Secrets.Identity, "host_cluster": &s.Host,
		"unseen_machines": &s.Unseen, "other_control_planes": &s.OtherControlPlanes, "other_keys": &s.OtherKeys,
		"bootstrap_needs_consent": &s.NeedsConsent,
	}
}

// formerSurroundings reads the surroundings from private state of former versions; nothing for an object without
// any.
func formerSurroundings(
	ctx context.Context, private tf.PrivateState,
) (s record.Surroundings, diags diag.Diagnostics) {
	for key, value := range formerKeys(&s) {
		diags.Append(tf.ReadPrivate(ctx, private, key, value)...)
	}

	return s, diags
}

// forgetFormer removes what formerSurroundings reads.
func forgetFormer(ctx context.Context, private tf.PrivateStore) (diags diag.Diagnostics) {
	for key := range formerKeys(&record.Surroundings{}) {
		diags.Append(private.SetKey(ctx, key, nil)...)
	}

	return diags
}

func upgradeFormerState(
	ctx context.Context, req resource.UpgradeStateRequest, resp *resource.UpgradeStateResponse,
) {
	machines, one, rest, err := formerState(req.RawState.JSON)
	if err != nil {
		resp.Diagnostics.AddError("State of a former version cannot be read", err.Error())

		return
	}

	raw := tfprotov6.RawState{JSON: rest}
	resp.State.Raw, err = raw.UnmarshalWithOpts(resp.State.Schema.Type().TerraformType(ctx),
		tfprotov6.UnmarshalOpts{ValueFromJSONOpts: tftypes.ValueFromJSONOpts{IgnoreUndefinedAttributes: true}})
	if err != nil {
		resp.Diagnostics.AddError("State of a former version cannot be read", err.Error())

		return
	}

	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("record"), machines.Encode())...)

	seen := shown(machines)
	values := map[string]any{"observed": seen.Observed, talosVersions: seen.Talos, kubernetesVersions: seen.Kubernetes}

	if one != "" {
		name := types.StringValue(one)
		values = map[string]any{
			"observed":                    ofTheOne(seen.Observed, name, types.ObjectNull(ObservedType().AttrTypes)),
			"observed_talos_version":      ofTheOne(seen.Talos, name, types.StringNull()),
			"observed_kubernetes_version": ofTheOne(seen.Kubernetes, name, types.StringNull()),
		}
	}

	for attribute, value := range values {
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root(attribute), value)...)
	}
}

// formerState reads the observations in a former state. one is the name of the machine in the state of a
// talosop_machine, and empty in others.
func formerState(state []byte) (machines record.Machines, one string, rest []byte, err error) {
	var has map[string]json.RawMessage
	if err := json.Unmarshal(state, &has); err != nil {
		return nil, "", nil, fmt.Errorf("read the state: %w", err)
	}

	observed := has["observed"]
	delete(has, "observed")

	// Only a talosop_machine has a role.
	if _, single := has["role"]; single {
		if err := json.Unmarshal(has["name"], &one); err != nil {
			return nil, "", nil, fmt.Errorf("read name: %w", err)
		}

		if string(observed) != "null" {
			observed, err = json.Marshal(map[string]json.RawMessage{one: observed})
		}
	}

	if err == nil {
		machines, err = record.DecodeFormer(observed)
	}

	if err != nil {
		return nil, "", nil, err
	}

	rest, err = json.Marshal(has)

	return machines, one, rest, err
}
