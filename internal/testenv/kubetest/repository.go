package kubetest

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/repo"
	"sigs.k8s.io/yaml"
)

// ServerOptions of repositories and registries.
type ServerOptions struct {
	// Username and Password are required; none when empty.
	Username, Password string
}

// Repository is a chart repository with TLS. [Repository.Fail] and the related methods make requests fail and
// return them.
type Repository struct {
	gate

	// URL of the repository.
	URL string
	// CA that signed the server's certificate, in PEM, and a file with it.
	CA, CAFile string

	folder string
	files  sync.Mutex // held while they change
}

// NewRepository starts a repository without charts, until the test ends.
func NewRepository(t testing.TB, o ServerOptions) *Repository {
	t.Helper()

	r := &Repository{folder: t.TempDir()}
	r.next = guarded(o.Username, o.Password, http.FileServer(http.Dir(r.folder)))

	ca := newAuthority(t, "chart repository")
	r.CA, r.CAFile = ca.pem(), writeCA(t, ca)
	r.URL = r.open(t, ca, false).URL
	r.Add(t)

	return r
}

func writeCA(t testing.TB, ca authority) string {
	t.Helper()

	path := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(path, []byte(ca.pem()), 0o600); err != nil {
		t.Fatal(err)
	}

	return path
}

// Add adds packages, which replace those of the same name and version, and writes the index.
func (r *Repository) Add(t testing.TB, packages ...[]byte) {
	t.Helper()

	r.files.Lock()
	defer r.files.Unlock()

	for _, content := range packages {
		name, version := identify(t, content)
		replaceFile(t, filepath.Join(r.folder, fmt.Sprintf("%s-%s.tgz", name, version)), content)
	}

	r.index(t)
}

func (r *Repository) index(t testing.TB) {
	t.Helper()

	index, err := repo.IndexDirectory(r.folder, "")
	if err != nil {
		t.Fatal(err)
	}

	index.SortEntries()

	next := filepath.Join(r.folder, "index.yaml")
	if err := index.WriteFile(next+".new", 0o600); err != nil {
		t.Fatal(err)
	}

	if err := os.Rename(next+".new", next); err != nil {
		t.Fatal(err)
	}
}

// replaceFile replaces a file atomically: requests are served meanwhile.
func replaceFile(t testing.TB, path string, content []byte) {
	t.Helper()

	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		t.Fatal(err)
	}

	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// identify reads the name and the version of a package.
func identify(t testing.TB, content []byte) (name, version string) {
	t.Helper()

	files, err := loader.LoadArchiveFiles(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}

	for _, file := range files {
		var meta chart.Metadata
		if file.Name != chartutil.ChartfileName {
			continue
		}

		if err := yaml.Unmarshal(file.Data, &meta); err != nil {
			t.Fatal(err)
		}

		return meta.Name, meta.Version
	}

	t.Fatal("the package has no Chart.yaml")

	return "", ""
}
