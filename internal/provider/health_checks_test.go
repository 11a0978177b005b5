package provider

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// waitsFor is the line of a plan whose machines wait for a check.
const waitsFor = "wait for the health check storage before a machine goes out of service, and once it is back"

// A check that does not pass holds the machines of a rollout and is named; a create asks nothing, and the plan says what
// is waited for. The next apply goes on once it passes.
func TestHealthChecks_holdARollout(t *testing.T) {
	t.Parallel()

	var healthy atomic.Bool

	health := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !healthy.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(health.Close)

	s := newSite(t, 1, 0)
	machine := s.controlPlane[0]
	config := with(baseControlPlane(), configuration{machine.Name(): configuration{"address": machine.Address().String()}},
		"machines")
	config["name"], config["endpoint"], config["kubernetes_version"] = "test", s.endpoint, "v1.36.2"
	config["health_checks"] = configuration{"storage": configuration{"timeout": "300ms",
		"http": configuration{"url": health.URL}}}

	d := drive(t, "talosop_control_plane", nil)
	d.apply(t, config).must(t)
	d.expectEmpty(t, "after the create", config)

	boots := machine.Boots()
	config["config_patches"] = []any{"machine: { env: { CHANGED: \"yes\" } }"}

	lines := textsOf(t, attributeOf(t, d.plan(t, config).must(t).Value, "operations"))
	if len(lines) < 2 || lines[0] != waitsFor {
		t.Errorf("planned: %q", lines)
	}

	said := d.apply(t, config)
	if text := show(said.diagnostics); !said.failed() || !strings.Contains(text,
		`health check "storage" did not pass within 300ms: the answer is 503 Service Unavailable`) {
		t.Errorf("said %s", text)
	}

	if got := machine.Boots() - boots; got != 0 {
		t.Errorf("it was rebooted %d times", got)
	}

	healthy.Store(true)

	if again := textsOf(t, attributeOf(t, d.plan(t, config).must(t).Value, "operations")); !slices.Equal(again, lines) {
		t.Errorf("planned again: %q", again)
	}

	d.apply(t, config).must(t)
	d.expectEmpty(t, "after the change", config)

	if got := machine.Boots() - boots; got != 1 {
		t.Errorf("it was rebooted %d times", got)
	}

	// Other checks touch no machine.
	config["health_checks"] = configuration{"storage": configuration{"object": configuration{"api_version": "v1",
		"kind": "Node", "condition": "Ready"}}}

	if lines := textsOf(t, attributeOf(t, d.plan(t, config).must(t).Value, "operations")); len(lines) > 0 {
		t.Errorf("another check plans %q", lines)
	}

	d.apply(t, config).must(t)
	d.expectEmpty(t, "after another check", config)

	config["config_patches"] = []any{"machine: { env: { CHANGED: \"again\" } }"}
	d.apply(t, config).must(t)

	if got := machine.Boots() - boots; got != 2 {
		t.Errorf("by the nodes of the cluster it was rebooted %d times", got)
	}
}

// What a check says has to be of use, which is found out before anything is planned.
func TestHealthChecks_mistakesOfAConfiguration(t *testing.T) {
	t.Parallel()

	const at = `AttributeName("health_checks").ElementKeyString("it")`

	object := func(more configuration) configuration {
		more["api_version"], more["kind"] = "v1", "Node"

		return configuration{"object": more}
	}

	for name, test := range map[string]struct {
		check configuration
		at    string
		says  []string
	}{
		"nothing": {configuration{"timeout": "1m"}, at, []string{"none of them", "one of object, http and job"}},
		"two kinds": {configuration{"http": configuration{"url": "http://x"}, "job": unknownValue{}}, at,
			[]string{"http and job"}},
		"an object without an end": {object(configuration{}), at + `.AttributeName("object")`,
			[]string{"one of condition, cel and jsonpath"}},
		"a JSONPath without a value": {object(configuration{"jsonpath": "{.status}"}), at + `.AttributeName("object")`,
			[]string{"jsonpath and value"}},
		"a name beside labels": {object(configuration{"condition": "Ready", "name": "a", "label_selector": "b=c"}),
			at + `.AttributeName("object")`, []string{"name beside label_selector"}},
		"CEL": {object(configuration{"cel": "object."}), at + `.AttributeName("object").AttributeName("cel")`,
			[]string{"Syntax error"}},
		"CEL that is no bool": {object(configuration{"cel": "1 + 1"}), at + `.AttributeName("object").AttributeName("cel")`,
			[]string{"not a bool"}},
		"JSONPath": {object(configuration{"jsonpath": "{.a", "value": ""}),
			at + `.AttributeName("object").AttributeName("jsonpath")`, []string{"unclosed action"}},
		"a job": {configuration{"job": "kind: Pod"}, at + `.AttributeName("job")`, []string{"not a Job of batch/v1"}},
		"a timeout": {configuration{"timeout": "soon", "http": configuration{"url": "http://x"}},
			at + `.AttributeName("timeout")`, []string{`"soon"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			for resource, config := range map[string]configuration{
				"talosop_control_plane": baseControlPlane(), "talosop_worker": baseWorker(), "talosop_cluster": baseCluster(),
			} {
				config["health_checks"] = configuration{"it": test.check}
				expectMistake(t, validate(t, resource, config), test.at, test.says, false)
			}
		})
	}
}
