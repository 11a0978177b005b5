package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
)

// drillModule is the module that restores the newest snapshot into throwaway pods.
const drillModule = "../../examples/modules/restore-drill"

// drilled calls the module for snapshots in a folder.
const drilled = `
variable "host" { type = any }
variable "secrets" { sensitive = true }
variable "patches" { type = list(string) }
variable "backups" {}
variable "kubeconfig" {}

terraform {
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

provider "talosop" {
  progress_file = "${path.root}/progress.jsonl"
  host          = { kubeconfig_path = var.kubeconfig }
}

module "drill" {
  source         = "./restore-drill"
  name           = "e2e"
  cluster        = { name = "e2e", endpoint = "https://e2e.example.org:6443", mode = "container" }
  secrets        = var.secrets
  backups        = { file = { path = var.backups } }
  host           = var.host
  config_patches = var.patches
  control_planes = 3
}

output "report" {
  value = {
    missing = module.drill.missing
    objects = module.drill.objects
    rto     = module.drill.rto_seconds
  }
}
`

// drill: the snapshot of a cluster that is gone comes back as three control planes in pods. All of its objects are
// there, also after each member started again, and nothing is left on the host in the end.
func (h hosted) drill(t *testing.T, cli clitest.CLI) {
	h.controlPlanes, h.workers = 1, 1

	source := h.workspace(t, cli)
	source.Write("backup.tf", fileBackup)
	h.applied(t, source, "create")
	h.remember(t, source)
	source.MustRun("apply", "-auto-approve", "-replace=talosop_etcd_backup.this")

	secrets, ok := source.Attribute("talosop_secrets.this", "bundle").(string)
	if !ok {
		t.Fatal("the state holds no secrets bundle")
	}

	h.destroy(t, source)

	w := clitest.NewWorkspace(t, cli)
	w.Write("main.tf", drilled)

	if err := os.CopyFS(filepath.Join(w.Dir, "restore-drill"), os.DirFS(drillModule)); err != nil {
		t.Fatal(err)
	}

	w.Write(variables, inJSON(t, map[string]any{
		"kubeconfig": h.kubeconfig, "secrets": secrets, "patches": append([]string{}, h.patches...),
		"backups": filepath.Join(source.Dir, "backups"),
		"host": map[string]any{"namespace": hostedNamespace, "create_namespace": true, "image": h.image,
			"pod": map[string]any{"resources": map[string]any{"requests": map[string]any{"cpu": "250m", "memory": "1Gi"}},
				"storage": map[string]any{"var": "10Gi"}}},
	}))
	w.Init()

	began := time.Now()
	w.MustRun("apply", "-auto-approve")
	t.Logf("the drill: applied in %s", time.Since(began).Round(time.Second))

	var report struct {
		Missing map[string]any
		Objects map[string]struct{ Snapshot, Restored, Restarted int }
		RTO     int
	}

	output := w.MustRun("output", "-json", "report").Output()
	if err := json.Unmarshal([]byte(output), &report); err != nil {
		t.Fatalf("%v: %s", err, output)
	}

	if maps := report.Objects["configmaps"]; len(report.Missing) > 0 || report.RTO <= 0 || maps.Snapshot == 0 ||
		maps.Restarted < maps.Snapshot {
		t.Errorf("the drill reports %s", output)
	}

	t.Logf("the report of the drill: %s", output)
	h.destroy(t, w)
}
