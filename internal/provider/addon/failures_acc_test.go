package addon_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// The plan finds what cannot succeed.
func (r *realAddons) testFoundByThePlan(t *testing.T) {
	base := func(sample kubetest.Sample) tftest.Config { return r.chart(t, "found-by-plan", sample, "1.0.0") }

	for name, test := range map[string]struct {
		config tftest.Config
		says   []string
	}{
		"credentials": {tftest.With(base(kubetest.Simple), "wrong-password", "registry", "password_wo"),
			[]string{"credentials", `"registry"`}},
		"version":    {tftest.With(base(kubetest.Simple), "9.9.9", "version"), []string{"9.9.9", "1.1.0", `"version"`}},
		"chart":      {tftest.With(base(kubetest.Simple), "complex", "chart"), []string{"complex", `"chart"`}},
		"template":   {base(kubetest.Broken), []string{"a value for name is needed", `"chart"`}},
		"kubernetes": {base(kubetest.NeedsKubernetes), []string{"Kubernetes", `"chart"`}},
		"schema": {tftest.With(base(kubetest.WithSchema), []any{"replicas: none\n"}, "values"),
			[]string{"replicas", `"values"`}},
		"type": {tftest.With(base(kubetest.Simple), []any{"replicas: two\n"}, "values"),
			[]string{"Deployment found-by-plan/simple: spec.replicas has type string", `"values"`}},
		"patch": {tftest.With(base(kubetest.Simple),
			[]any{tftest.Config{"patch": "- {op: remove, path: /nothing}", "target": tftest.Config{"kind": "Service"}}},
			"patches"),
			[]string{"/nothing", `"patches"`}},
	} {
		planned := r.drive(t).Plan(t, test.config)
		if !planned.Failed() {
			t.Errorf("%s: the plan is fine", name)
		}

		planned.Tells(t, test.says...)

		if strings.Contains(tftest.Show(planned.Diagnostics), "wrong-password") {
			t.Errorf("%s: the password is shown", name)
		}
	}

	// A cluster that does not exist yet is no reason to omit the error.
	unknownPhase := tftest.With(base(kubetest.NeedsKubernetes), tftest.Unknown{}, "cluster", "phase")
	if planned := r.drive(t).Plan(t, unknownPhase); !planned.Failed() {
		t.Error("a chart for another Kubernetes is fine for a cluster that is still to be made")
	}

	r.drive(t).Plan(t, tftest.With(base(kubetest.Simple), tftest.Unknown{}, "cluster", "phase")).Must(t).Tells(t,
		"4 objects added",
		"created or changed first")

	// An unreachable server is a warning.
	r.drive(t).Plan(t, tftest.With(base(kubetest.Simple), "https://127.0.0.1:1", "repository")).Must(t).Tells(t,
		"[addon_chart_not_checked]")
}

// failingFor is the timeout for failing pods: on a busy computer it takes time until they exist and have failed.
const failingFor = "8s"

// A pod and a hook that fail are named with their messages; the next apply continues, or the change is undone.
func (r *realAddons) testFailures(t *testing.T) {
	failing := fmt.Sprintf("podAnnotations: {%s: \"true\"}\n", kubetest.MissingImageAnnotation)
	config := tftest.With(tftest.With(r.chart(t, "failures", kubetest.Simple, "1.0.0"), []any{failing}, "values"),
		failingFor, "wait_timeout")

	d := r.drive(t)
	d.Apply(t, tftest.With(config, "warn", "on_incomplete")).Must(t).Tells(t, "[addon_incomplete]",
		"Deployment failures/simple",
		"ImagePullBackOff")

	repaired := tftest.With(r.chart(t, "failures", kubetest.Simple, "1.0.0"), "warn", "on_incomplete")
	d.Refresh(t).Must(t).Tells(t, "revision 1 is failed")
	d.Apply(t, repaired).Must(t)
	d.ExpectEmpty(t, "after the recovery", repaired)

	broken := tftest.With(tftest.With(tftest.With(r.chart(t, "failures", kubetest.Simple, "1.0.0"), []any{failing},
		"values"), failingFor,
		"wait_timeout"), true, "atomic")
	failed := d.Apply(t, broken)
	failed.Tells(t, "[addon_failed]", "ImagePullBackOff", "rolled back")

	if !failed.Failed() {
		t.Error("an upgrade that failed is none")
	}

	d.Refresh(t).Must(t)
	d.ExpectEmpty(t, "after the rollback", repaired)
	d.Apply(t, nil).Must(t)

	hook := tftest.With(r.chart(t, "failures", kubetest.WithHooks, "1.0.0"),
		[]any{fmt.Sprintf("pre: {%s: \"exit code 3: the database is not there\"}\n", kubetest.FailAnnotation)}, "values")
	d = r.drive(t)
	failed = d.Apply(t, tftest.With(hook, "error", "on_incomplete"))
	failed.Tells(t, "[addon_failed_tainted]", "Job failures/hooks-pre", "the database is not there", "tainted")

	if !failed.Failed() || d.State.IsNull() {
		t.Error("an install whose hook failed is not stored as failed")
	}

	d.Apply(t, nil).Must(t)
}

// A cluster that does not answer keeps its addons, or lets the user forget them.
func (r *realAddons) testSilence(t *testing.T) {
	proxy := r.Proxy(t)
	config := tftest.Without(r.chart(t, "silence", kubetest.Simple, "1.0.0"), "cluster")
	config["kubeconfig"] = tftest.Config{"path": proxy.Kubeconfig()}
	config["timeouts"] = tftest.Config{"read": "10s"}

	d := r.drive(t)
	d.Apply(t, config).Must(t)
	d.ExpectEmpty(t, "after the create", config)

	proxy.Fail(kubetest.Always(nil, kubetest.Cut))
	d.Refresh(t).Must(t).Tells(t, "[addon_not_observed]")

	if planned := d.Plan(t, config).Must(t); !planned.Value.Equal(d.State) {
		t.Error("silence changes the plan")
	}

	if failed := d.Apply(t, nil); !failed.Failed() {
		t.Error("a destroy without an answer is fine")
	}

	config = tftest.With(config, "forget", "on_unreachable")
	d.Apply(t, config).Must(t)
	d.Apply(t, nil).Must(t).Tells(t, "[addon_forgotten]")

	if _, err := r.API().AppsV1().Deployments("silence").Get(t.Context(), "simple", metav1.GetOptions{}); err != nil {
		t.Errorf("what was forgotten is gone: %v", err)
	}
}
