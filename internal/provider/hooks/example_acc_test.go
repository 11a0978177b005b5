package hooks_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// inCluster are the objects that the example works with.
const inCluster = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: settings.longhorn.io }
spec:
  group: longhorn.io
  scope: Namespaced
  names: { kind: Setting, plural: settings, singular: setting, listKind: SettingList }
  versions:
  - name: v1beta2
    served: true
    storage: true
    schema: { openAPIV3Schema: { type: object, properties: { value: { type: string } } } }
---
apiVersion: v1
kind: Namespace
metadata: { name: longhorn-system }
---
apiVersion: v1
kind: Namespace
metadata: { name: rook-ceph }
---
apiVersion: v1
kind: Namespace
metadata: { name: database }
---
apiVersion: v1
kind: ServiceAccount
metadata: { name: switchover, namespace: database }
---
apiVersion: v1
kind: Secret
metadata: { name: rook-ceph-mon, namespace: rook-ceph }
stringData: { ceph-username: client.admin, ceph-secret: key }
---
apiVersion: v1
kind: ConfigMap
metadata: { name: rook-ceph-mon-endpoints, namespace: rook-ceph }
data: { data: a=10.0.0.1:6789 }
---
apiVersion: longhorn.io/v1beta2
kind: Setting
metadata: { name: replica-replenishment-wait-interval, namespace: longhorn-system }
value: "600"
`

var setting = objects.Reference{APIVersion: "longhorn.io/v1beta2", Kind: "Setting", Namespace: "longhorn-system",
	Name: "replica-replenishment-wait-interval"}

// replenishment is the value of the setting of Longhorn.
func replenishment(ctx context.Context, t *testing.T, api *kubernetes.Client) string {
	t.Helper()

	found, err := api.GetObject(ctx, setting)
	if err != nil {
		t.Error(err)
	}

	value, _ := found["value"].(string)

	return value
}

// jobsMade records the jobs of hooks, by their namespaces and last arguments, until the test ends.
func jobsMade(t *testing.T, api *kubernetes.Client) func() []string {
	t.Helper()

	var (
		mu   sync.Mutex
		made []string
	)

	watch, err := api.BatchV1().Jobs("").Watch(t.Context(), metav1.ListOptions{LabelSelector: "talosop.dev/hook"})
	tftest.Must(t, err)
	t.Cleanup(watch.Stop)

	seen := map[string]bool{}

	go func() {
		for event := range watch.ResultChan() {
			job, ok := event.Object.(*batchv1.Job)
			if !ok || seen[job.Name] {
				continue
			}

			seen[job.Name] = true
			container := job.Spec.Template.Spec.Containers[0]
			text := job.Namespace + " " + strings.Join(container.Command, " ")

			if len(container.Env) > 0 {
				text = job.Namespace + " " + container.Env[0].Value
			}

			mu.Lock()
			made = append(made, text)
			mu.Unlock()
		}
	}()

	return func() []string {
		mu.Lock()
		defer mu.Unlock()

		return slices.Clone(made)
	}
}

// The example runs against a real API server: the hooks of Ceph, Longhorn and alerts around the rollout, that of the
// database before each machine. Nothing of them is left.
func TestAccHooks_exampleIsApplied(t *testing.T) {
	testenv.BeforeRelease(t, "TestHooks_enclosesARollout", "TestHooks_runAroundDisruptions", "TestExecutor_jobs")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		var (
			mu    sync.Mutex
			calls []string
		)

		alerts := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)

			mu.Lock()
			defer mu.Unlock()

			calls = append(calls, r.Method+" "+r.Header.Get("Authorization")+" "+string(body))
		}))
		t.Cleanup(alerts.Close)

		s := sitetest.NewWith(t, sim.Options{TalosVersion: machineconfig.CurrentTalos,
			Assets: filepath.Dir(clitest.Asset(t, "kube-apiserver"))}, 1, 2)
		kubetest.Attach(t, s.Simulator)

		w := clitest.NewWorkspace(t, cli)
		w.Example("../../../examples", "guides/hooks")
		w.Write("guides/hooks/versions.tf", `terraform {
  required_providers { talosop = { source = "talosop/talosop" } }
}
`)
		w.Write("main.tf", sitetest.ProviderHCL+sitetest.SecretsHCL+s.ControlPlaneHCL("")+`
module "storage" {
  source       = "./guides/hooks"
  cluster      = talosop_control_plane.this.cluster
  machines     = `+tftest.JSON(t, sitetest.Addresses(s.Workers))+`
  alerts_url   = "`+alerts.URL+`"
  alerts_token = "TOKEN"
}
`)
		w.Init()
		w.MustRun("apply", "-auto-approve")

		api := sitetest.KubernetesAt(t, s.URL, sitetest.BundleIn(t, w))
		t.Cleanup(api.Close)

		for _, text := range strings.Split(inCluster, "---\n") {
			var object map[string]any

			tftest.Must(t, yaml.Unmarshal([]byte(text), &object))
			tftest.Must(t, wait.Until(t.Context(), 100*time.Millisecond, func(ctx context.Context) error {
				_, err := api.ApplyObject(ctx, object)

				return err
			}))
		}

		made := jobsMade(t, api)

		var values []string

		s.SetOnCall(func(c fault.Call) error {
			if c.Method == "Reboot" {
				mu.Lock()
				defer mu.Unlock()

				values = append(values, replenishment(context.Background(), t, api))
			}

			return nil
		})

		w.Write("guides/hooks/change_override.tf", `
resource "talosop_worker" "storage" {
  config_patches = [yamlencode({ machine = { files = [{ path = "/var/a", op = "create", permissions = 420, content = "a" }] } })]
}
`)
		w.MustRun("apply", "-auto-approve")
		sitetest.ExpectNoChanges(t, w, "after the rollout")

		nodes := []string{s.Workers[0].Hostname(), s.Workers[1].Hostname()}
		slices.Sort(nodes)

		jobs := made()
		slices.Sort(jobs[:min(2, len(jobs))]) // hooks of one machine run side by side

		if want := []string{"database " + nodes[0], "rook-ceph ceph osd set noout", "database " + nodes[1],
			"rook-ceph ceph osd unset noout"}; !slices.Equal(jobs, want) {
			t.Errorf("the jobs %q were made, want %q", jobs, want)
		}

		if now := replenishment(t.Context(), t, api); !slices.Equal(values, []string{"3600", "3600"}) || now != "600" {
			t.Errorf("the setting was %q at reboots, and is %q", values, now)
		}

		if want := []string{`POST Bearer TOKEN {"reason":"rollout"}`, "DELETE Bearer TOKEN "}; !slices.Equal(calls, want) {
			t.Errorf("the calls are %q, want %q", calls, want)
		}

		w.MustRun("destroy", "-auto-approve")
	})
}

// An apply whose provider was killed with SIGKILL during a reboot leaves the flag set. The next plan says so, and its
// apply unsets it.
func TestAccHooks_killedProvider(t *testing.T) {
	testenv.BeforeRelease(t, "TestHooks_killedAtEveryCall", "TestHooks_enclosesARollout")
	t.Parallel()

	clitest.Each(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 1)
		config := func(env string) string {
			return sitetest.ProviderHCL + sitetest.SecretsHCL + s.ControlPlaneHCL("") + s.WorkersHCL(`
  config_patches = ["machine: { env: { CHANGED: `+env+` } }"]
  hooks = {
    noout = {
      scope  = "rollout"
      before = { patch = { api_version = "v1", kind = "ConfigMap", namespace = "kube-system", name = "flags", patch = "data: { noout: 'true' }" } }
      after  = { patch = { api_version = "v1", kind = "ConfigMap", namespace = "kube-system", name = "flags", patch = "data: { noout: 'false' }" } }
    }
  }
`)
		}

		w := clitest.NewWorkspace(t, cli)
		w.Write("main.tf", config("one"))
		w.Init()
		w.MustRun("apply", "-auto-approve")

		api := sitetest.KubernetesAt(t, s.URL, sitetest.BundleIn(t, w))
		t.Cleanup(api.Close)
		withFlags(t, api)

		w.Write("main.tf", config("two"))
		s.Workers[0].HangNextReboot()

		killed := w.Start("apply", "-auto-approve")
		sitetest.AwaitReboot(t, s, s.Workers[0])
		killed.KillProvider()

		if result := killed.Wait(); result.Exit == 0 {
			t.Fatalf("the apply was not killed:\n%s", result.Output())
		}

		if now := flag(t.Context(), t, api); now != "true" {
			t.Errorf("after the kill the flag is %q", now)
		}

		s.Workers[0].PowerOff()
		s.Workers[0].PowerOn()

		sitetest.Says(t, w.MustRun("apply", "-auto-approve"), "end the hook noout, which an earlier apply began")

		if now := flag(t.Context(), t, api); now != "false" {
			t.Errorf("after the next apply the flag is %q", now)
		}

		sitetest.ExpectNoChanges(t, w, "after the next apply")
		w.MustRun("destroy", "-auto-approve")
	})
}
