package machines_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
)

// lifeWorld is a cluster with its states, the last applied configurations, and the invariants.
type lifeWorld struct {
	*lifeSite

	t *testing.T
	// random decides what is done, and order in which order the CLI does it.
	random, order *rand.Rand
	readsFirst    bool

	states            [2]lifeState
	configs, previous [2]lifeConfig
	// files are the saved bundles, by cluster ID.
	files map[string]string
	// marks are the owners of machines by address, as last read from the nodes.
	marks map[string]string
	// identity is a key in etcd that identifies it; empty without one.
	identity string
	members  []string
	// history are the states after each operation, and touched are the names of nodes in the configuration or state of
	// an interrupted last one: machines continue with what they received.
	history [2][]lifeMoment
	touched map[string]bool

	// idle is true when the last plan had nothing to do, and refused when it was refused.
	idle, refused bool
	Log           []string
	Violations    []string
	operations    int
	refusals      map[string]int
}

func (w *lifeWorld) log(format string, args ...any) {
	w.Log = append(w.Log, fmt.Sprintf(format, args...))
}

// violated notes a broken invariant.
func (w *lifeWorld) violated(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	w.Violations = append(w.Violations, line)
	w.log("VIOLATION: %s", line)
}

// lifeOperation is an operation of a user on one of the states, with its apply.
type lifeOperation struct {
	Name  string
	State int
	// Commands changes the state with separate commands of the CLI, such as state rm; Moved with moved blocks.
	Commands func(state lifeState)
	Moved    func(state lifeState)
	// Planned runs between the plan and its apply.
	Planned func()
	Config  lifeConfig
	Options lifeOptions
	// Interrupt is after how many calls to machines the apply is interrupted, 0 for never; Kill kills it, and Loss is
	// what is lost then.
	Interrupt int
	Kill      bool
	Loss      loss
	// Spared is a machine that must get nothing, and Then an invariant afterwards.
	Spared *sim.Machine
	Then   func()
	// Dies is a machine that is powered off before, and comes back after it with another disk.
	Dies *sim.Machine
	// Instead does all of it, for operations of more than one plan and apply.
	Instead func() bool
}

// continuations are the terms in messages that say how to continue.
var continuations = []string{
	"moved", "removed", "deletion_protection", "uncordon", "state rm", "import", "on_destroy", "restore_from", "apply again",
	"Applying again", "Destroying again", "-replace", "destroy again", "destroy the resource", "and apply",
	"another hostname", "and then this one again",
}

// run runs an operation. It reports whether all of it was done.
func (w *lifeWorld) run(op lifeOperation) bool {
	if op.Instead != nil {
		return op.Instead()
	}

	if op.Dies != nil {
		op.Dies.PowerOff()
	}

	done := w.perform(op)

	if op.Dies != nil {
		op.Dies.Wipe()
		op.Dies.PowerOn()
		tftest.Must(w.t, op.Dies.AwaitStage(w.t.Context(), sim.StageMaintenance))
	}

	for _, call := range w.Calls() {
		if op.Spared != nil && call.Machine == op.Spared.Name() && call.Code == codes.OK &&
			slices.Contains(changing, call.Method) {
			w.violated("%s was sent to %s, which is not known to be the machine meant", call.Method, call.Machine)
		}
	}

	if done && op.Then != nil {
		op.Then()
	}

	return done
}

func (w *lifeWorld) perform(op lifeOperation) bool {
	w.operations++
	w.ForgetCalls()
	w.log("%s in state %d (interrupt %d, kill %v, loss %d): %s", op.Name, op.State, op.Interrupt, op.Kill, op.Loss, op.Config)

	if op.Commands != nil {
		w.states[op.State] = maps.Clone(w.states[op.State])
		op.Commands(w.states[op.State])
	}

	state := maps.Clone(w.states[op.State])
	if op.Moved != nil {
		op.Moved(state)
	}

	op.Options.ReadsOrphansFirst, op.Options.Random = w.readsFirst, w.order
	blocks := w.blocks(op.Config)
	plan := planLife(w.t, state, blocks, op.Options)

	for _, bug := range plan.Bugs {
		w.violated("plan: %s", bug)
	}

	if w.refused = plan.Refused || len(plan.Bugs) > 0; w.refused {
		w.idle = false
		w.judge("refused", plan.Diagnostics)
		w.check(map[string]bool{}, false)

		return false
	}

	w.log("    %v", plan.Changes)
	w.saveWarned(plan.Diagnostics, plan.State)

	if w.idle = plan.empty(); w.idle {
		w.states[op.State], w.configs[op.State] = plan.State, op.Config
		w.check(map[string]bool{}, false)

		return true
	}

	going, ends := w.going(plan)
	before, named, removed := w.membership(), w.namedBy(plan), w.removedBy(plan, going)

	if op.Planned != nil {
		op.Planned()
	}

	applied, interrupted := w.apply(plan, blocks, op)

	w.saveWarned(applied.Diagnostics, plan.State)

	w.previous[op.State] = w.configs[op.State]
	w.history[op.State] = append(w.history[op.State], lifeMoment{w.states[op.State], w.configs[op.State]})
	w.states[op.State], w.configs[op.State] = applied.state, op.Config

	for _, bug := range applied.Bugs {
		w.violated("apply: %s", bug)
	}

	failed := tftest.Outcome{Diagnostics: applied.Diagnostics}.Failed()
	if failed && !interrupted {
		w.judge("failed", applied.Diagnostics)
	}

	w.check(going, ends)
	w.checkMembership(before, named, interrupted || failed)

	if !failed && !interrupted {
		w.checkRemoved(removed, op.Dies)
	}

	return !failed && !interrupted
}

// apply applies a plan; interrupted reports whether it was.
func (w *lifeWorld) apply(plan lifePlan, blocks []lifeBlock, op lifeOperation) (applied *lifeApply, interrupted bool) {
	stop := make(chan struct{})
	interrupt := sync.OnceFunc(func() { close(stop) })

	var calls atomic.Int64

	var killed atomic.Bool

	w.SetOnCall(func(fault.Call) error {
		if n := calls.Add(1); op.Interrupt > 0 && n > int64(op.Interrupt) {
			killed.Store(op.Kill)
			interrupt()

			if op.Kill {
				return status.Error(codes.Unavailable, "the process that calls is gone")
			}
		}

		return nil
	})

	hung := time.AfterFunc(2*time.Minute, func() {
		w.violated("the apply did not end in two minutes")
		interrupt()
	})
	begun := time.Now()
	applied = applyLife(w.t, plan, blocks, stop, func() loss {
		if killed.Load() {
			return op.Loss
		}

		return lossNone
	})

	hung.Stop()
	w.SetOnCall(nil)

	interrupted = op.Interrupt > 0 && calls.Load() > int64(op.Interrupt)
	w.log("    applied in %s, %d calls, interrupted: %v", time.Since(begun).Round(time.Millisecond), calls.Load(), interrupted)

	return applied, interrupted
}

// judge counts a refusal by its titles, and checks that one of them gives advice.
func (w *lifeWorld) judge(how string, diagnostics []*tfprotov6.Diagnostic) {
	named := false

	for _, d := range diagnostics {
		if d.Severity != tfprotov6.DiagnosticSeverityError {
			continue
		}

		_, title, _ := strings.Cut(d.Summary, ": ")
		w.refusals[how+": "+title]++
		w.log("    %s: %s: %s", how, d.Summary, strings.Join(strings.Fields(d.Detail), " "))

		named = named || slices.ContainsFunc(continuations, func(word string) bool { return strings.Contains(d.Detail, word) })
	}

	if !named {
		w.violated("what %s names no way out: %s", how, tftest.Show(diagnostics))
	}
}

// saveWarned saves the bundles that a plan says will be lost, as it advises. It also saves those that an apply says
// are only in the former state: no plan sees the end of tainted secrets.
func (w *lifeWorld) saveWarned(diagnostics []*tfprotov6.Diagnostic, state lifeState) {
	for _, d := range diagnostics {
		if code, _ := tftest.Code(d); code == "secrets_will_be_lost" || code == "secrets_lost" {
			maps.Copy(w.files, bundlesIn(w.t, state))
			w.log("    saved the secrets to a file")
		}
	}
}

// bundlesIn are the bundles in a state, by cluster ID.
func bundlesIn(t *testing.T, state lifeState) map[string]string {
	t.Helper()

	found := map[string]string{}
	add := func(v tftypes.Value) {
		var text string
		if v.IsNull() || v.As(&text) != nil {
			return
		}

		if id := clusterIDOf(text); id != "" {
			found[id] = text
		}
	}

	for _, object := range state {
		fields := tftest.FieldsOf(t, object.Value)

		for _, name := range []string{"bundle", "secrets"} {
			if v, ok := fields[name]; ok {
				add(v)
			}
		}

		if handle, ok := fields["cluster"]; ok && !handle.IsNull() {
			add(tftest.FieldsOf(t, handle)["secrets"])
		}
	}

	return found
}

// clusterIDs are the cluster IDs of known bundles.
var clusterIDs sync.Map

// clusterIDOf is the cluster ID of a bundle; empty for other text.
func clusterIDOf(text string) string {
	if known, ok := clusterIDs.Load(text); ok {
		id, _ := known.(string)

		return id
	}

	id := ""
	if bundle, err := pki.Parse([]byte(text)); err == nil {
		id = bundle.ClusterID()
	}

	clusterIDs.Store(text, id)

	return id
}

// addressesIn are the addresses of the machines that an object has.
func addressesIn(t *testing.T, kind string, value tftypes.Value) map[string]bool {
	t.Helper()

	found := map[string]bool{}
	if value.IsNull() {
		return found
	}

	list := func(holder tftypes.Value) {
		machines := tftest.AttributeOf(t, holder, "machines")
		if machines.IsNull() || !machines.IsKnown() {
			return
		}

		for _, machine := range tftest.FieldsOf(t, machines) {
			found[tftest.Text(t, machine, "address")] = true
		}
	}

	switch kind {
	case "talosop_machine":
		found[tftest.Text(t, value, "address")] = true
	case "talosop_control_plane", "talosop_worker":
		list(value)
	case "talosop_cluster":
		list(tftest.AttributeOf(t, value, "control_plane"))

		if pools := tftest.AttributeOf(t, value, "workers"); !pools.IsNull() {
			for _, pool := range tftest.FieldsOf(t, pools) {
				list(pool)
			}
		}
	}

	return found
}

// going are the machines that a plan may reset, by address: those of removed objects that own them, and that nothing
// in the plan creates. ends reports whether it may end etcd: every member leaves without protection, and none of
// several is a single resource that is created again.
func (w *lifeWorld) going(plan lifePlan) (going map[string]bool, ends bool) {
	going, made, unprotected := map[string]bool{}, map[string]bool{}, map[string]bool{}

	for _, c := range plan.Changes {
		if c.Action == actCreate {
			maps.Copy(made, addressesIn(w.t, c.Kind, c.Planned))
		}
	}

	for _, c := range plan.Changes {
		if c.Prior == nil || c.Kind == "talosop_secrets" {
			continue
		}

		preserved := c.Action != actUpdate && tftest.Text(w.t, c.Prior.Value, "on_destroy") == "preserve"

		leaving := addressesIn(w.t, c.Kind, c.Prior.Value)

		switch c.Action {
		case actUpdate, actReplaceCreated:
			for address := range addressesIn(w.t, c.Kind, c.Planned) {
				delete(leaving, address)
			}
		case actDestroy, actReplace:
		default:
			continue
		}

		var protected bool

		tftest.Must(w.t, tftest.AttributeOf(w.t, c.Prior.Value, "deletion_protection").As(&protected))

		for address := range leaving {
			mark := w.marks[address]
			if preserved || made[address] || mark != "" && mark != tftest.Text(w.t, c.Prior.Value, "owner_id") {
				continue
			}

			going[address] = true
			unprotected[address] = !protected && !(c.Action == actReplace && c.Kind == "talosop_machine" && len(w.members) > 1)
		}
	}

	ends = !slices.ContainsFunc(w.members, func(address string) bool { return !unprotected[address] })

	return going, ends
}

// check checks the machines after an operation: only machines that may be reset were reset, etcd is the same unless
// it may end, and the secrets of a living cluster are in a state or in a file.
func (w *lifeWorld) check(going map[string]bool, ends bool) {
	w.logCalls()

	for _, call := range w.CallsTo("Reset") {
		m := w.Machine(call.Machine)
		if call.Code == codes.OK && !going[m.Address().String()] {
			w.violated("%s was reset, which is wanted or another's", call.Machine)
		}
	}

	ctx, cancel := context.WithTimeout(w.t.Context(), 15*time.Second)
	defer cancel()

	w.observeEtcd(ctx, ends)

	if n := w.EtcdClusters(); n > 1 {
		w.violated("there are %d clusters of etcd", n)
	}

	w.checkSecrets()

	if w.identity == "" {
		w.marks = map[string]string{}

		return
	}

	if marks := w.owners(ctx, w.t, w.living()); len(marks) > 0 {
		w.marks = marks
	}
}

// living is the bundle of the cluster of the control planes, or otherwise any.
func (w *lifeWorld) living() (bundle string) {
	bundles := w.bundles()

	for _, id := range slices.Sorted(maps.Keys(bundles)) {
		bundle = bundles[id]

		if w.runsWith(id) {
			break
		}
	}

	return bundle
}

// runsWith reports whether a control plane is in the cluster with an ID.
func (w *lifeWorld) runsWith(id string) bool {
	return id != "" && slices.ContainsFunc(w.ControlPlane, func(m *sim.Machine) bool {
		return strings.Contains(string(m.Config()), id)
	})
}

// bundles are all bundles in states and files.
func (w *lifeWorld) bundles() map[string]string {
	all := maps.Clone(w.files)
	for _, state := range w.states {
		maps.Copy(all, bundlesIn(w.t, state))
	}

	return all
}

const identityKey = "life/identity"

// observeEtcd looks for the former etcd. A booting machine may take time to come back.
func (w *lifeWorld) observeEtcd(ctx context.Context, ends bool) {
	before := w.identity

	for {
		w.identity, w.members = w.etcd(ctx)

		if before == "" || ends || ctx.Err() != nil || w.identity == before && w.hasQuorum(ctx) {
			break
		}

		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}

	switch {
	case before == "" || ends:
	case w.identity == before && ctx.Err() != nil:
		w.violated("etcd %s lost its quorum: %v", before, w.members)
	case w.identity != before:
		w.violated("etcd %s was lost, now it is %q of %v", before, w.identity, w.members)
	}

	if len(w.members) > 0 && w.identity == "" {
		w.identity = fmt.Sprintf("etcd-%d", w.order.Int64())
		w.log("    there is a new etcd: %s", w.identity)

		for _, m := range w.ControlPlane {
			if m.PutEtcdKeys(ctx, map[string]string{identityKey: w.identity}) == nil {
				return
			}
		}

		w.identity = "" // not up yet
	}
}

// hasQuorum reports whether a member of etcd is healthy.
func (w *lifeWorld) hasQuorum(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()

	members, err := w.EtcdMembers(ctx)
	if err == nil && len(members) > 0 {
		w.log("    etcd has %v", members)
	}

	return err == nil && len(members) > 0
}

// changing are the calls that change machines.
var changing = []string{
	"ApplyConfiguration", "Bootstrap", "EtcdForfeitLeadership", "EtcdLeaveCluster", "EtcdRemoveMemberByID", "Reboot", "Reset",
	"ServiceRestart",
}

// logCalls records what was sent to machines.
func (w *lifeWorld) logCalls() {
	for _, call := range w.Calls() {
		if slices.Contains(changing, call.Method) {
			w.log("    %s %s: %s", call.Machine, call.Method, call.Code)
		}
	}
}

// etcd is the identity of the present etcd, and its member machines.
func (w *lifeWorld) etcd(ctx context.Context) (identity string, members []string) {
	for _, m := range w.ControlPlane {
		keys, err := m.EtcdKeys(ctx, identityKey)
		if err != nil || !m.Configured() {
			continue
		}

		members = append(members, m.Address().String())
		identity = cmp.Or(keys[identityKey], identity)
	}

	return identity, members
}

// checkSecrets checks that the bundle of a living cluster exists.
func (w *lifeWorld) checkSecrets() {
	bundles := w.bundles()

	for _, m := range w.ControlPlane {
		config := string(m.Config())
		if config == "" {
			continue
		}

		if !slices.ContainsFunc(slices.Collect(maps.Keys(bundles)), func(id string) bool { return strings.Contains(config, id) }) {
			w.violated("the secrets of %s are in no state and in no file", m.Name())
		}

		w.checkKeys(m)
	}
}

// checkKeys checks that a state or a file with the secrets of a cluster recognizes the current keys of a machine.
// Another state, without the rotation, has older ones.
func (w *lifeWorld) checkKeys(m *sim.Machine) {
	carried, err := machineconfig.Keys(m.Config())
	tftest.Must(w.t, err)

	var unknown []rotation.Kind

	for _, bundles := range []map[string]string{bundlesIn(w.t, w.states[0]), bundlesIn(w.t, w.states[1]), w.files} {
		for id, text := range bundles {
			if !strings.Contains(string(m.Config()), id) {
				continue
			}

			bundle, err := pki.Parse([]byte(text))
			tftest.Must(w.t, err)

			if unknown = bundle.KnowingFormer(carried).Unknown(carried); len(unknown) == 0 {
				return
			}
		}
	}

	if len(unknown) > 0 {
		w.violated("%s works with keys that the secrets do not have: %v", m.Name(), unknown)
	}
}
