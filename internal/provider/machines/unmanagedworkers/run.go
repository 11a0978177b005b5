package unmanagedworkers

import (
	"context"
	"slices"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/healthcheck/probe"
	"github.com/talosop/terraform-provider-talosop/internal/hook/execute"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/lock"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/progress"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/record"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
)

// runName is the name of a run for other runs that wait for it.
const runName = "unmanaged workers"

// session is what an operation on the machines works with.
type session struct {
	set    machineset.Set
	runner *lifecycle.Runner
	api    *kubernetes.Client
	follow *progress.Follow
	close  func()
}

// open makes a session; it does no I/O. Configurations are compared with images, which change with the rest here.
func (w *workers) open(
	ctx context.Context, m *model, access pki.Access, options func(*talos.Options),
) (*session, context.Context, diag.Diagnostics) {
	handle, bundle, diags := w.ClusterOf(ctx, m.Cluster)
	if diags.HasError() {
		return nil, ctx, diags
	}

	p := m.set(ctx, handle, &diags)
	ctx = tf.MaskSecrets(ctx, handle.Secrets.ValueString())

	working := *w.ProviderData
	working.Talos.Digest, working.Talos.Images = machineset.SharedDigest, nil

	options(&working.Talos)

	c, err := working.ClientsOf(ctx, access, p, machineset.PriorState{}, bundle, api.Options{
		StaticPods: true, Poll: w.Interval, Name: runName, Progress: func(message string) { tf.LogInfo(ctx, message) },
	})
	if err != nil {
		return nil, ctx, append(diags, incomplete(p, lifecycle.Result{}, providerdata.StopOf(err, nil)))
	}

	lease := c.API.Lock(lock.Options{Cluster: p.Identity(bundle), Name: runName})
	s := &session{set: p, api: c.API, follow: w.Follow(ctx, p.Settings.Name, runName, runName), close: c.Close}
	s.runner = &lifecycle.Runner{
		Fleet: working.FleetFor(c), Kubernetes: c.API, Policy: p.Policy(w.Policy), Interval: w.Interval,
		Lock: lease,
		// A machine keeps its host name with its keys: both are in its own configuration.
		Keys: func(config, active []byte, keys rotation.Keys) ([]byte, error) {
			named, err := machineconfig.WithHostnameOf(config, active)
			if err != nil {
				return nil, err
			}

			return machineconfig.WithKeys(named, active, keys, bundle.Keyring())
		},
		Events: s.follow.Tell, Observed: s.follow.Observed,
	}

	if !p.Changes.Window.IsZero() {
		s.runner.Window = p.Changes.WindowAt
	}

	if len(p.Changes.HealthChecks) > 0 {
		s.runner.Checks = &probe.Prober{Checks: p.Changes.HealthChecks, Cluster: c.API, Interval: w.Interval}
	}

	if len(p.Changes.Hooks)+len(p.StartedHooks) > 0 {
		s.runner.Hooks = &execute.Executor{Hooks: p.Changes.Hooks, Cluster: c.API, Lease: lease, Interval: w.Interval,
			Owner: runName + " " + m.Selector.ValueString()}
	}

	return s, ctx, diags
}

// configure does what a plan does to the recorded machines. Without a list, the plan did not know the configuration.
func (w *workers) configure(
	ctx context.Context, m *model, last []machineset.UnmanagedNode,
) diag.Diagnostics {
	if !m.Operations.IsUnknown() && len(m.Operations.Elements()) == 0 {
		return nil
	}

	s, ctx, diags := w.open(ctx, m, pki.Changing, func(o *talos.Options) {
		o.RebootFor = func(_, version string, active []byte) ([]string, error) {
			wanted, err := machineconfig.WithHostnameOf(m.config(), active)
			if err != nil {
				return nil, err
			}

			return machineset.RebootFor(active, wanted, version)
		}
	})
	if diags.HasError() {
		return diags
	}

	defer s.close()

	outdated, err := s.set.Outdated(m.matching(last), m.config())
	if err != nil {
		return append(diags, tf.Bug(err.Error())) // the plan compared them, too
	}

	want, err := s.set.OfUnmanaged(outdated, m.config(), m.budget())
	if err != nil {
		return append(diags, tf.Bug(err.Error()))
	}

	s.runner.Configs = map[string][]byte{}
	for _, machine := range want.ChangeOnly {
		s.runner.Configs[machine.Name] = m.config()
	}

	result, err := s.runner.Converge(ctx, want)
	s.follow.End(ctx, err)

	if err != nil {
		diags.Append(incomplete(s.set, result, providerdata.StopOf(err, tf.RanOut(ctx))))
	}

	diags.Append(tf.Diagnostics(machineset.WarnOfHooks(want, result.FailedHooks))...)
	m.settle(result.Done)

	return diags
}

func incomplete(p machineset.Set, result lifecycle.Result, stop providerdata.Stop) diag.Diagnostic {
	return tf.Diagnostic(workersIncomplete.With(finding.Args{"cluster": p.Settings.Name, "causes": stop.Causes,
		"done": machineset.LinesOf(result.Done), "solution": stop.Remedy}))
}

// look observes the matching nodes and their machines, and puts the result into the model. What does not answer keeps
// its record.
func (w *workers) look(
	ctx context.Context, m *model, last []machineset.UnmanagedNode,
) ([]machineset.UnmanagedNode, diag.Diagnostics) {
	var (
		mu      sync.Mutex
		configs = map[string][]byte{}
	)

	s, ctx, diags := w.open(ctx, m, pki.Observing, func(o *talos.Options) {
		o.TrustNodeNames = true
		o.RebootFor = func(machine, _ string, active []byte) ([]string, error) {
			mu.Lock()
			defer mu.Unlock()

			configs[machine] = active

			return nil, nil
		}
	})
	if diags.HasError() {
		return last, diags
	}

	defer s.close()

	listed := s.api.Observe(ctx)
	if !listed.Reachable {
		m.Nodes = orNone(m.Nodes)

		return last, append(diags, tf.Diagnostic(workersNotRead.With(
			finding.Args{"cluster": s.set.Settings.Name, "cause": listed.Cause})))
	}

	nodes := m.nodesIn(listed)

	want, err := s.set.OfUnmanaged(nodes, m.config(), m.budget())
	if err != nil {
		return last, append(diags, wrongConfig(err.Error()))
	}

	digest, err := machineset.SharedDigest(m.config())
	if err != nil {
		return last, append(diags, tf.Bug(err.Error())) // the spec has it, too
	}

	// A machine that gets nothing yet, because its Talos is too old, is compared as well.
	for i := range want.ChangeOnly {
		want.ChangeOnly[i].ConfigDigest = digest
	}

	have := s.runner.Refresh(ctx, want)
	if have.Hooks != nil {
		m.started = have.Hooks
	}

	drift := s.compare(nodes, have, m.config(), configs, last)
	m.show(nodes, drift)

	return nodes, append(diags, tf.Diagnostics(machineset.WarnOfDrift(drift))...)
}

// compare puts the configurations of machines into their nodes, and returns how they differ from the wanted one.
func (s *session) compare(
	nodes []machineset.UnmanagedNode, have cluster.Snapshot, wanted []byte, active map[string][]byte,
	last []machineset.UnmanagedNode,
) map[string]record.Drift {
	drift := map[string]record.Drift{}

	for i := range nodes {
		n := &nodes[i]
		name := cluster.UnmanagedName(n.Name)

		err := read(n, have.Machines[name], wanted, active[name], last)
		if err == nil {
			drift[n.Name], err = s.set.DriftOfUnmanaged(*n, wanted)
		}

		if err != nil {
			drift[n.Name] = record.Drift{{Kind: record.NotReady, Found: err.Error()}}
		}
	}

	return drift
}

// nodesIn are the matching nodes of workers without a resource.
func (m model) nodesIn(listed kubestate.State) []machineset.UnmanagedNode {
	var nodes []machineset.UnmanagedNode

	selects := m.selects()

	for _, n := range cluster.Unmanaged(cluster.Spec{}, cluster.Snapshot{Kubernetes: listed}) {
		if !n.ControlPlane && n.TalosVersion != "" && n.Address() != "" && selects(n.Labels) {
			nodes = append(nodes, machineset.UnmanagedNode{Node: n})
		}
	}

	return nodes
}

// read puts the configuration of a machine into its node: the wanted one, or the active one that differs. The error
// is why it is not known; then that of the last read counts.
func read(
	n *machineset.UnmanagedNode, s step.MachineState, wanted, active []byte, last []machineset.UnmanagedNode,
) error {
	if i := slices.IndexFunc(last, func(l machineset.UnmanagedNode) bool { return l.Name == n.Name }); i >= 0 {
		n.Config, n.Digest = last[i].Config, last[i].Digest
	}

	switch {
	case s.Access != step.Member:
		return silentError{s.Cause}
	case s.NodeName != n.Name:
		return silentError{"it responds as node " + s.NodeName}
	case active == nil:
		active = wanted
	}

	shared, digest, err := machineset.SharedConfig(active)
	if err == nil {
		n.Config, n.Digest = string(shared), digest
	}

	return err
}

// silentError is why the configuration of a machine is not known.
type silentError struct{ cause string }

func (e silentError) Error() string {
	return "its configuration was not read" + cluster.Because(e.cause)
}
