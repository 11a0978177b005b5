package machines_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/sim/kube"
)

// volumesHCL is a cluster whose worker reboots for each new content of a file.
func volumesHCL(s *sitetest.Site, drain, content string) string {
	return sitetest.ProviderHCL + `
provider "talosop" {
  progress_file = "progress.jsonl"
}
` + sitetest.SecretsHCL + s.ControlPlaneHCL("") + s.WorkersHCL(fmt.Sprintf(`
  drain          = { %s }
  config_patches = [yamlencode({ machine = { files = [{ path = "/var/a", op = "create", permissions = 420, content = %q }] } })]
`, drain, content))
}

// A machine reboots only after the volumes of its evicted pods are detached. The drain names those that stay
// attached, and ends as on_timeout says.
func TestAccVolumes_beforeAReboot(t *testing.T) {
	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		t.Helper()
		t.Parallel()

		s := sitetest.NewWith(t, sim.Options{Assets: filepath.Dir(clitest.Asset(t, "kube-apiserver"))}, 1, 1)
		w := sitetest.Applied(t, cli, volumesHCL(s, "", "a"))
		worker := s.Workers[0]
		bundle, _ := w.Attribute("talosop_secrets.this", "bundle").(string)
		api := s.Kubernetes(t, bundle)

		var attached atomic.Int64

		s.SetOnCall(func(c fault.Call) error {
			if c.Method != "Reboot" {
				return nil
			}

			left, err := api.StorageV1().VolumeAttachments().List(t.Context(), metav1.ListOptions{})
			if err == nil {
				attached.Store(int64(len(left.Items)))
			}

			return err
		})

		change := func(drain, content string) { w.Write("main.tf", volumesHCL(s, drain, content)) }
		boots := worker.Boots()
		expectBoots := func(want int) {
			t.Helper()

			if got := worker.Boots() - boots; got != want {
				t.Errorf("the worker was rebooted %d times, want %d", got, want)
			}
		}
		progressSays := func(want string) {
			t.Helper()

			if progress := w.Read("progress.jsonl"); !strings.Contains(progress, want) {
				t.Errorf("the progress does not say %q:\n%s", want, progress)
			}
		}

		// The volume lingers, and the reboot comes after it is detached.
		tftest.Must(t, worker.AttachVolume(t.Context(), kube.Volume{Name: "db", Linger: time.Second}))
		change("", "b")
		sitetest.Says(t, w.MustRun("apply", "-auto-approve"), "(drain, wait for volumes, reboot for machine.files)")
		expectBoots(1)
		progressSays("waiting, 1 volume is still attached: pvc-db (claim default/db, attacher csi.example.org)")

		if n := attached.Load(); n != 0 {
			t.Errorf("%d volumes were attached when the worker was rebooted", n)
		}

		// A volume that stays attached ends the run, which uncordons the node.
		tftest.Must(t, worker.AttachVolume(t.Context(), kube.Volume{Name: "stuck", Linger: -1}))
		change(`timeout = "5s"`, "c")

		if failed := sitetest.Fails(t, w, "apply", "-auto-approve"); !sitetest.Message(
			"1 volume is still attached: pvc-stuck (claim default/stuck, attacher csi.example.org)").
			MatchString(failed.Output()) {
			t.Errorf("the volume is not named:\n%s", failed.Output())
		}

		expectBoots(1)

		for _, node := range api.Nodes.Observe(t.Context()).Nodes {
			if node.Unschedulable {
				t.Errorf("node %s is still cordoned", node.Name)
			}
		}

		// Without the wait the plan shows the drain alone, and with skip the reboot follows the timeout.
		change(`wait_for_volumes = false`, "c")
		sitetest.Says(t, w.MustRun("plan"), "(drain, reboot for machine.files")
		change(`timeout = "5s", on_timeout = "skip"`, "c")
		w.MustRun("apply", "-auto-approve")
		expectBoots(2)
		progressSays("continuing although 1 volume is still attached: pvc-stuck")
	})
}
