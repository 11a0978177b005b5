package main

import (
	"fmt"
	"strings"

	tfjson "github.com/hashicorp/terraform-json"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// convert turns the answers of the protocol into the JSON format of `terraform providers schema -json`.
func (c *converter) convert(
	in *tfprotov6.GetProviderSchemaResponse, identities *tfprotov6.GetResourceIdentitySchemasResponse,
) (*tfjson.ProviderSchemas, error) {
	out := &tfjson.ProviderSchema{
		ConfigSchema:             c.schema(in.Provider),
		ResourceSchemas:          each(in.ResourceSchemas, c.schema),
		DataSourceSchemas:        each(in.DataSourceSchemas, c.schema),
		EphemeralResourceSchemas: each(in.EphemeralResourceSchemas, c.schema),
		ListResourceSchemas:      each(in.ListResourceSchemas, c.schema),
		ActionSchemas: each(in.ActionSchemas, func(a *tfprotov6.ActionSchema) *tfjson.ActionSchema {
			return &tfjson.ActionSchema{Block: c.block(a.Schema.Block)}
		}),
		Functions:               each(in.Functions, c.function),
		ResourceIdentitySchemas: each(identities.IdentitySchemas, c.identity),
	}

	if c.err != nil {
		return nil, c.err
	}

	return &tfjson.ProviderSchemas{
		FormatVersion: "1.0",
		Schemas:       map[string]*tfjson.ProviderSchema{address: out},
	}, nil
}

// each applies f to every value of a map.
func each[In, Out any](in map[string]In, f func(In) Out) map[string]Out {
	out := make(map[string]Out, len(in))
	for name, value := range in {
		out[name] = f(value)
	}

	return out
}

// converter keeps the first type that could not be converted, so that the tree can be walked without an error at every
// node.
type converter struct {
	bare bool
	err  error
}

// text is a description, unless those are left out.
func (c *converter) text(description string) string {
	if c.bare {
		return ""
	}

	return description
}

func (c *converter) schema(in *tfprotov6.Schema) *tfjson.Schema {
	return &tfjson.Schema{Version: uint64(in.Version), Block: c.block(in.Block)}
}

func (c *converter) block(in *tfprotov6.SchemaBlock) *tfjson.SchemaBlock {
	out := &tfjson.SchemaBlock{
		Attributes:      c.attributes(in.Attributes),
		NestedBlocks:    map[string]*tfjson.SchemaBlockType{},
		Description:     c.text(in.Description),
		DescriptionKind: c.kind(in.DescriptionKind),
		Deprecated:      in.Deprecated,
	}

	for _, b := range in.BlockTypes {
		out.NestedBlocks[b.TypeName] = &tfjson.SchemaBlockType{
			NestingMode: tfjson.SchemaNestingMode(strings.ToLower(b.Nesting.String())),
			Block:       c.block(b.Block),
			MinItems:    uint64(b.MinItems),
			MaxItems:    uint64(b.MaxItems),
		}
	}

	return out
}

func (c *converter) attributes(in []*tfprotov6.SchemaAttribute) map[string]*tfjson.SchemaAttribute {
	out := make(map[string]*tfjson.SchemaAttribute, len(in))

	for _, a := range in {
		attribute := &tfjson.SchemaAttribute{
			Description:     c.text(a.Description),
			DescriptionKind: c.kind(a.DescriptionKind),
			Deprecated:      a.Deprecated,
			Required:        a.Required,
			Optional:        a.Optional,
			Computed:        a.Computed,
			Sensitive:       a.Sensitive,
			WriteOnly:       a.WriteOnly,
		}

		if a.NestedType == nil {
			attribute.AttributeType = c.typ(a.Name, a.Type)
		} else {
			attribute.AttributeNestedType = &tfjson.SchemaNestedAttributeType{
				Attributes:  c.attributes(a.NestedType.Attributes),
				NestingMode: tfjson.SchemaNestingMode(strings.ToLower(a.NestedType.Nesting.String())),
			}
		}

		out[a.Name] = attribute
	}

	return out
}

func (c *converter) identity(in *tfprotov6.ResourceIdentitySchema) *tfjson.IdentitySchema {
	out := &tfjson.IdentitySchema{Version: uint64(in.Version), Attributes: map[string]*tfjson.IdentityAttribute{}}

	for _, a := range in.IdentityAttributes {
		out.Attributes[a.Name] = &tfjson.IdentityAttribute{
			IdentityType:      c.typ(a.Name, a.Type),
			Description:       c.text(a.Description),
			RequiredForImport: a.RequiredForImport,
			OptionalForImport: a.OptionalForImport,
		}
	}

	return out
}

func (c *converter) function(in *tfprotov6.Function) *tfjson.FunctionSignature {
	out := &tfjson.FunctionSignature{
		Description:        c.text(in.Description),
		Summary:            c.text(in.Summary),
		DeprecationMessage: in.DeprecationMessage,
		ReturnType:         c.typ("the result", in.Return.Type),
	}

	for _, p := range in.Parameters {
		out.Parameters = append(out.Parameters, c.parameter(p))
	}

	if in.VariadicParameter != nil {
		out.VariadicParameter = c.parameter(in.VariadicParameter)
	}

	return out
}

func (c *converter) parameter(in *tfprotov6.FunctionParameter) *tfjson.FunctionParameter {
	return &tfjson.FunctionParameter{
		Name:        in.Name,
		Description: c.text(in.Description),
		IsNullable:  in.AllowNullValue,
		Type:        c.typ(in.Name, in.Type),
	}
}

// typ converts a type through its JSON form, which both libraries share with the CLI.
func (c *converter) typ(name string, in tftypes.Type) cty.Type {
	encoded, err := in.MarshalJSON() //nolint:staticcheck // deprecated for CLI protocols alone; nothing replaces it for a schema file
	if err == nil {
		var out cty.Type
		if out, err = ctyjson.UnmarshalType(encoded); err == nil {
			return out
		}
	}

	if c.err == nil {
		c.err = fmt.Errorf("convert type of %s: %w", name, err)
	}

	return cty.DynamicPseudoType
}

func (c *converter) kind(in tfprotov6.StringKind) tfjson.SchemaDescriptionKind {
	if c.bare {
		return ""
	}

	if in == tfprotov6.StringKindMarkdown {
		return tfjson.SchemaDescriptionKindMarkdown
	}

	return tfjson.SchemaDescriptionKindPlain
}
