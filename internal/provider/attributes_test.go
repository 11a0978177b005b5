package provider_test

import (
	"hash/fnv"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// Every settable attribute may be known, unknown, null and empty. What a configuration does not have yet is no
// mistake, and an unknown value does not become a known one. What is refused is refused at the attribute.
func TestAttributes_everyPath(t *testing.T) {
	t.Parallel()

	table := readAttributeTable(t)

	var all []*attributeTrial

	for _, v := range validations(t) {
		all = append(all, trialsOf(t, table, v)...)
	}

	if !testenv.Everything() {
		sample(all)
	}

	for where, trials := range byWhere(all) {
		t.Run(where, func(t *testing.T) {
			t.Parallel()

			for _, trial := range trials {
				trial.all(t)
			}
		})
	}
}

func byWhere(all []*attributeTrial) map[string][]*attributeTrial {
	out := map[string][]*attributeTrial{}
	for _, trial := range all {
		out[trial.where] = append(out[trial.where], trial)
	}

	return out
}

// sample leaves one of the trials that change the same attribute in the same way: attributes with the same name in
// the same object have the same code. Of resources and other types it prefers a resource, which is planned. Of null and
// empty values it leaves each sixth.
func sample(all []*attributeTrial) {
	places := map[string][]*attributeTrial{}

	for _, trial := range all {
		for _, key := range trial.keys() {
			places[key] = append(places[key], trial)
		}
	}

	kept := map[*attributeTrial]map[string]bool{}

	for key, trials := range places {
		if planned := slices.DeleteFunc(slices.Clone(trials), func(a *attributeTrial) bool { return a.driven == nil }); len(
			planned) > 0 {
			trials = planned
		}

		hash := fnv.New32a()
		_, _ = hash.Write([]byte(key))
		sum := int(hash.Sum32() >> 1)

		if !strings.HasPrefix(key, "unknown") && sum%6 != 0 {
			continue
		}

		trial := trials[sum/6%len(trials)]

		if kept[trial] == nil {
			kept[trial] = map[string]bool{}
		}

		kept[trial][key] = true
	}

	for _, trial := range all {
		trial.changes = slices.DeleteFunc(trial.changes, func(c change) bool { return !kept[trial][c.key] })
	}
}

// attributeTrial changes one configuration in its attributes.
type attributeTrial struct {
	*attributeTable
	validation

	full    fullVariant
	value   tftypes.Value
	changes []change
	// driven plans, for a resource. final is its plan when all is known.
	driven *tftest.Driven
	final  tftypes.Value
}

// keys are those of the changes, each once.
func (a *attributeTrial) keys() (keys []string) {
	for _, c := range a.changes {
		if !slices.Contains(keys, c.key) {
			keys = append(keys, c.key)
		}
	}

	return keys
}

// trialsOf are the trials of all variants of one type.
func trialsOf(t *testing.T, table *attributeTable, v validation) (all []*attributeTrial) {
	t.Helper()

	var driven *tftest.Driven
	if _, ok := tftest.Schemas(t).ResourceSchemas[v.where]; ok {
		driven = &tftest.Driven{Name: v.where, State: tftypes.NewValue(tftest.TypeOf(t, v.where), nil)}
	}

	for _, full := range variantsOf(t, table, v.where, v.schema) {
		trial := &attributeTrial{attributeTable: table, validation: v, full: full, driven: driven,
			value: tftest.ValueOf(t, v.schema.ValueType(), full.config)}
		trial.changes = changesIn(t, trial.value, func(at *tftypes.AttributePath) bool {
			return full.fresh[namesOf(v.where, at)]
		}, v.where)
		all = append(all, trial)
	}

	return all
}

// changesIn are the changes of the selected attributes of a configuration.
func changesIn(t *testing.T, config tftypes.Value, pick func(*tftypes.AttributePath) bool, where string) (
	all []change,
) {
	t.Helper()

	tftest.Must(t, tftypes.Walk(config, func(at *tftypes.AttributePath, v tftypes.Value) (bool, error) {
		if len(at.Steps()) > 0 && !v.IsNull() && pick(at) {
			for _, c := range changesOf(at, v) {
				names := strings.Split(namesOf(where, at), ".")
				c.at, c.key = at, strings.Join(append([]string{c.how}, names[max(len(names)-2, 1):]...), ".")
				all = append(all, c)
			}
		}

		return true, nil
	}))

	return all
}

// all tries the configuration as it is, and with each change.
func (a *attributeTrial) all(t *testing.T) {
	t.Helper()

	for _, d := range a.reported(t, a.value) {
		if code, _ := tftest.Code(d); d.Severity == tfprotov6.DiagnosticSeverityError || !slices.Contains(a.Warned, code) {
			t.Errorf("%s: %s", a.full.name, tftest.Show([]*tfprotov6.Diagnostic{d}))
		}
	}

	for _, batch := range batches(a.changes) {
		a.try(t, batch)
	}
}

// batches are the changes that are tried at once. On every change several values are unknown in one plan.
func batches(changes []change) (all [][]change) {
	const most = 24

	var unknown []change

	for _, c := range changes {
		within := slices.ContainsFunc(unknown, func(other change) bool {
			return inside(c.at, other.at) || inside(other.at, c.at)
		})

		switch {
		case c.how != "unknown" || testenv.Everything():
			all = append(all, []change{c})
		case len(unknown) == most || within:
			all, unknown = append(all, unknown), []change{c}
		default:
			unknown = append(unknown, c)
		}
	}

	if len(unknown) > 0 {
		all = append(all, unknown)
	}

	return all
}

// inside reports whether a path is that of a value, or of one that contains it.
func inside(at, in *tftypes.AttributePath) bool {
	outer := len(in.Steps())

	return len(at.Steps()) >= outer && tftypes.NewAttributePathWithSteps(at.Steps()[:outer]).Equal(in)
}

// change is a value in place of another one.
type change struct {
	how   string
	value tftypes.Value
	at    *tftypes.AttributePath
	// key is the same for attributes with the same name in the same object.
	key string
}

// changesOf are the values that an attribute may have besides its sample.
func changesOf(at *tftypes.AttributePath, v tftypes.Value) []change {
	unknown := change{how: "unknown", value: tftypes.NewValue(v.Type(), tftypes.UnknownValue)}

	if _, isAttribute := at.LastStep().(tftypes.AttributeName); !isAttribute {
		// Elements of nested maps and lists that are unknown as a whole are left out:
		// terraform-plugin-framework 1.19 then misses the required attributes in them.
		if v.Type().Is(tftypes.Object{}) {
			return nil
		}

		return []change{unknown}
	}

	all := []change{unknown, {how: "null", value: tftypes.NewValue(v.Type(), nil)}}

	switch typ := v.Type(); {
	case typ.Is(tftypes.String):
		all = append(all, change{how: "empty", value: tftypes.NewValue(typ, "")})
	case typ.Is(tftypes.List{}):
		all = append(all, change{how: "empty", value: tftypes.NewValue(typ, []tftypes.Value{})})
	case typ.Is(tftypes.Map{}):
		all = append(all, change{how: "empty", value: tftypes.NewValue(typ, map[string]tftypes.Value{})})
	case typ.Is(tftypes.Object{}):
		nothing := map[string]tftypes.Value{}
		for name, field := range typ.(tftypes.Object).AttributeTypes {
			nothing[name] = tftypes.NewValue(field, nil)
		}

		all = append(all, change{how: "empty", value: tftypes.NewValue(typ, nothing)})
	}

	return all
}

// reported are the diagnostics of a configuration. It is planned if it is valid.
func (a *attributeTrial) reported(t *testing.T, config tftypes.Value) []*tfprotov6.Diagnostic {
	t.Helper()

	diagnostics, err := a.validate(tftest.Dynamic(t, config))
	tftest.Must(t, err)

	if a.driven == nil || failed(diagnostics) {
		return diagnostics
	}

	planned := a.plan(t, config)
	a.final = planned.Value

	return append(diagnostics, planned.Diagnostics...)
}

// plan asks another process of the provider for each plan of a create: one remembers the machines that it planned.
func (a *attributeTrial) plan(t *testing.T, config tftypes.Value) tftest.Outcome {
	t.Helper()

	if a.driven.State.IsNull() {
		a.driven.Server = tftest.Server(t)
	}

	return a.driven.PlanValue(t, config)
}

func failed(diagnostics []*tfprotov6.Diagnostic) bool {
	return tftest.Outcome{Diagnostics: diagnostics}.Failed()
}

// try makes changes in one configuration. An incomplete one is planned before a release, and an unknown value always.
func (a *attributeTrial) try(t *testing.T, changes []change) {
	t.Helper()

	config := a.value
	for _, c := range changes {
		config = put(t, config, c.at.Steps(), c.value)
	}

	diagnostics, err := a.validate(tftest.Dynamic(t, config))
	tftest.Must(t, err)

	if a.driven != nil && !failed(diagnostics) && (changes[0].how == "unknown" || testenv.Everything()) {
		planned := a.plan(t, config)
		diagnostics = append(diagnostics, planned.Diagnostics...)

		if changes[0].how == "unknown" && !planned.Failed() {
			a.keepsItsWord(t, changes, planned.Value)
		}
	}

	for _, d := range diagnostics {
		if d.Severity == tfprotov6.DiagnosticSeverityError && !a.mayRefuse(changes[0], d) {
			t.Errorf("%s with %s: %s", a.full.name, shownChanges(changes), tftest.Show([]*tfprotov6.Diagnostic{d}))
		}
	}

	if a.refuses(changes[0]) && !failed(diagnostics) {
		t.Errorf("%s with %s is not refused", a.full.name, shownChanges(changes))
	}
}

func shownChanges(changes []change) string {
	var texts []string
	for _, c := range changes {
		texts = append(texts, c.how+" "+c.at.String())
	}

	return strings.Join(texts, ", ")
}

// keepsItsWord checks a plan with unknown values against the plan that knows them.
func (a *attributeTrial) keepsItsWord(t *testing.T, changes []change, plan tftypes.Value) {
	t.Helper()

	for _, c := range changes {
		if !tftest.IsWriteOnly(c.at) && !a.writeOnly(namesOf(a.where, c.at)) {
			tftest.StillUnknown(t, a.full.name, plan, c.at)
		}
	}

	tftest.KeepsItsWord(t, a.full.name, changes[0].at, plan, a.final)
}

// writeOnly reports whether no plan has an attribute, because its object is write-only.
func (a *attributeTrial) writeOnly(path string) (is bool) {
	tftest.WalkAttributes(a.where, a.schema.Block.Attributes, func(at string, of *tfprotov6.SchemaAttribute) {
		is = is || at == path && of.WriteOnly
	})

	return is
}

// refuses reports whether a change must be refused: an empty text has a meaning only in some attributes.
func (a *attributeTrial) refuses(c change) bool {
	return c.how == "empty" && c.value.Type().Is(tftypes.String) && !meansSomething(namesOf(a.where, c.at))
}

// mayRefuse reports whether an error is expected: at the attribute itself or in it, at an object that it completes, or
// with a code of the table at an attribute that needs it. No unknown value is refused.
func (a *attributeTrial) mayRefuse(c change, d *tfprotov6.Diagnostic) bool {
	if c.how == "unknown" || d.Attribute == nil {
		return false
	}

	code, _ := tftest.Code(d)

	return inside(d.Attribute, c.at) || inside(c.at, d.Attribute) || slices.Contains(a.Refused, code)
}

// put is a value in which another one stands at a path.
func put(t *testing.T, in tftypes.Value, steps []tftypes.AttributePathStep, value tftypes.Value) tftypes.Value {
	t.Helper()

	if len(steps) == 0 {
		return value
	}

	switch step := steps[0].(type) {
	case tftypes.AttributeName:
		fields := tftest.FieldsOf(t, in)
		fields[string(step)] = put(t, fields[string(step)], steps[1:], value)

		return tftypes.NewValue(in.Type(), fields)
	case tftypes.ElementKeyString:
		fields := tftest.FieldsOf(t, in)
		fields[string(step)] = put(t, fields[string(step)], steps[1:], value)

		return tftypes.NewValue(in.Type(), fields)
	case tftypes.ElementKeyInt:
		var elements []tftypes.Value
		tftest.Must(t, in.As(&elements))

		elements = slices.Clone(elements)
		elements[step] = put(t, elements[step], steps[1:], value)

		return tftypes.NewValue(in.Type(), elements)
	default:
		t.Fatalf("there is no step %v", step)

		return in
	}
}
