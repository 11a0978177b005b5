package machineset

import (
	"fmt"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/hook"
)

// hooksRun are the lines about the hooks of a plan: one for all that run at the same times.
func (p Set) hooksRun(steps []step.Step) []string {
	var when finding.Alike[string]

	for _, h := range p.Changes.Hooks {
		if slices.ContainsFunc(steps, func(op step.Step) bool { return op.Disrupts() && p.isFor(h, op) }) {
			when.Add(whenRun(h), h.Name)
		}
	}

	var lines []string

	for text, names := range when.All() {
		lines = append(lines, fmt.Sprintf("run the %s %s %s", finding.Verb(names, "hook", "hooks"),
			finding.Describe(names), text))
	}

	if p.Changes.HooksUnknown && slices.ContainsFunc(steps, step.Step.Disrupts) {
		lines = append(lines, "run the hooks, which are known after apply")
	}

	return lines
}

// isFor reports whether a hook is for the machine of a step by its pool.
func (p Set) isFor(h hook.Hook, op step.Step) bool {
	g := p.groupOf(op.On())

	switch {
	case len(h.Pools) == 0:
		return true
	case g == nil || cluster.OfUnmanaged(op):
		return false
	default:
		return slices.Contains(h.Pools, g.poolOfHooks())
	}
}

// poolOfHooks is the name of a group in the pools of hooks.
func (g *Group) poolOfHooks() string {
	if g.Role == step.ControlPlane {
		return hook.ControlPlanes
	}

	return g.Pool
}

// whenRun says when a hook runs.
func whenRun(h hook.Hook) string {
	before, after := "before the first machine goes out of service", "after the last one is back"

	switch {
	case h.Scope == hook.Machine && h.Before == nil:
		return "once a machine is back"
	case h.Scope == hook.Machine:
		before, after = "before a machine goes out of service", "once it is back"
	case h.Before == nil:
		return "after the last machine is back"
	}

	if h.After == nil {
		return before
	}

	return before + ", and " + after
}

// unfinishedHooks are the lines about hooks that an earlier apply began and none ended.
func (p Set) unfinishedHooks() []string {
	if len(p.StartedHooks) == 0 {
		return nil
	}

	return []string{fmt.Sprintf("end the %s %s, which an earlier apply began",
		finding.Verb(p.StartedHooks, "hook", "hooks"), finding.Describe(p.StartedHooks))}
}

// ValidateHooks refuses pools that a resource does not have.
func (p Set) ValidateHooks() finding.List {
	pools := []string{}

	for _, g := range p.Groups {
		if pool := g.poolOfHooks(); pool != "" {
			pools = append(pools, pool)
		}
	}

	if unnamed := !p.Single && len(pools) < len(p.Groups); unnamed || p.Unknown.Has(UnknownMachines) {
		return nil
	}

	var diags finding.List

	for _, h := range p.Changes.Hooks {
		for i, pool := range h.Pools {
			if pool != "" && !slices.Contains(pools, pool) {
				diags.Append(unknownHookPool.At(finding.Root("hooks").AtMapKey(h.Name).AtName("pools").AtListIndex(i),
					finding.Args{"value": pool, "pools": pools}))
			}
		}
	}

	return diags
}

// WarnOfHooks names the hooks that failed and after which a run continued.
func WarnOfHooks(want cluster.Spec, failed []string) finding.List {
	if len(failed) == 0 {
		return nil
	}

	return finding.List{hooksFailed.With(finding.Args{"cluster": want.Name, "hooks": failed})}
}
