package backupschedule_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/backup/schedule"
	"github.com/talosop/terraform-provider-talosop/internal/backup/storetest"
	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

const (
	scheduleAddress = "talosop_etcd_backup_schedule.this"
	scheduleNS      = "talosop-backup"
	ageRecipient    = "age1khpnnl86pzx96ttyjmldptsl5yn2v9jgmmzcjcufvk00ttkph9zs0ytgec"
)

// allowedNamespaces are those that Talos allows, one for each test.
var allowedNamespaces = []string{scheduleNS, "foreign", "silence", "others"}

// scheduleHCL is a schedule of a site's cluster in a real bucket. extra is additional arguments.
func scheduleHCL(s *scheduleSite, bucket *storetest.Server, extra string) string {
	return fmt.Sprintf(`
terraform {
  required_providers {
    talosop = { source = %q }
  }
}

variable "key" {
  type      = string
  ephemeral = true
}

provider "talosop" {
  s3 = { access_key_id = %q, secret_access_key = var.key }
}

resource "talosop_etcd_backup_schedule" "this" {
  cluster = {
    name     = "prod"
    endpoint = %q
    secrets  = file("secrets.yaml")
    talos_endpoints = [%q]
  }
  name       = "nightly"
  encryption = { recipients = [%q] }
  s3 = {
    bucket            = %q
    endpoint          = %q
    prefix            = "talos"
    ca                = file("ca.pem")
    access_key_id_wo     = "in-the-cluster"
    secret_access_key_wo = "THE-KEY-OF-THE-CLUSTER"
  }
%s
}
`, "talosop/talosop", storetest.AccessKey, s.endpoint, s.machine.Address().String(), ageRecipient, storetest.Bucket, bucket.Proxy.URL, extra)
}

// All tests with a cluster share one, in separate namespaces, because a real API server starts slowly.
func TestAccEtcdBackupSchedule_onACluster(t *testing.T) {
	t.Parallel()

	s := newScheduleSite(t)

	t.Run("life", s.testLife)
	t.Run("protocol", func(t *testing.T) {
		s.allow(t, allowedNamespaces...)

		for name, test := range map[string]func(*testing.T){
			"refused by Talos": s.testRefusedByTalos, "foreign": s.testForeign, "no namespace": s.testNoNamespace,
			"silence":         s.testSilence,
			"another cluster": s.testAnotherCluster,
		} {
			t.Run(name, test)
		}
	})
}

// A schedule is created, repaired, changed, run, thinned out, imported and removed, in a real API and a real bucket.
func (s *scheduleSite) testLife(t *testing.T) {
	bucket := storetest.New(t)
	w := clitest.NewWorkspace(t, clitest.Any(t)).KeepTrace()
	w.Write("secrets.yaml", s.Secrets)
	w.Write("ca.pem", bucket.CA)
	w.Setenv("TF_VAR_key", storetest.SecretKey)
	w.Setenv("AWS_EC2_METADATA_DISABLED", "true")

	const nightly = `  schedule = "0 3 * * *"` + "\n"

	write := func(extra string) { w.Write("main.tf", scheduleHCL(s, bucket, extra)) }

	write(nightly)
	w.Init()

	s.allow(t, allowedNamespaces...)
	s.runJobs()
	w.MustRun("apply", "-auto-approve")
	sitetest.ExpectNoChanges(t, w, "after the create")

	if got := s.objects(t, scheduleNS); got != "CronJob nightly, Secret nightly-s3, Secret nightly-talos, "+
		"TalosServiceAccount nightly-talos" {
		t.Errorf("there is %s", got)
	}

	s.isRepaired(t, w)
	s.runsOnDemand(t, w, write, nightly)
	s.isThinnedOut(t, w, bucket, write, nightly)
	s.isImported(t, w)

	if trace, state := w.Trace(), tftest.JSON(t, w.State()); strings.Contains(state, "THE-KEY-OF-THE-CLUSTER") ||
		strings.Contains(trace, storetest.SecretKey) {
		t.Error("a key is in state or in the log")
	}

	s.isRemoved(t, w, bucket)
}

// isRepaired changes and removes objects by hand: the plan names them, and the apply repairs them.
func (s *scheduleSite) isRepaired(t *testing.T, w *clitest.Workspace) {
	t.Helper()

	jobs := s.API.BatchV1().CronJobs(scheduleNS)
	c, err := jobs.Get(t.Context(), "nightly", metav1.GetOptions{})
	tftest.Must(t, err)

	c.Spec.Schedule = "0 4 * * *"
	c.Spec.Suspend = new(true)
	_, err = jobs.Update(t.Context(), c, metav1.UpdateOptions{})
	tftest.Must(t, err)

	secret, err := s.API.CoreV1().Secrets(scheduleNS).Get(t.Context(), "nightly-s3", metav1.GetOptions{})
	tftest.Must(t, err)

	if string(secret.Data["AWS_SECRET_ACCESS_KEY"]) != "THE-KEY-OF-THE-CLUSTER" ||
		string(secret.Data["AWS_ACCESS_KEY_ID"]) != "in-the-cluster" {
		t.Errorf("the Secret has %v", secret.Data)
	}

	secret.Data["AWS_ACCESS_KEY_ID"] = []byte("somebody-else")
	_, err = s.API.CoreV1().Secrets(scheduleNS).Update(t.Context(), secret, metav1.UpdateOptions{})
	tftest.Must(t, err)
	tftest.Must(t, s.any.Resource(talosAccounts).Namespace(scheduleNS).Delete(t.Context(), "nightly-talos",
		metav1.DeleteOptions{}))

	plan := w.MustRun("plan")
	for _, words := range []string{
		`CronJob talosop-backup/nightly: spec.schedule is "0 4 * * *" instead of "0 3 * * *"`,
		"spec.suspend is true instead of false",
		"Secret talosop-backup/nightly-s3: the data changed", "ServiceAccount talosop-backup/nightly-talos is missing",
	} {
		sitetest.Says(t, plan, words)
	}

	w.MustRun("apply", "-auto-approve")
	sitetest.ExpectNoChanges(t, w, "after the repair")

	if c, err = jobs.Get(t.Context(), "nightly", metav1.GetOptions{}); err != nil || c.Spec.Schedule != "0 3 * * *" ||
		*c.Spec.Suspend {
		t.Errorf("the CronJob is %+v, %v", c.Spec, err)
	}
}

// runsOnDemand requests a run that succeeds, then one that fails, and then that again.
func (s *scheduleSite) runsOnDemand(t *testing.T, w *clitest.Workspace, write func(string), nightly string) {
	t.Helper()

	write(nightly + `  run_now = "one"`)
	w.MustRun("apply", "-auto-approve")
	sitetest.ExpectNoChanges(t, w, "after a run on demand")

	if s.ended() != 1 || w.Attribute(scheduleAddress, "last_success") == nil ||
		w.Attribute(scheduleAddress, "last_run") == nil {
		t.Errorf("%d runs ended, the last success is %v", s.ended(), w.Attribute(scheduleAddress, "last_success"))
	}

	s.failing("failed to push encrypted snapshot: Access Denied.")
	write(nightly + `  run_now = "two"`)

	failed := w.Run("apply", "-auto-approve")
	if failed.Exit == 0 {
		t.Error("a run that failed is no error")
	}

	for _, words := range []string{"BackoffLimitExceeded", "exit code 255",
		"failed to push encrypted snapshot: Access Denied."} {
		sitetest.Says(t, failed, words)
	}

	s.failing("")
	w.MustRun("apply", "-auto-approve")
	sitetest.ExpectNoChanges(t, w, "after the run was tried again")

	if s.ended() != 3 {
		t.Errorf("%d runs ended", s.ended())
	}
}

// isThinnedOut has more snapshots in the bucket than retain keeps, and other objects.
func (s *scheduleSite) isThinnedOut(
	t *testing.T, w *clitest.Workspace, bucket *storetest.Server, write func(string), nightly string,
) {
	t.Helper()

	prefix, _ := w.Attribute(scheduleAddress, "key_prefix").(string)
	if !strings.HasPrefix(prefix, "talos/prod/nightly/prod-") {
		t.Fatalf("the keys begin with %s", prefix)
	}

	for day := range 4 {
		putSnapshot(t, bucket, prefix, time.Date(2026, 1, 1+day, 3, 0, 0, 0, time.UTC))
	}

	putObject(t, bucket, "talos/prod/nightly/prod-fedcba9876543210-2026-01-01T03:00:00Z.snap.age")

	write(nightly + `  run_now = "two"` + "\n  retain = { count = 3 }")
	w.MustRun("apply", "-auto-approve")
	keptAre(t, bucket, prefix, "2026-01-02", "2026-01-03", "2026-01-04")
	sitetest.ExpectNoChanges(t, w, "after the oldest one went")

	putSnapshot(t, bucket, prefix, time.Date(2026, 1, 5, 3, 0, 0, 0, time.UTC))

	plan := w.MustRun("plan")
	sitetest.Shows(t, plan, "snapshots_will_be_deleted")
	sitetest.Says(t, plan, prefix+"2026-01-02T03:00:00Z.snap.age")

	w.MustRun("apply", "-auto-approve")
	keptAre(t, bucket, prefix, "2026-01-03", "2026-01-04", "2026-01-05")

	if kept := tftest.JSON(t, w.Attribute(scheduleAddress, "kept")); kept != "3" {
		t.Errorf("kept is %s", kept)
	}

	// A bucket that cannot be read is a warning, and nothing is deleted.
	putSnapshot(t, bucket, prefix, time.Date(2026, 1, 6, 3, 0, 0, 0, time.UTC))
	w.Setenv("TF_VAR_key", "wrong")
	sitetest.Shows(t, w.MustRun("apply", "-auto-approve"), "schedule_snapshots_not_listed")
	keptAre(t, bucket, prefix, "2026-01-03", "2026-01-04", "2026-01-05", "2026-01-06")
	w.Setenv("TF_VAR_key", storetest.SecretKey)
	w.MustRun("apply", "-auto-approve")
}

// putSnapshot puts an object with the time of its name.
func putSnapshot(t *testing.T, bucket *storetest.Server, prefix string, at time.Time) {
	t.Helper()

	key := prefix + at.Format(time.RFC3339) + ".snap.age"
	putObject(t, bucket, key)
	tftest.Must(t, os.Chtimes(filepath.Join(bucket.Data, filepath.FromSlash(key)), at, at.Add(time.Minute)))
}

func putObject(t *testing.T, bucket *storetest.Server, key string) {
	t.Helper()

	at := filepath.Join(bucket.Data, filepath.FromSlash(key))
	tftest.Must(t, os.MkdirAll(filepath.Dir(at), 0o700))
	tftest.Must(t, os.WriteFile(at, []byte("a snapshot"), 0o600))
}

func keptAre(t *testing.T, bucket *storetest.Server, prefix string, days ...string) {
	t.Helper()

	found, err := filepath.Glob(filepath.Join(bucket.Data, filepath.FromSlash(prefix)+"*"))
	tftest.Must(t, err)

	var got []string
	for _, f := range found {
		got = append(got, strings.TrimPrefix(f, filepath.Join(bucket.Data, filepath.FromSlash(prefix)))[:len("2026-01-02")])
	}

	if strings.Join(got, " ") != strings.Join(days, " ") {
		t.Errorf("snapshots are left of %v, want %v", got, days)
	}

	others, err := filepath.Glob(filepath.Join(bucket.Data, "talos/prod/nightly/prod-fedcba9876543210-*"))
	tftest.Must(t, err)

	if len(others) != 1 {
		t.Errorf("of another cluster's snapshots %v are left", others)
	}
}

// isImported forgets the schedule and imports it: the next apply takes its objects over.
func (s *scheduleSite) isImported(t *testing.T, w *clitest.Workspace) {
	t.Helper()

	w.MustRun("state", "rm", scheduleAddress)
	w.MustRun("import", scheduleAddress, tftest.JSON(t, map[string]any{
		"secrets": "secrets.yaml", "control_plane": map[string]string{"cp-1": s.machine.Address().String()},
		"name": "nightly",
	}))

	if got := tftest.JSON(t, w.Attribute(scheduleAddress, "schedule")); got != `"0 3 * * *"` {
		t.Errorf("schedule is imported as %s", got)
	}

	w.MustRun("apply", "-auto-approve")
	sitetest.ExpectNoChanges(t, w, "after the import")
}

// isRemoved destroys the schedule: its objects are removed, the namespace once it is empty, and the snapshots stay.
func (s *scheduleSite) isRemoved(t *testing.T, w *clitest.Workspace, bucket *storetest.Server) {
	t.Helper()

	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "theirs", Namespace: scheduleNS}}
	_, err := s.API.CoreV1().Secrets(scheduleNS).Create(t.Context(), theirs, metav1.CreateOptions{})
	tftest.Must(t, err)

	sitetest.Says(t, w.MustRun("destroy", "-auto-approve"), "Secret talosop-backup/theirs")

	// The garbage collector removes Talos's Secret after its ServiceAccount.
	if got := s.objects(t, scheduleNS); got != "Secret nightly-talos, Secret theirs" {
		t.Errorf("left is %s", got)
	}

	tftest.Must(t, s.API.CoreV1().Secrets(scheduleNS).Delete(t.Context(), "theirs", metav1.DeleteOptions{}))
	w.MustRun("apply", "-auto-approve")
	sitetest.CountedAway(t, w, "etcd_backup_schedule")

	// Without its controller a namespace stays, and accepts no new objects.
	ns, err := s.API.CoreV1().Namespaces().Get(t.Context(), scheduleNS, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) && (err != nil || ns.DeletionTimestamp == nil) {
		t.Errorf("the namespace is %+v, %v", ns, err)
	}

	bundle, err := pki.Parse([]byte(s.Secrets))
	tftest.Must(t, err)

	spec := schedule.Spec{Name: "nightly", Cluster: "prod", Mark: bundle.Mark(), Bucket: schedule.Bucket{Prefix: "talos"}}
	if found, err := filepath.Glob(filepath.Join(bucket.Data, filepath.FromSlash(spec.KeyPrefix())+"*")); err != nil ||
		len(found) == 0 {
		t.Errorf("snapshots are left: %v, %v", found, err)
	}
}
