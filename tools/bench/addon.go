package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/helm/chart"
	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// rounds of each measurement of an addon, of which the median counts.
const rounds = 5

// parts is how long the three parts of the life of a release took: its installation, a change of a value that a seventh
// of its objects has, and its removal.
type parts [3]time.Duration

// addon measures the life of a release beside that by the real helm CLI, of the same chart on the same cluster. It
// measures talosop's own work alone. It also measures CLI runs from start to end, refresh and plan included,
// beside CLI runs for a resource that needs no cluster. No run waits for pods. A removal waits until all objects
// are gone, which that by helm does not.
func addon(tb testing.TB, _ int) []figure {
	tb.Helper()

	cluster := kubetest.NewCluster(tb)
	helm := kubetest.Helm(tb, cluster)

	var figures []figure

	for _, size := range []int{1, 4, 12} {
		r := &releases{tb: tb, cluster: cluster, helm: helm, chart: chartOf(tb, size)}
		took := r.measure(r.byHelm, r.byEngine, r.byCLI, r.byCLIAlone)

		for i, part := range []string{"install", "upgrade", "uninstall"} {
			byHelm, engine, cli, alone := took[0][i], took[1][i], took[2][i], took[3][i]
			ratio := func(d time.Duration) string { return fmt.Sprintf("%.2f", float64(d)/float64(byHelm)) }

			figures = append(figures,
				figure{fmt.Sprintf("helm %s of %d objects", part, objectsOf(size)), shown(byHelm), ""},
				figure{"… the same by talosop", shown(engine), ""},
				figure{"… ratio", ratio(engine), "at most 1.20"},
				figure{"… by a run of the CLI, refresh and plan included", shown(cli), ""},
				figure{"… of that the CLI by itself", shown(alone), ""},
				figure{"… ratio of the run, and of it without the CLI", ratio(cli) + ", " + ratio(cli-alone), ""},
			)
		}
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
data: {a: {{ .Values.a | default "b" }}}
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

// releases are those of a chart.
type releases struct {
	tb      testing.TB
	cluster *kubetest.Cluster
	helm    func(args ...string) (stdout, stderr string, err error)
	chart   string
}

// measure alternates between the sides, so that other load on the machine favors neither.
func (r *releases) measure(variants ...func() parts) (medians []parts) {
	r.tb.Helper()

	lives := make([][]parts, len(variants))

	for range rounds {
		for i, once := range variants {
			lives[i] = append(lives[i], once())
		}
	}

	for _, all := range lives {
		medians = append(medians, medianOf(all))
	}

	return medians
}

// medianOf each part of lives.
func medianOf(lives []parts) (medians parts) {
	for part := range medians {
		medians[part] = median(lives, func(l parts) time.Duration { return l[part] })[part]
	}

	return medians
}

// timed is how long each of three things takes.
func timed(things ...func()) (l parts) {
	for i, do := range things {
		begun := time.Now()

		do()

		l[i] = time.Since(begun)
	}

	return l
}

func (r *releases) byHelm() parts {
	r.tb.Helper()

	namespace := r.cluster.Namespace(r.tb)

	run := func(args ...string) func() {
		return func() {
			if _, stderr, err := r.helm(append(args, "-n", namespace)...); err != nil {
				r.tb.Fatal(err, stderr)
			}
		}
	}

	return timed(run("install", "bench", r.chart), run("upgrade", "bench", r.chart, "--set", "a=c"),
		run("uninstall", "bench"))
}

func (r *releases) byEngine() parts {
	r.tb.Helper()

	ctx := context.WithoutCancel(r.tb.Context())
	name := release.Name{Namespace: r.cluster.Namespace(r.tb), Name: "bench"}

	// Another client, as that of another process: it has asked for nothing yet.
	on := func() *release.Cluster { return &release.Cluster{API: r.cluster.Client(r.tb, api.Options{})} }

	apply := func(intent release.Intent, values map[string]any) func() {
		return func() {
			pkg, err := chart.NewStore(chart.Options{}).Fetch(ctx, chart.Source{Chart: r.chart})
			if err != nil {
				r.tb.Fatal(err)
			}

			spec := release.Spec{Name: name, Values: values, Options: release.Options{Timeout: time.Minute, MaxHistory: 10}}

			if _, err := on().Apply(ctx, spec, pkg, intent); err != nil {
				r.tb.Fatal(err)
			}
		}
	}

	return timed(apply(release.Intent{Create: true}, nil), apply(release.Intent{}, map[string]any{"a": "c"}), func() {
		if err := on().Remove(ctx, name, release.RemoveOptions{Wait: true, Timeout: time.Minute}); err != nil {
			r.tb.Fatal(err)
		}
	})
}

func (r *releases) byCLI() parts {
	r.tb.Helper()

	addon := fmt.Sprintf(`resource "talosop_addon" "bench" {
  kubeconfig = { path = %q }
  name       = "bench"
  namespace  = %q
  chart      = %q
  wait       = false
  values     = VALUES
}
`, r.cluster.Kubeconfig(), r.cluster.Namespace(r.tb), r.chart)

	return r.runs(strings.Replace(addon, "VALUES", "[]", 1), strings.Replace(addon, "VALUES", `["a: c"]`, 1))
}

// byCLIAlone is the life of what is in state alone. Keys are made when it is created: a change stands for that, too.
func (r *releases) byCLIAlone() parts {
	r.tb.Helper()

	secrets := "resource \"talosop_secrets\" \"bench\" {\n  deletion_protection = %t\n}\n"

	took := r.runs(fmt.Sprintf(secrets, true), fmt.Sprintf(secrets, false))
	took[0] = took[1]

	return took
}

// runs are those of the CLI for a resource, and for the same one after a change.
func (r *releases) runs(resource, changed string) (l parts) {
	r.tb.Helper()

	w := newWorkspace(r.tb)

	write := func(resource string) { w.Write("main.tf", required+resource) }

	write(resource)
	w.Init()

	l[0] = w.MustRun("apply", "-auto-approve").Took

	write(changed)

	l[1] = w.MustRun("apply", "-auto-approve").Took
	l[2] = w.MustRun("destroy", "-auto-approve").Took

	return l
}
