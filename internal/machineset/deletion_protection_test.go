package machineset

import (
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// Protection refuses a removal of everything that it guards; locks refuse any other.
func TestRefuseDestroy(t *testing.T) {
	t.Parallel()

	const (
		guarded   = "Error deletion_protection: deletion_protection"
		lastPlane = "Error deletion_protection: deletion_protection_last_plane"
		held      = "Error: locked_machines"
	)

	claimed := func(s *step.MachineState) { s.Claimed = true }

	for name, test := range map[string]struct {
		options []option
		claimed bool
		want    string
		says    string
	}{
		"protected":                   {options: []option{controlPlanes(1), protected}, want: guarded, says: "id: prod"},
		"protected and another's":     {options: []option{controlPlanes(1), protected}, claimed: true},
		"not protected":               {options: []option{controlPlanes(1)}},
		"locked":                      {options: []option{controlPlanes(1), machine("cp-1", locked)}, want: held, says: "machines: cp-1"},
		"a protected pool":            {options: []option{workers("batch", 1), joins("10.0.0.9"), protected}, want: guarded},
		"a protected machine":         {options: []option{onlyMachine(step.Worker, false), protected}},
		"a protected, locked machine": {options: []option{onlyMachine(step.Worker, false), protected, machine("m-1", locked)}, want: held},
		"one control plane of two":    {options: []option{onlyMachine(step.ControlPlane, false, "10.0.0.9"), protected}},
		"the only control plane": {options: []option{onlyMachine(step.ControlPlane, true), protected}, want: lastPlane,
			says: "operation: "},
		"a control plane, others unknown": {options: []option{onlyMachine(step.ControlPlane, true), protected,
			func(p *Set) { p.Others = nil }}},
	} {
		p := aSet(t, test.options...)
		r := recordOf(p)

		for machine := range r.Machines {
			if test.claimed {
				r.member(machine, claimed)
			}
		}

		var want []string
		if test.want != "" {
			want = []string{test.want}
		}

		expect(t, name, p.RefuseDestroy("talosop_cluster", "prod", r), want, test.says)
		expect(t, name+", replaced", p.RefuseReplace("talosop_cluster", "prod", r), want)
	}
}

// A refused replacement reports what it would do, unless it would do nothing.
func TestRefuseReplace_tellsTheLoss(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		change option
		empty  bool
		loss   bool
	}{
		"machines go": {loss: true}, "there are none": {empty: true}, "they are preserved": {change: func(p *Set) { p.Preserves = true }},
	} {
		p := aSet(t, controlPlanes(1), protected)
		r := recordOf(p)

		if test.change != nil {
			test.change(&p)
		}

		if test.empty {
			p, r = aSet(t, workers("batch", 0), joins("10.0.0.9"), protected), Record{}
		}

		found := p.RefuseReplace("talosop_cluster", "prod", r)
		if len(found) != 1 || strings.Contains(found[0].Detail, " What it would do: ") != test.loss {
			t.Errorf("%s: %v", name, found)
		}
	}
}

// The plan that removes protection is the last one to warn about what is lost.
func TestWarnOfUnprotected(t *testing.T) {
	t.Parallel()

	planes, pool := controlPlanes(1), workers("batch", 0)

	for name, test := range map[string]struct {
		p, prior []option
		warned   bool
	}{
		"taken away":     {p: []option{planes}, prior: []option{planes, protected}, warned: true},
		"kept":           {p: []option{planes, protected}, prior: []option{planes, protected}},
		"never there":    {p: []option{planes}, prior: []option{planes}},
		"guards nothing": {p: []option{onlyMachine(step.Worker, false)}, prior: []option{onlyMachine(step.Worker, false), protected}},
		"nothing goes":   {p: []option{pool, joins("10.0.0.9")}, prior: []option{pool, joins("10.0.0.9"), protected}},
	} {
		p, prior := aSet(t, test.p...), aSet(t, test.prior...)

		var want []string
		if test.warned {
			want = []string{"Warning: deletion_protection_disabled"}
		}

		expect(t, name, p.WarnOfUnprotected(prior, recordOf(prior), cluster.DefaultPolicy()), want, "cp-1")
	}
}
