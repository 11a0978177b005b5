package provider

import (
	"context"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	clusterhealth "github.com/talosop/terraform-provider-talosop/internal/cluster/health"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
)

// connectTimeout is what a connection is waited for.
const connectTimeout = time.Minute

// lookers are the data sources that look at a living cluster.
var lookers = []string{"talosop_cluster_health", "talosop_etcd_members"}

// look reads a data source of a provider whose machines are silent: connections to them
// are never made and never refused.
func look(t *testing.T, name string, config configuration) (tftypes.Value, []*tfprotov6.Diagnostic) {
	t.Helper()

	m := providerdata.NewProviderData()
	m.Talos.Timeouts = talos.Timeouts{Connect: connectTimeout, Call: connectTimeout, Observe: connectTimeout}
	m.Talos.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()

		return nil, ctx.Err()
	}

	server, err := providerserver.NewProtocol6WithError(NewOf("test", m))()
	if err != nil {
		t.Fatal(err)
	}

	if err := configure(server); err != nil {
		t.Fatal(err)
	}

	typ := schemas(t).DataSourceSchemas[name].ValueType()

	resp, err := server.ReadDataSource(t.Context(),
		&tfprotov6.ReadDataSourceRequest{TypeName: name, Config: dynamic(t, valueOf(t, typ, config))})
	if err != nil {
		t.Fatal(err)
	}

	if resp.State == nil {
		return tftypes.NewValue(typ, nil), resp.Diagnostics
	}

	state, err := resp.State.Unmarshal(typ)
	if err != nil {
		t.Fatal(err)
	}

	return state, resp.Diagnostics
}

// writtenHandle is a handle that is written by hand. Nobody listens at its Kubernetes API.
func writtenHandle(endpoints ...any) configuration {
	return configuration{"name": "prod", "endpoint": "https://127.0.0.1:1", "secrets": bundleOnce(),
		"talos_endpoints": endpoints}
}

// A cluster that does not answer is a result, after the time that was given and with a
// warning; so is one of which no control plane is known.
func TestClusterHealth_silentClusterIsAResult(t *testing.T) {
	t.Parallel()

	for _, name := range lookers {
		for what, handle := range map[string]configuration{"silent": writtenHandle("10.0.0.1", "10.0.0.2"),
			"without control planes": writtenHandle()} {
			t.Run(name+" "+what, func(t *testing.T) {
				t.Parallel()

				began := time.Now()
				state, diagnostics := look(t, name, configuration{"cluster": handle, "timeouts": configuration{"read": "200ms"}})

				// The connections alone would be waited for longer.
				if took := time.Since(began); took > connectTimeout/2 {
					t.Errorf("it took %s", took)
				}

				for _, d := range diagnostics {
					if d.Severity != tfprotov6.DiagnosticSeverityWarning {
						t.Errorf("diagnostics are %s", show(diagnostics))
					}
				}

				if what == "silent" && (len(diagnostics) != 1 ||
					!strings.Contains(diagnostics[0].Detail, "10.0.0.2 does not answer: ")) {
					t.Errorf("diagnostics are %s", show(diagnostics))
				}

				attributes := fieldsOf(t, state)
				if !attributes["healthy"].Equal(tftypes.NewValue(tftypes.Bool, false)) {
					t.Errorf("healthy is %s", attributes["healthy"])
				}

				delete(attributes, "cluster")

				for _, secret := range secretsIn(bundleOnce()) {
					for _, v := range attributes {
						if strings.Contains(v.String(), secret) {
							t.Error("a secret is in an attribute")
						}
					}

					if strings.Contains(show(diagnostics), secret) {
						t.Error("a secret is in a diagnostic")
					}
				}
			})
		}
	}
}

// Operations are drawn as pending where they are given, also those of a cluster that does not answer.
func TestClusterHealth_drawsOperations(t *testing.T) {
	t.Parallel()

	config := configuration{"cluster": writtenHandle("10.0.0.1"), "timeouts": configuration{"read": "200ms"}}

	for _, test := range []struct {
		operations any
		want       string
	}{
		{nil, ""}, {[]any{}, "| – | none |"}, {[]any{"reboot cp-1", "reboot cp-2"}, "| 1 | `reboot cp-1` |\n| 2 | `reboot cp-2` |"},
	} {
		state, _ := look(t, "talosop_cluster_health", with(config, test.operations, "operations"))

		var markdown, svg string

		must(t, fieldsOf(t, state)["markdown"].As(&markdown))
		must(t, fieldsOf(t, state)["svg"].As(&svg))

		if !strings.HasPrefix(markdown, "### ❔ Cluster `prod`: Unreachable\n") || !strings.Contains(markdown, test.want) ||
			strings.Contains(markdown, "Pending") != (test.want != "") || strings.Contains(svg, "Pending") != (test.want != "") {
			t.Errorf("with %v it is drawn as\n%s\n%s", test.operations, markdown, svg)
		}
	}
}

func TestClusterHealth_invalidConfiguration(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		config configuration
		At     string
		says   []string
	}{
		"no time": {
			config: configuration{"cluster": writtenHandle("10.0.0.1"), "timeouts": configuration{"read": "0s"}},
			At:     `AttributeName("timeouts").AttributeName("read")`,
			says:   []string{`"0s"`, "10s"},
		},
		"a port": {
			config: configuration{"cluster": writtenHandle("10.0.0.1", "10.0.0.2:99999")},
			At:     `AttributeName("cluster").AttributeName("talos_endpoints").ElementKeyInt(1)`,
			says:   []string{`"10.0.0.2:99999"`, "a port from 1 to 65535"},
		},
		"no secrets": {
			config: configuration{"cluster": with(writtenHandle("10.0.0.1"), "token: abc", "secrets")},
			At:     `AttributeName("cluster").AttributeName("secrets")`, says: []string{"talosctl gen secrets"},
		},
	}

	for what, test := range tests {
		for _, name := range lookers {
			t.Run(name+" "+what, func(t *testing.T) {
				t.Parallel()

				_, diagnostics := look(t, name, test.config)
				expectMistake(t, diagnostics, test.At, test.says, false)
			})
		}
	}

	_, diagnostics := look(t, "talosop_cluster_health", configuration{
		"cluster": with(writtenHandle("10.0.0.1"), "http://10.0.0.1", "endpoint"),
	})
	expectMistake(t, diagnostics, `AttributeName("cluster").AttributeName("endpoint")`, []string{"https"}, false)

	for _, window := range []string{"-1h", "90d", "50000h"} {
		_, diagnostics = look(t, "talosop_cluster_health",
			configuration{"cluster": writtenHandle("10.0.0.1"), "expires_within": window})
		expectMistake(t, diagnostics, `AttributeName("expires_within")`, []string{window, "h"}, false)
	}
}

// The guide explains the conditions that there are, in their order.
func TestClusterHealth_conditionsAreInTheGuide(t *testing.T) {
	t.Parallel()

	guide, err := os.ReadFile("../../templates/guides/observing.md.tmpl")
	must(t, err)

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
