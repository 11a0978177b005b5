package tftest

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
)

// ConnectTimeout is how long ReadSilent waits for a connection.
const ConnectTimeout = time.Minute

// ReadSilent reads a data source of a provider with silent machines: connections to them are neither made nor
// refused.
func ReadSilent(t *testing.T, name string, config Config) (tftypes.Value, []*tfprotov6.Diagnostic) {
	t.Helper()

	m := providerdata.NewProviderData()
	m.Talos.Timeouts = talos.Timeouts{Connect: ConnectTimeout, Call: ConnectTimeout, Observe: ConnectTimeout}
	m.Talos.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()

		return nil, ctx.Err()
	}

	server, err := providerserver.NewProtocol6WithError(provider.NewOf("test", m))()
	if err != nil {
		t.Fatal(err)
	}

	if err := Configure(server); err != nil {
		t.Fatal(err)
	}

	typ := Schemas(t).DataSourceSchemas[name].ValueType()

	resp, err := server.ReadDataSource(t.Context(),
		&tfprotov6.ReadDataSourceRequest{TypeName: name, Config: Dynamic(t, ValueOf(t, typ, config))})
	if err != nil {
		t.Fatal(err)
	}

	if resp.State == nil {
		return tftypes.NewValue(typ, nil), resp.Diagnostics
	}

	state, err := resp.State.Unmarshal(typ)
	if err != nil {
		t.Fatal(err)
	}

	return state, resp.Diagnostics
}

// ReadData validates and reads a data source as a plan does.
func ReadData(t *testing.T, name string, config Config) (tftypes.Value, []*tfprotov6.Diagnostic) {
	t.Helper()

	typ := Schemas(t).DataSourceSchemas[name].ValueType()
	server, given := Server(t), Dynamic(t, ValueOf(t, typ, config))

	valid, err := server.ValidateDataResourceConfig(t.Context(),
		&tfprotov6.ValidateDataResourceConfigRequest{TypeName: name, Config: given})
	Must(t, err)

	if len(valid.Diagnostics) > 0 {
		return tftypes.NewValue(typ, nil), valid.Diagnostics
	}

	resp, err := server.ReadDataSource(t.Context(), &tfprotov6.ReadDataSourceRequest{TypeName: name, Config: given})
	Must(t, err)

	if len(resp.Diagnostics) > 0 {
		return tftypes.NewValue(typ, nil), resp.Diagnostics
	}

	state, err := resp.State.Unmarshal(typ)
	Must(t, err)

	return state, nil
}

// Validate asks a new provider to validate a configuration.
func Validate(t *testing.T, resource string, config Config) []*tfprotov6.Diagnostic {
	t.Helper()

	resp, err := Server(t).ValidateResourceConfig(t.Context(), &tfprotov6.ValidateResourceConfigRequest{
		TypeName: resource, Config: Dynamic(t, ValueOf(t, TypeOf(t, resource), config)),
		ClientCapabilities: &tfprotov6.ValidateResourceConfigClientCapabilities{WriteOnlyAttributesAllowed: true},
	})
	if err != nil {
		t.Fatal(err)
	}

	return resp.Diagnostics
}

// Plan asks a new provider for a plan from a prior state (nil for none).
func Plan(
	t *testing.T, resource string, prior *tftypes.Value, config tftypes.Value,
) *tfprotov6.PlanResourceChangeResponse {
	t.Helper()

	return PlanBy(t, Server(t), resource, prior, config)
}

// PlanBy is Plan by a given provider.
func PlanBy(
	t *testing.T, server tfprotov6.ProviderServer, resource string, prior *tftypes.Value, config tftypes.Value,
) *tfprotov6.PlanResourceChangeResponse {
	t.Helper()

	state := tftypes.NewValue(config.Type(), nil)
	if prior != nil {
		state = *prior
	}

	resp, err := server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: resource, PriorState: Dynamic(t, state), ProposedNewState: Dynamic(t, Proposed(t, resource, prior, config)),
		Config: Dynamic(t, config),
	})
	if err != nil {
		t.Fatal(err)
	}

	return resp
}

// Proposed is what a CLI proposes for a resource: the configuration without write-only values, and the former computed
// values. prior is nil for a create.
func Proposed(t *testing.T, resource string, prior *tftypes.Value, config tftypes.Value) tftypes.Value {
	t.Helper()

	if prior == nil {
		none := tftypes.NewValue(config.Type(), nil)
		prior = &none
	}

	return proposedObject(t, Schemas(t).ResourceSchemas[resource].Block.Attributes, *prior, config)
}

// proposedObject is the proposal for an object (OpenTofu 1.12, internal/plans/objchange, ProposedNew).
func proposedObject(t *testing.T, attributes []*tfprotov6.SchemaAttribute, prior, config tftypes.Value) tftypes.Value {
	t.Helper()

	if config.IsNull() || !config.IsKnown() {
		return config
	}

	was, out := FieldsOf(t, prior), FieldsOf(t, config)

	for _, a := range attributes {
		switch given := out[a.Name]; {
		case a.WriteOnly:
			out[a.Name] = tftypes.NewValue(given.Type(), nil)
		case given.IsNull() && a.Computed && !prior.IsNull():
			out[a.Name] = was[a.Name]
		case a.NestedType != nil:
			out[a.Name] = proposedNested(t, a.NestedType, was[a.Name], given)
		}
	}

	return tftypes.NewValue(config.Type(), out)
}

// proposedNested is the proposal for an attribute with objects. Each takes its former values from the object with the
// same key or index.
func proposedNested(t *testing.T, of *tfprotov6.SchemaObject, prior, config tftypes.Value) tftypes.Value {
	t.Helper()

	switch {
	case config.IsNull() || !config.IsKnown():
		return config
	case of.Nesting == tfprotov6.SchemaObjectNestingModeSingle:
		return proposedObject(t, of.Attributes, prior, config)
	case of.Nesting == tfprotov6.SchemaObjectNestingModeMap:
		was, out := FieldsOf(t, prior), FieldsOf(t, config)
		for key, element := range out {
			out[key] = proposedObject(t, of.Attributes, was[key], element)
		}

		return tftypes.NewValue(config.Type(), out)
	}

	var was, out []tftypes.Value
	if prior.As(&was) != nil || config.As(&out) != nil {
		t.Fatalf("%s is no list", config.Type())
	}

	out = slices.Clone(out) // As returns the list of the value itself

	for i, element := range out {
		var former tftypes.Value
		if i < len(was) {
			former = was[i]
		}

		out[i] = proposedObject(t, of.Attributes, former, element)
	}

	return tftypes.NewValue(config.Type(), out)
}

// Found is a result of a list resource.
type Found struct {
	Display            string
	Identity, Resource map[string]tftypes.Value
	Diagnostics        string
}

// Query asks a list resource as `terraform query` does: the results, and its other diagnostics.
func Query(t *testing.T, provider Config, name string, config Config, include bool, limit int64) (
	[]Found, string,
) {
	t.Helper()

	server, ok := Serve(t, provider).(Walk).ProviderServer.(tfprotov6.ListResourceServer)
	if !ok {
		t.Fatal("the provider serves no lists")
	}

	typ := Schemas(t).ListResourceSchemas[name].ValueType()
	asked := Dynamic(t, ValueOf(t, typ, config))

	valid, err := server.ValidateListResourceConfig(t.Context(),
		&tfprotov6.ValidateListResourceConfigRequest{TypeName: name, Config: asked})
	Must(t, err)

	if len(valid.Diagnostics) > 0 {
		return nil, Show(valid.Diagnostics)
	}

	stream, err := server.ListResource(t.Context(),
		&tfprotov6.ListResourceRequest{TypeName: name, Config: asked, IncludeResource: include, Limit: limit})
	Must(t, err)

	var (
		results     []Found
		diagnostics strings.Builder
	)

	for result := range stream.Results {
		if result.Identity == nil {
			diagnostics.WriteString(Show(result.Diagnostics))

			continue
		}

		one := Found{Display: result.DisplayName, Diagnostics: Show(result.Diagnostics),
			Identity: FieldsOf(t, Decoded(t, IdentityTypeOf(t, name), result.Identity.IdentityData))}
		if include {
			one.Resource = FieldsOf(t, Decoded(t, TypeOf(t, name), result.Resource))
		}

		results = append(results, one)
	}

	return results, diagnostics.String()
}

// Displays are the names of the results.
func Displays(found []Found) string {
	var names []string

	for _, q := range found {
		names = append(names, q.Display+" "+q.Diagnostics)
	}

	return strings.Join(names, "\n")
}

// PlanSecrets plans secrets: from nil for a create, to nil for a destroy.
func PlanSecrets(
	t *testing.T, server tfprotov6.ProviderServer, prior, wanted Config, private map[string]string,
) *tfprotov6.PlanResourceChangeResponse {
	t.Helper()

	value := func(c Config) tftypes.Value {
		if c == nil {
			return tftypes.NewValue(TypeOf(t, "talosop_secrets"), nil)
		}

		return ValueOf(t, TypeOf(t, "talosop_secrets"), c)
	}

	config := value(wanted)
	if wanted != nil {
		config = value(Config{"deletion_protection": wanted["deletion_protection"]})
	}

	kept, separator := "", "{"
	for key, v := range private {
		kept += fmt.Sprintf("%s%q:%q", separator, key, base64.StdEncoding.EncodeToString([]byte(v)))
		separator = ","
	}

	if kept != "" {
		kept += "}"
	}

	resp, err := server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: "talosop_secrets", PriorState: Dynamic(t, value(prior)),
		ProposedNewState: Dynamic(t, value(wanted)),
		Config:           Dynamic(t, config), PriorPrivate: []byte(kept),
	})
	if err != nil {
		t.Fatal(err)
	}

	return resp
}
