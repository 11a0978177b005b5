package provider_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// changeInPlan is the change of a resource in the `show -json` output of a plan.
func changeInPlan(kind string, actions []string, impact, unknown any, onDestroy string) map[string]any {
	change := map[string]any{"actions": actions, "before": nil, "after": nil, "after_unknown": map[string]any{}}
	if len(actions) > 1 || actions[0] != "create" {
		change["before"] = map[string]any{"on_destroy": onDestroy}
	}

	if impact != nil {
		change["after"] = map[string]any{"impact": impact}
	}

	if unknown != nil {
		change["after_unknown"] = map[string]any{"impact": unknown}
	}

	return map[string]any{"address": kind + ".this", "mode": "managed", "type": kind, "change": change}
}

// invocationInPlan is an action that a plan invokes, in its `show -json` output.
func invocationInPlan(kind string) map[string]any {
	return map[string]any{"address": "action." + kind + ".this", "type": kind, "name": "this",
		"config_values": map[string]any{"machines": []any{"10.0.0.21"}}}
}

// impactInPlan is an impact with one part that is not empty.
func impactInPlan(part string, value any) map[string]any {
	impact := map[string]any{"drained": []string{}, "rebooted": []string{}, "upgraded": []string{}, "wiped": []string{},
		"kubernetes_upgraded": []string{}, "removed": []string{}, "pods_replaced": []string{}, "ends_cluster": false}
	if part != "" {
		impact[part] = value
	}

	return impact
}

// The policy of the examples denies only plans that wipe machines, remove them from their cluster or may do so.
func TestPlanPolicy_deniesWhatWipes(t *testing.T) {
	t.Parallel()

	const cluster, reset = "talosop_cluster", "reset"

	update, idle := []string{"update"}, impactInPlan("", nil)
	names := []string{"batch/w-1"}
	const machineReset, machineLeave = "talosop_machine_reset", "talosop_machine_leave"

	plans := []struct {
		name   string
		change map[string]any
		denied string
	}{
		{"create", changeInPlan(cluster, []string{"create"}, idle, nil, ""), ""},
		{"live change", changeInPlan(cluster, update, idle, nil, reset), ""},
		{"drain", changeInPlan(cluster, update, impactInPlan("drained", names), nil, reset), ""},
		{"reboot", changeInPlan(cluster, update, impactInPlan("rebooted", names), nil, reset), ""},
		{"upgrade of Kubernetes", changeInPlan(cluster, update, impactInPlan("kubernetes_upgraded", names), nil, reset), ""},
		{"forget", changeInPlan(cluster, []string{"forget"}, nil, nil, reset), ""},
		{"preserving destroy", changeInPlan("talosop_worker", []string{"delete"}, nil, nil, "preserve"), ""},
		{"addon", changeInPlan("talosop_addon", []string{"delete"}, nil, nil, ""), ""},
		{"wipe", changeInPlan(cluster, update, impactInPlan("wiped", names), nil, reset), "batch/w-1 would be wiped"},
		{"removal", changeInPlan("talosop_worker", update, impactInPlan("removed", names), nil, reset),
			"batch/w-1 would leave the cluster"},
		{"end", changeInPlan("talosop_control_plane", update, impactInPlan("ends_cluster", true), nil, reset),
			"the cluster would end"},
		{"destroy", changeInPlan("talosop_machine", []string{"delete"}, nil, nil, reset), "its machines would be wiped"},
		{"replacement", changeInPlan(cluster, []string{"delete", "create"}, nil, true, reset), "its machines would be wiped"},
		{"replacement, created first", changeInPlan(cluster, []string{"create", "delete"}, nil, true, reset),
			"its machines would be wiped"},
		{"unknown", changeInPlan(cluster, update, nil, true, reset), "depends on values that are not known yet"},
		{"unknown in part", changeInPlan(cluster, update, impactInPlan("", nil), map[string]any{"removed": true}, reset),
			"depends on values that are not known yet"},
		{"reset of machines", changeInPlan(machineReset, []string{"create"}, nil, nil, ""), "its machines would be wiped"},
		{"repeated reset", changeInPlan(machineReset, update, nil, nil, ""), "its machines would be wiped"},
		{"record of a reset", changeInPlan(machineReset, []string{"delete"}, nil, nil, ""), ""},
		{"unchanged reset", changeInPlan(machineReset, []string{"no-op"}, nil, nil, ""), ""},
		{"reboot of machines", changeInPlan("talosop_machine_reboot", []string{"create"}, nil, nil, ""), ""},
		{"machine that may leave", changeInPlan(machineLeave, []string{"create"}, nil, nil, ""), ""},
		{"leaving machine", changeInPlan(machineLeave, []string{"delete"}, nil, nil, ""), "would leave the cluster"},
		{"action that resets", invocationInPlan(machineReset), "action.talosop_machine_reset.this: "},
		{"action of a leaving machine", invocationInPlan(machineLeave), "action.talosop_machine_leave.this: "},
		{"action that reboots", invocationInPlan("talosop_machine_reboot"), ""},
	}

	var inputs []any

	for _, plan := range plans {
		input := map[string]any{"resource_changes": []any{plan.change}}
		if plan.change["change"] == nil {
			input = map[string]any{"action_invocations": []any{plan.change}}
		}

		inputs = append(inputs, input)
	}

	file := filepath.Join(t.TempDir(), "plans.json")
	tftest.WriteFile(t, file, tftest.JSON(t, inputs))

	//nolint:gosec // the program and its arguments are the test's own
	output, err := exec.CommandContext(t.Context(), clitest.Asset(t, "opa"), "eval", "--format=raw",
		"--data", "../../examples/guides/plan-policy/talosop.rego", "--input", file,
		`[sort(denied) | some plan in input; denied := data.main.deny with input as plan]`).Output()
	tftest.Must(t, err)

	var denials [][]string
	tftest.Must(t, json.Unmarshal(output, &denials))

	for i, plan := range plans {
		text := strings.Join(denials[i], "\n")
		if (text == "") != (plan.denied == "") || !strings.Contains(text, plan.denied) {
			t.Errorf("%s: the policy says %q", plan.name, text)
		}
	}
}
