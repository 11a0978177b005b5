package provider_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/hosttest"
)

// backedUpHCL is a cluster in pods, and its backup in a folder.
const backedUpHCL = `
provider "talosop" {
  host = { kubeconfig_path = %q }
}

resource "talosop_cluster" "this" {
  mode                = "container"
  name                = "dev"
  secrets             = talosop_secrets.this.bundle
  talos_version       = "v1.14.1"
  kubernetes_version  = "v1.36.3"
  deletion_protection = false
  host                = { namespace = %q }
  control_plane       = { replicas = 1 }
}

resource "talosop_etcd_backup" "this" {
  cluster    = talosop_cluster.this.cluster
  file       = { path = %q }
  encryption = { recipients = [%q] }
}
`

// drill is a cluster with a backup, and a stack beside it that restores it.
type drill struct {
	*clitest.Workspace

	host      *hosttest.Host
	namespace string
}

func newDrill(t *testing.T, cli clitest.CLI, stack string) *drill {
	t.Helper()

	host := hosttest.Shared(t)
	namespace := host.Namespace(t)
	identity := sitetest.NewIdentity(t)
	folder := t.TempDir()

	production := sitetest.Applied(t, cli, sitetest.ProviderHCL+sitetest.SecretsHCL+
		fmt.Sprintf(backedUpHCL, host.Kubeconfig(), namespace, folder, identity.Recipient()))
	secrets, _ := production.Attribute("talosop_secrets.this", "bundle").(string)

	w := clitest.NewWorkspace(t, cli).Example("../../examples", "stacks/"+stack)
	setVariables(t, w, map[string]any{
		"kubeconfig": host.Kubeconfig(), "secrets": secrets, "identities": []string{identity.String()},
		"cluster":   map[string]string{"name": "dev", "endpoint": "https://192.0.2.1:6443", "mode": "container"},
		"backups":   map[string]any{"file": map[string]string{"path": folder}},
		"namespace": namespace + "-drill",
	})
	w.Setenv("CLI", cli.Path)

	return &drill{w, host, namespace + "-drill"}
}

// run runs a script of the example, and returns its output, its report, and its error.
func (d *drill) run(t *testing.T, command ...string) (output string, report map[string]any, failed error) {
	t.Helper()

	script := exec.CommandContext(t.Context(), "sh", command...)
	script.Dir, script.Env = d.Dir, d.Environ()

	began := time.Now()
	out, failed := script.CombinedOutput()
	t.Logf("the script took %s", time.Since(began).Round(time.Second))

	content, err := os.ReadFile(filepath.Join(d.Dir, "report.json"))
	if err == nil && len(content) > 0 {
		_ = json.Unmarshal(content, &report) // without outputs there is none
	}

	return string(out), report, failed
}

// expectGone checks that nothing is left of a restored cluster.
func (d *drill) expectGone(t *testing.T, name string) {
	t.Helper()

	left, err := d.host.Objects(t.Context(), d.namespace, workload.LabelCluster+"="+name)
	tftest.Must(t, err)

	snapshots, err := filepath.Glob(filepath.Join(d.Dir, ".restore-drill", "*", "*.db*"))
	tftest.Must(t, err)

	if len(left)+len(snapshots) > 0 {
		t.Errorf("%s left %s, and the snapshots %s", name, left, snapshots)
	}
}

// The drill restores the newest snapshot in pods beside the cluster, restarts every member, finds all objects twice,
// measures both times, and leaves nothing. Without the objects it fails, and leaves nothing either.
func TestAccExamples_restoreDrill(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		d := newDrill(t, cli, "restore-drill")

		output, report, err := d.run(t, "drill.sh")
		if err != nil {
			t.Fatalf("the drill failed: %v\n%s", err, output)
		}

		if missing, _ := report["missing"].(map[string]any); missing == nil || len(missing) > 0 {
			t.Errorf("missing are %v", report["missing"])
		}

		counted, _ := report["objects"].(map[string]any)
		maps, _ := counted["configmaps"].(map[string]any)

		if maps["snapshot"] != maps["restarted"] || maps["restored"] != maps["snapshot"] || maps["snapshot"] == 0.0 {
			t.Errorf("objects are %v", counted)
		}

		for _, duration := range []string{"rpo_seconds", "rto_seconds"} {
			if seconds, ok := report[duration].(float64); !ok || seconds < 1 || seconds > 600 {
				t.Errorf("%s is %v", duration, report[duration])
			}
		}

		for i := range 3 {
			pod := fmt.Sprintf("restore-drill-cp-%d-0", i)
			if m := d.host.Machine(d.namespace, pod); m == nil || m.Boots() < 2 {
				t.Errorf("%s did not restart after the restore", pod)
			}
		}

		d.expectGone(t, "restore-drill")

		if testenv.Everything() {
			d.misses(t)
		}
	})
}

// misses runs a drill in which objects are missing: the snapshot has more of them.
func (d *drill) misses(t *testing.T) {
	t.Helper()

	d.Setenv("TF_VAR_control_planes", "1")
	d.Write("../../modules/restore-drill/more_override.tf", `
locals {
  snapshot = merge(data.talosop_etcd_backups.this.backups[0], { objects = { configmaps = 99 } })
}
`)

	output, report, err := d.run(t, "drill.sh")
	if err == nil || !strings.Contains(output, "Objects are missing after the restore") {
		t.Errorf("a drill without all objects passed (%v):\n%s", err, output)
	}

	if missing, _ := report["missing"].(map[string]any); missing["configmaps"] == nil {
		t.Errorf("missing are %v", report["missing"])
	}

	d.expectGone(t, "restore-drill")
}

// A rehearsal copies the cluster without what is bound to its machines, applies the change to the copy, and leaves
// nothing. A change that the plan refuses fails, too.
func TestAccExamples_rehearsal(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		d := newDrill(t, cli, "rehearsal")
		setVariables(t, d.Workspace, map[string]any{"control_planes": 1, "config_patches": []string{
			"machine: {install: {disk: /dev/sda}}\n---\napiVersion: v1alpha1\nkind: KubeNodeConfig\nlabels: {pool: a}\n",
			"apiVersion: v1alpha1\nkind: LinkConfig\nname: eth0\naddresses: [{address: 10.0.0.11/24}]\n",
		}})
		d.Write("change.tfvars",
			`planned = { kubernetes = "v1.37.0", config_patches = ["machine: {sysctls: {vm.swappiness: 1}}"] }`)

		output, report, err := d.run(t, "rehearse.sh", "change.tfvars")
		if err != nil {
			t.Fatalf("the rehearsal failed: %v\n%s", err, output)
		}

		copied, _ := report["copy"].(map[string]any)
		changed, _ := report["change"].(map[string]any)

		skipped := []any{"machine.install: disks and volumes", "LinkConfig eth0: addresses and links",
			"machine.sysctls: kernel and devices"}
		if diff := cmp.Diff(map[string]any{"copy": skipped[:2], "change": skipped},
			map[string]any{"copy": copied["skipped"], "change": changed["skipped"]}); diff != "" {
			t.Errorf("skipped parts differ (-want +got):\n%s", diff)
		}

		if conditions, ok := changed["conditions"].(map[string]any); !ok || len(conditions) > 0 {
			t.Errorf("conditions are %v", changed["conditions"])
		}

		if operations := tftest.JSON(t, changed["operations"]); !strings.Contains(operations, "v1.37.0") {
			t.Errorf("the change did %s", operations)
		}

		if seconds, _ := report["seconds"].(map[string]any); len(seconds) != 3 || len(report["failed"].([]any)) > 0 {
			t.Errorf("the report is %v", report)
		}

		d.expectGone(t, "rehearsal")

		if testenv.Everything() {
			d.Write("change.tfvars", `planned = { config_patches = ["machine: {kubelet: {extraArg: {v: 2}}}"] }`)

			if output, _, err := d.run(t, "rehearse.sh", "change.tfvars"); err == nil || !strings.Contains(output, "extraArg") {
				t.Errorf("a change that the plan refuses passed (%v):\n%s", err, output)
			}

			d.expectGone(t, "rehearsal")

			// The host has the default networks of machines.
			setVariables(t, d.Workspace, map[string]any{
				"cluster": map[string]string{"name": "dev", "endpoint": "https://192.0.2.1:6443"}})

			output, report, err := d.run(t, "rehearse.sh", "change.tfvars")
			if err == nil || report["change"] != nil || !strings.Contains(strings.Join(strings.Fields(output), " "),
				"The service network 10.96.0.0/12 of the cluster overlaps with the network of Services of the host") {
				t.Errorf("a copy in the networks of the host passed (%v):\n%s", err, output)
			}

			d.expectGone(t, "rehearsal")
		}
	})
}
