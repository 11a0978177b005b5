package client

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/action"
	helmchart "helm.sh/helm/v3/pkg/chart"
	helmrelease "helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

func TestMain(m *testing.M) { kubetest.Run(m) }

// front is a server before that of a cluster, which counts what is asked, and may answer by itself.
type front struct {
	*httptest.Server

	cluster *kubetest.Cluster

	mu       sync.Mutex
	requests []request
	// fault answers a request itself when it returns true.
	fault func(w http.ResponseWriter, r *http.Request) bool
}

// request as it was answered.
type request struct {
	method, path, query string
	status              int
}

func newFront(t *testing.T) *front {
	t.Helper()

	f := &front{cluster: kubetest.Shared(t)}

	upstream, err := rest.TransportFor(f.cluster.Config())
	must(t, err)

	base, err := url.Parse(f.cluster.Config().Host)
	must(t, err)

	proxy := &httputil.ReverseProxy{
		Transport:      upstream,
		FlushInterval:  -1,
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(base) },
		ErrorHandler:   func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
		ModifyResponse: f.note,
	}

	f.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		fault := f.fault
		f.mu.Unlock()

		if fault == nil || !fault(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	f.EnableHTTP2 = true
	f.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	f.StartTLS()
	t.Cleanup(f.Close)

	return f
}

func (f *front) note(response *http.Response) error {
	f.mu.Lock()
	defer f.mu.Unlock()

	f.requests = append(f.requests, request{
		response.Request.Method, response.Request.URL.Path, response.Request.URL.RawQuery, response.StatusCode,
	})

	return nil
}

// fail sets what answers for the cluster, nil for the cluster itself.
func (f *front) fail(fault func(w http.ResponseWriter, r *http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()

	f.fault = fault
}

func (f *front) count(which func(request) bool) int {
	f.mu.Lock()
	defer f.mu.Unlock()

	n := 0

	for _, r := range f.requests {
		if which(r) {
			n++
		}
	}

	return n
}

func (f *front) client(t *testing.T) *kubernetes.Client {
	t.Helper()

	admin := f.cluster.Config()

	client, err := kubernetes.New(api.Options{
		Endpoint: f.URL, Cert: admin.CertData, Key: admin.KeyData,
		CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw}),
	})
	must(t, err)
	t.Cleanup(client.Close)

	return client
}

// open makes a session that observes often.
func (f *front) open(t *testing.T, ctx context.Context, o Options) *Session { //nolint:revive // t first, as everywhere
	t.Helper()

	if o.Pause == 0 {
		o.Pause = 100 * time.Millisecond
	}

	s, err := Open(ctx, f.client(t), o)
	must(t, err)
	t.Cleanup(s.Close)

	return s
}

func must(t testing.TB, err error) {
	t.Helper()

	if err != nil {
		t.Fatal(err)
	}
}

// soon fails the test when a condition does not come true.
func soon(t testing.TB, condition func(ctx context.Context) error) {
	t.Helper()

	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Minute)
	defer cancel()

	must(t, wait.Until(ctx, 20*time.Millisecond, condition))
}

// templates make a chart.
func templates(manifests ...string) *helmchart.Chart {
	return &helmchart.Chart{
		Metadata:  &helmchart.Metadata{APIVersion: helmchart.APIVersionV2, Name: "test", Version: "1.0.0"},
		Templates: []*helmchart.File{{Name: "templates/all.yaml", Data: []byte(strings.Join(manifests, "\n---\n"))}},
	}
}

// waitLimit is how long Helm may wait on a busy machine: controllers try again what failed ever more seldom.
const waitLimit = 5 * time.Minute

// install is Helm's, with a wait.
func install(s *Session, name string) *action.Install {
	i := action.NewInstall(s.Configuration())
	i.ReleaseName, i.Namespace, i.Wait, i.Timeout = name, s.o.Namespace, true, waitLimit

	return i
}

func upgrade(s *Session) *action.Upgrade {
	u := action.NewUpgrade(s.Configuration())
	u.Namespace, u.Wait, u.Timeout, u.ResetValues = s.o.Namespace, true, waitLimit, true

	return u
}

// status is that of the last revision, as another session reads it.
func status(t *testing.T, f *front, namespace, name string) helmrelease.Status {
	t.Helper()

	last, err := f.open(t, context.WithoutCancel(t.Context()),
		Options{Namespace: namespace}).Configuration().Releases.Last(name)
	must(t, err)

	return last.Info.Status
}

func configMap(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {a: b}\n"
}

// deployment has one pod with an annotation of the stand-in kubelet.
func deployment(name, annotation string) string {
	return `
apiVersion: apps/v1
kind: Deployment
metadata: {name: ` + name + `}
spec:
  selector: {matchLabels: {app: ` + name + `}}
  template:
    metadata: {labels: {app: ` + name + `}, annotations: {` + annotation + `}}
    spec: {containers: [{name: web, image: "registry.example/web:1"}]}
`
}

// job is a hook, with fields of its spec and an annotation of its pod.
func job(name, hook, spec, annotation string) string {
	return `
apiVersion: batch/v1
kind: Job
metadata: {name: ` + name + `, annotations: {helm.sh/hook: ` + hook + `}}
spec:
  backoffLimit: 0
  ` + spec + `
  template:
    metadata: {annotations: {` + annotation + `}}
    spec: {restartPolicy: Never, containers: [{name: job, image: "registry.example/job:1"}]}
`
}

func TestSession_installUpgradeUninstall(t *testing.T) {
	t.Parallel()

	f := newFront(t)
	namespace := f.cluster.Namespace(t)
	s := f.open(t, t.Context(), Options{Namespace: namespace, Release: "web"})

	must(t, s.Work(func() error {
		_, err := install(s, "web").Run(templates(deployment("web", ""), configMap("old")), nil)

		return err
	}))

	must(t, s.Work(func() error {
		_, err := upgrade(s).Run("web", templates(deployment("web", "a: b"), configMap("new")), nil)

		return err
	}))

	for name, want := range map[string]bool{"old": false, "new": true} {
		_, err := f.cluster.API().CoreV1().ConfigMaps(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if got := err == nil; got != want {
			t.Errorf("ConfigMap %s: there %t, %v", name, got, err)
		}
	}

	u := action.NewUninstall(s.Configuration())
	u.Wait, u.Timeout, u.DeletionPropagation = true, time.Minute, "foreground"

	_, err := u.Run("web")
	must(t, err)

	if _, err := f.cluster.API().AppsV1().Deployments(namespace).Get(t.Context(), "web", metav1.GetOptions{}); err == nil {
		t.Error("the Deployment is there after the uninstall")
	}

	if err := errors.Join(s.RecordError()); err != nil || s.Failure() != nil || len(s.Foreign()) > 0 {
		t.Error(err, s.Failure(), s.Foreign())
	}
}

func TestSession_tellsWarningsOfTheAPI(t *testing.T) {
	t.Parallel()

	f := newFront(t)

	var reported []string

	s := f.open(t, t.Context(), Options{
		Namespace: f.cluster.Namespace(t), Progress: func(text string) { reported = append(reported, text) },
		Redact: func(text string) string { return strings.ReplaceAll(text, "replicaz", "(secret)") },
	})

	_, err := install(s, "web").Run(templates(strings.Replace(deployment("web", ""), "spec:", "spec:\n  replicaz: 3", 1)),
		nil)
	must(t, err)

	if want := `the Kubernetes API warns: unknown field "spec.(secret)"`; strings.Count(strings.Join(reported, "\n"),
		want) != 1 {
		t.Errorf("got %q", reported)
	}
}
