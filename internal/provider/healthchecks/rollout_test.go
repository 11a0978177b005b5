package healthchecks_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// waitsFor is the line of a plan whose machines wait for a check.
const waitsFor = "wait for the health check storage before a machine goes out of service, and once it is back"

// A failing check holds the machines of a rollout and is named. A create runs no check, and the plan says what it
// waits for. The next apply continues once it passes.
func TestHealthChecks_holdARollout(t *testing.T) {
	t.Parallel()

	var healthy atomic.Bool

	health := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !healthy.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(health.Close)

	s := sitetest.New(t, 1, 0)
	machine := s.ControlPlane[0]
	config := tftest.With(tftest.BaseControlPlane(),
		tftest.Config{machine.Name(): tftest.Config{"address": machine.Address().String()}},
		"machines")
	config["name"], config["endpoint"], config["kubernetes_version"] = "test", s.URL, "v1.36.2"
	config["health_checks"] = tftest.Config{"storage": tftest.Config{"timeout": "300ms",
		"http": tftest.Config{"url": health.URL}}}

	d := tftest.Drive(t, "talosop_control_plane", nil)
	d.Apply(t, config).Must(t)
	d.ExpectEmpty(t, "after the create", config)

	boots := machine.Boots()
	config["config_patches"] = []any{"machine: { env: { CHANGED: \"yes\" } }"}

	lines := tftest.TextsOf(t, tftest.AttributeOf(t, d.Plan(t, config).Must(t).Value, "operations"))
	if len(lines) < 2 || lines[0] != waitsFor {
		t.Errorf("planned: %q", lines)
	}

	done := d.Apply(t, config)
	if text := tftest.Show(done.Diagnostics); !done.Failed() || !strings.Contains(text,
		`health check "storage" did not pass within 300ms: the response is 503 Service Unavailable`) {
		t.Errorf("said %s", text)
	}

	if got := machine.Boots() - boots; got != 0 {
		t.Errorf("it was rebooted %d times", got)
	}

	healthy.Store(true)

	if again := tftest.TextsOf(t, tftest.AttributeOf(t, d.Plan(t, config).Must(t).Value,
		"operations")); !slices.Equal(again, lines) {
		t.Errorf("planned again: %q", again)
	}

	d.Apply(t, config).Must(t)
	d.ExpectEmpty(t, "after the change", config)

	if got := machine.Boots() - boots; got != 1 {
		t.Errorf("it was rebooted %d times", got)
	}

	// Changed checks touch no machine.
	config["health_checks"] = tftest.Config{"storage": tftest.Config{"object": tftest.Config{"api_version": "v1",
		"kind": "Node", "condition": "Ready"}}}

	if lines := tftest.TextsOf(t, tftest.AttributeOf(t, d.Plan(t, config).Must(t).Value, "operations")); len(lines) > 0 {
		t.Errorf("another check plans %q", lines)
	}

	d.Apply(t, config).Must(t)
	d.ExpectEmpty(t, "after another check", config)

	config["config_patches"] = []any{"machine: { env: { CHANGED: \"again\" } }"}
	d.Apply(t, config).Must(t)

	if got := machine.Boots() - boots; got != 2 {
		t.Errorf("by the nodes of the cluster it was rebooted %d times", got)
	}
}

// Mistakes in a check are reported before anything is planned.
func TestHealthChecks_mistakesOfAConfiguration(t *testing.T) {
	t.Parallel()

	const at = `AttributeName("health_checks").ElementKeyString("it")`

	object := func(more tftest.Config) tftest.Config {
		more["api_version"], more["kind"] = "v1", "Node"

		return tftest.Config{"object": more}
	}

	for name, test := range map[string]struct {
		check tftest.Config
		at    string
		says  []string
	}{
		"nothing": {tftest.Config{"timeout": "1m"}, at, []string{"[health_check_kind]", "none"}},
		"two kinds": {tftest.Config{"http": tftest.Config{"url": "http://x"}, "job": tftest.Unknown{}}, at,
			[]string{"[health_check_kind]", "http and job"}},
		"an object without an end": {object(tftest.Config{}), at + `.AttributeName("object")`,
			[]string{"[health_check_condition]", "none"}},
		"a JSONPath without a value": {object(tftest.Config{"jsonpath": "{.status}"}), at + `.AttributeName("object")`,
			[]string{"[health_check_jsonpath_value]"}},
		"a name beside labels": {object(tftest.Config{"condition": "Ready", "name": "a", "label_selector": "b=c"}),
			at + `.AttributeName("object")`, []string{"[health_check_name_and_selector]"}},
		"CEL": {object(tftest.Config{"cel": "object."}), at + `.AttributeName("object").AttributeName("cel")`,
			[]string{"Syntax error"}},
		"CEL that is no bool": {object(tftest.Config{"cel": "1 + 1"}), at + `.AttributeName("object").AttributeName("cel")`,
			[]string{"instead of bool"}},
		"JSONPath": {object(tftest.Config{"jsonpath": "{.a", "value": ""}),
			at + `.AttributeName("object").AttributeName("jsonpath")`, []string{"unclosed action"}},
		"a job": {tftest.Config{"job": "kind: Pod"}, at + `.AttributeName("job")`, []string{"expected a Job of batch/v1"}},
		"a timeout": {tftest.Config{"timeout": "soon", "http": tftest.Config{"url": "http://x"}},
			at + `.AttributeName("timeout")`, []string{`"soon"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			for resource, config := range map[string]tftest.Config{
				"talosop_control_plane": tftest.BaseControlPlane(), "talosop_worker": tftest.BaseWorker(),
				"talosop_cluster": tftest.BaseCluster(),
			} {
				config["health_checks"] = tftest.Config{"it": test.check}
				tftest.ExpectMistake(t, tftest.Validate(t, resource, config), test.at, test.says, false)
			}
		})
	}
}
