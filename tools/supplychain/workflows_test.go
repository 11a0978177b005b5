package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// What builds and releases the provider is as much of its supply chain as what is linked into it.

const root = "../.."

// read decodes a file of the repository.
func read(t *testing.T, file string, into any) {
	t.Helper()

	data, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}

	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

type workflow struct {
	On          map[string]any    `yaml:"on"`
	Permissions map[string]string `yaml:"permissions"`
	Jobs        map[string]job    `yaml:"jobs"`
}

type job struct {
	Uses        string            `yaml:"uses"`
	Needs       names             `yaml:"needs"`
	Environment string            `yaml:"environment"`
	Permissions map[string]string `yaml:"permissions"`
	Steps       []step            `yaml:"steps"`
}

// names are those of jobs: one, or a list.
type names []string

// UnmarshalYAML implements the library.
func (n *names) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		*n = names{node.Value}

		return nil
	}

	return node.Decode((*[]string)(n))
}

type step struct {
	Uses string         `yaml:"uses"`
	With map[string]any `yaml:"with"`
}

func workflows(t *testing.T) map[string]workflow {
	t.Helper()

	files, err := fs.Glob(os.DirFS(root), ".github/workflows/*.y*ml")
	if err != nil || len(files) < 2 {
		t.Fatalf("workflows are %v, %v", files, err)
	}

	all := map[string]workflow{}

	for _, file := range files {
		var one workflow
		read(t, file, &one)
		all[path.Base(file)] = one
	}

	return all
}

var (
	pinned  = regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40}$`)
	release = regexp.MustCompile(`^# v\d+\.\d+\.\d+$`)
	image   = regexp.MustCompile(`@sha256:[0-9a-f]{64}$`)
)

// unpinned lists what a workflow takes from elsewhere under a name that may be given to something else tomorrow.
func unpinned(node *yaml.Node) (found []string) {
	if node.Kind != yaml.MappingNode {
		for _, inner := range node.Content {
			found = append(found, unpinned(inner)...)
		}

		return found
	}

	for i := 0; i+1 < len(node.Content); i += 2 {
		switch key, value := node.Content[i].Value, node.Content[i+1]; {
		case value.Kind != yaml.ScalarNode:
			found = append(found, unpinned(value)...)
		case key == "uses" && strings.HasPrefix(value.Value, "docker://"), key == "image", key == "container":
			if !image.MatchString(value.Value) {
				found = append(found, value.Value)
			}
		case key == "uses" && !strings.HasPrefix(value.Value, "./"):
			if !pinned.MatchString(value.Value) || !release.MatchString(value.LineComment) {
				found = append(found, value.Value)
			}
		}
	}

	return found
}

func TestUnpinned_findsNames(t *testing.T) {
	t.Parallel()

	const digest = "3d3c42e5aac5ba805825da76410c181273ba90b1"

	for text, want := range map[string]int{
		"jobs: {a: {steps: [{uses: actions/checkout@v5}]}}":                               1,
		"jobs: {a: {steps: [{uses: actions/checkout@main}, {uses: x/y@" + digest + "}]}}": 2,
		"uses: actions/checkout@" + digest + " # v7.0.1":                                  0,
		"uses: actions/checkout@" + digest + " # v7":                                      1,
		"uses: actions/checkout@" + digest[:12] + " # v7.0.1":                             1,
		"uses: x/y/z@" + digest + " # v1.2.3":                                             0,
		"uses: ./.github/workflows/test.yml":                                              0,
		"uses: docker://alpine:3":                                                         1,
		"container: alpine@sha256:" + strings.Repeat("0", 64):                             0,
		"services: {s3: {image: minio:latest}}":                                           1,
	} {
		var document yaml.Node
		if err := yaml.Unmarshal([]byte(text), &document); err != nil {
			t.Fatal(err)
		}

		if got := unpinned(&document); len(got) != want {
			t.Errorf("%s: %v, want %d", text, got, want)
		}
	}
}

func TestWorkflows_arePinned(t *testing.T) {
	t.Parallel()

	for file := range workflows(t) {
		var document yaml.Node
		read(t, ".github/workflows/"+file, &document)

		for _, name := range unpinned(&document) {
			t.Errorf("%s uses %s; allowed are OWNER/NAME@<commit, 40 digits> # v<version> and IMAGE@sha256:<64 digits>", file,
				name)
		}
	}
}

// writes lists the rights beyond reading, as people read them.
func writes(permissions map[string]string) []string {
	var found []string

	for name, access := range permissions {
		if access != "read" && access != "none" {
			found = append(found, name)
		}
	}

	slices.Sort(found)

	return found
}

func TestWorkflows_mayOnlyRead(t *testing.T) {
	t.Parallel()

	for file, w := range workflows(t) {
		if w.Permissions == nil || len(writes(w.Permissions)) > 0 {
			t.Errorf("%s gives every job %v; it has to say permissions, and none that write", file, w.Permissions)
		}

		if len(w.On) == 0 {
			t.Errorf("%s runs on nothing that could be read", file)
		}

		// They run proposed changes with the secrets of the repository.
		for _, event := range []string{"pull_request_target", "workflow_run"} {
			if _, ok := w.On[event]; ok {
				t.Errorf("%s runs on %s", file, event)
			}
		}

		for name, j := range w.Jobs {
			if found := writes(j.Permissions); len(found) > 0 && j.Environment == "" {
				t.Errorf("%s: %s may write %v outside of a protected environment", file, name, found)
			}

			for _, step := range j.Steps {
				if strings.HasPrefix(step.Uses, "actions/checkout@") && fmt.Sprint(step.With["persist-credentials"]) != "false" {
					t.Errorf("%s: %s leaves its token in the checkout", file, name)
				}
			}
		}
	}
}

func TestRelease_comesAfterTheTestsAndWithProvenance(t *testing.T) {
	t.Parallel()

	jobs := workflows(t)["release.yml"].Jobs
	build := jobs["release"]

	if !slices.Equal(build.Needs, names{"test", "nightly"}) || jobs["test"].Uses != "./.github/workflows/test.yml" {
		t.Errorf("the release needs %q, not the tests and the nightly run of its commit", build.Needs)
	}

	if want := []string{"attestations", "contents", "id-token"}; build.Environment != "release" ||
		!slices.Equal(writes(build.Permissions), want) {
		t.Errorf("the release is built in the environment %q and may write %v", build.Environment, writes(build.Permissions))
	}

	at := func(action string) int {
		for i, step := range build.Steps {
			if strings.HasPrefix(step.Uses, action+"@") {
				return i
			}
		}

		return -1
	}

	var config struct {
		Release struct {
			Draft bool `yaml:"draft"`
		} `yaml:"release"`
	}

	read(t, ".goreleaser.yml", &config)

	built, attested := at("goreleaser/goreleaser-action"), at("actions/attest-build-provenance")
	if built < 0 || attested < built || attested == len(build.Steps)-1 || !config.Release.Draft {
		t.Errorf("built in step %d, attested in %d of %d, a draft until then: %t", built, attested, len(build.Steps),
			config.Release.Draft)
	}
}

// The build covers every system whose licenses are checked, and is reproducible, with signed checksums and a list
// of its content. Each push builds it, unsigned. TestAccSnapshot_installsAndRuns builds it twice.
func TestRelease_isWholeAndReproducible(t *testing.T) {
	t.Parallel()

	var config struct {
		Builds []struct {
			Env, Flags, Goos, Goarch []string
			Modified                 string `yaml:"mod_timestamp"`
		}
		Archives []struct {
			Formats []string
			Files   []struct {
				Src  string
				Info struct{ Mtime string }
			}
		}
		Checksum struct {
			Algorithm string
			IDs       []string `yaml:"ids"`
		}
		Signs []struct {
			Artifacts string
			ID        string `yaml:"id"`
		}
		Sboms    []struct{ Artifacts string }
		Snapshot struct {
			Version string `yaml:"version_template"`
		}
	}

	read(t, ".goreleaser.yml", &config)

	if len(config.Builds) != 1 || len(config.Archives) != 1 || len(config.Signs) != 1 || len(config.Sboms) != 1 {
		t.Fatalf("the configuration is %+v", config)
	}

	build, archive := config.Builds[0], config.Archives[0]
	if !slices.Equal(build.Goos, released) || !slices.Equal(build.Goarch, []string{"amd64", "arm64"}) ||
		!slices.Contains(build.Env, "CGO_ENABLED=0") {
		t.Errorf("it builds %v for %v with %v", build.Goos, build.Goarch, build.Env)
	}

	if !slices.Contains(build.Flags, "-trimpath") || build.Modified != "{{ .CommitTimestamp }}" {
		t.Errorf("programs depend on where and when they are built: %v, %s", build.Flags, build.Modified)
	}

	// Without a list goreleaser takes what it finds, with the times of the checkout.
	if !slices.Equal(archive.Formats, []string{"zip"}) || len(archive.Files) == 0 {
		t.Errorf("archives are %v of %v", archive.Formats, archive.Files)
	}

	for _, file := range archive.Files {
		if file.Info.Mtime != "{{ .CommitDate }}" {
			t.Errorf("%s has the time %s", file.Src, file.Info.Mtime)
		}
	}

	if config.Checksum.Algorithm != "sha256" || config.Signs[0].Artifacts != "checksum" ||
		config.Sboms[0].Artifacts != "archive" || !strings.HasPrefix(config.Snapshot.Version, "0.0.0-snapshot-") {
		t.Errorf("checksums, signatures, SBOMs and snapshots are %+v", config)
	}

	// What is added to a file after it was signed makes the signature a bad one.
	if ids := config.Checksum.IDs; len(ids) == 0 || slices.Contains(ids, config.Signs[0].ID) || config.Signs[0].ID == "" {
		t.Errorf("checksums are those of %v, and the signature is %q", ids, config.Signs[0].ID)
	}

	const args = "release --snapshot --clean --skip=sign"
	if !slices.ContainsFunc(workflows(t)["test.yml"].Jobs["snapshot"].Steps, func(s step) bool { return s.With["args"] == args }) {
		t.Error("no push builds what a release does")
	}
}

// A module without updates would keep known vulnerabilities.
func TestDependabot_looksAfterEveryModule(t *testing.T) {
	t.Parallel()

	var config struct {
		Updates []struct {
			Ecosystem   string   `yaml:"package-ecosystem"`
			Directory   string   `yaml:"directory"`
			Directories []string `yaml:"directories"`
		} `yaml:"updates"`
	}

	read(t, ".github/dependabot.yml", &config)

	looked := func(ecosystem, folder string) bool {
		for _, update := range config.Updates {
			for _, pattern := range append(update.Directories, update.Directory) {
				if ok, _ := path.Match(pattern, folder); ok && update.Ecosystem == ecosystem {
					return true
				}
			}
		}

		return false
	}

	if !looked("github-actions", "/") {
		t.Error("no updates are configured for the actions")
	}

	for _, pattern := range []string{"go.mod", "tools/*/go.mod", "tools/*/*/go.mod"} {
		files, err := fs.Glob(os.DirFS(root), pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", pattern, files, err)
		}

		for _, file := range files {
			if folder := path.Join("/", path.Dir(file)); !looked("gomod", folder) {
				t.Errorf("no updates are configured for %s", file)
			}
		}
	}
}
