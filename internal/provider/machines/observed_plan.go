package machines

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// forecastObserved is the plan of observed: what no step can change stays, and only the rest is unknown. machines is
// nil while it is unknown what the plan does.
func forecastObserved(prior types.Map, machines map[string]machineset.MachineForecast) types.Map {
	if machines == nil || prior.IsNull() {
		return types.MapUnknown(ObservedType())
	}

	values := map[string]attr.Value{}
	for name, f := range machines {
		values[name] = forecastMachine(prior.Elements()[f.From], f)
	}

	return types.MapValueMust(ObservedType(), values)
}

func forecastMachine(record attr.Value, f machineset.MachineForecast) attr.Value {
	object, recorded := record.(types.Object)
	if !recorded || f.NoRecord {
		return types.ObjectUnknown(ObservedType().AttrTypes)
	}

	values := object.Attributes()

	for _, field := range f.Open {
		values[string(field)] = tf.Unknown(ObservedType().AttrTypes[string(field)])
	}

	for field, text := range f.Texts {
		values[string(field)] = types.StringValue(text)
	}

	return types.ObjectValueMust(ObservedType().AttrTypes, values)
}

// asPlanned is what is stored of machines after a successful apply: the planned values, because Terraform accepts
// nothing else, and observations for values that the plan left unknown. The next refresh stores all observations.
func asPlanned(planned, observed types.Map) types.Map {
	if planned.IsUnknown() {
		return observed
	}

	values := map[string]attr.Value{}

	for name, plan := range planned.Elements() {
		values[name] = machineAsPlanned(plan, observed.Elements()[name])
	}

	return types.MapValueMust(ObservedType(), values)
}

func machineAsPlanned(plan, seen attr.Value) attr.Value {
	actual, ok := seen.(types.Object)
	if !ok {
		actual = neverSeen()
	}

	wanted, ok := plan.(types.Object)
	if !ok || wanted.IsUnknown() {
		return actual
	}

	values := actual.Attributes()

	for field, value := range wanted.Attributes() {
		if !value.IsUnknown() {
			values[field] = value
		}
	}

	return types.ObjectValueMust(ObservedType().AttrTypes, values)
}

// neverSeen is observed for a machine that has not answered yet.
func neverSeen() types.Object { return shownOne(record.Machine{Stage: step.StageUnknown}) }
