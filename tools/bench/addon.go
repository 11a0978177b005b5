package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/helm/chart"
	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// rounds of each measurement of an addon, of which the quickest counts: what else the machine does makes the others.
const rounds = 5

// addon measures how long a release takes to be uninstalled, until its objects are gone, beside `helm uninstall` of the
// same chart on the same cluster, which waits for nothing: by what talosop does for it alone, and by a destroy from the
// start of the CLI to its end, refresh and plan included, beside a destroy of what needs no cluster.
func addon(tb testing.TB) []figure {
	tb.Helper()

	cluster := kubetest.NewCluster(tb)
	helm := kubetest.Helm(tb, cluster)

	var figures []figure

	for _, size := range []int{1, 4, 12} {
		u := &uninstalls{tb: tb, cluster: cluster, helm: helm, chart: chartOf(tb, size)}
		took := u.measure(u.byHelm, u.byEngine, u.byCLI, u.byCLIAlone)
		ratio := func(i int) string { return fmt.Sprintf("%.2f", float64(took[i])/float64(took[0])) }

		figures = append(figures,
			figure{fmt.Sprintf("helm uninstall of %d objects", objectsOf(size)), shown(took[0]), ""},
			figure{"… the same by talosop, until they are gone", shown(took[1]), ""},
			figure{"… ratio", ratio(1), "at most 1.30"},
			figure{"… a destroy by the CLI, refresh and plan included", shown(took[2]), ""},
			figure{"… of that the CLI by itself", shown(took[3]), ""},
		)
	}

	return figures
}

func shown(d time.Duration) string { return d.Round(10 * time.Millisecond).String() }

// objectsOf a chart of a size.
func objectsOf(size int) int { return 7 * size }

// chartOf writes a chart with several kinds of objects, each as often as size says.
func chartOf(tb testing.TB, size int) (file string) {
	tb.Helper()

	var text strings.Builder

	for i := range size {
		fmt.Fprintf(&text, strings.ReplaceAll(`
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: NAME}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME}
data: {a: b}
---
apiVersion: v1
kind: Secret
metadata: {name: NAME}
stringData: {a: b}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: NAME}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: NAME}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: NAME}
subjects: [{kind: ServiceAccount, name: NAME}]
---
apiVersion: v1
kind: Service
metadata: {name: NAME}
spec: {selector: {app: NAME}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME}
spec:
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec: {containers: [{name: a, image: registry.example/a:1}]}
`, "NAME", "%[1]s"), fmt.Sprintf("bench-%d", i))
	}

	file = filepath.Join(tb.TempDir(), "bench-1.0.0.tgz")
	content := kubetest.Chart("bench", "1.0.0", map[string]string{"templates/all.yaml": text.String()})

	if err := os.WriteFile(file, content, 0o600); err != nil {
		tb.Fatal(err)
	}

	return file
}

// uninstalls are those of a chart.
type uninstalls struct {
	tb      testing.TB
	cluster *kubetest.Cluster
	helm    func(args ...string) (stdout, stderr string, err error)
	chart   string
}

// measure takes turns, so that what else the machine does is of no side.
func (u *uninstalls) measure(ways ...func() time.Duration) (quickest []time.Duration) {
	u.tb.Helper()

	quickest = make([]time.Duration, len(ways))

	for range rounds {
		for i, once := range ways {
			if took := once(); quickest[i] == 0 || took < quickest[i] {
				quickest[i] = took
			}
		}
	}

	return quickest
}

func (u *uninstalls) byHelm() time.Duration {
	u.tb.Helper()

	namespace := u.cluster.Namespace(u.tb)

	run := func(args ...string) {
		if _, stderr, err := u.helm(append(args, "-n", namespace)...); err != nil {
			u.tb.Fatal(err, stderr)
		}
	}

	run("install", "bench", u.chart, "--wait")

	begun := time.Now()

	run("uninstall", "bench")

	return time.Since(begun)
}

func (u *uninstalls) byEngine() time.Duration {
	u.tb.Helper()

	spec := release.Spec{
		Name:    release.Name{Namespace: u.cluster.Namespace(u.tb), Name: "bench"},
		Options: release.Options{Wait: true, Timeout: time.Minute},
	}

	pkg, err := chart.NewStore(chart.Options{}).Fetch(u.tb.Context(), chart.Source{Chart: u.chart})
	if err != nil {
		u.tb.Fatal(err)
	}

	// Another client, as that of another process: it has asked for nothing yet.
	on := func() *release.Cluster { return &release.Cluster{API: u.cluster.Client(u.tb, kubernetes.Options{})} }

	if _, err := on().Apply(u.tb.Context(), spec, pkg, release.Intent{Create: true}); err != nil {
		u.tb.Fatal(err)
	}

	begun := time.Now()

	if err := on().Remove(context.WithoutCancel(u.tb.Context()), spec.Name,
		release.RemoveOptions{Wait: true, Timeout: time.Minute}); err != nil {
		u.tb.Fatal(err)
	}

	return time.Since(begun)
}

func (u *uninstalls) byCLI() time.Duration {
	u.tb.Helper()

	return u.destroy(fmt.Sprintf(`resource "talosop_addon" "bench" {
  kubeconfig = { path = %q }
  name       = "bench"
  namespace  = %q
  chart      = %q
}
`, u.cluster.Kubeconfig(), u.cluster.Namespace(u.tb), u.chart))
}

// byCLIAlone is a destroy of what is in state alone.
func (u *uninstalls) byCLIAlone() time.Duration {
	u.tb.Helper()

	return u.destroy("resource \"talosop_secrets\" \"bench\" {\n  deletion_protection = false\n}\n")
}

func (u *uninstalls) destroy(resource string) time.Duration {
	u.tb.Helper()

	w := clitest.NewWorkspace(u.tb, clitest.Any(u.tb))
	w.Setenv("TF_LOG", "")
	w.Write("main.tf", "terraform {\n  required_providers {\n    talosop = { source = \"talosop/talosop\" }\n  }\n}\n\n"+
		resource)
	w.Init()
	w.MustRun("apply", "-auto-approve")

	return w.MustRun("destroy", "-auto-approve").Took
}
