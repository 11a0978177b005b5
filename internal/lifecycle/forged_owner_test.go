package lifecycle_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubectl"
)

const (
	// markOf is the annotation with the owner mark of a node.
	markOf = "talosop.dev/owner"
	mine   = "mine"
	theirs = "theirs"
)

// owned is a cluster whose machines this resource owns.
func owned(t *testing.T, controlPlanes, workers int) *site {
	t.Helper()

	s := newSite(t, controlPlanes, workers, sim.Options{})
	s.want.Owner = mine
	s.create()

	return s
}

// node is the name of a machine's node.
func (s *site) node(machine string) string { return s.sim.Machine(machine).Hostname() }

// mark writes an owner mark as the kubelet of the machine's node can: by hand.
func (s *site) mark(machine, value string) {
	s.t.Helper()
	s.patchNode(s.node(machine), fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, markOf, value))
}

// isRemoved checks that machines were reset and have no node, and that no other resource counts as their owner.
func (s *site) isRemoved(result lifecycle.Result, nodes map[string]string) {
	s.t.Helper()

	var names []string

	for name, node := range nodes {
		names = append(names, name)

		if slices.ContainsFunc(result.Snapshot.Kubernetes.Nodes, func(n kubestate.Node) bool { return n.Name == node }) {
			s.t.Errorf("node %s of %s is still there", node, name)
		}
	}

	slices.Sort(names)

	reset := slices.Sorted(slices.Values(s.order("Reset")))
	if !slices.Equal(reset, names) || len(result.Relinquished) > 0 {
		s.t.Errorf("reset %v, left to other resources %v; want a reset of %v", reset, result.Relinquished, names)
	}
}

// The kubelet of a node can write any annotation of the node. A mark that it wrote does not keep the machine in the
// cluster: the removal resets the machine, removes its etcd member and deletes its node.
func TestRemoval_forgedOwnerMark(t *testing.T) {
	t.Parallel()

	s := owned(t, 3, 1)
	nodes := map[string]string{"cp-3": s.node("cp-3"), "w-1": s.node("w-1")}

	s.mark("cp-3", theirs)
	s.mark("w-1", theirs+" "+strings.Repeat("0", 64))
	s.remove("cp-3", "w-1")
	s.isRemoved(s.converge(), nodes)
	s.hasMembers(2)
}

// A mark from one node does not count on another one.
func TestRemoval_copiedOwnerMark(t *testing.T) {
	t.Parallel()

	s := owned(t, 1, 2)

	other := s.want
	other.Owner, other.Machines = theirs, s.want.Machines[2:]
	other.OtherControlPlanes = s.want.Machines[:1]

	if _, err := s.runner().Converge(bounded(t), other); err != nil {
		t.Fatal(err)
	}

	nodes := map[string]string{"w-1": s.node("w-1")}

	s.mark("w-1", s.annotation("w-2"))
	s.remove("w-1")
	s.isRemoved(s.converge(), nodes)
}

// A machine that stays gets a mark of its resource that replaces a forged one.
func TestConverge_replacesForgedOwnerMark(t *testing.T) {
	t.Parallel()

	s := owned(t, 1, 1)
	s.mark("w-1", mine)

	done := s.converge().Done
	want := step.TakeOwnership{Machine: "w-1", Node: s.node("w-1"), Unproven: true}

	if len(done) != 1 || done[0] != step.Step(want) {
		t.Errorf("done %v, want %v", done, want)
	}

	if again := s.converge().Done; len(again) > 0 {
		t.Errorf("the next run did %v", again)
	}
}

// Another resource takes over the machines after the plan. The planned removal neither resets them nor reports
// success.
func TestRemoval_takenOverAfterThePlan(t *testing.T) {
	t.Parallel()

	s := owned(t, 3, 1)
	s.want.Owner = theirs
	s.converge()
	s.want.Owner = mine

	planned := s.want
	s.remove("cp-3", "w-1")

	gone := s.want
	gone.Machines, gone.Removed = nil, s.want.Removed

	for name, run := range map[string]func() (lifecycle.Result, error){
		"update":   func() (lifecycle.Result, error) { return s.runner().Converge(bounded(t), s.want) },
		"removal":  func() (lifecycle.Result, error) { return s.runner().Remove(bounded(t), gone) },
		"teardown": func() (lifecycle.Result, error) { return s.runner().Teardown(bounded(t), planned) },
	} {
		result, err := run()
		if err == nil {
			t.Fatalf("%s: no error; left to other resources: %v", name, result.Relinquished)
		}

		for _, text := range []string{`owner_id "theirs"`, `owner_id "mine"`, "Plan again"} {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: error %q does not say %q", name, err, text)
			}
		}

		if len(result.Relinquished) > 0 {
			t.Errorf("%s: left to other resources: %v", name, result.Relinquished)
		}
	}

	if reset := s.sim.CallsTo("Reset"); len(reset) > 0 {
		t.Errorf("reset: %v", reset)
	}

	s.hasMembers(3)
}

// annotation is the owner mark of a machine's node.
func (s *site) annotation(machine string) string {
	s.t.Helper()

	return kubectl.Annotation(s.t, s.bundle, s.want.Endpoint, s.node(machine), markOf)
}
