package machineset

import (
	"fmt"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

func locked(m *Machine) { m.Locked = true }

func TestLocked_namesWhatADestroyWouldReset(t *testing.T) {
	t.Parallel()

	p := aSet(t, controlPlanes(2), workers("batch", 1), machine("cp-2", locked), machine("batch/w-1", locked))
	same(t, "locked", p.Locked(), []string{"batch/w-1", "cp-2"})

	p.Preserves = true
	same(t, "left as they are", p.Locked(), nil)
}

// The steps show what a resource takes with it, and names show what stays.
func TestRemoval_tellsWhatGoes(t *testing.T) {
	t.Parallel()

	const (
		wipes  = "Warning: machines_destroyed"
		leaves = "Warning: machines_of_others"
		ends   = "Warning: cluster_destroyed"
	)

	claimed := func(s *step.MachineState) { s.Claimed = true }

	for name, test := range map[string]struct {
		options  []option
		change   func(p Set, r *Record)
		machines []string
		codes    []string
		lines    []string
		not      string
	}{
		"the cluster": {options: []option{controlPlanes(1), workers("batch", 1)}, codes: []string{ends},
			lines: []string{"reset worker batch/w-1 (wipes", "reset cp-1, the last control plane"}},
		"beside others": {options: []option{controlPlanes(1), beside("10.0.0.9")}, machines: []string{"cp-1"}, codes: []string{wipes},
			lines: []string{"delete node node-cp-1"}},
		"a pool": {options: []option{workers("batch", 2), joins("10.0.0.9")}, codes: []string{wipes},
			machines: []string{"batch/w-1", "batch/w-2"}, lines: []string{"reset worker batch/w-2"}},
		"one machine": {options: []option{onlyMachine(step.Worker, false)}, machines: []string{"m-1"},
			codes: []string{wipes}, lines: []string{"reset worker m-1 (drains it", "delete node node-m-1"}},
		"the only control plane": {options: []option{onlyMachine(step.ControlPlane, true)}, codes: []string{wipes},
			machines: []string{"m-1"}, lines: []string{"reset m-1, the last control plane"}},
		"one that is another's": {options: []option{controlPlanes(1), workers("batch", 2)}, machines: []string{"batch/w-1", "cp-1"},
			change: func(_ Set, r *Record) { r.member("batch/w-2", claimed) }, codes: []string{leaves, wipes}, not: "reset worker batch/w-2"},
		"all are another's": {options: []option{workers("batch", 1), joins("10.0.0.9")}, codes: []string{leaves},
			change: func(_ Set, r *Record) { r.member("batch/w-1", claimed) }},
		"what was left behind": {options: []option{controlPlanes(1), workers("batch", 1)}, codes: []string{ends},
			change: func(_ Set, r *Record) { r.Machines["batch/w-9"] = r.Machines["batch/w-1"] }, lines: []string{"reset worker batch/w-9"}},
		"pods": {options: []option{pods(1, 1)}, codes: []string{ends},
			lines: []string{"delete pod and volumes of cp-0, the last control plane"}},
		"nodes that no resource has": {options: []option{controlPlanes(1)},
			change: func(_ Set, r *Record) { r.Unmanaged = []kubestate.Node{{Name: "auto-1"}} },
			codes:  []string{ends, "Warning: unmanaged_nodes_stay"}},
	} {
		p := aSet(t, test.options...)
		r := recordOf(p)

		if test.change != nil {
			test.change(p, &r)
		}

		found := p.WarnOfRemoval(r, cluster.DefaultPolicy())
		expect(t, name, found, test.codes)

		for _, f := range found {
			if f.Code == "machines_destroyed" {
				same(t, name+": machines", f.Args["machines"], any(test.machines))
			}

			if f.Code != "machines_destroyed" && f.Code != "cluster_destroyed" {
				continue
			}

			same(t, name+": loss", p.Removal(r, cluster.DefaultPolicy()), f.Detail)

			for _, line := range test.lines {
				if !strings.Contains(f.Detail, "\n  - "+line) {
					t.Errorf("%s: %q, want the line %q", name, f.Detail, line)
				}
			}

			if test.not != "" && strings.Contains(f.Detail, test.not) {
				t.Errorf("%s: %q, and not %q", name, f.Detail, test.not)
			}
		}
	}
}

// The node of a machine is deleted with it, unless the whole cluster ends.
func TestRemoval_keepsNodesOfAClusterThatEnds(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		more    option
		deletes bool
	}{
		"it ends": {more: beside()}, "it goes on": {more: beside("10.0.0.9"), deletes: true},
	} {
		p := aSet(t, controlPlanes(1), protected, test.more)

		deletes := false

		for _, s := range p.removal(recordOf(p), cluster.DefaultPolicy()) {
			_, of := s.(step.DeleteNode)
			deletes = deletes || of
		}

		same(t, name, deletes, test.deletes)
	}
}

func TestLossOf_namesMostSteps(t *testing.T) {
	t.Parallel()

	p := aSet(t, workers("batch", 1), joins("10.0.0.9"))

	for n, more := range map[int]string{finding.MostSteps: "", finding.MostSteps + 2: "2 more"} {
		var steps []step.Step
		for i := range n {
			steps = append(steps, step.Uncordon{Machine: fmt.Sprintf("w-%d", i)})
		}

		lines, _ := p.lossOf(steps, nil).Args["steps"].([]string)
		if last := lines[len(lines)-1]; len(lines) != min(n, finding.MostSteps+1) || (more != "") != (last == more) {
			t.Errorf("%d steps: %q", n, lines)
		}
	}

	loss := aSet(t, controlPlanes(1), beside("10.0.0.9")).lossOf(nil, nil)
	same(t, "beside others", codes(finding.List{loss}), []string{"Warning: machines_destroyed"})
}

// Machines whose removal was incomplete are named, each with its reason.
func TestWarnings_afterARemoval(t *testing.T) {
	t.Parallel()

	holds := []step.Hold{{Machine: "cp-1", Reason: "is silent"}, {Machine: "cp-2", Reason: "is foreign"}}
	lines := "machines: cp-1 | cp-2\nreasons: cp-1: is silent | cp-2: is foreign\n"

	expect(t, "not reset", WarnOfNotReset(holds), []string{"Warning: machines_not_reset"}, lines)
	expect(t, "away", WarnOfAway(holds), []string{"Warning: reset_not_finished"}, lines)
	expect(t, "unwiped", WarnOfUnwiped(holds), []string{"Warning: wipe_failed"}, "left: cp-1: is silent | cp-2: is foreign\n"+
		"machines: cp-1 | cp-2\n")
	expect(t, "some relinquished", WarnOfRelinquished([]string{"cp-1", "cp-2"}), []string{"Warning: machines_relinquished"},
		"machines: cp-1 | cp-2\n")
	expect(t, "one left", warnOfLeft([]string{"cp-1"}), []string{"Warning: machines_of_others"}, "machines: cp-1\n")

	for name, found := range map[string]finding.List{"reset": WarnOfNotReset(nil), "away": WarnOfAway(nil),
		"unwiped":      WarnOfUnwiped(nil),
		"relinquished": WarnOfRelinquished(nil), "left": warnOfLeft(nil)} {
		expect(t, "none "+name, found, nil)
	}
}
