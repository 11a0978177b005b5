package operations

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/operate"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// failed reports why an operation did not finish, and its progress.
func (a asked) failed(
	ctx context.Context, p machineset.Set, machines []string, result lifecycle.Result, err error,
) diag.Diagnostic {
	var unknown *UnknownMachineError
	if errors.As(err, &unknown) {
		return tf.Invalid(path.Root("machines"), "machines", "found "+finding.Quote(unknown.Name),
			"the cluster has "+strings.Join(unknown.Known, ", "),
			"name machines by their addresses, or by the names of their nodes")
	}

	stop := providerdata.StopOf(err, tf.RanOut(ctx))
	report := finding.Report{
		Attempted: fmt.Sprintf("%s of cluster %q", a.title(), p.Settings.Name),
		Cause:     stop.Causes,
		Next: strings.TrimSpace(stop.Remedy +
			" What is done stays done. Once the cause is gone, ask for it again."),
	}

	if len(machines) > 0 {
		report.Attempted += ": " + finding.Describe(machines)
	}

	for _, step := range machineset.LinesOf(operated(result.Done)) {
		report.Now = append(report.Now, "done: "+step)
	}

	for _, name := range machines {
		state := machineset.StateOf(result.Snapshot.Machines[name])
		report.Now = append(report.Now, name+": "+state)
	}

	return tf.Unable("finish", a.title(), report)
}

// title is the operation in words.
func (a asked) title() string { return strings.ReplaceAll(a.kind.name, "_", " ") }

// operated are the steps of the operation itself.
func operated(done []step.Step) []step.Step {
	return slices.DeleteFunc(slices.Clone(done), func(s step.Step) bool { _, is := s.(step.Operate); return !is })
}

// leftOf are the machines of an order without the operation.
func leftOf(order operate.Order, done []step.Step) []string {
	return slices.DeleteFunc(slices.Clone(order.Machines), func(machine string) bool {
		return slices.ContainsFunc(operated(done), func(s step.Step) bool { return s.On() == machine })
	})
}
