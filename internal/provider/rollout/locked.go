package rollout

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

const locked = "locked"

// Locked is the argument that no operation takes a machine out of service.
func Locked() schema.BoolAttribute {
	return tf.OptionalBool("Holds changes that take the machine out of service, and changes that other machines may " +
		"only make after it (default `false`). `operations` lists them as held; a plan that removes the machine is " +
		"refused. See the [guide](../guides/holding-changes).")
}

// WithLockOf is a machine of state with the lock of the plan: a lock touches no machine, and is stored even after a
// failed update.
func WithLockOf(ctx context.Context, plan, machine attr.Value) attr.Value {
	wanted, ok := plan.(types.Object)
	stored, known := machine.(types.Object)

	if !ok || !known || wanted.IsNull() || stored.IsNull() {
		return machine
	}

	values := stored.Attributes()
	values[locked] = wanted.Attributes()[locked]

	return types.ObjectValueMust(stored.AttributeTypes(ctx), values)
}
