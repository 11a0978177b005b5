package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider/direct"
)

// broken is a server that panics with a secret on every request.
type broken struct {
	served
}

// After any panic of an operation the process lives, the CLI gets an error without values, and state is unchanged.
func TestServer_panics(t *testing.T) {
	t.Parallel()

	state, private := &tfprotov6.DynamicValue{MsgPack: []byte("prior")}, []byte("private")
	identity := &tfprotov6.ResourceIdentityData{IdentityData: &tfprotov6.DynamicValue{MsgPack: []byte("identity")}}
	server := reflect.ValueOf(guarded{served: broken{}})

	for i := range server.NumMethod() {
		name := server.Type().Method(i).Name

		// Every call on nil is a panic.
		request := reflect.New(server.Method(i).Type().In(1).Elem())
		for field, value := range map[string]any{
			"TypeName": "talosop_cluster", "CurrentState": state, "PriorState": state, "Private": private,
			"PriorPrivate": private, "PlannedPrivate": private, "CurrentIdentity": identity, "PriorIdentity": identity,
			"PlannedIdentity": identity, "PlannedState": &tfprotov6.DynamicValue{MsgPack: []byte("planned")},
		} {
			if f := request.Elem().FieldByName(field); f.IsValid() {
				f.Set(reflect.ValueOf(value))
			}
		}

		out := server.Method(i).Call([]reflect.Value{reflect.ValueOf(context.Background()), request})
		if !out[1].IsNil() || out[0].IsNil() {
			t.Errorf("%s: %v", name, out)

			continue
		}

		answer := out[0].Interface()
		switch stream := answer.(type) {
		case *tfprotov6.InvokeActionServerStream:
			answer = slices.Collect(stream.Events)
		case *tfprotov6.ListResourceServerStream:
			answer = slices.Collect(stream.Results)
		}

		text, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}

		if !strings.Contains(string(text), "a bug in the provider") || !strings.Contains(string(text), "runtime.") {
			t.Errorf("%s says %s", name, text)
		}

		for _, field := range []string{"NewState", "PlannedState"} {
			if f := out[0].Elem().FieldByName(field); f.IsValid() && f.Interface() != any(state) {
				t.Errorf("%s: %s is %v", name, field, f)
			}
		}

		for _, field := range []string{"Private", "PlannedPrivate"} {
			if f := out[0].Elem().FieldByName(field); f.IsValid() && name != "OpenEphemeralResource" &&
				!bytes.Equal(f.Bytes(), private) {
				t.Errorf("%s: %s is %v", name, field, f)
			}
		}
	}
}

// speaking panics with its input.
type speaking struct {
	served
}

func (speaking) ApplyResourceChange(
	_ context.Context, req *tfprotov6.ApplyResourceChangeRequest,
) (*tfprotov6.ApplyResourceChangeResponse, error) {
	panic(string(req.Config.MsgPack))
}

func TestServer_panicShowsNoValues(t *testing.T) {
	t.Parallel()

	// A create has nothing to keep, as when the process is killed: the planned state would be tainted.
	nothing, err := tfprotov6.NewDynamicValue(tftypes.String, tftypes.NewValue(tftypes.String, nil))
	if err != nil {
		t.Fatal(err)
	}

	response, err := guarded{served: speaking{}}.ApplyResourceChange(t.Context(), &tfprotov6.ApplyResourceChangeRequest{
		TypeName: "talosop_cluster", Config: &tfprotov6.DynamicValue{MsgPack: []byte("swordfish")}, PriorState: &nothing,
		PlannedState: &tfprotov6.DynamicValue{MsgPack: []byte("planned")},
	})
	if err != nil || response.NewState != &nothing || len(response.Diagnostics) != 1 {
		t.Fatalf("%+v %v", response, err)
	}

	diagnostic := response.Diagnostics[0]
	if diagnostic.Severity != tfprotov6.DiagnosticSeverityError || strings.Contains(diagnostic.Detail+diagnostic.Summary, "swordfish") ||
		!strings.Contains(diagnostic.Detail, "provider.speaking.ApplyResourceChange") ||
		!strings.Contains(diagnostic.Detail, "The apply of a talosop_cluster") {
		t.Errorf("it says %s: %s", diagnostic.Summary, diagnostic.Detail)
	}
}

// listing returns a result, and then panics.
type listing struct {
	served
}

func (listing) ListResource(
	context.Context, *tfprotov6.ListResourceRequest,
) (*tfprotov6.ListResourceServerStream, error) {
	return &tfprotov6.ListResourceServerStream{Results: func(push func(tfprotov6.ListResourceResult) bool) {
		if push(tfprotov6.ListResourceResult{DisplayName: "10.0.0.11"}) {
			panic("swordfish")
		}
	}}, nil
}

// A list that panics midway reports it after its results, and without values.
func TestServer_panicInAList(t *testing.T) {
	t.Parallel()

	stream, err := guarded{served: listing{}}.ListResource(t.Context(),
		&tfprotov6.ListResourceRequest{TypeName: "talosop_machine"})
	if err != nil {
		t.Fatal(err)
	}

	results := slices.Collect(stream.Results)
	if len(results) != 2 || results[0].DisplayName != "10.0.0.11" || len(results[1].Diagnostics) != 1 {
		t.Fatalf("the results are %+v", results)
	}

	detail := results[1].Diagnostics[0].Detail
	if !strings.Contains(detail, "The list of talosop_machine ended because of a bug") || strings.Contains(detail, "swordfish") ||
		!strings.Contains(detail, "listing.ListResource") {
		t.Errorf("it says %s", detail)
	}

	for range stream.Results {
		break // the caller has stopped listening
	}
}

// The served provider is guarded, and includes everything that the provider offers.
func TestServer_guardsWhatIsServed(t *testing.T) {
	t.Parallel()

	server := NewServer("test", NewRequests())()
	if _, is := server.(guarded); !is {
		t.Errorf("it is %T", server)
	}

	// Their calls would not reach the provider through guarded.
	schemas, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil || len(schemas.ResourceSchemas) == 0 || len(schemas.StateStoreSchemas) > 0 {
		t.Errorf("%d resources: %v", len(schemas.ResourceSchemas), err)
	}

	if len(schemas.EphemeralResourceSchemas) == 0 || len(schemas.ActionSchemas) == 0 || len(schemas.ListResourceSchemas) == 0 {
		t.Error("no ephemeral resources, no actions, or no lists")
	}
}

// The framework finds out by type assertions what a provider has. So the server that passes the provider on must name
// every method that the framework may call.
func TestServe_passesOnAllOfTheProvider(t *testing.T) {
	t.Parallel()

	whole := reflect.TypeFor[*talosopProvider]()
	passed := reflect.TypeFor[direct.Provider]()

	for i := range whole.NumMethod() {
		if name := whole.Method(i).Name; !hasMethod(passed, name) {
			t.Errorf("the framework does not see %s", name)
		}
	}
}

func hasMethod(of reflect.Type, name string) bool {
	_, has := of.MethodByName(name)

	return has
}
