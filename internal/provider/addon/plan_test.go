package addon_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/helm/chart"
	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// An apply runs Helm only when an input of the release changed.
func TestAddon_changesThatUpgrade(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		Path  []string
		Value any
		// upgrades reports whether Helm runs; asks whether the plan cannot know.
		upgrades, asks bool
	}{
		"values": {Path: []string{"values"}, Value: []any{"replicas: 3\nimage: {tag: v1}\n"}, upgrades: true},
		"set": {Path: []string{"set"}, Value: []any{tftest.Config{"name": "image.tag", "value": "v3"}},
			upgrades: true},
		"secret": {Path: []string{"set_sensitive"},
			Value: []any{tftest.Config{"name": "token", "value": "another-token"}}, upgrades: true},
		"written only": {Path: []string{"values_wo_version"}, Value: "2", asks: true},
		"patches":      {Path: []string{"patches"}, Value: nil, upgrades: true},
		"DNS":          {Path: []string{"enable_dns"}, Value: true, upgrades: true},
		"notes":        {Path: []string{"sub_notes"}, Value: false, upgrades: true},
		"repository":   {Path: []string{"repository"}, Value: "https://mirror.example.org", asks: true},
		"version":      {Path: []string{"version"}, Value: "3.13", asks: true},
		"credentials":  {Path: []string{"registry", "username"}, Value: "somebody"},
		"wait":         {Path: []string{"wait_for_jobs"}, Value: false},
		"wait_timeout": {Path: []string{"wait_timeout"}, Value: "9m"},
		"history":      {Path: []string{"max_history"}, Value: 3},
		"handle":       {Path: []string{"cluster", "talos_version"}, Value: "v1.13.1"},
		"address":      {Path: []string{"cluster", "endpoint"}, Value: "https://10.0.0.20:6443"},
		"care":         {Path: []string{"on_unreachable"}, Value: "error"},
		"drift":        {Path: []string{"drift_detection"}, Value: "release"},
		"timeouts":     {Path: []string{"timeouts", "create"}, Value: "2h"},
		"order of meaning": {Path: []string{"set"},
			Value: []any{tftest.Config{"name": "image.tag", "value": "v2", "type": "literal"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := newAddonSite(t)
			s.Apply(t, fullAddon()).Must(t)

			applies := len(s.cluster.applies)
			changed := tftest.With(fullAddon(), test.Value, test.Path...)

			planned := s.Plan(t, changed).Must(t)
			if got := tftest.Text(t, planned.Value, "revision") == "unknown"; got != (test.upgrades || test.asks) {
				t.Errorf("the plan has revision %s", tftest.Text(t, planned.Value, "revision"))
			}

			s.Apply(t, changed).Must(t)

			if revision, want := tftest.Text(t, s.State, "revision"),
				map[bool]string{true: "2", false: "1"}[test.upgrades]; revision != want {
				t.Errorf("the revision is %s, want %s", revision, want)
			}

			if ran := len(s.cluster.applies) > applies; ran != (test.upgrades || test.asks) {
				t.Errorf("the engine ran: %v", ran)
			}

			s.ExpectEmpty(t, "after the change", changed)
		})
	}
}

// A plan says why it upgrades: values are called values, and secret ones are not shown.
func TestAddon_planSaysWhatChanged(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		path  []string
		value any
		says  string
	}{
		"values": {path: []string{"values"}, value: []any{"replicas: 7\nimage: {tag: v1}\n"},
			says: "because values (replicas: 2 -> 7) changed"},
		"many values": {path: []string{"values"},
			value: []any{"{replicas: 2, image: {tag: v1}, a: 1, b: 1, c: 1, d: 1, e: 1, f: 1}"},
			says:  "because values (a added; b added; c added; d added; e added; … and 1 more) changed"},
		"set": {path: []string{"set"}, value: []any{tftest.Config{"name": "image.tag", "value": "v3"}},
			says: `because values (image.tag: "v2" -> "v3") changed`},
		"secret": {path: []string{"set_sensitive"},
			value: []any{tftest.Config{"name": "token", "value": "another-token"}},
			says:  "because values (token: (sensitive) -> (sensitive)) changed"},
		"written only": {path: []string{"values_wo_version"}, value: "2", says: "values_wo_version changed"},
		"patches":      {path: []string{"patches"}, value: nil, says: "patches changed"},
		"options":      {path: []string{"enable_dns"}, value: true, says: "options changed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := newAddonSite(t)
			s.Apply(t, fullAddon()).Must(t)

			planned := s.Plan(t, tftest.With(fullAddon(), test.value, test.path...)).Must(t)
			planned.Tells(t, "kube-system/metrics-server", test.says)

			if strings.Contains(tftest.Show(planned.Diagnostics), "another-token") {
				t.Error("the plan shows a secret")
			}
		})
	}
}

// The spelling of values makes no difference.
func TestAddon_respelledValues(t *testing.T) {
	t.Parallel()

	s := newAddonSite(t)
	s.Apply(t, fullAddon()).Must(t)

	for _, spelling := range []string{
		"# a comment\nimage:\n  tag: \"v1\"\nreplicas: 2\n", `{"image": {"tag": "v1"}, "replicas": 2}`, "replicas: 2\n---\n",
	} {
		config := tftest.With(fullAddon(), []any{spelling}, "values")
		if strings.Contains(spelling, "---") {
			config = tftest.With(fullAddon(), []any{"replicas: 2\n", "image: {tag: v1}\n"}, "values")
		}

		s.ExpectEmpty(t, "with other spelling", config)
	}
}

// Integers beyond 2^53 are compared as written. Templates get those of set exactly, and those of values as the
// nearest float64. A change of the latter is planned and makes no revision. Helm's record rounds both.
func TestAddon_integersBeyondFloat64(t *testing.T) {
	t.Parallel()

	for name, base := range map[string]tftest.Config{
		"write-only values": fullAddon(),
		"known values":      tftest.Without(tftest.Without(fullAddon(), "values_wo"), "values_wo_version"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			const odd, even = "9007199254740993", "9007199254740992"

			given := func(document, setting string) tftest.Config {
				config := tftest.With(maps.Clone(base), []any{"number: " + document + "\n"}, "values")

				return tftest.With(config, []any{tftest.Config{"name": "n", "value": setting}}, "set")
			}

			s := newAddonSite(t)
			s.Apply(t, given(odd, odd)).Must(t)
			s.cluster.change(func() {
				encoded, err := json.Marshal(s.cluster.releases[metricsServer][0].Values)
				if err != nil {
					t.Fatal(err)
				}

				record := map[string]any{}
				if err := json.Unmarshal(encoded, &record); err != nil {
					t.Fatal(err)
				}

				s.cluster.releases[metricsServer][0].Values = record
			})

			if read := s.Refresh(t).Must(t); len(read.Diagnostics) > 0 {
				t.Errorf("the refresh says %s", tftest.Show(read.Diagnostics))
			}

			s.ExpectEmpty(t, "after a refresh", given(odd, odd))

			planned := s.Plan(t, given(even, odd)).Must(t)
			if planned.Value.Equal(s.State) || tftest.Text(t, planned.Value, "revision") != "1" {
				t.Errorf("another document plans revision %s", tftest.Text(t, planned.Value, "revision"))
			}

			s.Apply(t, given(even, odd)).Must(t)
			s.ExpectEmpty(t, "with another document", given(even, odd))

			if revision := tftest.Text(t, s.Plan(t, given(even, even)).Must(t).Value, "revision"); revision != "unknown" {
				t.Errorf("another setting plans revision %s", revision)
			}

			s.Apply(t, given(even, even)).Must(t)
			s.ExpectEmpty(t, "with another setting", given(even, even))

			if revision := tftest.Text(t, s.State, "revision"); revision != "2" {
				t.Errorf("the revision is %s", revision)
			}
		})
	}
}

// A plan lists changes by object, and hides secrets.
func TestAddon_previewHidesSecrets(t *testing.T) {
	t.Parallel()

	s := newAddonSite(t)
	s.Plan(t, fullAddon()).Tells(t, "kube-system/metrics-server", "1 object added",
		"ConfigMap kube-system/metrics-server")
	s.Apply(t, fullAddon()).Must(t)

	planned := s.Plan(t, tftest.With(tftest.With(fullAddon(), []any{"replicas: 7\n"}, "values"),
		[]any{"password: another-password\n"},
		"values_wo"))
	planned.Tells(t, "kube-system/metrics-server", "1 object changed", "data.values", "replicas")

	for _, secret := range []string{"a-secret-token", "only-in-the-cluster", "another-password", "correct horse",
		"battery staple"} {
		if strings.Contains(tftest.Show(planned.Diagnostics), secret) {
			t.Errorf("the plan shows %s", secret)
		}
	}

	if state := s.State.String(); strings.Contains(state, "only-in-the-cluster") ||
		strings.Contains(state, "correct horse") {
		t.Error("state has what is write-only")
	}
}

// New content under the same version, and a newer version in a range, are detected. A problem with the chart alone
// does not affect a release without changes.
func TestAddon_chartChangesAtItsSource(t *testing.T) {
	t.Parallel()

	s := newAddonSite(t)
	config := tftest.With(baseAddon(), "~3.13", "version")
	s.Apply(t, config).Must(t)
	s.ExpectEmpty(t, "after the create", config)

	if s.Charts.fetched > 3 {
		t.Errorf("the chart was fetched %d times", s.Charts.fetched)
	}

	for _, trouble := range []error{chart.ErrUnreachable, chart.ErrCredentials, chart.ErrNoVersion} {
		s.Charts.change(func() { s.Charts.Trouble = fmt.Errorf("%w: so it is", trouble) })

		planned := s.Plan(t, config).Must(t)
		planned.Tells(t, "[addon_chart_not_compared]", "kube-system/metrics-server", "so it is")

		if !planned.Value.Equal(s.State) {
			t.Errorf("%v plans something", trouble)
		}
	}

	s.Charts.change(func() { s.Charts.Trouble, s.Charts.pin.Digest = nil, "sha256:0002" })
	planned := s.Plan(t, config).Must(t)
	planned.Tells(t, "sha256:0001", "sha256:0002", "[addon_chart_new_content]")

	if got := tftest.Text(t, planned.Value, "chart_digest"); got != "unknown" {
		t.Errorf("chart_digest is planned as %s", got)
	}

	s.Apply(t, config).Must(t)
	s.ExpectEmpty(t, "after the new content", config)

	s.Charts.change(func() { s.Charts.pin = chart.Pin{Name: "metrics-server", Version: "3.13.1", Digest: "sha256:0003"} })
	s.Plan(t, config).Tells(t, "[addon_chart_new_version]", "version 3.13.1")
	s.Apply(t, config).Must(t)

	if got := tftest.Text(t, s.State, "chart_version") + " " + tftest.Text(t, s.State,
		"chart_digest"); got != "3.13.1 sha256:0003" {
		t.Errorf("installed is %s", got)
	}
}

// What cannot succeed is an error of the plan, at its attribute; what may pass is a warning.
func TestAddon_errorsAndWarningsOfPlans(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		chart, refusing error
		At              string
		warning         bool
	}{
		"version":      {chart: chart.ErrNoVersion, At: "version"},
		"chart":        {chart: chart.ErrNoChart, At: "chart"},
		"credentials":  {chart: chart.ErrCredentials, At: "registry"},
		"damaged":      {chart: chart.ErrDamaged, At: "chart"},
		"no answer":    {chart: chart.ErrUnreachable, warning: true},
		"values":       {refusing: release.ErrValues, At: "values"},
		"template":     {refusing: release.ErrTemplate, At: "values"},
		"type":         {refusing: release.ErrType, At: "values"},
		"file":         {refusing: release.ErrChart, At: "chart"},
		"kubernetes":   {refusing: release.ErrKubernetes, At: "chart"},
		"patch":        {refusing: release.ErrPatch, At: "patches"},
		"missing":      {refusing: fmt.Errorf("%w (a.example/v1): %w", release.ErrMissing, release.ErrTemplate), warning: true},
		"owned":        {refusing: release.ErrOwned, warning: true},
		"what else is": {refusing: errors.New("odd"), warning: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := newAddonSite(t)
			if test.chart != nil {
				s.Charts.Trouble = fmt.Errorf("%w: so it is", test.chart)
			}

			if test.refusing != nil {
				s.cluster.refusing = fmt.Errorf("%w: so it is, a-secret-token", test.refusing)
			}

			planned := s.Plan(t, fullAddon())
			planned.Tells(t, "so it is")

			if test.refusing != nil && !test.warning && strings.Contains(tftest.Show(planned.Diagnostics),
				test.refusing.Error()) {
				t.Errorf("it says the same twice: %s", tftest.Show(planned.Diagnostics))
			}

			if planned.Failed() == test.warning || len(planned.Diagnostics) != 1 {
				t.Errorf("it says %s", tftest.Show(planned.Diagnostics))
			}

			if test.At != "" && !strings.Contains(planned.Diagnostics[0].Attribute.String(), `"`+test.At+`"`) {
				t.Errorf("it is about %s", planned.Diagnostics[0].Attribute)
			}

			if strings.Contains(tftest.Show(planned.Diagnostics), "a-secret-token") {
				t.Error("it shows a secret")
			}
		})
	}
}

// The error for a server without TLS says what to write, and its risk.
func TestAddon_serverWithoutTLS(t *testing.T) {
	t.Parallel()

	registry := tftest.Without(baseAddon(), "repository")
	registry["chart"] = "oci://registry.example.org/charts/metrics-server"

	for name, test := range map[string]struct {
		config tftest.Config
		says   string
	}{
		"registry": {registry, "set `registry.plain_http = true`: an attacker"},
		"other registry": {tftest.With(maps.Clone(registry), true, "registry", "plain_http"),
			"`registry.pass_credentials = true`"},
		"repository": {baseAddon(), "write http:// instead of https://"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := newAddonSite(t)
			s.Charts.Trouble = errors.Join(chart.ErrWithoutTLS, chart.ErrCertificate, chart.ErrUnreachable)

			for verb, done := range map[string]tftest.Outcome{
				"plan": s.Plan(t, test.config), "apply": s.Another(t).Apply(t, test.config),
			} {
				done.Tells(t, test.says)

				if diagnostics := tftest.Show(done.Diagnostics); strings.Contains(diagnostics, "registry.ca") ||
					name == "repository" && strings.Contains(diagnostics, "plain_http") {
					t.Errorf("%s: it says %s", verb, diagnostics)
				}
			}
		})
	}
}

// Every value may be unknown in a plan: it causes no error, and the forecast of the plan is correct.
func TestAddon_unknownValues(t *testing.T) {
	t.Parallel()

	created, settled := newAddonSite(t), newAddonSite(t)
	settled.Apply(t, fullAddon()).Must(t)

	full := tftest.ValueOf(t, tftest.TypeOf(t, resourceType), fullAddon())

	for kind, s := range map[string]*addonSite{"create": created, "update": settled} {
		final := s.PlanValue(t, full).Must(t).Value

		tried := tftest.EveryUnknown(t, full, func(at *tftypes.AttributePath, v tftypes.Value) {
			early := s.PlanValue(t, v)
			if early.Failed() {
				t.Errorf("the plan of %s with %s unknown fails: %s", kind, at, tftest.Show(early.Diagnostics))

				return
			}

			if !tftest.IsWriteOnly(at) {
				tftest.StillUnknown(t, kind, early.Value, at)
			}

			tftest.KeepsItsWord(t, kind, at, early.Value, final)
		})

		if tried < 60 {
			t.Errorf("only %d values were tried", tried)
		}
	}
}

// Another Talos of the control plane is no change of an addon.
func TestPlan_keepsAHandleOfAnotherTalos(t *testing.T) {
	t.Parallel()

	s := newAddonSite(t)
	s.Apply(t, tftest.With(fullAddon(), "v1.13.0", "cluster", "talos_version")).Must(t)
	s.ExpectEmpty(t, "after an upgrade of Talos", tftest.With(fullAddon(), "v1.13.1", "cluster", "talos_version"))
}
