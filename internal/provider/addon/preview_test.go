package addon_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/helm/chart"
	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/provider/addon"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// A cluster that cannot be asked is reported with its own cause, before any other.
func TestAddon_planWithoutACluster(t *testing.T) {
	t.Parallel()

	s := newAddonSite(t)
	missing := filepath.Join(t.TempDir(), "kubeconfig")
	file := tftest.With(tftest.Without(baseAddon(), "cluster"), missing, "kubeconfig", "path")

	s.Plan(t, file).Must(t).Tells(t, "[addon_cluster_not_asked]", "kube-system/metrics-server",
		missing, "no such file", "at the time of the apply")

	tftest.Must(t, os.WriteFile(missing, []byte("clusters: 3"), 0o600))
	s.Plan(t, file).Must(t).Tells(t, "[addon_cluster_not_asked]", "Correct `kubeconfig`")

	s.cluster.silent = true

	planned := s.Plan(t, baseAddon()).Must(t)
	planned.Tells(t, "[addon_cluster_not_asked]", "connection refused")

	if diagnostics := tftest.Show(planned.Diagnostics); strings.Contains(diagnostics, "version of Kubernetes") {
		t.Errorf("it says %s", diagnostics)
	}
}

// A cluster that does not exist yet has no version of Kubernetes: the chart is rendered for the one of the
// configuration, and not at all without one. What its schema refuses is an error of any plan.
func TestAddon_planWithoutAVersionOfKubernetes(t *testing.T) {
	t.Parallel()

	const template = `kind: ConfigMap
apiVersion: v1
metadata: {name: {{ semverCompare ">=1.35-0" .Capabilities.KubeVersion.Version | ternary "new" "old" }}}
`

	file := filepath.Join(t.TempDir(), "web-1.0.0.tgz")
	tftest.Must(t, os.WriteFile(file, kubetest.Chart("web", "1.0.0", map[string]string{
		"templates/a.yaml": template, "values.schema.json": `{"properties": {"replicas": {"type": "integer"}}}`,
	}), 0o600))

	s := newAddonSite(t)
	s.machine.Addons.Charts = chart.NewStore(chart.Options{})
	given := func(phase, version any, values ...any) tftest.Config {
		config := tftest.With(tftest.Without(tftest.Without(baseAddon(), "repository"), "version"), file, "chart")
		config = tftest.With(config, phase, "cluster", "phase")

		return tftest.With(tftest.With(config, version, "cluster", "kubernetes_version"), values, "values")
	}

	planned := s.Plan(t, given(tftest.Unknown{}, nil)).Must(t)
	planned.Tells(t, "[addon_rendered_later]", "created or changed first",
		"version of Kubernetes")

	if diagnostics := tftest.Show(planned.Diagnostics); strings.Contains(diagnostics, "added") {
		t.Errorf("it says %s", diagnostics)
	}

	s.Plan(t, given(tftest.Unknown{}, "v1.35.2")).Must(t).Tells(t, "1 object added", "ConfigMap kube-system/new",
		"without the cluster")

	if planned := s.Plan(t, given(tftest.Unknown{}, nil, "replicas: none\n")); !planned.Failed() {
		t.Error("values that the schema refuses are planned")
	}

	s.Apply(t, given("Ready", "v1.35.2")).Must(t)
	s.Plan(t, given(tftest.Unknown{}, "v1.35.2", "replicas: 3\n")).Must(t).Tells(t, "[addon_rendered_later]",
		"created or changed first")

	kept := tftest.With(given(tftest.Unknown{}, "v1.35.2", "replicas: none\n"), true, "reuse_values")
	if planned := s.Plan(t, kept); planned.Failed() {
		t.Errorf("values of the revision before are not counted: %s", tftest.Show(planned.Diagnostics))
	}
}

// Foreign objects are reported as such, with one piece of advice.
func TestAddon_planOfForeignObjects(t *testing.T) {
	t.Parallel()

	s := newAddonSite(t)
	s.cluster.refusing = fmt.Errorf("%w: ConfigMap a/b", release.ErrOwned)

	planned := s.Plan(t, baseAddon()).Must(t)
	planned.Tells(t, "[addon_objects_owned]", "ConfigMap a/b")

	if n := strings.Count(tftest.Show(planned.Diagnostics), "take_ownership"); n != 1 {
		t.Errorf("take_ownership is advised %d times", n)
	}
}

// A plan without access to a Secret reports it, and refuses nothing; a schema that is loaded from elsewhere is
// refused.
func TestAddon_planOfUntrustedCharts(t *testing.T) {
	t.Parallel()

	s := newAddonSite(t)
	s.cluster.refusing = fmt.Errorf("%w: default/web", release.ErrWithheld)
	s.Plan(t, baseAddon()).Must(t).Tells(t, "[addon_reads_secret]", "default/web")

	s.cluster.refusing = fmt.Errorf("%w: values.schema.json of web refers to https://example.com/a.json", release.ErrSchema)

	planned := s.Plan(t, baseAddon())
	if !planned.Failed() {
		t.Error("a schema from elsewhere is not refused")
	}

	planned.Tells(t, "refers to https://example.com/a.json", "skip_schema_validation = true")
}

// The chart of an exact version is known before an upgrade, and no other one is installed.
func TestAddon_installsThePlannedChart(t *testing.T) {
	t.Parallel()

	s := newAddonSite(t)
	s.Apply(t, baseAddon()).Must(t)

	changed := tftest.With(baseAddon(), []any{"replicas: 9\n"}, "values")
	planned := s.Plan(t, changed).Must(t)

	for attribute, want := range map[string]string{"chart_name": "metrics-server", "chart_version": "3.13.0",
		"chart_digest": "unknown"} {
		if got := tftest.Text(t, planned.Value, attribute); got != want {
			t.Errorf("%s is planned as %s", attribute, got)
		}
	}

	applies := len(s.cluster.applies)
	s.Charts.change(func() { s.Charts.pin.Version = "3.13.0+2" })

	if failed := s.Apply(t, changed); !failed.Failed() || len(s.cluster.applies) != applies {
		t.Errorf("another chart was installed: %s", tftest.Show(failed.Diagnostics))
	} else {
		failed.Tells(t, "3.13.0+2", "Plan again")
	}
}

// A failure after the release is as wanted taints nothing.
func TestAddon_failureAfterTheRelease(t *testing.T) {
	t.Parallel()

	s := newAddonSite(t)
	s.cluster.late = fmt.Errorf("2 errors occurred:\n\t* %w\n\t* another", errors.New("a leftover, a-secret-token"))

	for i, config := range []tftest.Config{tftest.Without(fullAddon(), "on_incomplete"),
		tftest.With(tftest.Without(fullAddon(), "on_incomplete"), []any{"replicas: 5\n"}, "values")} {
		done := s.Apply(t, config).Must(t)
		done.Tells(t, "[addon_incomplete_after_change]", "\n  - another")

		if diagnostics := tftest.Show(done.Diagnostics); strings.Contains(diagnostics, "occurred") || strings.Contains(diagnostics, "* a") ||
			strings.Contains(diagnostics, "a-secret-token") {
			t.Errorf("it says %s", diagnostics)
		}

		if revision := tftest.Text(t, s.State, "revision"); revision != fmt.Sprint(i+1) {
			t.Errorf("the revision is %s", revision)
		}

		s.ExpectEmpty(t, "after the failure", config)
	}
}

// The apply reports what was recovered, and notices for the user.
func TestAddon_recoveryIsReported(t *testing.T) {
	t.Parallel()

	s := newAddonSite(t)
	if done := s.Apply(t, fullAddon()).Must(t); strings.Contains(tftest.Show(done.Diagnostics), "step") {
		t.Errorf("it says %s", tftest.Show(done.Diagnostics))
	}

	s.cluster.steps, s.cluster.notices = []string{"recovered revision 2"}, []string{"a-secret-token is left"}

	done := s.Apply(t, tftest.With(fullAddon(), []any{"replicas: 5\n"}, "values")).Must(t)
	done.Tells(t, "[addon_several_steps]", "recovered revision 2", "[addon_deployed_with_notices]", "is left")

	if strings.Contains(tftest.Show(done.Diagnostics), "a-secret-token") {
		t.Error("it shows a secret")
	}
}

// A first installation that was rolled back leaves no resource and no advice about one, and the error says what is
// left of it.
func TestAddon_installationIsRolledBack(t *testing.T) {
	t.Parallel()

	for says, outcome := range map[string]release.Outcome{
		"Nothing is left of the release.": {},
		"Left of the release: Namespace shop, Job shop/a. The next apply installs it again": {
			Left: []string{"Namespace shop", "Job shop/a"}},
		"It is unknown what exists of the release.": {Unseen: true},
	} {
		for _, warn := range []bool{false, true} {
			s := newAddonSite(t)
			s.cluster.failing, s.cluster.undone, s.cluster.outcome = errors.New("not ready"), true, outcome

			config := fullAddon()
			if !warn {
				config = tftest.Without(config, "on_incomplete")
			}

			failed := s.Apply(t, config)
			failed.Tells(t, "It was uninstalled.", says)

			if !failed.Failed() || !s.State.IsNull() || strings.Contains(tftest.Show(failed.Diagnostics), "taint") {
				t.Errorf("it ends with %s", tftest.Show(failed.Diagnostics))
			}
		}
	}
}

// Only secrets are hidden.
func TestAddon_hidesOnlySecrets(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		without []string
		shows   bool
	}{
		"all is known":    {without: []string{"values_wo", "values_wo_version"}, shows: true},
		"with write-only": {},
	} {
		config := fullAddon()
		for _, attribute := range test.without {
			config = tftest.Without(config, attribute)
		}

		s := newAddonSite(t)
		s.Apply(t, config).Must(t)
		s.cluster.change(func() {
			s.cluster.releases[metricsServer][0].Values = map[string]any{"replicas": float64(2000), "host": "by-hand",
				"token": "token-by-hand"}
		})

		diagnostics := tftest.Show(s.Refresh(t).Must(t).Diagnostics)
		if strings.Contains(diagnostics, "replicas: 2 -> 2000") != test.shows || strings.Contains(diagnostics, "token-by-hand") {
			t.Errorf("%s: it says %s", name, diagnostics)
		}
	}

	lines := addon.CauseLines("upgrade: 1 error occurred:\n\t* it is so\n\n")
	if !slices.Equal(lines, []string{"upgrade", "it is so"}) {
		t.Errorf("the causes are %q", lines)
	}
}
