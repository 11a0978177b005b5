package machines

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// forecastObserved is the plan of observations: what no step can change stays, and only the rest is unknown. machines
// is nil while it is unknown what the plan does.
func forecastObserved(prior observations, machines map[string]machineset.MachineForecast) observations {
	if machines == nil || prior.Observed.IsNull() {
		return unknownObservations()
	}

	values := map[string]attr.Value{}
	for name, f := range machines {
		values[name] = forecastMachine(prior.Observed.Elements()[f.From], f)
	}

	return observations{
		Observed:   types.MapValueMust(ObservedType(), values),
		Talos:      forecastVersions(prior.Talos, step.FieldTalosVersion, machines),
		Kubernetes: forecastVersions(prior.Kubernetes, step.FieldKubernetesVersion, machines),
	}
}

func forecastMachine(record attr.Value, f machineset.MachineForecast) attr.Value {
	object, recorded := record.(types.Object)
	if !recorded || f.NoRecord {
		return types.ObjectUnknown(ObservedType().AttrTypes)
	}

	values := object.Attributes()

	for field := range values {
		values[field] = forecastField(values[field], step.Field(field), f)
	}

	return types.ObjectValueMust(ObservedType().AttrTypes, values)
}

// forecastVersions is the plan of a map of versions, which has one field of each machine.
func forecastVersions(prior types.Map, field step.Field, machines map[string]machineset.MachineForecast) types.Map {
	values := map[string]attr.Value{}

	for name, f := range machines {
		version, recorded := prior.Elements()[f.From]
		if !recorded || f.NoRecord {
			version = types.StringUnknown()
		}

		values[name] = forecastField(version, field, f)
	}

	return types.MapValueMust(types.StringType, values)
}

func forecastField(prior attr.Value, field step.Field, f machineset.MachineForecast) attr.Value {
	switch text, known := f.Texts[field]; {
	case known:
		return types.StringValue(text)
	case slices.Contains(f.Open, field):
		return tf.Unknown(prior.Type(context.Background()))
	default:
		return prior
	}
}

// asPlanned is what is stored of machines after a successful apply: the planned values, because Terraform accepts
// nothing else, and observations for values that the plan left unknown. The next refresh stores all observations.
func (o observations) asPlanned(planned observations) observations {
	return observations{
		Observed:   elementsAsPlanned(planned.Observed, o.Observed, machineAsPlanned),
		Talos:      elementsAsPlanned(planned.Talos, o.Talos, versionAsPlanned),
		Kubernetes: elementsAsPlanned(planned.Kubernetes, o.Kubernetes, versionAsPlanned),
	}
}

func elementsAsPlanned(planned, seen types.Map, one func(plan, seen attr.Value) attr.Value) types.Map {
	if planned.IsUnknown() {
		return seen
	}

	values := map[string]attr.Value{}

	for name, plan := range planned.Elements() {
		values[name] = one(plan, seen.Elements()[name])
	}

	return types.MapValueMust(planned.ElementType(context.Background()), values)
}

func versionAsPlanned(plan, seen attr.Value) attr.Value {
	switch {
	case !plan.IsUnknown():
		return plan
	case seen == nil:
		return types.StringNull()
	default:
		return seen
	}
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
