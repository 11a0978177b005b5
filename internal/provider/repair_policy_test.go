package provider_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// repairPlan is what the policy of repairs reads of a plan.
type repairPlan struct {
	nodes, unmanaged map[string]any
	conditions       []any
	changes          []any
	more             map[string]any
}

// The plans are made at noon.
const (
	noon    = "2026-11-29T12:00:00Z"
	tooLate = "2026-11-29T10:00:00Z"
)

// nodeInPlan is a node as the data source reads it.
func nodeInPlan(role string, ready bool, since string) map[string]any {
	return map[string]any{"role": role, "ready": ready, "schedulable": true, "last_change": since, "reset_at": nil}
}

// resetInPlan is the change of a reset.
func resetInPlan(action string, machine string) map[string]any {
	values := map[string]any{"machines": []string{machine}, "wipe": nil, "user_disks": nil}

	return map[string]any{"address": "talosop_machine_reset.repair[\"" + machine + "\"]", "mode": "managed",
		"type": "talosop_machine_reset", "change": map[string]any{"actions": []string{action}, "before": values,
			"after": values}}
}

// newRepairPlan is a plan that repairs w-1 in a cluster that waits for it.
func newRepairPlan() *repairPlan {
	waits := changeInPlan("talosop_cluster", []string{"update"}, impactInPlan("", nil), nil, "reset")
	change, _ := waits["change"].(map[string]any)
	change["before"] = map[string]any{"talos_version": "v1.14.1", "phase": "Ready"}
	change["after"] = map[string]any{"talos_version": "v1.14.1", "impact": impactInPlan("", nil)}

	return &repairPlan{
		nodes: map[string]any{"cp-1": nodeInPlan("controlplane", true, tooLate), "w-1": nodeInPlan("worker", false, tooLate),
			"w-2": nodeInPlan("worker", true, tooLate)},
		unmanaged: map[string]any{},
		conditions: []any{map[string]string{"name": "EtcdQuorum", "status": "True", "reason": "3 of 3"},
			map[string]string{"name": "NodesReady", "status": "False", "reason": "w-1"}},
		changes: []any{resetInPlan("create", "w-1"), waits, changeInPlan("talosop_secrets", []string{"no-op"}, nil, nil, ""),
			map[string]any{"address": "data.talosop_etcd_members.this", "mode": "data", "type": "talosop_etcd_members",
				"change": map[string]any{"actions": []string{"read"}}}},
		more: map[string]any{},
	}
}

func (p *repairPlan) node(name, attribute string, value any) {
	p.nodes[name].(map[string]any)[attribute] = value
}

// set changes a value in the change of a resource, and keeps the one before.
func (p *repairPlan) set(at int, attribute string, value any) {
	change := p.changes[at].(map[string]any)["change"].(map[string]any)
	change["after"].(map[string]any)[attribute] = value
}

func (p *repairPlan) json() map[string]any {
	p.more["timestamp"], p.more["resource_changes"] = noon, p.changes
	p.more["prior_state"] = map[string]any{"values": map[string]any{"root_module": map[string]any{"resources": []any{
		map[string]any{"address": "data.talosop_cluster_health.other", "values": map[string]any{"nodes": map[string]any{}}},
		map[string]any{"address": "data.talosop_cluster_health.this[0]", "values": map[string]any{"nodes": p.nodes,
			"unmanaged": p.unmanaged, "conditions": p.conditions}}}}}}

	return p.more
}

// repairPlans are changes of a plan, the decision about it, and a part of the report.
func repairPlans() []struct {
	name, decision, says string
	change               func(p *repairPlan)
} {
	young := func(p *repairPlan) { p.node("w-1", "last_change", "2026-11-29T11:00:01Z") }
	record := resetInPlan("delete", "w-2")
	second := func(p *repairPlan) {
		p.node("w-2", "ready", false)
		p.changes = append(p.changes, resetInPlan("create", "w-2"))
	}
	other := func(kind string, actions ...string) func(p *repairPlan) {
		return func(p *repairPlan) { p.changes = append(p.changes, changeInPlan(kind, actions, nil, nil, "")) }
	}

	return []struct {
		name, decision, says string
		change               func(p *repairPlan)
	}{
		{"a repair", "apply", "w-1 is not Ready since " + tooLate + ": it is reset", func(*repairPlan) {}},
		{"after exactly an hour", "apply", "", func(p *repairPlan) { p.node("w-1", "last_change", "2026-11-29T11:00:00Z") }},
		{"too early", "nothing", "not long enough", young},
		{"too early, with another change", "nothing", "",
			func(p *repairPlan) { young(p); other("talosop_addon", "update")(p) }},
		{"too early, without a wait", "nothing", "not long enough",
			func(p *repairPlan) { young(p); p.changes = p.changes[:1] }},
		{"nothing is broken", "nothing", "", func(p *repairPlan) { p.node("w-1", "ready", true); p.changes = nil }},
		{"a change of a person", "nothing", "", func(p *repairPlan) { p.changes = nil; other("talosop_addon", "create")(p) }},
		{"an update of a trigger", "apply", "", func(p *repairPlan) { p.changes[0] = resetInPlan("update", "w-1") }},
		{"with an old record", "apply", `is removed: talosop_machine_reset.repair["w-2"]`,
			func(p *repairPlan) { p.changes = append(p.changes, record) }},
		{"an old record alone", "apply", `is removed: talosop_machine_reset.repair["w-2"]`,
			func(p *repairPlan) { p.changes = []any{record} }},
		{"an old record and another change", "nothing", "",
			func(p *repairPlan) { p.changes = []any{record}; other("talosop_addon", "update")(p) }},
		{"an old record, and Kubernetes is silent", "stop", "does not list the nodes",
			func(p *repairPlan) { p.changes, p.nodes = []any{record}, nil }},
		{"Kubernetes is silent", "stop", "does not list the nodes", func(p *repairPlan) { p.nodes = nil }},
		{"a condition is false", "stop", "EtcdQuorum is False: 1 of 3", func(p *repairPlan) {
			p.conditions[0] = map[string]string{"name": "EtcdQuorum", "status": "False", "reason": "1 of 3"}
		}},
		{"a condition is unknown", "stop", "EtcdQuorum is Unknown", func(p *repairPlan) {
			p.conditions[0] = map[string]string{"name": "EtcdQuorum", "status": "Unknown", "reason": ""}
		}},
		{"a control plane is not Ready", "stop", "cp-1 is not Ready, and the plan does not repair it",
			func(p *repairPlan) { p.node("cp-1", "ready", false) }},
		{"a control plane would be reset", "stop", "cp-1 is no worker of the cluster that is not Ready",
			func(p *repairPlan) { p.changes = append(p.changes, resetInPlan("create", "cp-1")) }},
		{"a broken control plane would be reset", "stop", "cp-1 is no worker of the cluster that is not Ready",
			func(p *repairPlan) {
				p.node("cp-1", "ready", false)
				p.changes = append(p.changes, resetInPlan("create", "cp-1"))
			}},
		{"a Ready worker would be reset", "stop", "w-2 is no worker of the cluster that is not Ready",
			func(p *repairPlan) { p.changes = append(p.changes, resetInPlan("create", "w-2")) }},
		{"an unmanaged node would be reset", "stop", "w-1 is no worker of the cluster",
			func(p *repairPlan) { p.unmanaged["w-1"] = map[string]any{"ready": false} }},
		{"two are not Ready", "stop", "2 workers are not Ready: at most 1 are repaired at once", second},
		{"the second for a short time", "stop", "w-2 is not Ready since 2026-11-29T11:59:00Z: not long enough",
			func(p *repairPlan) { second(p); p.node("w-2", "last_change", "2026-11-29T11:59:00Z") }},
		{"the day's budget", "stop", "2 machines were reset within a day: at most 2 are", func(p *repairPlan) {
			p.node("w-2", "reset_at", "2026-11-28T12:00:01Z")
			p.node("cp-1", "reset_at", "2026-11-29T11:00:00Z")
		}},
		{"resets of another day", "apply", "", func(p *repairPlan) {
			p.node("w-2", "reset_at", "2026-11-28T12:00:00Z")
			p.node("cp-1", "reset_at", "2026-11-29T11:00:00Z")
		}},
		{"it did not return", "stop", "w-1 failed again after its reset at 2026-11-29T10:30:00Z",
			func(p *repairPlan) { p.node("w-1", "reset_at", "2026-11-29T10:30:00Z") }},
		{"it failed within a day, long ago", "stop", "w-1 failed again after its reset at", func(p *repairPlan) {
			p.node("w-1", "reset_at", "2026-11-19T10:30:00Z")
			p.node("w-1", "last_change", "2026-11-20T10:29:59Z")
		}},
		{"it failed after a day", "apply", "", func(p *repairPlan) {
			p.node("w-1", "reset_at", "2026-11-19T10:30:00Z")
			p.node("w-1", "last_change", "2026-11-20T10:30:00Z")
		}},
		{"it is cordoned", "stop", "w-1 is cordoned", func(p *repairPlan) { p.node("w-1", "schedulable", false) }},
		{"another version", "stop", "the plan also changes talosop_cluster.this (update)",
			func(p *repairPlan) { p.set(1, "talos_version", "v1.15.0") }},
		{"a machine reboots", "stop", "the plan also changes talosop_cluster.this (update)",
			func(p *repairPlan) { p.set(1, "impact", impactInPlan("rebooted", []string{"general/w-2"})) }},
		{"the cluster ends", "stop", "the plan also changes talosop_cluster.this (update)",
			func(p *repairPlan) { p.set(1, "impact", impactInPlan("ends_cluster", true)) }},
		{"an unknown impact", "stop", "the plan also changes talosop_cluster.this (update)",
			func(p *repairPlan) { p.set(1, "impact", nil) }},
		{"a create", "stop", "the plan also changes talosop_addon.this (create)", other("talosop_addon", "create")},
		{"a destroy", "stop", "the plan also changes talosop_worker.this (delete)", other("talosop_worker", "delete")},
		{"a replacement with the same arguments", "stop", "(delete, create)", func(p *repairPlan) {
			p.changes[1].(map[string]any)["change"].(map[string]any)["actions"] = []string{"delete", "create"}
		}},
		{"a replacement", "stop", "(delete, create)", other("talosop_cluster", "delete", "create")},
		{"another volume", "stop", `talosop_machine_reset.repair["w-1"] wipes more than EPHEMERAL`,
			func(p *repairPlan) { p.set(0, "wipe", []string{"EPHEMERAL", "u-data"}) }},
		{"a disk", "stop", "wipes more than EPHEMERAL", func(p *repairPlan) { p.set(0, "user_disks", []string{"/dev/sdb"}) }},
		{"an action", "stop", "the plan also invokes actions",
			func(p *repairPlan) {
				p.more["action_invocations"] = []any{map[string]any{"type": "talosop_machine_reboot"}}
			}},
	}
}

// The policy of the example applies repairs alone, within its limits, and stops for everything else once a machine is
// due.
func TestRepairPolicy_appliesRepairsAlone(t *testing.T) {
	t.Parallel()

	plans := repairPlans()

	var inputs []any

	for _, plan := range plans {
		p := newRepairPlan()
		plan.change(p)
		inputs = append(inputs, p.json())
	}

	file := filepath.Join(t.TempDir(), "plans.json")
	tftest.WriteFile(t, file, tftest.JSON(t, inputs))

	//nolint:gosec // the program and its arguments are the test's own
	output, err := exec.CommandContext(t.Context(), clitest.Asset(t, "opa"), "eval", "--format=raw",
		"--data", "../../examples/stacks/repair/repair.rego", "--input", file,
		`[{"decision": decision, "report": report} | some plan in input
			decision := data.repair.decision with input as plan
			report := data.repair.report with input as plan]`).Output()
	tftest.Must(t, err)

	var decided []struct {
		Decision string
		Report   []string
	}

	tftest.Must(t, json.Unmarshal(output, &decided))

	for i, plan := range plans {
		report := strings.Join(decided[i].Report, "\n")
		if decided[i].Decision != plan.decision || !strings.Contains(report, plan.says) ||
			plan.decision == "stop" && !slices.ContainsFunc(decided[i].Report, func(s string) bool { return s != "" }) {
			t.Errorf("%s: the policy decides %s and says %q", plan.name, decided[i].Decision, report)
		}
	}
}
