package etcdbackup_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/backup/s3"
	"github.com/talosop/terraform-provider-talosop/internal/backup/storetest"
	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

const backupAddress = "talosop_etcd_backup.this"

const backupPassphrase = "only-those-who-know-this-open-it"

// backupHCL is a backup with all secrets in ephemeral variables.
func backupHCL(b *storetest.Server) string {
	return fmt.Sprintf(`
variable "key" {
  type      = object({ id = string, secret = string, passphrase = string })
  ephemeral = true
}

variable "run" {
  default = "1"
}

resource "talosop_etcd_backup" "this" {
  cluster = talosop_control_plane.this.cluster

  s3 = {
    bucket            = %q
    endpoint          = %q
    access_key_id_wo     = var.key.id
    secret_access_key_wo = var.key.secret
    ca                = <<-EOT
%s    EOT
  }

  encryption = { passphrase_wo = var.key.passphrase }
  triggers   = { run = var.run }
  retain     = { count = 5 }
}
`, storetest.Bucket, b.Proxy.URL, b.CA)
}

// One apply creates a cluster and its first backup, the next one is an update in place, and write-only values are
// only in the requests to the bucket.
func TestAccEtcdBackup_withItsCluster(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccEtcdBackup_onACluster", "TestBackup_unknownValues")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		server := storetest.New(t)
		s := sitetest.New(t, 1, 0)

		w := clitest.NewWorkspace(t, cli).KeepTrace()
		w.Write("main.tf", sitetest.ProviderHCL+sitetest.SecretsHCL+s.ControlPlaneHCL("")+backupHCL(server))
		w.Setenv("TF_VAR_key", tftest.JSON(t,
			map[string]string{"id": storetest.AccessKey, "secret": storetest.SecretKey, "passphrase": backupPassphrase}))
		w.Init()

		output := w.MustRun("apply", "-auto-approve").Output()
		first, _ := w.Attribute(backupAddress, "key").(string)

		sitetest.ExpectNoChanges(t, w, "after the first backup")

		output += w.MustRun("plan", "-var", "run=2", "-out", "backup.plan").Output()
		planned, planFile := w.MustRun("show", "-json", "backup.plan").Output(), w.PlanFile("backup.plan")

		if !strings.Contains(output, "1 to change") || !strings.Contains(output, "updated in-place") {
			t.Errorf("the second backup is no update in place:\n%s", output)
		}

		output += w.MustRun("apply", "-auto-approve", "-var", "run=2").Output()
		second, _ := w.Attribute(backupAddress, "key").(string)

		if kept := tftest.JSON(t, w.Attribute(backupAddress, "kept")); kept != "2" || first == second || second == "" {
			t.Errorf("the first key is %s, the second %s, and %s are kept", first, second, kept)
		}

		expectBackupOpens(t, server, w, second)

		state := w.Read("terraform.tfstate")

		output += w.MustRun("destroy", "-auto-approve", "-var", "run=2").Output()

		for _, secret := range []string{storetest.SecretKey, backupPassphrase} {
			for where, text := range map[string]string{"output": output, "log": w.Trace(), "state": state, "plan": planned,
				"plan file": planFile} {
				if strings.Contains(text, secret) {
					t.Errorf("the %s of %s holds %s", where, cli.Name, secret)
				}
			}
		}

		// A log or a plan file without the backup would prove nothing.
		if !strings.Contains(planFile, first) {
			t.Errorf("the plan file of %s does not tell of the backup", cli.Name)
		}

		if !strings.Contains(w.Trace(), second) {
			t.Errorf("the log of %s does not tell of the backup", cli.Name)
		}
	})
}

// expectBackupOpens checks that the passphrase opens a snapshot.
func expectBackupOpens(t *testing.T, server *storetest.Server, w *clitest.Workspace, key string) {
	t.Helper()

	bundle, _ := w.Attribute("talosop_secrets.this", "bundle").(string)

	opened, err := s3.New(t.Context(), server.Config())
	if err != nil {
		t.Fatal(err)
	}

	archive := backup.Archive{Store: opened, Cluster: "test", Mark: tftest.MarkOf(t, bundle),
		RecordKeys: tftest.RecordKeysOf(t, bundle)}

	snapshot, err := archive.Fetch(t.Context(), key, backup.Keys{Passphrase: backupPassphrase})
	if err != nil {
		t.Fatal(err)
	}

	if err := snapshot.Close(); err != nil {
		t.Error(err)
	}
}
