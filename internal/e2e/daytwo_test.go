package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
)

// hookParts are what the hooks consist of.
const hookParts = `
variable "calls" {
  default = "http://127.0.0.1:1"
}

locals {
  calls = {
    before = { http = { url = var.calls, method = "POST", body = "{{machine}}" } }
    after  = { http = { url = var.calls, method = "DELETE", body = "{{machine}}" } }
  }
  config_map = { api_version = "v1", kind = "ConfigMap", namespace = "default", name = "maintenance" }
}
`

// hooked adds hooks to the quickstart: an HTTP call for each machine, and around the rollout of the workers a patch. A
// Job runs where machines run pods.
const hooked = `
resource "talosop_control_plane" "this" {
  hooks = { calls = local.calls }
}

resource "talosop_worker" "this" {
  hooks = {
    calls = local.calls
    state = {
      scope  = "rollout"
      before = { patch = merge(local.config_map, { patch = yamlencode({ data = { state = "busy" } }) }) }
      after  = { patch = merge(local.config_map, { patch = yamlencode({ data = { state = "idle" } }) }) }
    }
    %s
  }
}
`

// jobHook is a hook whose Job runs a program that every control plane has the image of.
const jobHook = `job = { before = { job = yamlencode({
      apiVersion = "batch/v1"
      kind       = "Job"
      metadata   = { name = "e2e", namespace = "default" }
      spec = { template = { spec = {
        restartPolicy = "Never"
        containers    = [{ name = "e2e", image = "registry.k8s.io/kube-scheduler:${var.kubernetes_version}",
          command = ["kube-scheduler", "--version"] }]
        nodeSelector  = { "node-role.kubernetes.io/control-plane" = "" }
        tolerations   = [{ operator = "Exists" }]
      } } }
    }) } }
`

// leaving takes a machine out of the cluster as soon as the resource goes.
const leaving = `
resource "talosop_machine_leave" "this" {
  cluster = talosop_control_plane.this.cluster
  machine = %q
}
`

// dayTwo: a configuration that takes a reboot runs hooks around each machine, and waits for a volume that is detached
// late. The provider process is killed during that wait, and the next apply ends the hooks, waits and reboots each
// machine once. Then a control plane leaves before its VM would be destroyed.
func (s site) dayTwo(t *testing.T, cli clitest.CLI) {
	s.needs(t, "reset")
	s.needs(t, "reboot")

	w := s.workspace(t, cli)
	calls := &callLog{}

	server := httptest.NewServer(calls)
	t.Cleanup(server.Close)
	w.Setenv("TF_VAR_calls", server.URL)

	job := ""
	if s.image != "" {
		job = jobHook
	}

	w.Write("hooks.tf", hookParts)
	w.Write("hooked_override.tf", fmt.Sprintf(hooked, job))
	s.applied(t, w, "create")

	if made := calls.all(); len(made) > 0 {
		t.Errorf("the create called %v, want no hooks", made)
	}

	s.rebootsBehindAVolume(t, w, calls)
	s.planeLeaves(t, w)
	s.destroy(t, w)
}

// rebootsBehindAVolume rolls out a configuration that takes a reboot while a volume is attached to a worker.
func (s *site) rebootsBehindAVolume(t *testing.T, w *clitest.Workspace, calls *callLog) {
	t.Helper()

	api, worker := s.kubernetesAPI(t, w), observed(t, w)["talosop_worker.this"]["worker-1"].NodeName
	attach(t, api, worker)

	before := bootIDs(t, w)
	s.patches = append(s.patches, rebootPatch)
	w.Write(variables, s.variables(t, false))

	apply := w.Start("apply", "-auto-approve")
	s.await(t, apply, "the wait for a volume", waitsForVolume(w, 1))
	apply.KillProvider()
	failed(t, apply)

	if state := maintenanceState(t, api); state != "busy" {
		t.Errorf("the ConfigMap says %q after the kill, want what the hook wrote", state)
	}

	if _, plan := w.PlanIsEmpty(); !strings.Contains(plan, "end the hooks calls and state") {
		t.Errorf("the plan after the kill does not end the hook:\n%s", plan)
	}

	apply = w.Start("apply", "-auto-approve")
	s.await(t, apply, "the wait for a volume of the second apply", waitsForVolume(w, 2))

	if boot := s.workerBoot(t, w); boot != before["worker-1"] {
		t.Errorf("the worker is in boot %s although its volume is attached, was in %s", boot, before["worker-1"])
	}

	if err := api.StorageV1().VolumeAttachments().Delete(t.Context(), attachment, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	if result := apply.Wait(); result.Exit != 0 {
		t.Fatalf("the second apply failed:\n%s", result.Output())
	}

	s.applied(t, w, "a configuration that takes a reboot, killed during the wait for a volume")
	s.afterHooks(t, w, calls, api)

	for name, boot := range bootIDs(t, w) {
		if boot == before[name] {
			t.Errorf("%s was not rebooted", name)
		}
	}
}

// afterHooks checks what the hooks left.
func (s site) afterHooks(t *testing.T, w *clitest.Workspace, calls *callLog, api kubernetes.Interface) {
	t.Helper()

	if state := maintenanceState(t, api); state != "idle" {
		t.Errorf("the ConfigMap says %q after the rollout, want what the hook wrote at its end", state)
	}

	lease, err := api.CoordinationV1().Leases(metav1.NamespaceSystem).Get(t.Context(), "talosop", metav1.GetOptions{})
	if err != nil || lease.Annotations["talosop.dev/hooks"] != "" {
		t.Errorf("the Lease is %v (%v), want no record of a hook", lease.Annotations, err)
	}

	made := calls.all()

	for name := range bootIDs(t, w) {
		// The kill interrupts the hook of the worker, so its calls come twice.
		first, last := slices.Index(made, "POST "+name), slices.Index(made, "DELETE "+name)
		if first < 0 || last < first {
			t.Errorf("the hooks called %v, want POST and then DELETE for %s", made, name)
		}
	}

	if s.image == "" {
		return
	}

	events, err := api.CoreV1().Events(metav1.NamespaceDefault).List(t.Context(),
		metav1.ListOptions{FieldSelector: "involvedObject.kind=Job,reason=Completed"})
	if err != nil || len(events.Items) == 0 {
		t.Errorf("no Job of a hook completed (%v)", err)
	}
}

// planeLeaves takes the last control plane out of the cluster, as before the destroy of its VM, and then out of the
// configuration.
func (s *site) planeLeaves(t *testing.T, w *clitest.Workspace) {
	t.Helper()

	if len(s.controlPlanes) < 3 {
		t.Log("left out: a control plane that leaves, because the cluster has fewer than three")

		return
	}

	last := len(s.controlPlanes) - 1
	going := s.controlPlanes[last]

	w.Write("leaving.tf", fmt.Sprintf(leaving, going))
	s.applied(t, w, "a resource that lets a control plane leave")

	w.Write("leaving.tf", "")
	s.controlPlanes = s.controlPlanes[:last]
	s.applied(t, w, "a control plane that left")
	eventually(t, s.boot, "the machine that left in maintenance mode",
		func(ctx context.Context) error { return waitsInMaintenance(ctx, going) })
}

// attachment is the name of the VolumeAttachment.
const attachment = "csi-e2e"

// attach attaches a volume of a driver that no program serves to a node, and makes the ConfigMap of the hooks.
func attach(t *testing.T, api kubernetes.Interface, node string) {
	t.Helper()

	volume := "e2e"

	_, err := api.StorageV1().VolumeAttachments().Create(t.Context(), &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: attachment},
		Spec: storagev1.VolumeAttachmentSpec{Attacher: "csi.example.org", NodeName: node,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	_, err = api.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "maintenance"}, Data: map[string]string{"state": "idle"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// maintenanceState is what the hooks wrote into their ConfigMap.
func maintenanceState(t *testing.T, api kubernetes.Interface) string {
	t.Helper()

	found, err := api.CoreV1().ConfigMaps(metav1.NamespaceDefault).Get(t.Context(), "maintenance", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}

	return found.Data["state"]
}

// waitsForVolume returns nil when the n-th apply reports that it waits for the volume.
func waitsForVolume(w *clitest.Workspace, n int) func(context.Context) error {
	return func(context.Context) error {
		if strings.Count(w.Read("progress.jsonl"), "waiting, 1 volume is still attached") < n {
			return errors.New("no apply waits for the volume")
		}

		return nil
	}
}

// workerBoot is the id of the boot that the first worker is in, as talosctl reads it.
func (s site) workerBoot(t *testing.T, w *clitest.Workspace) string {
	t.Helper()

	return strings.TrimSpace(s.talosctl(t, bundle(t, w)).ask(s.workers[0], "read", "/proc/sys/kernel/random/boot_id"))
}

// callLog records the requests of hooks.
type callLog struct {
	mu   sync.Mutex
	made []string
}

func (c *callLog) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)

		return
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	c.made = append(c.made, r.Method+" "+string(body))
}

func (c *callLog) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()

	return slices.Clone(c.made)
}
