package chart

import (
	"bytes"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	helmregistry "helm.sh/helm/v3/pkg/registry"
	"helm.sh/helm/v3/pkg/repo"
)

const (
	testUser     = "reader"
	testPassword = "pa:ss/w@rd"
)

// simple is a chart with one object.
func simple(name, version string) *helmchart.Chart {
	return &helmchart.Chart{
		Metadata: &helmchart.Metadata{
			APIVersion: helmchart.APIVersionV2, Name: name, Version: version, AppVersion: "v9", KubeVersion: ">=1.30.0-0",
		},
		Raw: []*helmchart.File{{Name: chartutil.ValuesfileName, Data: []byte("replicas: 1\n")}},
		Templates: []*helmchart.File{{
			Name: "templates/cm.yaml",
			Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n"),
		}},
	}
}

// packed is a chart as a package, changed before.
func packed(t *testing.T, c *helmchart.Chart, change ...func(*helmchart.Chart)) []byte {
	t.Helper()
	for _, f := range change {
		f(c)
	}
	name, err := chartutil.Save(c, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// server serves files over TLS and counts requests.
type server struct {
	*httptest.Server
	CA string

	mu       sync.Mutex
	files    map[string][]byte
	user     string
	password string
	seen     map[string]int
	// before answers a request itself when it returns true.
	before func(http.ResponseWriter, *http.Request) bool
}

func serve(t *testing.T, change ...func(*httptest.Server)) *server {
	t.Helper()
	s := &server{files: map[string][]byte{}, seen: map[string]int{}}
	s.Server = httptest.NewUnstartedServer(s)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	for _, f := range change {
		f(s.Server)
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	s.CA = certificateOf(s.Server)
	return s
}

func certificateOf(s *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.seen[r.URL.Path]++
	before, content, user := s.before, s.files[r.URL.Path], s.user
	password := s.password
	s.mu.Unlock()
	if before != nil && before(w, r) {
		return
	}
	if have, pass, _ := r.BasicAuth(); user != "" && (have != user || pass != password) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if content == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	_, _ = w.Write(content)
}

func (s *server) put(name string, content []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[name] = content
}

func (s *server) count(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[name]
}

func (s *server) answer(f func(http.ResponseWriter, *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = f
}

// publish makes the index of packages with Helm's own code; they are named by their chart and version.
func (s *server) publish(t *testing.T, base string, packages map[string][]byte) {
	t.Helper()
	folder := t.TempDir()
	for name, content := range packages {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
		s.put("/"+name, content)
	}
	index, err := repo.IndexDirectory(folder, base)
	if err != nil {
		t.Fatal(err)
	}
	s.index(t, index)
}

func (s *server) index(t *testing.T, index *repo.IndexFile) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "index.yaml")
	index.SortEntries()
	if err := index.WriteFile(name, 0o600); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	s.put("/index.yaml", content)
}

// of is the source of a chart of the server.
func (s *server) of(chart, version string) Source {
	return Source{Repository: s.URL, Chart: chart, Version: version, CA: s.CA}
}

// ociServer is a registry with basic authentication.
type ociServer struct {
	*server
	handler http.Handler
	// read counts the downloads that were answered.
	read map[string]int
}

func serveRegistry(t *testing.T) *ociServer {
	t.Helper()
	s := &ociServer{handler: registry.New(registry.Logger(log.New(io.Discard, "", 0))), read: map[string]int{}}
	s.server = serve(t)
	s.user, s.password = testUser, testPassword
	s.answer(func(w http.ResponseWriter, r *http.Request) bool {
		if user, pass, _ := r.BasicAuth(); user != testUser || pass != testPassword {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		if r.Method == http.MethodGet {
			s.mu.Lock()
			s.read[r.URL.Path]++
			s.mu.Unlock()
		}
		s.handler.ServeHTTP(w, r)
		return true
	})
	return s
}

func (s *ociServer) host() string { return strings.TrimPrefix(s.URL, "https://") }

func (s *ociServer) of(chart, version string) Source {
	return Source{
		Repository: "oci://" + s.host() + "/charts", Chart: chart, Version: version,
		Username: testUser, Password: testPassword, CA: s.CA,
	}
}

// push uploads a package as the helm command does.
func (s *ociServer) push(t *testing.T, reference string, content []byte, options ...helmregistry.PushOption) {
	t.Helper()
	client, err := helmregistry.NewClient(
		helmregistry.ClientOptHTTPClient(&http.Client{Transport: s.Client().Transport}),
		helmregistry.ClientOptBasicAuth(testUser, testPassword),
		helmregistry.ClientOptCredentialsFile(filepath.Join(t.TempDir(), "none.json")),
	)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Push(content, s.host()+"/charts/"+reference, options...); err != nil {
		t.Fatal(err)
	}
}

// clock is set by hand.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// newStore is a store that reads no home directory and hardly pauses between attempts.
func newStore(t *testing.T, o Options) *Store {
	t.Helper()
	empty := t.TempDir()
	for _, name := range []string{"HOME", "DOCKER_CONFIG", "HELM_CONFIG_HOME", "HELM_CACHE_HOME", "HELM_DATA_HOME",
		"TMPDIR"} {
		t.Setenv(name, filepath.Join(empty, name))
	}
	for _, name := range []string{"HELM_REGISTRY_CONFIG", "XDG_CONFIG_HOME"} {
		t.Setenv(name, "")
	}
	if err := os.MkdirAll(filepath.Join(empty, "TMPDIR"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nothingLeft(t, empty) })
	s := NewStore(o)
	s.pause = time.Millisecond
	return s
}

// nothingLeft fails when a file was written and not removed.
func nothingLeft(t *testing.T, folder string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(name string, entry os.DirEntry, err error) error {
		if err == nil && (name != folder && filepath.Base(name) != "TMPDIR") && !strings.HasSuffix(name, ".json") &&
			!entry.IsDir() {
			t.Errorf("%s was left behind", name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	left, err := filepath.Glob(filepath.Join(folder, "TMPDIR", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// installable fails unless the package is that chart and renders from its own content.
func installable(t *testing.T, p *Package, err error, name, version string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if p.Name != name || p.Version != version {
		t.Fatalf("got %s %s, want %s %s", p.Name, p.Version, name, version)
	}
	c, err := p.Chart()
	if err != nil {
		t.Fatal(err)
	}
	if c.Name() != name || len(c.Templates) == 0 || !bytes.Contains(c.Templates[0].Data, []byte(name)) {
		t.Fatalf("the chart is %s with %d templates", c.Name(), len(c.Templates))
	}
}

// texts fails unless an error says all of these, and no secret.
func texts(t *testing.T, err error, wanted ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, text := range wanted {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q is not in: %v", text, err)
		}
	}
	if strings.Contains(err.Error(), testPassword) {
		t.Errorf("the password is in: %v", err)
	}
}

// newPlainServer serves the same without TLS.
func newPlainServer(t *testing.T, s *server) string {
	t.Helper()
	plain := httptest.NewServer(s)
	t.Cleanup(plain.Close)
	return plain.URL
}
