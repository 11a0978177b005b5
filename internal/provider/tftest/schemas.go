package tftest

import (
	"context"
	"sync"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider"
)

// TypeOf is the type of the values of a resource.
func TypeOf(t *testing.T, resource string) tftypes.Object {
	t.Helper()

	object, ok := Schemas(t).ResourceSchemas[resource].ValueType().(tftypes.Object)
	if !ok {
		t.Fatalf("%s is not an object", resource)
	}

	return object
}

// IdentityTypeOf is the type of the identity of a resource.
func IdentityTypeOf(t *testing.T, name string) tftypes.Type {
	t.Helper()

	response, err := Serve(t, nil).GetResourceIdentitySchemas(t.Context(), &tfprotov6.GetResourceIdentitySchemasRequest{})
	Must(t, err)

	return response.IdentitySchemas[name].ValueType()
}

// selfDescription is the provider's schemas, for all tests: each asks many times, and none changes it.
var selfDescription = sync.OnceValues(func() (*tfprotov6.GetProviderSchemaResponse, error) {
	server, err := providerserver.NewProtocol6WithError(provider.New("test")())()
	if err != nil {
		return nil, err
	}

	return server.GetProviderSchema(context.Background(), &tfprotov6.GetProviderSchemaRequest{})
})

// Schemas returns the provider's schemas as a CLI gets them.
func Schemas(t *testing.T) *tfprotov6.GetProviderSchemaResponse {
	t.Helper()

	resp, err := selfDescription()
	if err != nil {
		t.Fatal(err)
	}

	for _, d := range resp.Diagnostics {
		t.Fatalf("schema: %s: %s", d.Summary, d.Detail)
	}

	return resp
}

// EveryAttribute calls visit for every attribute of every type of the provider.
func EveryAttribute(t *testing.T, visit func(where string, a *tfprotov6.SchemaAttribute)) {
	t.Helper()

	resp := Schemas(t)
	for _, kind := range []struct {
		Prefix  string
		schemas map[string]*tfprotov6.Schema
	}{
		{"resource ", resp.ResourceSchemas}, {"data ", resp.DataSourceSchemas}, {"ephemeral ", resp.EphemeralResourceSchemas},
		{"list ", resp.ListResourceSchemas},
	} {
		for name, schema := range kind.schemas {
			if schema.Block.Description == "" {
				t.Errorf("%s%s has no description", kind.Prefix, name)
			}

			if len(schema.Block.BlockTypes) > 0 {
				t.Errorf("%s%s has blocks; use nested attributes", kind.Prefix, name)
			}

			WalkAttributes(kind.Prefix+name, schema.Block.Attributes, visit)
		}
	}
}

// WalkAttributes calls visit for attributes and for all nested ones.
func WalkAttributes(
	where string, attributes []*tfprotov6.SchemaAttribute, visit func(string, *tfprotov6.SchemaAttribute),
) {
	for _, a := range attributes {
		at := where + "." + a.Name
		visit(at, a)

		if a.NestedType != nil {
			WalkAttributes(at, a.NestedType.Attributes, visit)
		}
	}
}
