package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/talosop/terraform-provider-talosop/internal/panics"
)

func (g guarded) ValidateActionConfig(
	ctx context.Context, req *tfprotov6.ValidateActionConfigRequest,
) (*tfprotov6.ValidateActionConfigResponse, error) {
	return answering(ctx, g, req, g.served.ValidateActionConfig, "The validation of action "+req.ActionType)
}

func (g guarded) PlanAction(
	ctx context.Context, req *tfprotov6.PlanActionRequest,
) (*tfprotov6.PlanActionResponse, error) {
	return answering(ctx, g, req, g.served.PlanAction, "The plan of action "+req.ActionType)
}

// InvokeAction also guards the sending of events, because the action runs then.
func (g guarded) InvokeAction(
	ctx context.Context, req *tfprotov6.InvokeActionRequest,
) (*tfprotov6.InvokeActionServerStream, error) {
	name := "Action " + req.ActionType

	stream, err := keeping(ctx, g, req, g.served.InvokeAction, name,
		func(d []*tfprotov6.Diagnostic) *tfprotov6.InvokeActionServerStream {
			return &tfprotov6.InvokeActionServerStream{Events: func(push func(tfprotov6.InvokeActionEvent) bool) {
				push(completed(d))
			}}
		})
	if err != nil || stream == nil || stream.Events == nil {
		return stream, err
	}

	events := stream.Events
	stream.Events = func(push func(tfprotov6.InvokeActionEvent) bool) {
		_, done := g.requests.begin(ctx)
		defer done()

		if panicked := panics.Call(func() { events(push) }); panicked != nil {
			push(completed(mistakes(name, panicked)))
		}
	}

	return stream, nil
}

func completed(d []*tfprotov6.Diagnostic) tfprotov6.InvokeActionEvent {
	return tfprotov6.InvokeActionEvent{Type: tfprotov6.CompletedInvokeActionEventType{Diagnostics: d}}
}
