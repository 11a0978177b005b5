package provider

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// What cannot succeed is found by the plan.
func (r *realAddons) testFoundByThePlan(t *testing.T) {
	base := func(sample kubetest.Sample) configuration { return r.chart(t, "found-by-plan", sample, "1.0.0") }

	for name, test := range map[string]struct {
		config configuration
		says   []string
	}{
		"credentials": {with(base(kubetest.Simple), "wrong-password", "registry", "password_wo"),
			[]string{"credentials", `"registry"`}},
		"version":    {with(base(kubetest.Simple), "9.9.9", "version"), []string{"9.9.9", "1.1.0", `"version"`}},
		"chart":      {with(base(kubetest.Simple), "complex", "chart"), []string{"complex", `"chart"`}},
		"template":   {base(kubetest.Broken), []string{"a value for name is needed", `"chart"`}},
		"kubernetes": {base(kubetest.NeedsKubernetes), []string{"Kubernetes", `"chart"`}},
		"schema": {with(base(kubetest.WithSchema), []any{"replicas: none\n"}, "values"),
			[]string{"replicas", `"values"`}},
		"type": {with(base(kubetest.Simple), []any{"replicas: two\n"}, "values"),
			[]string{"Deployment found-by-plan/simple: spec.replicas is of the type string", `"values"`}},
		"patch": {with(base(kubetest.Simple),
			[]any{configuration{"patch": "- {op: remove, path: /nothing}", "target": configuration{"kind": "Service"}}},
			"patches"),
			[]string{"/nothing", `"patches"`}},
	} {
		planned := r.drive(t).plan(t, test.config)
		if !planned.failed() {
			t.Errorf("%s: the plan is fine", name)
		}

		planned.tells(t, test.says...)

		if strings.Contains(show(planned.diagnostics), "wrong-password") {
			t.Errorf("%s: the password is shown", name)
		}
	}

	// A cluster that does not exist yet is no reason not to say so.
	unborn := with(base(kubetest.NeedsKubernetes), unknownValue{}, "cluster", "phase")
	if planned := r.drive(t).plan(t, unborn); !planned.failed() {
		t.Error("a chart for another Kubernetes is fine for a cluster that is still to be made")
	}

	r.drive(t).plan(t, with(base(kubetest.Simple), unknownValue{}, "cluster", "phase")).must(t).tells(t, "4 objects added",
		"made or changed first")

	// A server that nobody can reach is a warning.
	r.drive(t).plan(t, with(base(kubetest.Simple), "https://127.0.0.1:1", "repository")).must(t).tells(t,
		"could not be looked at")
}

// failingFor is what pods that fail are waited for: on a busy machine it takes a while until they are made and have
// failed.
const failingFor = "8s"

// A pod and a hook that fail are named with what they say; what was begun goes on, or is undone.
func (r *realAddons) testFailures(t *testing.T) {
	failing := fmt.Sprintf("podAnnotations: {%s: \"true\"}\n", kubetest.MissingImageAnnotation)
	config := with(with(r.chart(t, "failures", kubetest.Simple, "1.0.0"), []any{failing}, "values"), failingFor, "wait_timeout")

	d := r.drive(t)
	d.apply(t, with(config, "warn", "on_incomplete")).must(t).tells(t, "Incomplete addon", "Deployment failures/simple",
		"ImagePullBackOff", "goes on in place")

	mended := with(r.chart(t, "failures", kubetest.Simple, "1.0.0"), "warn", "on_incomplete")
	d.refresh(t).must(t).tells(t, "revision 1 is failed")
	d.apply(t, mended).must(t)
	d.expectEmpty(t, "after the recovery", mended)

	broken := with(with(with(r.chart(t, "failures", kubetest.Simple, "1.0.0"), []any{failing}, "values"), failingFor,
		"wait_timeout"), true, "atomic")
	failed := d.apply(t, broken)
	failed.tells(t, "Unable to upgrade addon", "ImagePullBackOff", "rolled back")

	if !failed.failed() {
		t.Error("an upgrade that failed is none")
	}

	d.refresh(t).must(t)
	d.expectEmpty(t, "after the rollback", mended)
	d.apply(t, nil).must(t)

	hook := with(r.chart(t, "failures", kubetest.WithHooks, "1.0.0"),
		[]any{fmt.Sprintf("pre: {%s: \"exit code 3: the database is not there\"}\n", kubetest.FailAnnotation)}, "values")
	d = r.drive(t)
	failed = d.apply(t, with(hook, "error", "on_incomplete"))
	failed.tells(t, "Unable to install addon", "Job failures/hooks-pre", "the database is not there", "tainted")

	if !failed.failed() || d.state.IsNull() {
		t.Error("an install whose hook failed is not stored as failed")
	}

	d.apply(t, nil).must(t)
}

// A cluster that does not answer keeps its addons, and lets them be forgotten.
func (r *realAddons) testSilence(t *testing.T) {
	proxy := r.Proxy(t)
	config := without(r.chart(t, "silence", kubetest.Simple, "1.0.0"), "cluster")
	config["kubeconfig"] = configuration{"path": proxy.Kubeconfig()}
	config["timeouts"] = configuration{"read": "10s"}

	d := r.drive(t)
	d.apply(t, config).must(t)
	d.expectEmpty(t, "after the create", config)

	proxy.Fail(kubetest.Always(nil, kubetest.Cut))
	d.refresh(t).must(t).tells(t, "could not be looked at")

	if planned := d.plan(t, config).must(t); !planned.Value.Equal(d.state) {
		t.Error("silence changes the plan")
	}

	if failed := d.apply(t, nil); !failed.failed() {
		t.Error("a destroy without an answer is fine")
	}

	config = with(config, "forget", "on_unreachable")
	d.apply(t, config).must(t)
	d.apply(t, nil).must(t).tells(t, "was forgotten")

	if _, err := r.API().AppsV1().Deployments("silence").Get(t.Context(), "simple", metav1.GetOptions{}); err != nil {
		t.Errorf("what was forgotten is gone: %v", err)
	}
}
