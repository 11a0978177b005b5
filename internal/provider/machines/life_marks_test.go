package machines_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubectl"
)

// This file has forged owner marks as an operation. Its invariant: an apply never reports success without effect.
// What it removes from the configuration is reset and leaves the cluster, whatever its node says.

// lifeForgery is a mark that the kubelet of a machine's node writes.
type lifeForgery struct {
	What string
	// Mark is the annotation; nil removes it.
	Mark *string
	// AsNone is a mark that counts as none: a plan need not replace it.
	AsNone bool
}

// bundle is that of the cluster.
func (w *lifeWorld) bundle() *pki.Bundle {
	w.t.Helper()

	return tftest.ParsedBundle(w.t, w.living())
}

// ownerIn is the owner of a machine in a state; empty when no object has the machine, or several have.
func (w *lifeWorld) ownerIn(state lifeState, m *sim.Machine) (address, owner string) {
	for _, key := range state.sorted() {
		object := state[key]
		if !addressesIn(w.t, object.Kind, object.Value)[m.Address().String()] {
			continue
		}

		if owner != "" {
			return "", ""
		}

		address, owner = key.Address, tftest.Text(w.t, object.Value, "owner_id")
	}

	return address, owner
}

// ownMachines are the machines with a node that a state owns.
func (w *lifeWorld) ownMachines(state lifeState) []*sim.Machine {
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Second)
	defer cancel()

	nodes := w.nodes(ctx)

	return slices.DeleteFunc(w.Machines(), func(m *sim.Machine) bool {
		_, owner := w.ownerIn(state, m)

		return owner == "" || w.marks[m.Address().String()] != owner || !nodes[m.Hostname()]
	})
}

// forgeMark has the kubelet of a node write its owner mark, before or after the plan of an operation on its machine.
func (w *lifeWorld) forgeMark(op lifeOperation) lifeOperation {
	own := w.ownMachines(w.states[op.State])
	if len(own) == 0 {
		return w.applyAgain(op)
	}

	m := choose(w, own)
	forgery := w.forgery(op, m)
	op = w.concerning(op, m)
	op.Name = fmt.Sprintf("%s, with %s on %s", op.Name, forgery.What, m.Hostname())

	write := func() {
		kubectl.PatchNode(w.t, w.bundle(), w.URL, m.Hostname(),
			tftest.JSON(w.t, map[string]any{"metadata": map[string]any{"annotations": map[string]any{ownerMark: forgery.Mark}}}))
	}

	if w.sometimes(50) {
		op.Commands = func(lifeState) { write() }
	} else {
		op.Name, op.Planned = op.Name+", after the plan where it has changes", write
		forgery.AsNone = true // the apply may be about other machines
	}

	inner := op
	op.Instead = func() bool {
		done := w.run(inner)
		w.rightMark(inner.State, m, forgery, done)

		return done
	}

	return op
}

// ownerMark is the annotation with the owner mark of a node.
const ownerMark = "talosop.dev/owner"

// forgery is the mark of another owner, a copied one, garbage or none.
func (w *lifeWorld) forgery(op lifeOperation, m *sim.Machine) lifeForgery {
	mark := func(what, text string) lifeForgery { return lifeForgery{What: what, Mark: &text} }
	other := w.fresh("another")

	for _, object := range w.states[1-op.State] {
		if object.Kind != "talosop_secrets" {
			other = tftest.Text(w.t, object.Value, "owner_id") // of the other state
		}
	}

	switch w.random.IntN(5) {
	case 0:
		return mark("the mark of another owner", other)
	case 1:
		return mark("the mark of another owner with a proof", other+" "+strings.Repeat("0", 64))
	case 2:
		for _, n := range w.ownMachines(w.states[op.State]) {
			if n != m {
				copied := mark("the mark of "+n.Hostname(),
					kubectl.Annotation(w.t, w.bundle(), w.URL, n.Hostname(), ownerMark))
				_, owner := w.ownerIn(w.states[op.State], m)
				copied.AsNone = strings.HasPrefix(*copied.Mark, owner+" ")

				return copied
			}
		}
	case 3:
		return mark("garbage", choose(w, []string{" ", " proof", "a b c", "%s\n%d", strings.Repeat("long ", 1000)}))
	}

	return lifeForgery{What: "no mark", AsNone: true}
}

// concerning is an apply that affects a machine: one that removes it from the configuration, one that replaces its
// resource, or one without a change.
func (w *lifeWorld) concerning(op lifeOperation, m *sim.Machine) lifeOperation {
	kept := func(role string, places []int) []int {
		return slices.DeleteFunc(slices.Clone(places), func(i int) bool { return w.machineOf(op.Config, role, i) == m })
	}

	switch planes, workers := kept(lifePlane, op.Config.Planes), kept(lifeWorker, op.Config.Workers); w.random.IntN(4) {
	case 0:
		return w.applyAgain(op)
	case 1:
		address, _ := w.ownerIn(w.states[op.State], m)
		op.Name, op.Options.Replace = "-replace "+address, []string{address}
	default:
		if len(planes) == 0 || len(workers) == 0 {
			return w.applyAgain(op)
		}

		op.Name, op.Config.Planes, op.Config.Workers = "remove "+m.Name(), planes, workers
	}

	return op
}

// rightMark checks that a successful apply replaced a forged mark, and repairs what another one left.
func (w *lifeWorld) rightMark(state int, m *sim.Machine, forgery lifeForgery, done bool) {
	ctx, cancel := context.WithTimeout(w.t.Context(), 15*time.Second)
	defer cancel()

	node := m.Hostname()
	if !m.Configured() || !w.nodes(ctx)[node] {
		return
	}

	bundle := w.living()
	if w.owners(ctx, w.t, bundle)[m.Address().String()] != "" {
		return
	}

	_, owner := w.ownerIn(w.states[state], m)
	if done && owner != "" && !forgery.AsNone {
		w.violated("%s has %s after the apply", node, forgery.What)
	}

	api := sitetest.KubernetesAt(w.t, w.URL, w.bundle())
	defer api.Close()

	tftest.Must(w.t, api.Nodes.Own(ctx, node, owner))
	w.marks = w.owners(ctx, w.t, bundle)
	w.log("    the mark of %s is set right", node)
}

// removedBy are the machines that a plan removes from the cluster, with the names of their nodes.
func (w *lifeWorld) removedBy(plan lifePlan, going map[string]bool) map[*sim.Machine]string {
	stays, changed := map[string]bool{}, map[lifeKey]bool{}
	keep := func(addresses map[string]bool) {
		for address := range addresses {
			stays[address] = true
		}
	}

	for _, c := range plan.Changes {
		changed[c.Key] = true

		keep(addressesIn(w.t, c.Kind, c.Planned))
	}

	for key, object := range plan.State {
		if !changed[key] {
			keep(addressesIn(w.t, object.Kind, object.Value))
		}
	}

	removed := map[*sim.Machine]string{}

	for _, m := range w.Machines() {
		if address := m.Address().String(); going[address] && !stays[address] && m.Configured() {
			removed[m] = m.Hostname()
		}
	}

	return removed
}

// checkRemoved checks that a successful apply removed what its plan removes. A dead machine stays.
func (w *lifeWorld) checkRemoved(removed map[*sim.Machine]string, dead *sim.Machine) {
	after := w.membership()

	for m, name := range removed {
		if m == dead {
			continue
		}

		if m.Configured() {
			w.violated("the apply took %s out and did not reset it", m.Name())
		}

		taken := slices.ContainsFunc(w.Machines(), func(o *sim.Machine) bool { return o.Configured() && o.Hostname() == name })
		if !taken && (slices.Contains(after.Members, name) || slices.Contains(after.Nodes, name)) {
			w.violated("the apply took %s out, and %s is still in the cluster: %v", m.Name(), name, after)
		}
	}
}
