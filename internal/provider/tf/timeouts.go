package tf

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	actiontimeouts "github.com/hashicorp/terraform-plugin-framework-timeouts/action/timeouts"
	readtimeouts "github.com/hashicorp/terraform-plugin-framework-timeouts/datasource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	action "github.com/hashicorp/terraform-plugin-framework/action/schema"
	datasource "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
)

// Operation is one of the operations that have a timeout.
type Operation string

// DeadlineOf limits an operation by its value in timeouts.
func DeadlineOf(
	ctx context.Context, limits timeouts.Value, op Operation, diags *diag.Diagnostics,
) (context.Context, context.CancelFunc) {
	var (
		timeout time.Duration
		more    diag.Diagnostics
	)

	switch op {
	case OpCreate:
		timeout, more = limits.Create(ctx, defaultChange)
	case OpRead:
		timeout, more = limits.Read(ctx, defaultRead)
	case OpUpdate:
		timeout, more = limits.Update(ctx, defaultChange)
	case OpDelete:
		timeout, more = limits.Delete(ctx, defaultChange)
	}

	diags.Append(more...)

	return context.WithTimeoutCause(ctx, timeout, &RanOutError{Operation: op, Limit: timeout})
}

// UpdateTimeout is the limit of an update; zero while it is unknown, or is no duration.
func UpdateTimeout(ctx context.Context, limits timeouts.Value) time.Duration {
	if !FullyKnown(limits) {
		return 0
	}

	timeout, diags := limits.Update(ctx, defaultChange)
	if diags.HasError() {
		return 0
	}

	return timeout
}

// opInvoke is the only operation of an action.
const opInvoke = "invoke"

// InvokeDeadline limits an action by its value in timeouts.
func InvokeDeadline(
	ctx context.Context, limits actiontimeouts.Value, diags *diag.Diagnostics,
) (context.Context, context.CancelFunc) {
	timeout, more := limits.Invoke(ctx, defaultChange)
	diags.Append(more...)

	return context.WithTimeoutCause(ctx, timeout, &RanOutError{Operation: opInvoke, Limit: timeout})
}

// RanOutError says that an operation exceeded its timeout.
type RanOutError struct {
	Operation Operation
	Limit     time.Duration
}

func (e *RanOutError) Error() string {
	// The usual form: 30m, not 30m0s.
	limit := e.Limit.String()
	if whole, ok := strings.CutSuffix(limit, "m0s"); ok {
		limit = whole + "m"
	}

	if whole, ok := strings.CutSuffix(limit, "h0m"); ok {
		limit = whole + "h"
	}

	return fmt.Sprintf("timed out after %s (`timeouts.%s`)", limit, e.Operation)
}

// Unwrap makes it a context.DeadlineExceeded.
func (e *RanOutError) Unwrap() error { return context.DeadlineExceeded }

// RanOut is the timeout that ended an operation, or nil.
func RanOut(ctx context.Context) *RanOutError {
	var ranOut *RanOutError
	if !errors.As(context.Cause(ctx), &ranOut) {
		return nil
	}

	return ranOut
}

// RanOutLines are additional causes in a report when a timeout ended the operation.
func RanOutLines(ctx context.Context) []string {
	if ranOut := RanOut(ctx); ranOut != nil {
		return []string{ranOut.Error()}
	}

	return nil
}

const timeoutsText = "How long operations may take, as durations such as `45m` or `1h30m`."

// TimeoutsAttribute is that of the timeouts module with a description like those of other attributes: change is the
// effect of a change, operations what each value limits.
func TimeoutsAttribute(ctx context.Context, change string, operations map[string]string) schema.Attribute {
	return describedTimeouts(timeouts.AttributesAll(ctx), change, operations)
}

// ChangeTimeouts is timeouts of a resource whose refresh and destroy make no requests: description explains create
// and update.
func ChangeTimeouts(ctx context.Context, description string) schema.Attribute {
	return describedTimeouts(timeouts.Attributes(ctx, timeouts.Opts{Create: true, Update: true}), TerraformOnly,
		map[string]string{string(OpCreate): description, string(OpUpdate): description})
}

// DestroyTimeouts is timeouts of a resource of which only the destroy makes requests, as description explains.
func DestroyTimeouts(ctx context.Context, description string) schema.Attribute {
	return describedTimeouts(timeouts.Attributes(ctx, timeouts.Opts{Delete: true}), TerraformOnly,
		map[string]string{string(OpDelete): description})
}

func describedTimeouts(of schema.Attribute, change string, operations map[string]string) schema.Attribute {
	attribute, ok := of.(schema.SingleNestedAttribute)
	if !ok {
		panic("provider: timeouts is not a nested attribute")
	}

	attribute.MarkdownDescription = timeoutsText + change

	for name, description := range operations {
		if operation, ok := attribute.Attributes[name].(schema.StringAttribute); ok {
			operation.Description, operation.MarkdownDescription = "", description
			attribute.Attributes[name] = operation
		}
	}

	return attribute
}

// ActionTimeouts is timeouts of an action.
func ActionTimeouts(ctx context.Context, description string) action.Attribute {
	attribute, ok := actiontimeouts.Attributes(ctx).(action.SingleNestedAttribute)
	if !ok {
		panic("provider: timeouts is not a nested attribute")
	}

	attribute.MarkdownDescription = timeoutsText

	if operation, ok := attribute.Attributes[opInvoke].(action.StringAttribute); ok {
		operation.Description, operation.MarkdownDescription = "", description
		attribute.Attributes[opInvoke] = operation
	}

	return attribute
}

// The operations that have a timeout.
const (
	// The operations.
	OpCreate Operation = "create"
	// OpRead is the operation of a refresh.
	OpRead Operation = "read"
	// OpUpdate is the operation of a change.
	OpUpdate Operation = "update"
	// OpDelete is the operation of a destroy.
	OpDelete Operation = "delete"
)

// The default timeouts.
const (
	defaultChange = 30 * time.Minute
	defaultRead   = time.Minute
)

// MachineTimeouts limits work on machines.
func MachineTimeouts(ctx context.Context) schema.Attribute {
	return TimeoutsAttribute(ctx, TerraformOnly, map[string]string{
		"create": "Time for a create. Default: `30m`.",
		"read":   "Time for observing the machines. Default: `1m`.",
		"update": "Time for an update. Default: `30m`.",
		"delete": "Time for removing the machines. Default: `30m`.",
	})
}

// ReadTimeouts is `timeouts` of a data source: that of its read.
func ReadTimeouts(ctx context.Context, description string) datasource.Attribute {
	attribute, ok := readtimeouts.Attributes(ctx).(datasource.SingleNestedAttribute)
	if !ok {
		panic("provider: timeouts is not a nested attribute")
	}

	if read, ok := attribute.Attributes["read"].(datasource.StringAttribute); ok {
		read.Description, read.MarkdownDescription = "", description
		attribute.Attributes["read"] = read
	}

	attribute.MarkdownDescription = timeoutsText

	return attribute
}

// ReadLimit is the timeout of reading a data source.
func ReadLimit(
	ctx context.Context, limits readtimeouts.Value, otherwise time.Duration,
) (time.Duration, diag.Diagnostics) {
	limit, diags := limits.Read(ctx, otherwise)
	if !diags.HasError() && limit <= 0 {
		diags.Append(Diagnostic(invalidReadTimeout.At(finding.Root("timeouts").AtName("read"),
			finding.Args{"value": limit})))
	}

	return limit, diags
}
