package operations

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/operate"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/operation"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// failed reports why an operation did not finish, and its progress.
func (a asked) failed(
	ctx context.Context, p machineset.Set, machines []string, result lifecycle.Result, err error,
) diag.Diagnostic {
	var unknown *UnknownMachineError
	if errors.As(err, &unknown) {
		return tf.Diagnostic(machineUnknown.At(
			finding.Root("machines"), finding.Args{"machine": unknown.Name, "known": unknown.Known}))
	}

	stop := providerdata.StopOf(err, tf.RanOut(ctx))

	var state []string

	for _, step := range machineset.LinesOf(a.operated(result.Done)) {
		state = append(state, "done: "+step)
	}

	for _, name := range machines {
		state = append(state, name+": "+machineset.StateOf(result.Snapshot.Machines[name]))
	}

	return tf.Diagnostic(operationFailed.With(finding.Args{"operation": a.title(), "cluster": p.Settings.Name,
		"machines": machines, "causes": stop.Causes, "state": state, "solution": stop.Remedy}))
}

// title is the operation in words.
func (a asked) title() string { return strings.ReplaceAll(a.kind.name, "_", " ") }

// operated are the steps of the operation itself.
func (a asked) operated(done []step.Step) []step.Step {
	if a.kind.kind == operation.Leave {
		return done
	}

	return slices.DeleteFunc(slices.Clone(done), func(s step.Step) bool { _, is := s.(step.Operate); return !is })
}

// leftOf are the machines of an order without the operation.
func (a asked) leftOf(order operate.Order, done []step.Step) []string {
	return slices.DeleteFunc(slices.Clone(order.Machines), func(machine string) bool {
		return slices.ContainsFunc(a.operated(done), func(s step.Step) bool { return s.On() == machine })
	})
}
