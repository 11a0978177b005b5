package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/talosop/terraform-provider-talosop/internal/panics"
)

func (g guarded) ValidateListResourceConfig(
	ctx context.Context, req *tfprotov6.ValidateListResourceConfigRequest,
) (*tfprotov6.ValidateListResourceConfigResponse, error) {
	return answering(ctx, g, req, g.served.ValidateListResourceConfig, "The validation of a list of "+req.TypeName)
}

// ListResource also guards the sending of results, because most of the work happens then.
func (g guarded) ListResource(
	ctx context.Context, req *tfprotov6.ListResourceRequest,
) (*tfprotov6.ListResourceServerStream, error) {
	name := "The list of " + req.TypeName

	stream, err := keeping(ctx, g, req, g.served.ListResource, name,
		func(d []*tfprotov6.Diagnostic) *tfprotov6.ListResourceServerStream {
			return &tfprotov6.ListResourceServerStream{Results: func(push func(tfprotov6.ListResourceResult) bool) {
				push(tfprotov6.ListResourceResult{Diagnostics: d})
			}}
		})
	if err != nil || stream == nil || stream.Results == nil {
		return stream, err
	}

	results := stream.Results
	stream.Results = func(push func(tfprotov6.ListResourceResult) bool) {
		taken := true // whether the caller still listens
		take := func(result tfprotov6.ListResourceResult) bool {
			taken = push(result)

			return taken
		}

		if panicked := panics.Call(func() { results(take) }); panicked != nil && taken {
			push(tfprotov6.ListResourceResult{Diagnostics: mistakes(name, panicked)})
		}
	}

	return stream, nil
}
