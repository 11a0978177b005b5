package operations

import (
	"context"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/action/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/talosop/terraform-provider-talosop/internal/panics"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

var (
	_ action.ActionWithConfigure  = (*operationAction)(nil)
	_ action.ActionWithModifyPlan = (*operationAction)(nil)
)

// Metadata implements the framework.
func (a *operationAction) Metadata(_ context.Context, req action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_" + a.kind.name
}

// Schema implements the framework.
func (a *operationAction) Schema(ctx context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	attributes := tf.ActionAttributes(tf.WithDescriptions(a.kind.arguments(), func(description string) string {
		return strings.NewReplacer(tf.TerraformOnly, "", leavesOnChange, "").Replace(description)
	}))
	attributes["cluster"] = clusterhandle.HandleForActions()
	attributes["timeouts"] = tf.ActionTimeouts(ctx, "Time for all machines together. Default: `30m`.")

	resp.Schema = schema.Schema{
		MarkdownDescription: a.kind.description + " Needs Terraform 1.14; for OpenTofu, use the resource of the same name.",
		Attributes:          attributes,
	}
}

// ModifyPlan implements the framework: it warns about data that the operation wipes.
func (a *operationAction) ModifyPlan(
	ctx context.Context, req action.ModifyPlanRequest, resp *action.ModifyPlanResponse,
) {
	asked, diags := a.kind.read(ctx, req.Config)
	if resp.Diagnostics.Append(diags...); !asked.inPods(&resp.Diagnostics) {
		asked.announce(&resp.Diagnostics)
	}
}

// Invoke implements the framework: it runs the operation, and reports every event. The framework calls it in a
// separate goroutine, where only Invoke can turn a panic into an error.
func (a *operationAction) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	tell, end := progressOf(ctx, func(line string) { resp.SendProgress(action.InvokeProgressEvent{Message: line}) })
	defer end()

	if err := panics.Call(func() { a.invoke(ctx, req, resp, tell) }); err != nil {
		resp.Diagnostics.Append(tf.Bug("Action " + a.kind.name + " ended because of a bug: " + err.Error()))
	}
}

func (a *operationAction) invoke(
	ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse, tell func(string),
) {
	var limits timeouts.Value

	asked, diags := a.kind.read(ctx, req.Config)
	diags.Append(req.Config.GetAttribute(ctx, path.Root("timeouts"), &limits)...)

	ctx, cancel := tf.InvokeDeadline(ctx, limits, &diags)
	defer cancel()

	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}

	_, diags = asked.run(ctx, a.ProviderData, tell)
	resp.Diagnostics.Append(diags...)
}

// mostUnsent is how many lines wait for a slow client; further ones are dropped.
const mostUnsent = 1000

// progressOf passes lines on to a client that may be gone: an interrupted client takes no progress events, and the run
// still has to end in good order. end returns once all lines are passed on, or the context ended.
func progressOf(ctx context.Context, send func(string)) (tell func(string), end func()) {
	lines, sent := make(chan string, mostUnsent), make(chan struct{})

	go func() {
		defer close(sent)

		for line := range lines {
			send(line)
		}
	}()

	var (
		mu    sync.Mutex
		last  string
		ended bool
	)

	tell = func(line string) {
		mu.Lock()
		defer mu.Unlock()

		// Each round reports what it waits for.
		if line == last || ended {
			return
		}

		last = line

		select {
		case lines <- line:
		default:
		}
	}

	end = func() {
		mu.Lock()

		ended = true

		close(lines)
		mu.Unlock()

		select {
		case <-sent:
		case <-ctx.Done():
		}
	}

	return tell, end
}
