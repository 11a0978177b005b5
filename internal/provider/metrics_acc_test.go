package provider_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

const (
	metricsExample = "../../examples/guides/metrics"
	metricsPage    = "docs/guides/metrics.md"
)

// ourMetric matches the names of metrics in queries, with those of recording rules.
var ourMetric = regexp.MustCompile(`talosop[_:][a-z_:]+[a-z]`)

// promtool runs promtool, whose errors end the test.
func promtool(t *testing.T, input string, args ...string) {
	t.Helper()

	//nolint:gosec // the program and its arguments are the test's own
	command := exec.CommandContext(t.Context(), clitest.Asset(t, "promtool"), args...)
	command.Stdin = strings.NewReader(input)

	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s\n%s", strings.Join(args, " "), err, output, input)
	}
}

// The rules of the examples are valid, and alert when they have to.
func TestMetrics_rulesAlert(t *testing.T) {
	t.Parallel()

	for _, example := range []string{metricsExample, "../../examples/stacks/repair"} {
		promtool(t, "", "check", "rules", "--lint-fatal", example+"/rules.yml")
		promtool(t, "", "test", "rules", example+"/rules_test.yml")
	}
}

// Every query of the dashboard is valid.
func TestMetrics_dashboardQueries(t *testing.T) {
	t.Parallel()

	queries := dashboardQueries(t)
	if len(queries) < 10 {
		t.Errorf("the dashboard has %d queries", len(queries))
	}

	rules := filepath.Join(t.TempDir(), "rules.json")

	var records []any
	for _, query := range queries {
		records = append(records, map[string]any{"record": "test:query", "expr": query})
	}

	group := map[string]any{"name": "dashboard", "rules": records}
	tftest.WriteFile(t, rules, tftest.JSON(t, map[string]any{"groups": []any{group}}))
	promtool(t, "", "check", "rules", "--lint=none", rules)
}

// dashboardQueries are those of the panels, with a value for the variable.
func dashboardQueries(t *testing.T) []string {
	t.Helper()

	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}

	tftest.Must(t, json.Unmarshal([]byte(tftest.ReadFile(t, metricsExample+"/dashboard.json")), &dashboard))

	var queries []string

	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			queries = append(queries, strings.ReplaceAll(target.Expr, "$cluster", ".*"))
		}
	}

	return queries
}

// hasMetrics checks the metrics of the applied example: Prometheus accepts them, and they are what the rules and the
// dashboard query and what the guide describes. They contain no secret. The script of the example writes those of the
// cluster.
func hasMetrics(t *testing.T, w *clitest.Workspace, cli clitest.CLI) {
	t.Helper()

	observed, _ := w.Attribute("data.talosop_cluster_health.prod", "metrics").(string)
	applied := w.Read("prod-applies.prom")

	programs := t.TempDir()
	tftest.Must(t, os.Symlink(cli.Path, filepath.Join(programs, "terraform")))

	export := exec.CommandContext(t.Context(), "sh", "export.sh")
	export.Dir, export.Env = w.Dir, append(w.Environ(), "PATH="+programs+":"+os.Getenv("PATH"))

	if output, err := export.CombinedOutput(); err != nil || w.Read("prod-health.prom") != observed {
		t.Errorf("the script says %v, %s, and wrote\n%s", err, output, w.Read("prod-health.prom"))
	}

	// The example has neither a snapshot nor operations.
	known := []string{"talosop:machines:count", "talosop_etcd_backup_newest_timestamp_seconds", "talosop_pending_operations"}

	for _, text := range []string{observed, applied} {
		promtool(t, text, "check", "metrics")

		for _, found := range regexp.MustCompile(`(?m)^# TYPE (\S+) gauge$`).FindAllStringSubmatch(text, -1) {
			known = append(known, found[1])
		}
	}

	page := tftest.ReadFile(t, filepath.Join(repository, metricsPage))
	for _, source := range []string{tftest.ReadFile(t, metricsExample+"/rules.yml"), strings.Join(dashboardQueries(t), "\n"),
		codeBlock.ReplaceAllString(page, "")} {
		for _, name := range ourMetric.FindAllString(source, -1) {
			if !slices.Contains(known, name) && name != "talosop_cluster_health" {
				t.Errorf("%s is not among %q", name, known)
			}
		}
	}

	for _, name := range known[1:] {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("the page does not describe %s", name)
		}
	}

	for _, want := range []string{`talosop_apply_success{file="prod-applies",cluster="prod",resource="control plane"} 1.0`,
		`talosop_apply_steps{file="prod-applies",cluster="prod",resource="control plane",kind="bootstrap",result="success"} 1.0`,
		`talosop_cluster_healthy{cluster="prod"} 1.0`, `talosop_machine_differences{cluster="prod",machine="w-1"} 0.0`} {
		if !strings.Contains(observed+applied, want) {
			t.Errorf("%s is not in\n%s\n%s", want, observed, applied)
		}
	}

	bundle, _ := w.Attribute("talosop_secrets.prod", "bundle").(string)
	for _, secret := range tftest.SecretsIn(bundle) {
		if strings.Contains(observed+applied, secret) {
			t.Error("a secret is in the metrics")
		}
	}
}
