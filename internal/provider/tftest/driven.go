package tftest

import (
	"context"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
)

// Driven is one resource as a CLI handles it, in the protocol of the CLIs: it makes the same checks of plans and
// states.
type Driven struct {
	Server  tfprotov6.ProviderServer
	Name    string
	State   tftypes.Value
	Private []byte
}

// Drive is a resource without state, in a provider with a configuration.
func Drive(t *testing.T, name string, provider Config) *Driven {
	t.Helper()

	return &Driven{Server: Serve(t, provider), Name: name, State: tftypes.NewValue(TypeOf(t, name), nil)}
}

// Elsewhere is the same resource in another process of the provider.
func (d *Driven) Elsewhere(t *testing.T, provider Config) *Driven {
	t.Helper()

	other := *d
	other.Server = Serve(t, provider)

	return &other
}

// Proposed is what a CLI proposes for a configuration.
func (d *Driven) Proposed(t *testing.T, config tftypes.Value) tftypes.Value {
	t.Helper()

	return Proposed(t, d.Name, &d.State, config)
}

// Plan asks for a plan; a nil configuration destroys.
func (d *Driven) Plan(t *testing.T, config Config) Outcome {
	t.Helper()

	typ := TypeOf(t, d.Name)
	wanted, proposed := tftypes.NewValue(typ, nil), tftypes.NewValue(typ, nil)

	if config != nil {
		wanted = ValueOf(t, typ, config)
		proposed = d.Proposed(t, wanted)
	}

	resp, err := d.Server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: d.Name, PriorState: Dynamic(t, d.State), ProposedNewState: Dynamic(t, proposed), Config: Dynamic(t, wanted),
		PriorPrivate: d.Private,
	})
	if err != nil {
		t.Fatal(err)
	}

	if len(resp.RequiresReplace) > 0 {
		t.Errorf("the plan replaces the resource for %v", resp.RequiresReplace)
	}

	return Outcome{Decoded(t, typ, resp.PlannedState), resp.PlannedPrivate, resp.Diagnostics}
}

// PlanValue is Plan for a configuration that is already a value.
func (d *Driven) PlanValue(t *testing.T, config tftypes.Value) Outcome {
	t.Helper()

	resp, err := d.Server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: d.Name, PriorState: Dynamic(t, d.State), ProposedNewState: Dynamic(t, d.Proposed(t, config)),
		Config: Dynamic(t, config), PriorPrivate: d.Private,
	})
	if err != nil {
		t.Fatal(err)
	}

	return Outcome{Decoded(t, config.Type(), resp.PlannedState), resp.PlannedPrivate, resp.Diagnostics}
}

// Apply plans and applies, and stores the resulting state.
func (d *Driven) Apply(t *testing.T, config Config) Outcome {
	t.Helper()

	return d.ApplyIn(t.Context(), t, config)
}

// ApplyIn is Apply whose request ends with a context.
func (d *Driven) ApplyIn(ctx context.Context, t *testing.T, config Config) Outcome {
	t.Helper()

	if w, ok := d.Server.(Walk); ok {
		d.Server = w.Next(t)
	}

	planned := d.Plan(t, config)
	if planned.Failed() {
		return planned
	}

	// A CLI plans again before it applies: no known value may change.
	again := d.Plan(t, config)
	consistent(t, "the second plan", planned.Value, again.Value)

	return d.ApplyPlanned(ctx, t, config, Outcome{again.Value, again.Private, planned.Diagnostics})
}

// ApplyPlanned applies a plan, and stores the resulting state.
func (d *Driven) ApplyPlanned(ctx context.Context, t *testing.T, config Config, plan Outcome) Outcome {
	t.Helper()

	typ := TypeOf(t, d.Name)

	wanted := tftypes.NewValue(typ, nil)
	if config != nil {
		wanted = ValueOf(t, typ, config)
	}

	resp, err := d.Server.ApplyResourceChange(ctx, &tfprotov6.ApplyResourceChangeRequest{
		TypeName: d.Name, PriorState: Dynamic(t, d.State), PlannedState: Dynamic(t, plan.Value), Config: Dynamic(t, wanted),
		PlannedPrivate: plan.Private,
	})
	if err != nil {
		t.Fatal(err)
	}

	done := Outcome{Decoded(t, typ, resp.NewState), resp.Private, append(plan.Diagnostics, resp.Diagnostics...)}

	if !done.Failed() {
		consistent(t, "the state", plan.Value, done.Value)
	}

	d.State, d.Private = done.Value, done.Private

	return done
}

// consistent checks that the known values of a plan came true.
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

// Refresh reads the resource.
func (d *Driven) Refresh(t *testing.T) Outcome {
	t.Helper()

	resp, err := d.Server.ReadResource(t.Context(),
		&tfprotov6.ReadResourceRequest{TypeName: d.Name, CurrentState: Dynamic(t, d.State), Private: d.Private})
	if err != nil {
		t.Fatal(err)
	}

	read := Outcome{Decoded(t, TypeOf(t, d.Name), resp.NewState), resp.Private, resp.Diagnostics}
	d.State, d.Private = read.Value, read.Private

	return read
}

// ExpectEmpty checks that the plan after a refresh is empty.
func (d *Driven) ExpectEmpty(t *testing.T, when string, config Config) {
	t.Helper()

	read := d.Refresh(t).Must(t)
	planned := d.Plan(t, config).Must(t)

	if !planned.Value.Equal(d.State) {
		differences, _ := d.State.Diff(planned.Value)
		t.Errorf("the plan %s is not empty: %v", when, differences)
	}

	if shown := Show(append(read.Diagnostics, planned.Diagnostics...)); shown != "" {
		t.Errorf("the plan %s says: %s", when, shown)
	}
}

// Import imports by an ID.
func (d *Driven) Import(t *testing.T, id string) Outcome {
	t.Helper()

	return d.importBy(t, &tfprotov6.ImportResourceStateRequest{TypeName: d.Name, ID: id})
}

// ImportIdentity imports by an identity.
func (d *Driven) ImportIdentity(t *testing.T, identity Config) Outcome {
	t.Helper()

	data := Dynamic(t, ValueOf(t, IdentityTypeOf(t, d.Name), identity))

	return d.importBy(t, &tfprotov6.ImportResourceStateRequest{
		TypeName: d.Name, Identity: &tfprotov6.ResourceIdentityData{IdentityData: data}})
}

// Identity is the identity that a refresh stores.
func (d *Driven) Identity(t *testing.T) tftypes.Value {
	t.Helper()

	resp, err := d.Server.ReadResource(t.Context(),
		&tfprotov6.ReadResourceRequest{TypeName: d.Name, CurrentState: Dynamic(t, d.State), Private: d.Private})
	if err != nil || resp.NewIdentity == nil {
		t.Fatal(err, Show(resp.Diagnostics))
	}

	return Decoded(t, IdentityTypeOf(t, d.Name), resp.NewIdentity.IdentityData)
}

func (d *Driven) importBy(t *testing.T, req *tfprotov6.ImportResourceStateRequest) Outcome {
	t.Helper()

	resp, err := d.Server.ImportResourceState(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}

	done := Outcome{Diagnostics: resp.Diagnostics}
	if len(resp.ImportedResources) == 1 {
		done.Value, done.Private = Decoded(t, TypeOf(t, d.Name), resp.ImportedResources[0].State),
			resp.ImportedResources[0].Private
		d.State, d.Private = done.Value, done.Private
	}

	return done
}

// Set changes an attribute of the state.
func (d *Driven) Set(t *testing.T, name string, value any) {
	t.Helper()

	fields := FieldsOf(t, d.State)
	fields[name] = tftypes.NewValue(fields[name].Type(), value)
	d.State = tftypes.NewValue(d.State.Type(), fields)
}

// RefreshedPlan is the plan after a refresh, as in the CLIs.
func (d *Driven) RefreshedPlan(t *testing.T, config Config) Outcome {
	t.Helper()
	d.Refresh(t).Must(t)

	return d.Plan(t, config).Must(t)
}

// Ready applies, and ends the test when the machines are not Ready then.
func (d *Driven) Ready(t *testing.T, config Config) Outcome {
	t.Helper()

	done := d.Apply(t, config).Must(t)
	if got := Text(t, d.State, "phase"); got != "Ready" {
		t.Fatalf("phase is %s: %s", got, Show(done.Diagnostics))
	}

	return done
}

// DriveWith is a resource without state, of a provider on given data.
func DriveWith(t *testing.T, m *providerdata.ProviderData, name string) *Driven {
	t.Helper()

	d := Drive(t, name, nil)
	d.Server = ServeWith(t, m, Config{})

	return d
}
