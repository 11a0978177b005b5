package probe_test

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/talosop/terraform-provider-talosop/internal/healthcheck"
	"github.com/talosop/terraform-provider-talosop/internal/healthcheck/probe"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

func TestMain(m *testing.M) { kubetest.Run(m) }

func must(t *testing.T, err error) {
	t.Helper()

	if err != nil {
		t.Fatal(err)
	}
}

// quick gives a check one moment.
const quick = time.Second

// asked is what one check of an object says, and empty where it passes.
func asked(t *testing.T, c probe.Cluster, check healthcheck.Check) string {
	t.Helper()

	check.Name, check.Timeout = "it", max(check.Timeout, quick)

	p := probe.Prober{Checks: []healthcheck.Check{check}, Cluster: c, Interval: 20 * time.Millisecond}
	if err := p.Pass(t.Context(), func(string) {}); err != nil {
		return err.Error()
	}

	return ""
}

// Objects of a real API server are asked by a condition, by CEL and by JSONPath; all of a kind, too.
func TestPass_ofObjects(t *testing.T) {
	t.Parallel()

	cluster := kubetest.Shared(t)
	namespace := cluster.Namespace(t)
	client := cluster.Client(t, api.Options{})

	for name, health := range map[string]string{"one": "HEALTH_OK", "two": "HEALTH_WARN"} {
		_, err := cluster.API().CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"is": name}},
			Data:       map[string]string{"health": health}}, metav1.CreateOptions{})
		must(t, err)
	}

	_, err := cluster.API().AppsV1().Deployments(namespace).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "app"},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.org/app"}}}}}},
		metav1.CreateOptions{})
	must(t, err)

	maps := healthcheck.Object{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace}
	of := func(change func(*healthcheck.Object)) healthcheck.Object {
		object := maps
		change(&object)

		return object
	}

	for _, test := range []struct {
		check healthcheck.Object
		says  string
	}{
		{of(func(o *healthcheck.Object) { o.Name, o.CEL = "one", `object.data.health == "HEALTH_OK"` }), ""},
		{of(func(o *healthcheck.Object) { o.Name, o.CEL = "two", `object.data.health == "HEALTH_OK"` }),
			`ConfigMap ` + namespace + `/two: object.data.health == "HEALTH_OK" is false`},
		{of(func(o *healthcheck.Object) { o.Name, o.CEL = "two", `object.status.x == 1` }), "no such key: status"},
		{of(func(o *healthcheck.Object) { o.Name, o.JSONPath, o.Value = "one", "{.data.health}", "HEALTH_OK" }), ""},
		{of(func(o *healthcheck.Object) { o.Name, o.JSONPath, o.Value = "two", "data.health", "HEALTH_OK" }),
			`data.health is "HEALTH_WARN", expected "HEALTH_OK"`},
		{of(func(o *healthcheck.Object) { o.Selector, o.CEL = "is=one", `object.data.health.startsWith("HEALTH_O")` }), ""},
		{of(func(o *healthcheck.Object) {
			o.Selector, o.CEL = "is in (one,two)", `object.data.health == "HEALTH_OK"`
		}),
			"ConfigMap " + namespace + "/two"},
		{of(func(o *healthcheck.Object) { o.Selector, o.CEL = "is=none", `false` }), ""},
		{of(func(o *healthcheck.Object) { o.Name, o.CEL = "none", `true` }), "ConfigMap " + namespace + "/none does not exist"},
		{of(func(o *healthcheck.Object) { o.Kind, o.CEL = "Nothing", `true` }), "Nothing"},
		{of(func(o *healthcheck.Object) { o.Name, o.Condition = "one", "Ready" }), "condition Ready is missing"},
		{of(func(o *healthcheck.Object) {
			o.APIVersion, o.Kind, o.Name, o.Condition = "apps/v1", "Deployment", "app", "Nothing"
		}), "condition Nothing is missing"},
	} {
		reason := asked(t, client, healthcheck.Check{Object: &test.check})
		if !strings.Contains(reason, test.says) || (reason == "") != (test.says == "") {
			t.Errorf("%+v: %q, want %q", test.check, reason, test.says)
		}
	}

	// It becomes true after a while, as what is rolled out does.
	if reason := asked(t, client, healthcheck.Check{Timeout: time.Minute, Object: &healthcheck.Object{APIVersion: "apps/v1",
		Kind: "Deployment", Namespace: namespace, Name: "app", Condition: "Available"}}); reason != "" {
		t.Error(reason)
	}
}

func jobManifest(t *testing.T, namespace, annotations string) map[string]any {
	t.Helper()

	manifest, err := probe.ParseJob(fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: { name: ask, namespace: %s }
spec:
  backoffLimit: 0
  template:
    metadata: { annotations: { %s } }
    spec: { restartPolicy: Never, containers: [{ name: main, image: example.org/ask }] }
`, namespace, annotations))
	must(t, err)

	return manifest
}

// A job is run for each answer, and nothing is left of it: when it succeeds, when it fails, and when the run is
// interrupted.
func TestPass_ofJobs(t *testing.T) {
	t.Parallel()

	cluster := kubetest.Shared(t)
	namespace := cluster.Namespace(t)
	client := cluster.Client(t, api.Options{})

	job := func(annotations string) healthcheck.Check {
		return healthcheck.Check{Timeout: 20 * time.Second, Job: &healthcheck.Job{Manifest: jobManifest(t, namespace, annotations)}}
	}

	if reason := asked(t, client, job("")); reason != "" {
		t.Error(reason)
	}

	failing := job("kubetest/fail: no quorum")
	failing.Timeout = 10 * time.Second

	if reason := asked(t, client, failing); !strings.Contains(reason, "failed: Job has reached the specified backoff limit") {
		t.Error(reason)
	}

	// A job without pods says why it has none.
	_, err := cluster.API().CoreV1().Namespaces().Patch(t.Context(), namespace, types.MergePatchType,
		[]byte(`{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}}`), metav1.PatchOptions{})
	must(t, err)

	refused := job("")
	refused.Timeout = 4 * time.Second
	must(t, unstructured.SetNestedField(refused.Job.Manifest, true, "spec", "template", "spec", "hostNetwork"))

	if reason := asked(t, client, refused); !strings.Contains(reason, "violates PodSecurity") {
		t.Error(reason)
	}

	bounded, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()

	ctx, cancel := context.WithCancel(bounded)
	hanging := job("kubetest/hang: \"yes\"")
	p := probe.Prober{Checks: []healthcheck.Check{hanging}, Cluster: client}
	ended := make(chan error, 1)

	go func() { ended <- p.Pass(ctx, func(string) {}) }()

	jobs := cluster.API().BatchV1().Jobs(namespace)
	must(t, wait.Until(bounded, 20*time.Millisecond, func(ctx context.Context) error {
		list, err := jobs.List(ctx, metav1.ListOptions{LabelSelector: "talosop.dev/health-check"})
		if err == nil && len(list.Items) == 0 {
			err = errors.New("there is no job")
		}

		return err
	}))
	cancel()

	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}

	must(t, wait.Until(bounded, 50*time.Millisecond, func(ctx context.Context) error {
		list, err := jobs.List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d jobs are left, %+v", len(list.Items), list.Items[0].Status)
		}

		return err
	}))
}

// A URL is asked until it answers what is expected, by whom the authority vouches for.
func TestPass_ofURLs(t *testing.T) {
	t.Parallel()

	var calls atomic.Int32

	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) < 3 || r.Header.Get("Authorization") != "Bearer it" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}

		_, _ = io.WriteString(w, "all is green")
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)

	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	headers := map[string]string{"Authorization": "Bearer it"}

	for _, test := range []struct {
		check healthcheck.HTTP
		says  string
	}{
		{healthcheck.HTTP{CA: ca, Headers: headers, Contains: "green"}, ""},
		{healthcheck.HTTP{CA: ca, Headers: headers, Contains: "blue"}, `the response does not contain "blue"`},
		{healthcheck.HTTP{CA: ca, Headers: headers, Status: 204}, "the response is 200 OK, expected 204"},
		{healthcheck.HTTP{CA: ca}, `health check "it" did not pass within 1s: the response is 503 Service Unavailable`},
		{healthcheck.HTTP{Headers: headers}, "certificate"},
	} {
		test.check.URL = strings.Replace(server.URL, "https://", "https://user:PASSWORD@", 1)

		reason := asked(t, nil, healthcheck.Check{HTTP: &test.check})
		if !strings.Contains(reason, test.says) || (reason == "") != (test.says == "") || strings.Contains(reason, "PASSWORD") {
			t.Errorf("%+v: %q, want %q", test.check, reason, test.says)
		}
	}
}

// Pass runs all checks, reports what it waits for, and names each failed check.
func TestPass_namesEachThatDoesNotPass(t *testing.T) {
	t.Parallel()

	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)

	p := probe.Prober{Interval: 20 * time.Millisecond}
	for _, name := range []string{"first", "second"} {
		p.Checks = append(p.Checks, healthcheck.Check{Name: name, Timeout: quick, HTTP: &healthcheck.HTTP{URL: server.URL}})
	}

	reasons := make(chan string, 1000)

	err := p.Pass(t.Context(), func(reason string) { reasons <- reason })
	if failed := (*probe.FailedError)(nil); !errors.As(err, &failed) || failed.Check != "first" ||
		!strings.Contains(err.Error(), `"second"`) {
		t.Error(err)
	}

	if got := <-reasons; !strings.Contains(got, `" : `) && !strings.Contains(got, `": the response is 404 Not Found`) {
		t.Errorf("got %q", got)
	}
}

func TestCompile_saysWhatIsWrong(t *testing.T) {
	t.Parallel()

	for expression, says := range map[string]string{
		`object.status.phase == "Ready"`: "", `object.status.replicas`: "", `size(object.items) > 0`: "",
		`object.status.`: "Syntax error", `"text"`: "it returns string instead of bool", `other.x`: "undeclared reference to 'other'",
	} {
		_, err := probe.Compile(expression)
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", expression, err, says)
		}
	}
}

func TestParseJob_saysWhatIsWrong(t *testing.T) {
	t.Parallel()

	for manifest, says := range map[string]string{
		"apiVersion: v1\nkind: Pod\n":         "expected a Job of batch/v1, found v1 Pod",
		"apiVersion: batch/v1\nkind: Job\n":   "spec.template.spec.containers is empty",
		"apiVersion: batch/v1\nkind: [Job]\n": "expected a Job",
		"{":                                   "yaml",
	} {
		if _, err := probe.ParseJob(manifest); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", manifest, err, says)
		}
	}
}
