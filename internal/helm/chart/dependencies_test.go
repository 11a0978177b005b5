package chart

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	helmchart "helm.sh/helm/v3/pkg/chart"
)

func dependsOn(deps ...*helmchart.Dependency) func(*helmchart.Chart) *helmchart.Chart {
	return func(c *helmchart.Chart) *helmchart.Chart {
		c.Metadata.Dependencies = deps
		return c
	}
}

func subchartsOf(t *testing.T, p *Package) []string {
	t.Helper()
	c, err := p.Chart()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range c.Dependencies() {
		names = append(names, d.Name()+" "+d.Metadata.Version)
	}
	slices.Sort(names)
	return names
}

func TestFolder_missingDependencies(t *testing.T) {
	s, store := serve(t), newStore(t, Options{})
	c := dependsOn(&helmchart.Dependency{Name: "db", Version: "1.x", Repository: s.URL})(simple("web", "1.0.0"))
	folder := folderOf(t, t.TempDir(), c, nil)
	for _, ask := range []func() error{
		func() error { _, err := store.Resolve(t.Context(), Source{Chart: folder}); return err },
		func() error { _, err := store.Fetch(t.Context(), Source{Chart: folder}); return err },
	} {
		err := ask()
		if !errors.Is(err, ErrDamaged) {
			t.Error(err)
		}
		texts(t, err, "found in Chart.yaml, but missing in charts/ directory: db", "dependency_update")
	}
	_, err := store.Fetch(t.Context(), Source{Chart: folder, UpdateDependencies: true, CA: s.CA, PassCredentials: true})
	if !errors.Is(err, ErrNoChart) {
		t.Error(err)
	}
	texts(t, err, "dependency db")
	s.put("/web.tgz", packed(t, c))
	if _, err := store.Fetch(t.Context(), Source{Chart: s.URL + "/web.tgz", CA: s.CA}); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
}

// Dependencies come from repositories, registries and other folders; the user's folders stay as they are.
func TestUpdateDependencies_missing(t *testing.T) {
	s, oci := serve(t), serveRegistry(t)
	store := newStore(t, Options{RegistryConfig: filepath.Join(t.TempDir(), "none.json")})
	s.publish(t, "", map[string][]byte{
		"db-1.2.0.tgz": packed(t, simple("db", "1.2.0")), "db-1.3.0.tgz": packed(t, simple("db", "1.3.0")),
		"db-2.0.0.tgz": packed(t, simple("db", "2.0.0")),
	})
	oci.push(t, "cache:3.1.0", packed(t, simple("cache", "3.1.0")))
	parent := t.TempDir()
	folderOf(t, parent, simple("common", "0.1.0"), nil)
	folderOf(t, filepath.Join(parent, "deep"), simple("absolute", "0.2.0"), nil)
	c := dependsOn(
		&helmchart.Dependency{Name: "db", Version: "^1.2.0", Repository: s.URL},
		&helmchart.Dependency{Name: "db", Version: "2.x", Repository: s.URL, Alias: "newdb"},
		&helmchart.Dependency{Name: "cache", Version: "3.x", Repository: "oci://" + oci.host() + "/charts"},
		&helmchart.Dependency{Name: "common", Version: "0.1.x", Repository: "file://../common"},
		&helmchart.Dependency{Name: "absolute", Version: "*",
			Repository: "file://" + filepath.Join(parent, "deep", "absolute")},
		&helmchart.Dependency{Name: "vendored", Version: "5.0.0"},
	)(simple("web", "1.0.0"))
	folder := folderOf(t, parent, c, nil)
	folderOf(t, filepath.Join(folder, "charts"), simple("vendored", "5.0.0"), nil)
	// One is too old, and one comes from a neighboring folder and has changed there.
	write(t, filepath.Join(folder, "charts", "cache-2.0.0.tgz"), string(packed(t, simple("cache", "2.0.0"))))
	write(t, filepath.Join(folder, "charts", "common-0.1.0.tgz"), string(packed(t, simple("common", "0.1.0"))))
	write(t, filepath.Join(parent, "common", "values.yaml"), "changed: next door\n")
	before := snapshot(t, parent)
	from := Source{
		Chart: folder, UpdateDependencies: true, CA: s.CA + oci.CA,
		Username: testUser, Password: testPassword, PassCredentials: true,
	}
	p, err := store.Fetch(t.Context(), from)
	installable(t, p, err, "web", "1.0.0")
	want := []string{"absolute 0.2.0", "cache 3.1.0", "common 0.1.0", "db 1.3.0", "db 2.0.0", "vendored 5.0.0"}
	if got := subchartsOf(t, p); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	read, err := p.Chart()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range read.Dependencies() {
		if d.Name() == "common" && d.Values["changed"] != "next door" {
			t.Errorf("the dependency of the other folder is old: %v", d.Values)
		}
	}
	pin, err := newStore(t, Options{}).Resolve(t.Context(), from)
	if err != nil || pin != p.Pin {
		t.Errorf("another store resolves %v %v, want %v", pin, err, p.Pin)
	}
	if after := snapshot(t, parent); !maps.Equal(before, after) {
		t.Error("the user's folder was changed")
	}
	write(t, filepath.Join(parent, "common", "values.yaml"), "changed: again\n")
	if pin, err = store.Resolve(t.Context(), from); err != nil || pin.Digest == p.Digest {
		t.Errorf("a change of a dependency is not in the digest: %v", err)
	}
}

// The credentials are not sent to a dependency's repository, unless they are to be passed on.
func TestUpdateDependencies_noCredentialsForOthers(t *testing.T) {
	s := serve(t)
	s.user, s.password = testUser, testPassword
	s.publish(t, "", map[string][]byte{"db-1.2.0.tgz": packed(t, simple("db", "1.2.0"))})
	c := dependsOn(&helmchart.Dependency{Name: "db", Version: "1.x", Repository: newPlainServer(t, s)})(
		simple("web", "1.0.0"))
	from := Source{
		Chart: folderOf(t, t.TempDir(), c, nil), UpdateDependencies: true, Username: testUser, Password: testPassword,
	}
	_, err := newStore(t, Options{}).Fetch(t.Context(), from)
	if !errors.Is(err, ErrCredentials) {
		t.Error(err)
	}
	texts(t, err, "dependency db", "requires credentials")
	from.PassCredentials = true
	p, err := newStore(t, Options{}).Fetch(t.Context(), from)
	installable(t, p, err, "web", "1.0.0")
}

// What is there in a version that will do needs no network.
func TestUpdateDependencies_present(t *testing.T) {
	store := newStore(t, Options{})
	c := dependsOn(&helmchart.Dependency{Name: "db", Version: "1.x", Repository: "https://unreachable.invalid"})(
		simple("web", "1.0.0"))
	folder := folderOf(t, t.TempDir(), c, nil)
	write(t, filepath.Join(folder, "charts", "db-1.2.0.tgz"), string(packed(t, simple("db", "1.2.0"))))
	with, err := store.Fetch(t.Context(), Source{Chart: folder, UpdateDependencies: true})
	installable(t, with, err, "web", "1.0.0")
	without, err := store.Fetch(t.Context(), Source{Chart: folder})
	installable(t, without, err, "web", "1.0.0")
	if with.Digest != without.Digest {
		t.Error("the same files have two digests")
	}
}

func TestUpdateDependencies_unavailable(t *testing.T) {
	store := newStore(t, Options{})
	for _, c := range []struct {
		dependency helmchart.Dependency
		kind       error
		text       string
	}{
		{helmchart.Dependency{Name: "db", Version: "1.0.0"}, ErrDamaged, "has no repository"},
		{helmchart.Dependency{Name: "db", Version: "1.0.0", Repository: "@stable"}, ErrNoChart, "@stable"},
		{helmchart.Dependency{Name: "db", Version: "1.0.0", Repository: "file://../db"}, ErrNoChart, "db"},
		{helmchart.Dependency{Name: "common", Version: "2.0.0", Repository: "file://../common"}, ErrNoVersion, "0.1.0"},
	} {
		parent := t.TempDir()
		folderOf(t, parent, simple("common", "0.1.0"), nil)
		folder := folderOf(t, parent, dependsOn(&c.dependency)(simple("web", "1.0.0")), nil)
		_, err := store.Fetch(t.Context(), Source{Chart: folder, UpdateDependencies: true})
		if !errors.Is(err, c.kind) {
			t.Errorf("%v: %v", c.dependency, err)
		}
		texts(t, err, "dependency "+c.dependency.Name, c.text)
	}
}
