package machineset

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// The text of the steps in a plan.

const (
	// longRollout is the number of lines from which a summary line comes first.
	longRollout = 12
	// mostPlaces is how many configuration fields one line names.
	mostPlaces = 8
)

// OperationsOf lists what a plan does, in order, and what it holds back, if only the steps and the leaving machines
// are known.
func (p Set) OperationsOf(steps []step.Step, kept []step.Kept, leaving []cluster.Machine) []string {
	return append(p.operationsOf(generally(p.unfinishedHooks()), steps, nil, leaving), keptLines(kept, nil)...)
}

// checksAsked is the line about the health checks of a plan; none where there are none.
func (p Set) checksAsked(steps []step.Step) []string {
	if len(p.Changes.HealthChecks) == 0 || !slices.ContainsFunc(steps, step.Step.Disrupts) {
		return nil
	}

	var names []string
	for _, check := range p.Changes.HealthChecks {
		names = append(names, check.Name)
	}

	return []string{fmt.Sprintf("wait for the health %s %s before a machine goes out of service, and once it is back",
		finding.Verb(names, "check", "checks"), finding.Describe(names))}
}

// keptLines lists what is not done while machines are locked.
func keptLines(kept []step.Kept, changes map[string][]machineconfig.Change) []string {
	steps := make([]step.Step, len(kept))
	for i, k := range kept {
		steps[i] = k.Step
	}

	changes, written := withoutImages(steps, changes)

	var lines []string
	for _, k := range kept {
		if !written[k.Step] {
			lines = append(lines, k.String()+placesOf(k.Step, changes))
		}
	}

	return lines
}

// withoutImages is the changes without installer images that upgrades among the steps install: an upgrade includes
// its image in the configuration. written are the steps that write nothing else.
func withoutImages(
	steps []step.Step, changes map[string][]machineconfig.Change,
) (rest map[string][]machineconfig.Change, written map[step.Step]bool) {
	rest, written = maps.Clone(changes), map[step.Step]bool{}

	for _, op := range steps {
		if upgrade, ok := op.(step.Upgrade); ok && rest[upgrade.Machine] != nil {
			rest[upgrade.Machine] = slices.DeleteFunc(
				slices.Clone(changes[upgrade.Machine]), machineconfig.Change.OfInstallerImage)
		}
	}

	for _, op := range steps {
		s, ok := op.(step.ApplyConfig)
		live := ok && s.Access == step.Member && s.Reboot == "" && s.Staged == ""
		written[op] = live && len(changes[s.Machine]) > 0 && len(rest[s.Machine]) == 0
	}

	return rest, written
}

// preparation is an operation before the first step, with the machines that it concerns.
type preparation struct {
	text     string
	machines []string
}

// generally are preparations that concern no machine in particular.
func generally(lines []string) []preparation {
	all := make([]preparation, len(lines))
	for i, line := range lines {
		all[i].text = line
	}

	return all
}

// operationsOf lists what a plan does, in order, after what comes before the first step; never nil. changes are the
// changes in the machines' configurations, and leaving the machines that leave. The uncordon after a drain has no
// line, and neither has the pull of images before an upgrade.
func (p Set) operationsOf(
	before []preparation, steps []step.Step, changes map[string][]machineconfig.Change, leaving []cluster.Machine,
) []string {
	lines, machines, first := []string{}, []string{}, []string{}

	for _, op := range before {
		lines, machines = append(lines, op.text), append(machines, op.machines...)
	}

	lines = append(lines, linesOf(withoutPulls(withoutUncordons(steps)), changes)...)
	if len(lines) >= longRollout {
		first = append(first, summaryOf(len(lines), machines, steps))
	}

	return append(first, slices.Concat(p.routesTo(steps, leaving), p.checksAsked(steps), p.hooksRun(steps),
		p.canaryFirst(steps), awaited(steps), lines)...)
}

// bookkeeping lists what an apply does without a step on any machine.
func (r PriorState) bookkeeping(p Set) (lines []preparation) {
	add := func(name, text string) { lines = append(lines, preparation{text, []string{name}}) }

	for _, name := range slices.Sorted(maps.Keys(r.Renamed)) {
		add(name, fmt.Sprintf("record %s as %s", r.Renamed[name], name))
	}

	for _, name := range slices.Sorted(maps.Keys(r.Moved)) {
		add(name, fmt.Sprintf("find %s at %s", name, p.Machines[name].Address))
	}

	for _, name := range r.leavingToOthers() {
		add(name, fmt.Sprintf("forget %s, which another resource owns: nothing is sent to it", name))
	}

	return lines
}

// lookAgain is the operation of an apply without steps: it observes whether the machines are as wanted.
const lookAgain = "look at the machines again"

// refusedLine stands in the place of operations where an apply will be refused before its first step.
const refusedLine = "nothing: the apply will be refused, for the reason in the warning"

// LinesOf lists finished steps.
func LinesOf(steps []step.Step) []string { return linesOf(steps, nil) }

// linesOf lists steps. Consecutive steps that differ only in their machines have one line, as do upgrades of several
// components of Kubernetes on the same machines.
func linesOf(steps []step.Step, changes map[string][]machineconfig.Change) []string {
	changes, written := withoutImages(steps, changes)
	steps = slices.DeleteFunc(slices.Clone(steps), func(op step.Step) bool { return written[op] })
	rows := togetherOf(eachOf(rowsOf(steps)))
	lines := make([]string, 0, len(rows))

	for _, r := range rows {
		lines = append(lines, r.String()+placesOf(r.op, changes))
	}

	return lines
}

// row is a line of a plan: one step on some machines, with the names of more components that it upgrades there.
type row struct {
	op             step.Step
	machines, more []string
}

func (r row) String() string {
	op := r.op

	if upgrade, ok := op.(step.UpgradeComponent); ok && len(r.more) > 0 {
		names := append([]string{string(upgrade.Component)}, r.more...)
		upgrade.Component = kubenames.Component(finding.Describe(names))
		op = upgrade
	}

	if len(r.machines) == 1 {
		return op.String()
	}

	return step.TextOn(op, finding.Describe(r.machines))
}

// rowsOf has one row for consecutive steps that differ only in their machines.
func rowsOf(steps []step.Step) (rows []row) {
	for _, op := range steps {
		rows = withRow(rows, row{op: op, machines: []string{op.On()}})
	}

	return rows
}

// eachOf has a row for each component of Kubernetes that changes together with others. Rows that then differ only in
// their machines are one.
func eachOf(rows []row) (each []row) {
	for _, r := range rows {
		parts := []step.Step{r.op}

		if upgrade, ok := r.op.(step.UpgradeComponent); ok {
			parts = parts[:0]
			for _, part := range upgrade.Each() {
				parts = append(parts, part)
			}
		}

		for _, op := range parts {
			each = withRow(each, row{op: op, machines: r.machines})
		}
	}

	return each
}

// withRow adds a row, to the last one if they differ only in their machines.
func withRow(rows []row, r row) []row {
	last := len(rows) - 1
	listed := func(machine string) bool { return slices.Contains(rows[last].machines, machine) }

	if last >= 0 && step.Alike(rows[last].op, r.op) && !slices.ContainsFunc(r.machines, listed) {
		rows[last].machines = slices.Concat(rows[last].machines, r.machines)

		return rows
	}

	return append(rows, r)
}

// togetherOf has one row for consecutive upgrades of components of Kubernetes on the same machines.
func togetherOf(rows []row) (together []row) {
	for _, r := range rows {
		last := len(together) - 1
		if last >= 0 && slices.Equal(together[last].machines, r.machines) {
			before, upgrades := together[last].op.(step.UpgradeComponent)
			next, too := r.op.(step.UpgradeComponent)

			if upgrades && too && before.Together(next) {
				together[last].more = append(together[last].more, string(next.Component))

				continue
			}
		}

		together = append(together, r)
	}

	return together
}

// withoutUncordons skips the uncordons that end a drain of the same plan.
func withoutUncordons(steps []step.Step) []step.Step {
	begun := map[string]bool{}

	return slices.DeleteFunc(slices.Clone(steps), func(op step.Step) bool {
		_, uncordons := op.(step.Uncordon)
		left := uncordons && begun[op.On()]
		begun[op.On()] = true

		return left
	})
}

// withoutPulls skips the pulls of images that an upgrade of the same plan uses.
func withoutPulls(steps []step.Step) []step.Step {
	upgraded := ImpactOf(steps, nil).KubernetesUpgraded

	return slices.DeleteFunc(slices.Clone(steps), func(op step.Step) bool {
		_, pulls := op.(step.PullImages)

		return pulls && slices.Contains(upgraded, op.On())
	})
}

// placesOf names the changes of a step in the configuration of a member; empty when they are unknown.
func placesOf(op step.Step, changes map[string][]machineconfig.Change) string {
	apply, ok := op.(step.ApplyConfig)
	if !ok || apply.Access != step.Member {
		return ""
	}

	var texts []string
	for _, change := range machineconfig.Grouped(changes[apply.Machine]) {
		texts = append(texts, change.Brief())
	}

	if len(texts) == 0 {
		return ""
	}

	if more := len(texts) - mostPlaces; more > 0 {
		texts = append(texts[:mostPlaces], fmt.Sprintf("%d more", more))
	}

	return ": " + strings.Join(texts, ", ")
}

// summaryOf summarizes a long list of operations in one line: steps, and others on machines.
func summaryOf(lines int, machines []string, steps []step.Step) string {
	total, impact := step.TotalOf(steps), ImpactOf(steps, nil)

	for _, op := range steps {
		machines = append(machines, op.On())
	}

	parts := finding.NonEmpty(
		counted(total.Joining, "joins", "join"), pathOf("Talos", total.Talos), pathOf("Kubernetes", total.Kubernetes),
		counted(impact.Drained, "is drained", "are drained"), counted(impact.Rebooted, "reboots", "reboot"),
		counted(impact.PodsReplaced, "gets another pod", "get other pods"), counted(total.Reset, "is reset", "are reset"),
	)

	return strings.TrimSuffix(fmt.Sprintf("in all: %d operations on %s; %s", lines, machinesCounted(machines),
		strings.Join(parts, ", ")), "; ")
}

// pathOf names the versions that a rollout passes, in order; empty when there are none.
func pathOf(of string, passed []string) string {
	if len(passed) < 2 {
		return ""
	}

	return of + " " + strings.Join(passed, " -> ")
}

func machinesCounted(names []string) string {
	count := len(distinct(names))

	return fmt.Sprintf("%d %s", count, finding.Verb(distinct(names), "machine", "machines"))
}

// counted is how many machines do something; empty for none.
func counted(names []string, one, many string) string {
	names = distinct(names)
	if len(names) == 0 {
		return ""
	}

	return fmt.Sprintf("%d %s", len(names), finding.Verb(names, one, many))
}

func distinct(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)

	return slices.Compact(names)
}
