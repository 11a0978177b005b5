package health_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	clusterhealth "github.com/talosop/terraform-provider-talosop/internal/cluster/health"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// dataSources are the data sources that observe a living cluster.
var dataSources = []string{"talosop_cluster_health", "talosop_etcd_members"}

// A cluster that does not answer is a result, after the configured timeout and with a warning; so is one without a
// known control plane.
func TestClusterHealth_silentClusterIsAResult(t *testing.T) {
	t.Parallel()

	for _, name := range dataSources {
		for what, handle := range map[string]tftest.Config{"silent": tftest.WrittenHandle("10.0.0.1", "10.0.0.2"),
			"without control planes": tftest.WrittenHandle()} {
			t.Run(name+" "+what, func(t *testing.T) {
				t.Parallel()

				began := time.Now()
				state, diagnostics := tftest.ReadSilent(t, name,
					tftest.Config{"cluster": handle, "timeouts": tftest.Config{"read": "200ms"}})

				// The connections alone would take longer.
				if took := time.Since(began); took > tftest.ConnectTimeout/2 {
					t.Errorf("it took %s", took)
				}

				for _, d := range diagnostics {
					if d.Severity != tfprotov6.DiagnosticSeverityWarning {
						t.Errorf("diagnostics are %s", tftest.Show(diagnostics))
					}
				}

				if what == "silent" && (len(diagnostics) != 1 ||
					!strings.Contains(diagnostics[0].Detail, "10.0.0.2 does not respond: ")) {
					t.Errorf("diagnostics are %s", tftest.Show(diagnostics))
				}

				attributes := tftest.FieldsOf(t, state)
				if !attributes["healthy"].Equal(tftypes.NewValue(tftypes.Bool, false)) {
					t.Errorf("healthy is %s", attributes["healthy"])
				}

				if nodes, is := attributes["nodes"]; is && !nodes.IsNull() {
					t.Errorf("nodes are %s", nodes)
				}

				delete(attributes, "cluster")

				for _, secret := range tftest.SecretsIn(tftest.Bundle()) {
					for _, v := range attributes {
						if strings.Contains(v.String(), secret) {
							t.Error("a secret is in an attribute")
						}
					}

					if strings.Contains(tftest.Show(diagnostics), secret) {
						t.Error("a secret is in a diagnostic")
					}
				}
			})
		}
	}
}

// Given operations are drawn as pending, even for a cluster that does not answer.
func TestClusterHealth_drawsOperations(t *testing.T) {
	t.Parallel()

	config := tftest.Config{"cluster": tftest.WrittenHandle("10.0.0.1"), "timeouts": tftest.Config{"read": "200ms"}}

	for _, test := range []struct {
		operations any
		want       string
	}{
		{nil, ""}, {[]any{}, "| – | none |"}, {[]any{"reboot cp-1", "reboot cp-2"}, "| 1 | `reboot cp-1` |\n| 2 | `reboot cp-2` |"},
	} {
		state, _ := tftest.ReadSilent(t, "talosop_cluster_health", tftest.With(config, test.operations, "operations"))

		var markdown, svg string

		tftest.Must(t, tftest.FieldsOf(t, state)["markdown"].As(&markdown))
		tftest.Must(t, tftest.FieldsOf(t, state)["svg"].As(&svg))

		if !strings.HasPrefix(markdown, "### ❔ Cluster `prod`: Unreachable\n") || !strings.Contains(markdown, test.want) ||
			strings.Contains(markdown, "Pending") != (test.want != "") || strings.Contains(svg, "Pending") != (test.want != "") {
			t.Errorf("with %v it is drawn as\n%s\n%s", test.operations, markdown, svg)
		}
	}
}

// The page groups workers, and shows drift and backups, as far as they are given; a configuration with others fails.
func TestClusterHealth_pageOfWhatIsGiven(t *testing.T) {
	t.Parallel()

	config := tftest.Config{"cluster": tftest.WrittenHandle("10.0.0.1"), "timeouts": tftest.Config{"read": "200ms"}}
	page := func(config tftest.Config) string {
		var html string

		state, _ := tftest.ReadSilent(t, "talosop_cluster_health", config)
		tftest.Must(t, tftest.FieldsOf(t, state)["html"].As(&html))

		return html
	}

	bare := page(config)
	full := page(tftest.With(tftest.With(tftest.With(config, tftest.Config{"10.0.0.1": []any{"sysctls: vm.swappiness"}},
		"drift"), []any{tftest.Config{"key": "a/1", "time": "2026-01-01T00:00:00Z", "restorable": false, "reason": "it is cut off"}},
		"backups"), tftest.Config{"batch": []any{"w-1"}}, "pools"))

	for _, text := range []string{"sysctls: vm.swappiness", "a/1", "it is cut off", "No backup can be restored"} {
		if strings.Contains(bare, text) || !strings.Contains(full, text) {
			t.Errorf("%q is in\n%s\nor not in\n%s", text, bare, full)
		}
	}

	if !strings.Contains(bare, "<h1>Cluster prod does not respond</h1>") || strings.Contains(bare, ">Drift<") {
		t.Errorf("the page is\n%s", bare)
	}
}

func TestClusterHealth_invalidConfiguration(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		config tftest.Config
		At     string
		says   []string
	}{
		"no time": {
			config: tftest.Config{"cluster": tftest.WrittenHandle("10.0.0.1"), "timeouts": tftest.Config{"read": "0s"}},
			At:     `AttributeName("timeouts").AttributeName("read")`,
			says:   []string{`"0s"`, "10s"},
		},
		"a port": {
			config: tftest.Config{"cluster": tftest.WrittenHandle("10.0.0.1", "10.0.0.2:99999")},
			At:     `AttributeName("cluster").AttributeName("talos_endpoints").ElementKeyInt(1)`,
			says:   []string{`"10.0.0.2:99999"`, "a port from 1 to 65535"},
		},
		"no secrets": {
			config: tftest.Config{"cluster": tftest.With(tftest.WrittenHandle("10.0.0.1"), "token: abc", "secrets")},
			At:     `AttributeName("cluster").AttributeName("secrets")`, says: []string{"talosctl gen secrets"},
		},
	}

	for what, test := range tests {
		for _, name := range append(slices.Clone(dataSources), "talosop_upgrade_checks") {
			t.Run(name+" "+what, func(t *testing.T) {
				t.Parallel()

				_, diagnostics := tftest.ReadSilent(t, name, test.config)
				tftest.ExpectMistake(t, diagnostics, test.At, test.says, false)
			})
		}
	}

	_, diagnostics := tftest.ReadSilent(t, "talosop_cluster_health", tftest.Config{
		"cluster": tftest.With(tftest.WrittenHandle("10.0.0.1"), "http://10.0.0.1", "endpoint"),
	})
	tftest.ExpectMistake(t, diagnostics, `AttributeName("cluster").AttributeName("endpoint")`, []string{"https"}, false)

	for _, window := range []string{"-1h", "90d", "50000h"} {
		_, diagnostics = tftest.ReadSilent(t, "talosop_cluster_health",
			tftest.Config{"cluster": tftest.WrittenHandle("10.0.0.1"), "expires_within": window})
		tftest.ExpectMistake(t, diagnostics, `AttributeName("expires_within")`, []string{window, "h"}, false)
	}
}

// The guide explains all conditions, in their order.
func TestClusterHealth_conditionsAreInTheGuide(t *testing.T) {
	t.Parallel()

	guide, err := os.ReadFile("../../../templates/guides/observing.md.tmpl")
	tftest.Must(t, err)

	var explained, decided []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\|").FindAllSubmatch(guide, -1) {
		explained = append(explained, string(row[1]))
	}

	for _, c := range clusterhealth.Of(cluster.Spec{}, cluster.Snapshot{}, clusterhealth.Expiry{}).Conditions {
		decided = append(decided, c.Name)
	}

	if !slices.Equal(explained, decided) {
		t.Errorf("explained are %v, decided %v", explained, decided)
	}
}
