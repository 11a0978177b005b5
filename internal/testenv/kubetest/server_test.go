package kubetest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

func TestHelm_installsFromARepository(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccAddon_onACluster")

	c := Shared(t)
	namespace, helm := c.Namespace(t), Helm(t, c)
	charts := NewRepository(t, ServerOptions{Username: "reader", Password: "secret"})
	charts.Add(t, Simple.Package("1.0.0"), Simple.Package("1.1.0"))

	from := []string{"--repo", charts.URL, "--ca-file", charts.CAFile, "--username", "reader", "-n", namespace, "--wait"}

	_, stderr, err := helm(append([]string{"install", "web", "simple", "--version", "1.0.0", "--password", "wrong"},
		from...)...)
	if err == nil || !strings.Contains(stderr, "401") {
		t.Fatalf("installed with a wrong password: %v\n%s", err, stderr)
	}

	if _, stderr, err := helm(append([]string{"install", "web", "simple", "--version", "1.0.0", "--password", "secret"},
		from...)...); err != nil {
		t.Fatalf("install: %v\n%s", err, stderr)
	}

	if n := charts.Requests("/simple-1.0.0.tgz"); n != 1 {
		t.Errorf("%d requests for the chart: %v", n, charts.Seen(nil))
	}

	if stdout, _, err := helm("list", "-n", namespace); err != nil || !strings.Contains(stdout, "simple-1.0.0") {
		t.Errorf("list: %v\n%s", err, stdout)
	}

	charts.Fail(Always(nil, 503))

	if _, stderr, err := helm("pull", "simple", "--repo", charts.URL, "--ca-file", charts.CAFile); err == nil ||
		!strings.Contains(stderr, "503") {
		t.Errorf("pulled from a server that fails: %v\n%s", err, stderr)
	}
}

func TestHelm_installsFromARegistry(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccAddon_onACluster")

	c := Shared(t)
	namespace, helm := c.Namespace(t), Helm(t, c)
	charts := NewRegistry(t, ServerOptions{Username: "reader", Password: "secret"})

	if digest := charts.Push(t, WithHooks.Package("1.0.0")); !strings.HasPrefix(digest, "sha256:") {
		t.Errorf("digest %q", digest)
	}

	if n := len(charts.Seen(nil)); n != 0 {
		t.Errorf("%d requests before the first client", n)
	}

	if _, stderr, err := helm("install", "web", charts.URL+"/hooks", "--version", "1.0.0", "--ca-file", charts.CAFile,
		"--username", "reader", "--password", "secret", "-n", namespace, "--wait"); err != nil {
		t.Fatalf("install: %v\n%s", err, stderr)
	}

	if charts.Requests("/v2/charts/hooks/blobs/") == 0 {
		t.Errorf("requests %v", charts.Seen(nil))
	}
}

func TestSamples_render(t *testing.T) {
	helm := Helm(t, nil)

	for sample, want := range map[Sample]string{
		Simple: "kind: Deployment", WithHooks: "helm.sh/hook: pre-install,pre-upgrade", WithCRD: "kind: Widget",
		CNI: "kind: DaemonSet", WithSchema: "replicas:",
		WithSubchart: "from the child", Random: "kind: Secret", AllValues: "kind: ConfigMap",
		Broken: "a value for name is needed", NeedsKubernetes: "chart requires kubeVersion",
	} {
		t.Run(string(sample), func(t *testing.T) {
			content, again := sample.Package("1.2.3"), sample.Package("1.2.3")
			if !bytes.Equal(content, again) {
				t.Error("two packages of the same differ")
			}

			path := t.TempDir() + "/chart.tgz"
			must(t, os.WriteFile(path, content, 0o600))

			stdout, stderr, err := helm("template", "web", path)
			if fails := sample == Broken || sample == NeedsKubernetes; fails != (err != nil) ||
				!strings.Contains(stdout+stderr, want) {
				t.Errorf("helm template: %v, want %q\n%s%s", err, want, stdout, stderr)
			}
		})
	}
}

func TestSamples_onACluster(t *testing.T) {
	testenv.BeforeRelease(t, "TestSamples_render", "TestApply_lifeOfRelease")

	c := Shared(t)
	helm := Helm(t, c)

	for sample, test := range map[Sample]struct {
		values string
		fails  string // with that, or not at all
	}{
		WithCRD: {}, WithSubchart: {}, Random: {}, AllValues: {values: "count=1000000"},
		WithSchema: {values: "replicas=0", fails: "minimum"},
		WithHooks:  {values: `pre.kubetest/fail=exit code 3: no such table`, fails: "job web-pre failed"},
	} {
		t.Run(string(sample), func(t *testing.T) {
			namespace, path := c.Namespace(t), t.TempDir()+"/chart.tgz"
			must(t, os.WriteFile(path, sample.Package("1.2.3"), 0o600))

			_, stderr, err := helm("install", "web", path, "-n", namespace, "--wait", "--set", test.values)
			if fails := test.fails != ""; fails != (err != nil) || !strings.Contains(stderr, test.fails) {
				t.Errorf("helm install: %v, want %q\n%s", err, test.fails, stderr)
			}

			if sample == WithHooks {
				pod := podThat(t, c, namespace, func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodFailed })

				log, err := c.API().CoreV1().Pods(namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
				if err != nil || !strings.HasSuffix(string(log), "no such table\n") {
					t.Errorf("log %q: %v", log, err)
				}
			}
		})
	}
}

func object(namespace, name string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": namespace, "name": name}}
}

func TestProxy_countsAndFails(t *testing.T) {
	c := Shared(t)
	namespace, proxy := c.Namespace(t), c.Proxy(t)
	client := proxy.Client(t, api.Options{})

	proxy.Fail(First(1, Call.Changes, 403))

	if _, err := client.CreateObject(t.Context(), object(namespace, "first")); !apierrors.IsForbidden(err) {
		t.Errorf("create: %v, want that it is forbidden", err)
	}

	if _, err := client.CreateObject(t.Context(), object(namespace, "first")); err != nil {
		t.Error(err)
	}

	if changes := proxy.Seen(Call.Changes); len(changes) != 2 || !strings.Contains(changes[1].Path, namespace) {
		t.Errorf("requests %v", changes)
	}
}

func TestProxy_dies(t *testing.T) {
	for name, done := range map[string]bool{"before the request": false, "before its answer": true} {
		t.Run(name, func(t *testing.T) {
			c := Shared(t)
			namespace, proxy := c.Namespace(t), c.Proxy(t)
			client := proxy.Client(t, api.Options{})
			maps := c.API().CoreV1().ConfigMaps(namespace)

			dead := proxy.Die(2, Call.Changes, done)

			if _, err := client.CreateObject(t.Context(), object(namespace, "first")); err != nil {
				t.Error(err)
			}

			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()

			if _, err := client.CreateObject(ctx, object(namespace, "second")); err == nil {
				t.Error("the answer came")
			}

			<-dead

			if _, err := maps.Get(t.Context(), "second", metav1.GetOptions{}); (err == nil) != done {
				t.Errorf("get: %v, want done %v", err, done)
			}

			if err := client.Ready(ctx); err == nil {
				t.Error("a dead process reads")
			}

			proxy.Fail(nil)
			must(t, client.Ready(t.Context()))
		})
	}
}

func TestProxy_hangs(t *testing.T) {
	proxy := Shared(t).Proxy(t)
	proxy.Fail(Always(nil, Hung))

	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()

	if err := proxy.Client(t, api.Options{}).Ready(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ready: %v", err)
	}
}
