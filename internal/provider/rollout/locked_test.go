package rollout_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/provider/rollout"
)

// The removal of a lock is stored although the update of the machine does not finish: this is how a user gives up a
// machine that is lost for good.
func TestWithLockOf_takesTheLockAlone(t *testing.T) {
	t.Parallel()

	kind := map[string]attr.Type{"address": types.StringType, "locked": types.BoolType}
	machine := func(address string, locked types.Bool) attr.Value {
		return types.ObjectValueMust(kind, map[string]attr.Value{"address": types.StringValue(address), "locked": locked})
	}

	got := rollout.WithLockOf(t.Context(), machine("10.0.0.2", types.BoolNull()), machine("10.0.0.1", types.BoolValue(true)))
	if want := machine("10.0.0.1", types.BoolNull()); !got.Equal(want) {
		t.Errorf("stored is %s", got)
	}

	stays := machine("10.0.0.1", types.BoolValue(true))
	if got := rollout.WithLockOf(t.Context(), types.ObjectNull(kind), stays); !got.Equal(stays) {
		t.Errorf("stored is %s without a plan for it", got)
	}
}
