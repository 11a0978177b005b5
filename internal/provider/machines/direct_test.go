package machines_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider"
	"github.com/talosop/terraform-provider-talosop/internal/provider/direct"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// servers are a provider that serves resources directly, and one of the framework alone. No machine answers them.
func servers(t *testing.T) (fast, framework tfprotov6.ProviderServer) {
	t.Helper()

	quick := func() direct.Provider {
		m := tftest.PlanData()
		m.Talos.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no route") }

		return provider.NewOf("test", m)
	}

	fast, framework = provider.Serve(quick()), providerserver.NewProtocol6(quick())()
	tftest.Must(t, tftest.Configure(fast))
	tftest.Must(t, tftest.Configure(framework))

	return fast, framework
}

// What is served directly is what the framework serves: plans without a change, plans of a state without a default, and
// reads of machines that do not answer.
func TestDirect_servesAsTheFramework(t *testing.T) {
	t.Parallel()

	for kind, config := range map[string]tftest.Config{
		"talosop_cluster": tftest.BaseCluster(), "talosop_control_plane": tftest.BaseControlPlane(),
		"talosop_worker": tftest.BaseWorker(), "talosop_machine": tftest.BaseMachine(),
	} {
		settled := settledState(t, kind, config)
		states := map[string]tftypes.Value{"settled": settled}

		for _, name := range []string{"on_destroy", "deletion_protection", "on_incomplete"} {
			if at := tftypes.NewAttributePath().WithAttributeName(name); tftest.FieldsOf(t, settled)[name].Type() != nil {
				states["without "+name] = tftest.Put(t, settled, at, nil)
			}
		}

		if kind == "talosop_cluster" {
			states["without a default in a pool"] = tftest.Put(t, settled, tftypes.NewAttributePath().
				WithAttributeName("workers").WithElementKeyString("gpu").WithAttributeName("config_patches"), nil)
		}

		for name, state := range states {
			t.Run(kind+" "+name, func(t *testing.T) {
				t.Parallel()

				given := tftest.ValueOf(t, state.Type(), config)
				fast, framework := servers(t)
				samePlan(t, fast, framework, kind, state, given)
				sameRead(t, fast, framework, kind, state)
			})
		}
	}
}

// So are the plans of all scenarios: creates, changes, other spellings, unknown values.
func TestDirect_plansAsTheFramework(t *testing.T) {
	t.Parallel()

	for name, scenario := range recordedScenarios() {
		if scenario.after == nil {
			continue // the framework plans a destroy
		}

		t.Run(name, func(t *testing.T) {
			t.Parallel()

			kind := cmp.Or(scenario.kind, "talosop_cluster")
			state := tftypes.NewValue(tftest.TypeOf(t, kind), nil)

			if prior := scenario.prior(t); prior != nil {
				state = *prior
			}

			fast, framework := servers(t)
			samePlan(t, fast, framework, kind, state, tftest.ValueOf(t, state.Type(), scenario.after))
		})
	}
}

// private is what earlier requests stored.
var private = []byte(`{"deletion_protection":"dHJ1ZQ==","owner":"InRlc3Qi"}`)

func samePlan(
	t *testing.T, fast, framework tfprotov6.ProviderServer, kind string, state, config tftypes.Value,
) {
	t.Helper()

	plan := func(server tfprotov6.ProviderServer) *tfprotov6.PlanResourceChangeResponse {
		proposed := tftest.Proposed(t, kind, &state, config)

		resp, err := server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
			TypeName: kind, PriorState: tftest.Dynamic(t, state), ProposedNewState: tftest.Dynamic(t, proposed),
			Config: tftest.Dynamic(t, config), PriorPrivate: private,
		})
		tftest.Must(t, err)

		return resp
	}

	got, want := plan(fast), plan(framework)

	sameValue(t, "plan", state.Type(), got.PlannedState, want.PlannedState)
	sameShown(t, "plan", got.Diagnostics, want.Diagnostics)

	if !bytes.Equal(got.PlannedPrivate, want.PlannedPrivate) ||
		fmt.Sprint(got.RequiresReplace) != fmt.Sprint(want.RequiresReplace) {
		t.Errorf("private state is %s, wanted %s; replaced for %v, wanted %v", got.PlannedPrivate, want.PlannedPrivate,
			got.RequiresReplace, want.RequiresReplace)
	}

	sameIdentity(t, kind, got.PlannedIdentity, want.PlannedIdentity)
}

func sameRead(t *testing.T, fast, framework tfprotov6.ProviderServer, kind string, state tftypes.Value) {
	t.Helper()

	read := func(server tfprotov6.ProviderServer) *tfprotov6.ReadResourceResponse {
		resp, err := server.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{
			TypeName: kind, CurrentState: tftest.Dynamic(t, state), Private: private,
		})
		tftest.Must(t, err)

		return resp
	}

	got, want := read(fast), read(framework)

	sameValue(t, "state", state.Type(), got.NewState, want.NewState)
	sameShown(t, "read", got.Diagnostics, want.Diagnostics)
	sameIdentity(t, kind, got.NewIdentity, want.NewIdentity)

	if !bytes.Equal(got.Private, want.Private) {
		t.Errorf("private state is %s, wanted %s", got.Private, want.Private)
	}
}

func sameValue(t *testing.T, what string, typ tftypes.Type, got, want *tfprotov6.DynamicValue) {
	t.Helper()

	if a, b := tftest.Decoded(t, typ, got), tftest.Decoded(t, typ, want); !a.Equal(b) {
		differences, _ := a.Diff(b)
		t.Errorf("the %s differs: %v", what, differences)
	}
}

func sameShown(t *testing.T, what string, got, want []*tfprotov6.Diagnostic) {
	t.Helper()

	if a, b := tftest.Show(got), tftest.Show(want); a != b {
		t.Errorf("the %s says\n%s\nwanted\n%s", what, a, b)
	}
}

func sameIdentity(t *testing.T, kind string, got, want *tfprotov6.ResourceIdentityData) {
	t.Helper()

	if got == nil || want == nil {
		if got != want {
			t.Errorf("identity is %v, wanted %v", got, want)
		}

		return
	}

	sameValue(t, "identity", tftest.IdentityTypeOf(t, kind), got.IdentityData, want.IdentityData)
}
