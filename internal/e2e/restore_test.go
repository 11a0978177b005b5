package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/talosop/terraform-provider-talosop/internal/backup/storetest"
	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// backedUp adds a backup to the quickstart, in a bucket of a real S3 server.
const backedUp = `
variable "bucket" {
  type = object({ name = string, endpoint = string, ca = string, key = string })
}

variable "secret_access_key" {
  sensitive = true
}

variable "restore" {
  default = ""
}

resource "talosop_etcd_backup" "this" {
  cluster = talosop_control_plane.this.cluster
  s3      = { bucket = var.bucket.name, endpoint = var.bucket.endpoint, ca = var.bucket.ca, prefix = "e2e" }
}
`

// bucketKeys are the credentials of the bucket.
const bucketKeys = `
provider "talosop" {
  s3 = {
    access_key_id     = var.bucket.key
    secret_access_key = var.secret_access_key
  }
}
`

// restoring asks for the snapshot of the variable.
const restoring = `
resource "talosop_control_plane" "this" {
  restore_from = {
    s3 = { bucket = var.bucket.name, endpoint = var.bucket.endpoint, ca = var.bucket.ca, key = var.restore }
  }
}
`

// rejoining lets machines without a hardware UUID be configured again, which needs the user's consent.
const rejoining = `
resource "talosop_control_plane" "this" {
  machines = { for name, address in var.control_planes : name => { address = address, rejoin = true } }
}
`

// restarting reboots all machines.
const restarting = `
resource "talosop_rolling_restart" "all" {
  cluster = talosop_control_plane.this.cluster
}
`

// restore: every control plane of a cluster is wiped after a backup, and the cluster comes back with its earlier
// data. The provider process is killed once, when etcd has its first member again. In the end every member reboots,
// because a member that was not restored well fails at its first reboot.
func (s site) restore(t *testing.T, cli clitest.CLI) {
	s.needs(t, "reset")

	w := s.workspace(t, cli)
	s.applied(t, w, "create")
	s.restored(t, w)
	s.destroy(t, w)
}

// restored backs up a cluster, wipes all of its control planes and restores them.
func (s site) restored(t *testing.T, w *clitest.Workspace) {
	t.Helper()

	api := s.kubernetesAPI(t, w)
	writesObjects(t, api)

	key, bucket := s.backsUp(t, w)

	s.wipe(t, w, s.controlPlanes...)

	// Without a request, nothing is restored or created again.
	if refused := w.Run("apply", "-auto-approve"); refused.Exit == 0 ||
		!strings.Contains(refused.Output(), "restore_from") {
		t.Errorf("the apply to a cluster that lost its etcd ended with %d and does not say what to do:\n%s", refused.Exit,
			refused.Output())
	}

	w.Setenv("TF_VAR_restore", key)
	w.Write("restore_override.tf", restoring)

	if !s.can("install") { // containers have no SMBIOS
		w.Write("rejoin_override.tf", rejoining)
	}

	if _, output := w.PlanIsEmpty(); !strings.Contains(output, "restore etcd on cp-") {
		t.Errorf("the plan does not say that etcd is restored:\n%s", output)
	}

	secrets := bundle(t, w)
	apply := w.Start("apply", "-auto-approve")
	s.await(t, apply, "an etcd member", func(ctx context.Context) error {
		_, err := s.members(ctx, secrets)

		return err
	})
	apply.KillProvider()
	failed(t, apply)

	s.applied(t, w, "the restore that was killed")
	holdsObjects(t, api)

	if from := w.Attribute("talosop_control_plane.this", "restored_from"); from != bucket+"/"+key {
		t.Errorf("restored_from is %v", from)
	}

	before := bootIDs(t, w)

	w.Write("restart.tf", restarting)
	s.applied(t, w, "a reboot of every machine")
	w.MustRun("apply", "-refresh-only", "-auto-approve")
	rebooted(t, w, before)
	holdsObjects(t, api)
}

// backsUp takes a backup of etcd and returns its key and the URL of its bucket.
func (s site) backsUp(t *testing.T, w *clitest.Workspace) (key, bucket string) {
	t.Helper()

	server := storetest.New(t)
	w.Setenv("TF_VAR_secret_access_key", storetest.SecretKey)
	w.Setenv("TF_VAR_bucket", inJSON(t, map[string]string{
		"name": storetest.Bucket, "endpoint": server.Direct, "ca": server.CA, "key": storetest.AccessKey,
	}))
	w.Write("backup.tf", backedUp)
	w.Write("provider_override.tf", bucketKeys)
	w.Init()
	w.MustRun("apply", "-auto-approve")
	plansNothing(t, w, "after the backup")

	key, ok := w.Attribute("talosop_etcd_backup.this", "key").(string)
	if !ok || key == "" {
		t.Fatal("the state has no key of a backup")
	}

	return key, server.Direct + "/" + storetest.Bucket
}

// objects are how many a backup has to bring back.
const objects = 20

// writesObjects makes them.
func writesObjects(t *testing.T, api kubernetes.Interface) {
	t.Helper()

	for i := range objects {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("e2e-%d", i)},
			Data: map[string]string{"n": fmt.Sprint(i)}}
		if _, err := api.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(t.Context(), object,
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// holdsObjects checks that all of them are there.
func holdsObjects(t *testing.T, api kubernetes.Interface) {
	t.Helper()

	found, err := api.CoreV1().ConfigMaps(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}

	for i := range objects {
		if !has(found.Items, fmt.Sprintf("e2e-%d", i), fmt.Sprint(i)) {
			t.Errorf("e2e-%d did not come back", i)
		}
	}
}

func has(objects []corev1.ConfigMap, name, n string) bool {
	for _, o := range objects {
		if o.Name == name {
			return o.Data["n"] == n
		}
	}

	return false
}

func inJSON(t *testing.T, value any) string {
	t.Helper()

	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}

	return string(encoded)
}

// wipe resets machines outside Terraform and waits for maintenance mode.
func (s site) wipe(t *testing.T, w *clitest.Workspace, addresses ...string) {
	t.Helper()

	b := bundle(t, w)
	for _, address := range addresses {
		request := &machine.ResetRequest{Reboot: true}

		// A full reset would remove Talos itself from the disk; containers have no partitions.
		if s.can("install") {
			request.SystemPartitionsToWipe = []*machine.ResetPartitionSpec{
				{Label: constants.StatePartitionLabel, Wipe: true}, {Label: constants.EphemeralPartitionLabel, Wipe: true},
			}
		}

		if err := s.client(t, b, address).ResetGeneric(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}

	eventually(t, s.boot, "wiped machines in maintenance mode", func(ctx context.Context) error {
		return allInMaintenance(ctx, addresses)
	})
}

// restoringFile asks for a snapshot in a file next to the configuration.
const restoringFile = `
resource "talosop_control_plane" "this" {
  restore_from = {
    file   = { path = "etcd.snapshot" }
    sha256 = filesha256("etcd.snapshot")
  }
}
`

// TestAccRestore_killed kills the provider process with SIGKILL at the n-th call that changes a machine, during the
// restore of a cluster whose control planes were all wiped. On every change it kills before the machine has the
// snapshot and after it started from it. In make test-all it kills before and after every call. The next apply ends
// with one etcd that started from the snapshot.
func TestAccRestore_killed(t *testing.T) {
	const (
		first = 3 // of three configurations, an upload and a bootstrap
		last  = 5
	)

	clis := clitest.All(t)

	for n := 1; n <= last; n++ {
		for _, served := range []bool{false, true} {
			if (n <= first || served != (n == last)) && !testenv.Everything() {
				continue
			}

			t.Run(fmt.Sprintf("%d served=%t", n, served), func(t *testing.T) {
				t.Parallel()

				s, sim := standIn(t, 3, 1)
				w := s.workspace(t, clis[n%len(clis)])
				w.MustRun("apply", "-auto-approve")
				s.talosctl(t, bundle(t, w)).ask(s.controlPlanes[0], "etcd", "snapshot", filepath.Join(w.Dir, "etcd.snapshot"))
				s.wipe(t, w, s.controlPlanes...)

				w.Write("restore_override.tf", restoringFile)
				kill(t, sim, w, n, served, "apply", "-auto-approve")
				w.MustRun("apply", "-auto-approve")
				s.isUsable(t, w)
				plansNothing(t, w, "after the restore that was killed")

				if etcds := sim.EtcdClusters(); etcds != 1 {
					t.Errorf("%d etcd clusters, want 1", etcds)
				}

				if from := w.Attribute("talosop_control_plane.this", "restored_from"); from != "etcd.snapshot" {
					t.Errorf("restored_from is %v", from)
				}
			})
		}
	}
}
