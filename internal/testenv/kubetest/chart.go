package kubetest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"
)

// Chart packages a chart. Files are by their path in it, subcharts in theirs, such as
// charts/child/Chart.yaml. Without a Chart.yaml it gets a plain one of its name and version; one
// that is given is taken as it is. Equal charts have equal bytes.
func Chart(name, version string, files map[string]string) []byte {
	files = maps.Clone(files)
	if files == nil {
		files = map[string]string{}
	}

	if files["Chart.yaml"] == "" {
		files["Chart.yaml"] = fmt.Sprintf("apiVersion: v2\nname: %s\nversion: %s\n", name, version)
	}

	return archive(name, files)
}

// archive writes in memory, where nothing can fail.
func archive(folder string, files map[string]string) []byte {
	var out bytes.Buffer

	zipped := gzip.NewWriter(&out)
	packed := tar.NewWriter(zipped)

	check := func(err error) {
		if err != nil {
			panic(err)
		}
	}

	for _, name := range slices.Sorted(maps.Keys(files)) {
		check(packed.WriteHeader(&tar.Header{
			Typeflag: tar.TypeReg, Name: folder + "/" + name, Mode: 0o644, Size: int64(len(files[name])),
			ModTime: time.Unix(0, 0).UTC(),
		}))

		_, err := packed.Write([]byte(files[name]))
		check(err)
	}

	check(packed.Close())
	check(zipped.Close())

	return out.Bytes()
}

// Sample is the name of a chart that this package has. Their pods take annotations from values
// (podAnnotations), which say what becomes of them: see [FailAnnotation] and its neighbors.
type Sample string

// The samples; their folders are below samples.
const (
	// Simple has a ConfigMap of values.message, a Secret of values.password, a Deployment of
	// values.replicas and a Service, all named after the release.
	Simple Sample = "simple"
	// WithHooks has a ConfigMap, and Jobs before and after installs and upgrades and before removals, whose
	// pods take values.pre, values.post and values.remove as annotations.
	WithHooks Sample = "hooks"
	// WithCRD has a Widget, which the chart's crds folder defines.
	WithCRD Sample = "crd"
	// CNI has a DaemonSet that makes the nodes of a cluster without a pod network ready.
	CNI Sample = "cni"
	// Broken cannot be rendered.
	Broken Sample = "broken"
	// NeedsKubernetes wants a Kubernetes that does not exist yet.
	NeedsKubernetes Sample = "needs-kubernetes"
	// WithSchema takes no replicas but whole numbers from 1 on.
	WithSchema Sample = "schema"
	// WithSubchart has a ConfigMap of its own and one of a dependency, unless values.child.enabled is false.
	WithSubchart Sample = "subchart"
	// Random has a Secret with another password in each rendering.
	Random Sample = "random"
	// AllValues has a ConfigMap of all values as YAML, and of each with its type.
	AllValues Sample = "echo"
)

//go:embed all:samples
var samples embed.FS

// sampleVersion is the version in the Chart.yaml of samples.
const sampleVersion = "0.0.0-sample"

// Files of a sample by their paths, for tests that need one that differs a little. The
// version is that of the argument.
func (s Sample) Files(version string) map[string]string {
	folder, err := fs.Sub(samples, "samples/"+string(s))
	if err != nil {
		panic(err)
	}

	files := map[string]string{}

	err = fs.WalkDir(folder, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}

		content, err := fs.ReadFile(folder, path)
		files[path] = strings.ReplaceAll(string(content), sampleVersion, version)

		return err
	})
	if err != nil {
		panic(err)
	}

	return files
}

// Package is the sample as a package of a version.
func (s Sample) Package(version string) []byte { return Chart(string(s), version, s.Files(version)) }
