package machines_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// This file has the operations that lose clusters: forced replacement of everything, lost and outdated states,
// second states, and the loss of a state together with its machines. Its invariant: an apply changes the membership
// of a cluster only through a configuration that names the cluster.

// lifeMoment is a state with its applied configuration.
type lifeMoment struct {
	State  lifeState
	Config lifeConfig
}

// lifeMembership is the members of the cluster, by name; nil without an answer.
type lifeMembership struct{ Members, Nodes []string }

// membership asks etcd and Kubernetes.
func (w *lifeWorld) membership() lifeMembership {
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Second)
	defer cancel()

	var m lifeMembership

	if members, err := w.EtcdMembers(ctx); err == nil {
		for _, name := range members {
			m.Members = append(m.Members, strings.TrimSuffix(name, " (learner)"))
		}
	}

	for name := range w.nodes(ctx) {
		m.Nodes = append(m.Nodes, name)
	}

	return m
}

// nodes are the nodes that the Kubernetes API of the cluster lists.
func (w *lifeWorld) nodes(ctx context.Context) map[string]bool {
	secrets, err := pki.Parse([]byte(w.living()))
	if err != nil || w.identity == "" {
		return nil
	}

	api := sitetest.KubernetesAt(w.t, w.URL, secrets)
	defer api.Close()

	found := map[string]bool{}
	for _, node := range api.Nodes.Observe(ctx).Nodes {
		found[node.Name] = true
	}

	return found
}

// namedBy are the names of the nodes that a plan may change: machines in its state or configuration, and those that
// are already joining.
func (w *lifeWorld) namedBy(plan lifePlan) map[string]bool {
	addresses := map[string]bool{}

	for _, object := range plan.State {
		maps.Copy(addresses, addressesIn(w.t, object.Kind, object.Value))
	}

	for _, c := range plan.Changes {
		maps.Copy(addresses, addressesIn(w.t, c.Kind, c.Planned))

		if c.Prior != nil {
			maps.Copy(addresses, addressesIn(w.t, c.Kind, c.Prior.Value))
		}
	}

	named := map[string]bool{}

	for _, m := range w.Machines() {
		if addresses[m.Address().String()] || m.Configured() && !slices.Contains(w.membershipOf(m), m.Hostname()) {
			named[m.Hostname()] = true
		}
	}

	for _, c := range plan.Changes {
		maps.Copy(named, hostnamesIn(w, c))
	}

	maps.Copy(named, w.touched)

	return named
}

// membershipOf is the members of a machine's etcd; none for a worker.
func (w *lifeWorld) membershipOf(m *sim.Machine) []string {
	if !slices.Contains(w.ControlPlane, m) {
		return []string{m.Hostname()}
	}

	ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
	defer cancel()

	members, _ := w.EtcdMembers(ctx)

	return members
}

// hostnamesIn are the host names that a change adds to or removes from machines.
func hostnamesIn(w *lifeWorld, c lifeChange) map[string]bool {
	found := map[string]bool{}
	text := c.Planned.String()

	if c.Prior != nil {
		text += c.Prior.Value.String()
	}

	for i := range w.ControlPlane {
		found[fmt.Sprintf("%s-%d", lifePlane, i+1)] = strings.Contains(text, fmt.Sprintf(`"%s-%d"`, lifePlane, i+1))
	}

	for i := range w.Workers {
		found[fmt.Sprintf("%s-%d", lifeWorker, i+1)] = strings.Contains(text, fmt.Sprintf(`"%s-%d"`, lifeWorker, i+1))
	}

	maps.DeleteFunc(found, func(_ string, named bool) bool { return !named })

	return found
}

// checkMembership checks that only machines in an apply joined the cluster or left it. Machines of an interrupted
// apply may still come and go during the next one.
func (w *lifeWorld) checkMembership(before lifeMembership, named map[string]bool, early bool) {
	after := w.membership()

	for what, lists := range map[string][2][]string{
		"member of etcd": {before.Members, after.Members}, "node": {before.Nodes, after.Nodes},
	} {
		if lists[0] == nil || lists[1] == nil {
			continue
		}

		for _, name := range difference(lists[0], lists[1]) {
			if !named[name] {
				w.violated("%s %s left the cluster, which the configuration does not name", what, name)
			}
		}

		for _, name := range difference(lists[1], lists[0]) {
			if !named[name] {
				w.violated("%s %s came into the cluster, which the configuration does not name", what, name)
			}
		}
	}

	w.touched = nil
	if early {
		w.touched = named
	}
}

// difference is what is in a and not in b.
func difference(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(name string) bool { return slices.Contains(b, name) })
}

// consents is a configuration that allows a bootstrap exactly when there is no cluster, as a user knows.
func (w *lifeWorld) consents(c lifeConfig) lifeConfig {
	c.Consent = w.identity == ""

	return c
}

// replaceAll replaces every resource with machines at once, as replace_triggered_by does.
func (w *lifeWorld) replaceAll(op lifeOperation) lifeOperation {
	op.Name = "-replace of everything"
	op.Options.Replace = w.addressesOf(w.states[op.State], false)

	return op
}

// taintAll taints every resource with machines.
func (w *lifeWorld) taintAll(op lifeOperation) lifeOperation {
	addresses := w.addressesOf(w.states[op.State], false)
	op.Name = "taint everything"
	op.Commands = func(state lifeState) {
		for _, address := range addresses {
			object := *state[lifeKey{Address: address}]
			object.Tainted = true
			state[lifeKey{Address: address}] = &object
		}
	}

	return op
}

// loseState loses a state; the secrets are imported from a file, and the living cluster is created again.
func (w *lifeWorld) loseState(op lifeOperation) lifeOperation {
	if w.turning(op.State) {
		return w.applyAgain(op)
	}

	was := op.Config
	op.Name, op.Config = "the state is lost", w.start()
	op.Config.PlaneSpare, op.Config.WorkerSpare = was.PlaneSpare, was.WorkerSpare
	op.Config.Turn = was.Turn

	op.Commands = func(state lifeState) {
		maps.Copy(w.files, bundlesIn(w.t, state))
		clear(state)
		w.importInto(state, op.Config, w.blocks(op.Config)[0])
	}

	return op
}

// outdatedState restores an earlier state, with its configuration or with the present one, like a backend that lost
// its last versions.
func (w *lifeWorld) outdatedState(op lifeOperation) lifeOperation {
	moments := w.history[op.State]
	if len(moments) == 0 || w.turning(op.State) {
		return w.applyAgain(op)
	}

	was := choose(w, moments)
	if was.State[lifeKey{Address: lifeSecrets}] == nil || was.Config.Turn != op.Config.Turn ||
		!maps.Equal(bundlesIn(w.t, was.State), bundlesIn(w.t, w.states[op.State])) {
		return w.applyAgain(op) // it lacks the current keys of the cluster
	}

	op.Name = "an outdated state"

	if w.sometimes(50) {
		op.Name, op.Config = "an outdated state and its configuration", w.consents(was.Config)
	}

	op.Commands = func(state lifeState) {
		clear(state)
		maps.Copy(state, was.State)
	}

	return op
}

// takeOverPart lets the other state, with the same secrets, take over some of the machines.
func (w *lifeWorld) takeOverPart(op lifeOperation) lifeOperation {
	if len(w.states[1-op.State]) > 0 {
		return w.applyAgain(op)
	}

	op = w.otherState(op)
	if len(op.Config.Planes) < 3 {
		return op
	}

	op.Name += ", some machines"
	op.Config.Planes = op.Config.Planes[:1+w.random.IntN(2)]
	op.Config.Workers = op.Config.Workers[:w.random.IntN(2)]

	return op
}

// loseEtcd loses the state while one control plane is blank and the others are off. A configuration that lists the
// blank one must not bootstrap a second etcd without consent. The others come back, and the state is found again.
func (w *lifeWorld) loseEtcd(op lifeOperation) lifeOperation {
	if len(w.members) < 3 || len(op.Config.Planes) < 3 || len(w.states[1-op.State]) > 0 || w.turning(op.State) ||
		w.states[op.State][lifeKey{Address: lifeSecrets}] == nil {
		return w.applyAgain(op)
	}

	i := choose(w, op.Config.Planes)
	only := w.start()
	only.Planes, only.Workers, only.PlaneSpare = []int{i}, nil, op.Config.PlaneSpare
	op.Name = fmt.Sprintf("the state is lost, control plane %d is blank and the others are off", i+1)
	op.Instead = func() bool { return w.withoutOthers(op.Name, only) }

	return op
}

// withoutOthers plans a configuration of one blank control plane, while the others are off, with a state that has
// only its secrets.
func (w *lifeWorld) withoutOthers(name string, only lifeConfig) bool {
	w.operations++
	w.log("%s: %s", name, only)
	w.ForgetCalls()

	one := w.machineOf(only, lifePlane, only.Planes[0])
	state := lifeState{}
	w.importInto(state, only, w.blocks(only)[0])

	var off []*sim.Machine

	for _, m := range w.ControlPlane {
		if m != one && m.Configured() {
			m.PowerOff()

			off = append(off, m)
		}
	}

	one.Wipe()
	one.PowerOn()
	tftest.Must(w.t, one.AwaitStage(w.t.Context(), sim.StageMaintenance))

	plan := planLife(w.t, state, w.blocks(only), lifeOptions{Random: w.order})
	if diagnostics := tftest.Show(plan.Diagnostics); !plan.Refused || !strings.Contains(diagnostics, needsConsent) {
		w.violated("the plan would begin a second etcd: %v %s", plan.Changes, diagnostics)
	}

	for _, m := range off {
		m.PowerOn()
	}

	w.check(map[string]bool{}, false)
	w.touched = map[string]bool{one.Hostname(): true}

	return true
}
