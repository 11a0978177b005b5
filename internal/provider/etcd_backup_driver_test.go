package provider

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
)

// driven is one resource as a CLI handles it, in the protocol of the CLIs: it checks what a
// CLI checks of plans and states.
type driven struct {
	Server  tfprotov6.ProviderServer
	Name    string
	state   tftypes.Value
	private []byte
}

// drive is a resource that does not exist yet, in a provider with a configuration.
func drive(t *testing.T, name string, provider configuration) *driven {
	t.Helper()

	return &driven{Server: serving(t, provider), Name: name, state: tftypes.NewValue(typeOf(t, name), nil)}
}

// serving is a provider with a configuration.
func serving(t *testing.T, provider configuration) tfprotov6.ProviderServer {
	t.Helper()

	return serve(t, quickProviderData(), provider)
}

// walked is a provider in one walk of a CLI: CLIs start and configure it for each plan and each apply.
type walked struct {
	tfprotov6.ProviderServer
	next func(*testing.T) tfprotov6.ProviderServer
}

// serve is a provider with a configuration, on a machinery.
func serve(t *testing.T, m *providerdata.ProviderData, config configuration) tfprotov6.ProviderServer {
	t.Helper()

	server, err := providerserver.NewProtocol6WithError(NewOf("test", m))()
	if err != nil {
		t.Fatal(err)
	}

	given := dynamic(t, valueOf(t, schemas(t).Provider.ValueType(), config))

	resp, err := server.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{Config: given})
	if err != nil || len(resp.Diagnostics) > 0 {
		t.Fatal(err, show(resp.Diagnostics))
	}

	return walked{server, func(t *testing.T) tfprotov6.ProviderServer {
		t.Helper()

		return serve(t, m, config)
	}}
}

// elsewhere is the same resource in another process of the provider.
func (d *driven) elsewhere(t *testing.T, provider configuration) *driven {
	t.Helper()

	other := *d
	other.Server = serving(t, provider)

	return &other
}

// proposed is what a CLI proposes for a configuration.
func (d *driven) proposed(t *testing.T, config tftypes.Value) tftypes.Value {
	t.Helper()

	out := fieldsOf(t, config)

	for _, a := range schemas(t).ResourceSchemas[d.Name].Block.Attributes {
		switch {
		case a.WriteOnly:
			out[a.Name] = tftypes.NewValue(out[a.Name].Type(), nil)
		case !d.state.IsNull() && a.Computed && out[a.Name].IsNull():
			out[a.Name] = fieldsOf(t, d.state)[a.Name]
		}
	}

	forgotten, err := tftypes.Transform(tftypes.NewValue(config.Type(), out),
		func(at *tftypes.AttributePath, v tftypes.Value) (tftypes.Value, error) {
			if isWriteOnly(at) {
				return tftypes.NewValue(v.Type(), nil), nil
			}

			return v, nil
		})
	if err != nil {
		t.Fatal(err)
	}

	return forgotten
}

// fieldsOf are the attributes of an object, to be changed.
func fieldsOf(t *testing.T, v tftypes.Value) map[string]tftypes.Value {
	t.Helper()

	var fields map[string]tftypes.Value
	if err := v.As(&fields); err != nil {
		t.Fatal(err)
	}

	out := map[string]tftypes.Value{}
	for name, field := range fields {
		out[name] = field
	}

	return out
}

// outcome is what a provider answered.
type outcome struct {
	Value       tftypes.Value
	private     []byte
	diagnostics []*tfprotov6.Diagnostic
}

func (o outcome) failed() bool {
	return slices.ContainsFunc(o.diagnostics,
		func(d *tfprotov6.Diagnostic) bool { return d.Severity == tfprotov6.DiagnosticSeverityError })
}

// plan asks for a plan; a nil configuration destroys.
func (d *driven) plan(t *testing.T, config configuration) outcome {
	t.Helper()

	typ := typeOf(t, d.Name)
	wanted, proposed := tftypes.NewValue(typ, nil), tftypes.NewValue(typ, nil)

	if config != nil {
		wanted = valueOf(t, typ, config)
		proposed = d.proposed(t, wanted)
	}

	resp, err := d.Server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: d.Name, PriorState: dynamic(t, d.state), ProposedNewState: dynamic(t, proposed), Config: dynamic(t, wanted),
		PriorPrivate: d.private,
	})
	if err != nil {
		t.Fatal(err)
	}

	if len(resp.RequiresReplace) > 0 {
		t.Errorf("the plan replaces the resource for %v", resp.RequiresReplace)
	}

	return outcome{decoded(t, typ, resp.PlannedState), resp.PlannedPrivate, resp.Diagnostics}
}

func decoded(t *testing.T, typ tftypes.Type, v *tfprotov6.DynamicValue) tftypes.Value {
	t.Helper()

	if v == nil {
		return tftypes.NewValue(typ, nil)
	}

	value, err := v.Unmarshal(typ)
	if err != nil {
		t.Fatal(err)
	}

	return value
}

// apply plans and applies, and stores the state that comes of it.
func (d *driven) apply(t *testing.T, config configuration) outcome {
	t.Helper()

	return d.applyIn(t.Context(), t, config)
}

func (d *driven) applyIn(ctx context.Context, t *testing.T, config configuration) outcome {
	t.Helper()

	if w, ok := d.Server.(walked); ok {
		d.Server = w.next(t)
	}

	planned := d.plan(t, config)
	if planned.failed() {
		return planned
	}

	// A CLI plans again before it applies: nothing that was known may be another value.
	again := d.plan(t, config)
	consistent(t, "the second plan", planned.Value, again.Value)

	return d.applyPlanned(ctx, t, config, outcome{again.Value, again.private, planned.diagnostics})
}

// applyPlanned applies a plan, and stores the state that comes of it.
func (d *driven) applyPlanned(ctx context.Context, t *testing.T, config configuration, plan outcome) outcome {
	t.Helper()

	typ := typeOf(t, d.Name)

	wanted := tftypes.NewValue(typ, nil)
	if config != nil {
		wanted = valueOf(t, typ, config)
	}

	resp, err := d.Server.ApplyResourceChange(ctx, &tfprotov6.ApplyResourceChangeRequest{
		TypeName: d.Name, PriorState: dynamic(t, d.state), PlannedState: dynamic(t, plan.Value), Config: dynamic(t, wanted),
		PlannedPrivate: plan.private,
	})
	if err != nil {
		t.Fatal(err)
	}

	done := outcome{decoded(t, typ, resp.NewState), resp.Private, append(plan.diagnostics, resp.Diagnostics...)}

	if !done.failed() {
		consistent(t, "the state", plan.Value, done.Value)
	}

	d.state, d.private = done.Value, done.private

	return done
}

// must fails the test when something went wrong.
func (o outcome) must(t *testing.T) outcome {
	t.Helper()

	if o.failed() {
		t.Fatal(show(o.diagnostics))
	}

	return o
}

// consistent checks that what a plan knew came true.
func consistent(t *testing.T, what string, planned, got tftypes.Value) {
	t.Helper()

	differences, err := planned.Diff(got)
	if err != nil {
		t.Fatal(err)
	}

	for _, difference := range differences {
		if v := difference.Value1; v != nil && v.IsFullyKnown() {
			t.Errorf("%s has %v at %s, where %v was planned", what, difference.Value2, difference.Path, v)
		}
	}
}

// refresh reads the resource.
func (d *driven) refresh(t *testing.T) outcome {
	t.Helper()

	resp, err := d.Server.ReadResource(t.Context(),
		&tfprotov6.ReadResourceRequest{TypeName: d.Name, CurrentState: dynamic(t, d.state), Private: d.private})
	if err != nil {
		t.Fatal(err)
	}

	read := outcome{decoded(t, typeOf(t, d.Name), resp.NewState), resp.Private, resp.Diagnostics}
	d.state, d.private = read.Value, read.private

	return read
}

// expectEmpty checks that nothing is planned after a refresh.
func (d *driven) expectEmpty(t *testing.T, when string, config configuration) {
	t.Helper()

	read := d.refresh(t).must(t)
	planned := d.plan(t, config).must(t)

	if !planned.Value.Equal(d.state) {
		differences, _ := d.state.Diff(planned.Value)
		t.Errorf("the plan %s is not empty: %v", when, differences)
	}

	if said := show(append(read.diagnostics, planned.diagnostics...)); said != "" {
		t.Errorf("the plan %s says: %s", when, said)
	}
}

// imports an id.
func (d *driven) imports(t *testing.T, id string) outcome {
	t.Helper()

	return d.importsBy(t, &tfprotov6.ImportResourceStateRequest{TypeName: d.Name, ID: id})
}

// importsIdentity imports by an identity.
func (d *driven) importsIdentity(t *testing.T, identity configuration) outcome {
	t.Helper()

	data := dynamic(t, valueOf(t, identityTypeOf(t, d.Name), identity))

	return d.importsBy(t, &tfprotov6.ImportResourceStateRequest{
		TypeName: d.Name, Identity: &tfprotov6.ResourceIdentityData{IdentityData: data}})
}

// identity is what a refresh stores as the identity.
func (d *driven) identity(t *testing.T) tftypes.Value {
	t.Helper()

	resp, err := d.Server.ReadResource(t.Context(),
		&tfprotov6.ReadResourceRequest{TypeName: d.Name, CurrentState: dynamic(t, d.state), Private: d.private})
	if err != nil || resp.NewIdentity == nil {
		t.Fatal(err, show(resp.Diagnostics))
	}

	return decoded(t, identityTypeOf(t, d.Name), resp.NewIdentity.IdentityData)
}

func (d *driven) importsBy(t *testing.T, req *tfprotov6.ImportResourceStateRequest) outcome {
	t.Helper()

	resp, err := d.Server.ImportResourceState(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}

	done := outcome{diagnostics: resp.Diagnostics}
	if len(resp.ImportedResources) == 1 {
		done.Value, done.private = decoded(t, typeOf(t, d.Name), resp.ImportedResources[0].State),
			resp.ImportedResources[0].Private
		d.state, d.private = done.Value, done.private
	}

	return done
}

// text is an attribute as text; "" for null and "unknown" for unknown.
func text(t *testing.T, object tftypes.Value, name string) string {
	t.Helper()

	v := fieldsOf(t, object)[name]

	switch {
	case !v.IsKnown():
		return "unknown"
	case v.IsNull():
		return ""
	case v.Type().Is(tftypes.Number):
		return fmt.Sprint(number(t, v))
	default:
		var s string
		if err := v.As(&s); err != nil {
			t.Fatal(err)
		}

		return s
	}
}

func number(t *testing.T, v tftypes.Value) int64 {
	t.Helper()

	var n *big.Float
	if err := v.As(&n); err != nil {
		t.Fatal(err)
	}

	i, _ := n.Int64()

	return i
}

// with is a state in which an attribute has another value.
func (d *driven) with(t *testing.T, name string, value any) {
	t.Helper()

	fields := fieldsOf(t, d.state)
	fields[name] = tftypes.NewValue(fields[name].Type(), value)
	d.state = tftypes.NewValue(d.state.Type(), fields)
}

// plain is a value as a configuration has it.
func plain(t *testing.T, v tftypes.Value) any {
	t.Helper()

	if v.IsNull() || !v.IsKnown() {
		return nil
	}

	switch typ := v.Type(); {
	case typ.Is(tftypes.String):
		var s string
		must(t, v.As(&s))

		return s
	case typ.Is(tftypes.Bool):
		var b bool
		must(t, v.As(&b))

		return b
	case typ.Is(tftypes.Number):
		return number(t, v)
	case typ.Is(tftypes.List{}), typ.Is(tftypes.Set{}):
		var list []tftypes.Value
		must(t, v.As(&list))

		out := []any{}
		for _, e := range list {
			out = append(out, plain(t, e))
		}

		return out
	default:
		out := configuration{}
		for name, field := range fieldsOf(t, v) {
			out[name] = plain(t, field)
		}

		return out
	}
}

func must(t *testing.T, err error) {
	t.Helper()

	if err != nil {
		t.Fatal(err)
	}
}
