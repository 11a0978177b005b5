package machines

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// schemaVersion is that of the resources with machines. 1 has the attribute record; what that has was in observed
// before.
const schemaVersion = 1

// UpgradeState reads states of former versions.
func (r *machinesResource[M, P]) UpgradeState(context.Context) map[int64]resource.StateUpgrader {
	return map[int64]resource.StateUpgrader{0: {StateUpgrader: upgradeFormerState}}
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

	if seen := shown(machines); one == "" {
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("observed"), seen)...)
	} else if object, known := seen.Elements()[one]; known {
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("observed"), object)...)
	}
}

// formerState takes what was observed out of a former state. one is the name of the machine in the state of a
// talosop_machine, and empty in others.
func formerState(state []byte) (machines record.Machines, one string, rest []byte, err error) {
	var has map[string]json.RawMessage
	if err := json.Unmarshal(state, &has); err != nil {
		return nil, "", nil, fmt.Errorf("read the state: %w", err)
	}

	observed := has["observed"]
	delete(has, "observed")

	// Only a machine has a role of its own.
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
