package operations

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/operate"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/lock"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/operation"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/progress"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// run runs the operation, and reports each event as a line. The error of an incomplete operation comes with what was
// done and what is left.
func (a asked) run(ctx context.Context, m *providerdata.ProviderData, tell func(string)) (outcome, diag.Diagnostics) {
	if a.kind.kind == operation.Collect {
		return a.collect(ctx, m, tell)
	}

	if diags := (diag.Diagnostics{}); a.inPods(&diags) {
		return outcome{left: a.named()}, diags
	}

	handle, bundle, diags := m.ClusterOf(ctx, a.cluster)
	p := providerdata.OfHandle(handle, a.kind.name, &diags)
	a.put(ctx, &p)
	diags.Append(tf.Diagnostics(a.refuseContainers(handle.Mode))...)

	if diags.HasError() {
		return outcome{}, diags
	}

	ctx = tf.MaskSecrets(ctx, handle.Secrets.ValueString())

	s, err := a.open(ctx, m, p, bundle, tell)
	if err != nil {
		return outcome{left: a.named()}, append(diags, a.failed(ctx, p, nil, lifecycle.Result{}, err))
	}

	defer s.close()

	if a.kind.kind == operation.Leave {
		return a.leave(ctx, m, p, handle.Secrets.ValueString(), s)
	}

	want, order, err := a.order(ctx, p, s.api)
	if err != nil {
		return outcome{left: a.named()}, append(diags, a.failed(ctx, p, nil, lifecycle.Result{}, err))
	}

	result, err := s.runner.Operate(ctx, want, order)
	s.follow.End(ctx, err)

	out := outcome{done: machineset.LinesOf(a.operated(result.Done))}

	if err != nil {
		out.left = a.leftOf(order, result.Done)
		diags.Append(a.failed(ctx, p, order.Machines, result, err))
	}

	return out, diags
}

// session is what an operation works with.
type session struct {
	runner *lifecycle.Runner
	api    *kubernetes.Client
	follow *progress.Follow
	close  func()
}

// open makes a session; it does no I/O.
func (a asked) open(
	ctx context.Context, m *providerdata.ProviderData, p machineset.Set, bundle *pki.Bundle, tell func(string),
) (*session, error) {
	working := *m
	working.Talos.TrustNodeNames, working.Talos.Digest = a.kind.kind != operation.Leave, nil

	name := strings.ReplaceAll(a.kind.name, "_", " ")

	c, err := working.ClientsOf(ctx, pki.Operating, p, machineset.PriorState{}, bundle, api.Options{
		StaticPods: true, Poll: m.Interval, Name: name, Progress: func(message string) { tf.LogInfo(ctx, message) },
	})
	if err != nil {
		return nil, err
	}

	follow := m.Follow(ctx, p.Settings.Name, name, name)

	runner := &lifecycle.Runner{
		Fleet: working.FleetFor(c), Kubernetes: c.API, Policy: p.Policy(m.Policy), Interval: m.Interval,
		Lock: c.API.Lock(lock.Options{Cluster: bundle.Mark(), Name: name}),
		Events: func(e lifecycle.Event) {
			follow.Tell(e)
			tell(line(e))
		},
		Observed: follow.Observed,
	}

	return &session{runner: runner, api: c.API, follow: follow, close: c.Close}, nil
}

// line is an event as text.
func line(e lifecycle.Event) string {
	parts := []string{string(e.State)}
	if e.Machine != "" {
		parts = append(parts, e.Machine)
	}

	if e.Step != nil {
		parts = []string{string(e.State), e.Step.String()}
	}

	if e.Reason != "" {
		parts = append(parts, e.Reason)
	}

	return strings.Join(parts, ": ")
}

// order is the cluster as reported by its handle and Kubernetes, and the machines for the operation.
func (a asked) order(
	ctx context.Context, p machineset.Set, api *kubernetes.Client,
) (cluster.Spec, operate.Order, error) {
	want := providerdata.ControlPlanesOf(p)
	want.Joins = true

	budget, _ := machineset.ReadBudget(a.maxUnavailable.ValueString())
	want.Pools = map[string]cluster.Budget{"": budget}

	order := operate.Order{Operation: a.operation()}

	if a.kind.planes {
		for _, machine := range want.Machines {
			order.Machines = append(order.Machines, machine.Name)
		}

		if a.kind.single {
			order.Machines = order.Machines[:min(len(order.Machines), 1)]
		}
	}

	nodes, err := nodesOf(ctx, api)
	if err != nil {
		return want, order, err
	}

	want.Machines = append(want.Machines, a.workersOf(p, nodes)...)

	if len(a.named()) > 0 || !a.kind.planes {
		chosen, err := a.chosen(p, want, nodes)
		if err != nil {
			return want, order, err
		}

		order.Machines = chosen
	}

	return want, order, nil
}
