package schedule_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/backup/schedule"
	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

type object = map[string]any

const (
	mark      = "0123456789abcdef"
	recipient = "age1khpnnl86pzx96ttyjmldptsl5yn2v9jgmmzcjcufvk00ttkph9zs0ytgec"
)

func nightly() schedule.Spec {
	return schedule.Spec{
		Namespace: "backups", Name: "nightly", Cluster: "prod", Mark: mark,
		Schedule: "0 3 * * *", TimeZone: "Europe/Berlin",
		Bucket: schedule.Bucket{Name: "b", Region: "eu-central-1", Endpoint: "https://s3.example.org",
			Prefix: "talos/etcd", PathStyle: true, CA: "PEM"},
		Recipient: recipient,
		Compress:  true,
		Image: schedule.Image{Repository: "registry.example.org:5000/talos-backup", Tag: schedule.DefaultTag,
			PullSecret: "pull"},
		Successful: 3, Failed: 1, StartingDeadline: time.Minute, RunTimeout: time.Hour,
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"memory": apiresource.MustParse("64Mi")},
			Limits:   corev1.ResourceList{"memory": apiresource.MustParse("1Gi")},
		},
		NodeSelector: map[string]string{"kubernetes.io/arch": "amd64"},
		Tolerations: []corev1.Toleration{
			{Key: "node-role.kubernetes.io/control-plane", Operator: "Exists", Effect: "NoSchedule"}},
	}
}

// cronJob is the rendered CronJob as Kubernetes reads it.
func cronJob(t *testing.T, s schedule.Spec) batchv1.CronJob {
	t.Helper()

	var c batchv1.CronJob
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(s.CronJob(), &c, true); err != nil {
		t.Fatal(err)
	}

	return c
}

func variables(t *testing.T, s schedule.Spec) map[string]string {
	t.Helper()

	out := map[string]string{}

	for _, v := range cronJob(t, s).Spec.JobTemplate.Spec.Template.Spec.Containers[0].Env {
		out[v.Name] = v.Value

		if v.ValueFrom != nil {
			out[v.Name] = "Secret " + v.ValueFrom.SecretKeyRef.Name
		}
	}

	return out
}

// The environment matches what talos-backup reads.
func TestCronJob_environmentIsThatOfTalosBackup(t *testing.T) {
	t.Parallel()

	secret := "Secret nightly-s3"
	want := map[string]string{
		"BUCKET": "b", "CLUSTER_NAME": "prod-" + mark, "S3_PREFIX": "talos/etcd/prod/nightly", "AWS_REGION": "eu-central-1",
		"CUSTOM_S3_ENDPOINT": "https://s3.example.org", "USE_PATH_STYLE": "true", "ENABLE_COMPRESSION": "true",
		"AGE_X25519_PUBLIC_KEY": recipient,
		"SSL_CERT_DIR":          "/etc/ssl/certs:/etc/talosop",
		"AWS_ACCESS_KEY_ID":     secret, "AWS_SECRET_ACCESS_KEY": secret, "AWS_SESSION_TOKEN": secret,
	}

	if got := variables(t, nightly()); !reflect.DeepEqual(got, want) {
		t.Errorf("the environment is %v\nwant %v", got, want)
	}

	plain := nightly()
	plain.Bucket = schedule.Bucket{Name: "b", Endpoint: "https://s3.example.org"}
	plain.Recipient, plain.Compress = "", false

	want = map[string]string{
		"BUCKET": "b", "CLUSTER_NAME": "prod-" + mark, "S3_PREFIX": "prod/nightly", "AWS_REGION": "us-east-1",
		"CUSTOM_S3_ENDPOINT": "https://s3.example.org", "DISABLE_ENCRYPTION": "true",
		"AWS_ACCESS_KEY_ID": secret, "AWS_SECRET_ACCESS_KEY": secret, "AWS_SESSION_TOKEN": secret,
	}

	if got := variables(t, plain); !reflect.DeepEqual(got, want) {
		t.Errorf("the environment of a plain one is %v\nwant %v", got, want)
	}
}

// Each version of talos-backup has its own setting for path style; the old ones cannot compress.
func TestImage_versions(t *testing.T) {
	t.Parallel()

	for tag, old := range map[string]bool{
		"v0.1.0-alpha.0": true, "v0.1.0-beta.2": true, "v0.1.0-beta.2-1-g9ccc125": true, "v0.1.0-beta.3": true,
		"v0.1.0-beta.3@sha256:00":  true,
		"v0.1.0-beta.3-3-g38dad7c": false, "v0.1.0-beta.4": false, "v0.1.0": false, "latest": false,
	} {
		s := nightly()
		s.Image.Tag = tag

		if s.Image.Compresses() == old {
			t.Errorf("%s compresses: %v", tag, !old)
		}

		if got, want := variables(t, s)["USE_PATH_STYLE"], map[bool]string{true: "false", false: "true"}[old]; got != want {
			t.Errorf("USE_PATH_STYLE of %s is %s, want %s", tag, got, want)
		}
	}
}

// Pods conform to the PodSecurity profile "restricted" (Kubernetes 1.36, Pod Security Standards),
// have no token of Kubernetes, and mount what Talos gives where its clients look.
func TestCronJob_podIsRestricted(t *testing.T) {
	t.Parallel()

	job := cronJob(t, nightly()).Spec.JobTemplate.Spec
	pod := job.Template.Spec
	c := pod.Containers[0]

	if !*pod.SecurityContext.RunAsNonRoot || *pod.SecurityContext.RunAsUser == 0 ||
		pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault ||
		*c.SecurityContext.AllowPrivilegeEscalation ||
		!reflect.DeepEqual(c.SecurityContext.Capabilities.Drop, []corev1.Capability{"ALL"}) {
		t.Errorf("the pod is not restricted: %+v, %+v", pod.SecurityContext, c.SecurityContext)
	}

	for _, v := range pod.Volumes {
		if v.EmptyDir == nil && v.Secret == nil {
			t.Errorf("volume %s is not of an allowed kind", v.Name)
		}
	}

	if *pod.AutomountServiceAccountToken {
		t.Error("the pod has a token of Kubernetes")
	}

	if m := c.VolumeMounts[1]; m.MountPath != "/var/run/secrets/talos.dev" ||
		pod.Volumes[1].Secret.SecretName != "nightly-talos" {
		t.Errorf("Talos's credentials are mounted at %s", m.MountPath)
	}

	if *job.ActiveDeadlineSeconds != 3600 || pod.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("a run that hangs ends after %d s", *job.ActiveDeadlineSeconds)
	}
}

// Credentials are in the Secret alone, never in what is compared or shown.
func TestSecret_aloneHasCredentials(t *testing.T) {
	t.Parallel()

	s := nightly()
	credentials := schedule.Credentials{AccessKeyID: "AKIAID", SecretAccessKey: "TOPSECRET", SessionToken: "TOKEN"}
	secret := s.Secret(credentials)

	for name, o := range map[string]object{
		"CronJob": s.CronJob(), "ServiceAccount": s.TalosAccount(), "Namespace": s.NamespaceObject(),
	} {
		if text := encode(t, o); strings.Contains(text, "AKIAID") || strings.Contains(text, "TOPSECRET") {
			t.Errorf("the %s has credentials: %s", name, text)
		}
	}

	if text := encode(t, secret["metadata"]); strings.Contains(text, "TOPSECRET") {
		t.Errorf("the Secret shows %s", text)
	}

	if text := fmt.Sprintf("%v %+v %#v", credentials, credentials, credentials); strings.Contains(text, "TOPSECRET") {
		t.Errorf("they are shown as %s", text)
	}

	if what := schedule.Altered(secret); what != "" {
		t.Errorf("a Secret as it was made: %s", what)
	}

	data, _ := secret["data"].(object)
	data["AWS_SECRET_ACCESS_KEY"] = base64.StdEncoding.EncodeToString([]byte("ANOTHER"))

	if what := schedule.Altered(secret); what == "" || strings.Contains(what, "ANOTHER") {
		t.Errorf("a Secret that another client changed: %q", what)
	}
}

func encode(t *testing.T, v any) string {
	t.Helper()

	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}

	return string(text)
}

func TestTimeOf_keysOfTheScheduleAlone(t *testing.T) {
	t.Parallel()

	s := nightly()
	folder := "talos/etcd/prod/nightly/"

	for key, want := range map[string]string{
		folder + "prod-" + mark + "-2026-01-02T03:04:05Z.snap.zst.age":         "2026-01-02T03:04:05Z",
		folder + "prod-" + mark + "-2026-01-02T03:04:05Z.snap":                 "2026-01-02T03:04:05Z",
		folder + "prod-" + mark + "-2026-01-02T05:04:05+02:00.snap.age":        "2026-01-02T03:04:05Z",
		folder + "prod-" + mark + "-2026-01-02T03:04:05Z.snap.part":            "",
		folder + "prod-fedcba9876543210-2026-01-02T03:04:05Z.snap":             "",
		"talos/etcd/prod/hourly/prod-" + mark + "-2026-01-02T03:04:05Z.snap":   "",
		folder + "prod-" + mark + "-yesterday.snap":                            "",
		folder + "deeper/prod-" + mark + "-2026-01-02T03:04:05Z.snap":          "",
		"talos/etcd/prod/etcd-snapshot-2026-01-02T03-04-05Z-" + mark + "-a.db": "",
	} {
		at, ok := s.TimeOf(key)
		if got := at.UTC().Format(time.RFC3339); ok != (want != "") || ok && got != want {
			t.Errorf("%s is of %s, %v", key, got, ok)
		}
	}
}

// Retention takes the oldest snapshots of this schedule, and never the newest.
func TestExpired_isOldestFirst(t *testing.T) {
	t.Parallel()

	s := nightly()
	now := time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC)

	var objects []store.Object

	for day := 9; day > 0; day-- {
		at := time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC).Format(time.RFC3339)
		objects = append(objects,
			store.Object{Key: s.KeyPrefix() + at + ".snap.age"},
			store.Object{Key: strings.Replace(s.KeyPrefix(), mark, "fedcba9876543210", 1) + at + ".snap.age"},
			store.Object{Key: strings.Replace(s.KeyPrefix(), "nightly", "hourly", 1) + at + ".snap.age"})
	}

	for _, c := range []struct {
		r    backup.Retention
		want int
	}{
		{backup.Retention{}, 0},
		{backup.Retention{Count: 9}, 0},
		{backup.Retention{Count: 7}, 2},
		{backup.Retention{Count: 1}, 8},
		{backup.Retention{Count: 1, MinAge: 5 * 24 * time.Hour}, 5},
		{backup.Retention{Count: 1, MinAge: 1000 * time.Hour}, 0},
	} {
		expired, total := s.Expired(c.r, objects, now)
		if len(expired) != c.want || total != 9 {
			t.Errorf("%+v lets go %v of %d", c.r, expired, total)
		}

		for i, key := range expired {
			if want := s.KeyPrefix() + time.Date(2026, 1, i+1, 0, 0, 0, 0, time.UTC).Format(time.RFC3339) +
				".snap.age"; key != want {
				t.Errorf("%+v lets go %s as number %d", c.r, key, i)
			}
		}
	}

	s.Mark = ""
	if expired, _ := s.Expired(backup.Retention{Count: 1}, objects, now); len(expired) > 0 {
		t.Errorf("without a mark %v goes", expired)
	}
}

// A client that may put objects, and may not delete any, cannot make a retention delete the real ones, whatever
// the names say: today's are all of today.
func TestExpired_isNotMovedByForgedSnapshots(t *testing.T) {
	t.Parallel()

	s := nightly()
	now := time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)

	var objects []store.Object

	put := func(name, modified time.Time) {
		objects = append(objects, store.Object{Key: s.KeyPrefix() + name.Format(time.RFC3339) + ".snap", Modified: modified})
	}

	for day := 10; day > 3; day-- {
		at := time.Date(2026, 1, day, 2, 0, 0, 0, time.UTC) // three in Berlin
		put(at, at.Add(time.Minute))
	}

	own := len(objects)

	for i := range 20 {
		put(now.Add(-time.Duration(i)*time.Minute), now)                            // of today
		put(now.Add(time.Duration(i)*24*time.Hour+time.Hour), now)                  // of the future
		put(time.Date(2026, 1, 10-i%7, 3, i, 0, 0, time.UTC), now)                  // of other days, by their names
		put(time.Date(2026, 1, 10-i%7, 2, 0, 30, 0, time.UTC), now.Add(-time.Hour)) // beside the real ones
	}

	if expired, _ := s.Expired(backup.Retention{Count: 7}, objects, now); len(expired) > 0 {
		t.Errorf("%v go", expired)
	}

	expired, _ := s.Expired(backup.Retention{Count: 5}, objects, now)
	if len(expired) != 2 || expired[0] != objects[own-1].Key || expired[1] != objects[own-2].Key {
		t.Errorf("%v go, want the two oldest days", expired)
	}

	s.Schedule = "@every 24h"
	if expired, _ := s.Expired(backup.Retention{Count: 7}, objects, now); len(expired) > 0 {
		t.Errorf("of a schedule without a time of day %v go", expired)
	}
}

func TestNextRun_inItsTimeZone(t *testing.T) {
	t.Parallel()

	s := nightly()
	winter := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

	if next := s.NextRun(winter); next != time.Date(2026, 1, 3, 2, 0, 0, 0, time.UTC) {
		t.Errorf("at three in Berlin, in winter, is %s", next)
	}

	s.TimeZone = ""
	if next := s.NextRun(winter); next != time.Date(2026, 1, 3, 3, 0, 0, 0, time.UTC) {
		t.Errorf("at three is %s", next)
	}

	for _, never := range []schedule.Spec{{Schedule: "0 0 30 2 *"}, {Schedule: "@daily", Suspend: true},
		{Schedule: "@dayly"}, {Schedule: "@daily", TimeZone: "Europe/Nowhere"}} {
		if next := never.NextRun(winter); !next.IsZero() {
			t.Errorf("%+v runs at %s", never, next)
		}
	}
}

// A run on demand equals the Job that kubectl makes of a CronJob.
func TestJobNow_isWhatKubectlMakes(t *testing.T) {
	t.Parallel()

	s := nightly()
	s.Name = strings.Repeat("n", schedule.LongestName)
	live := s.CronJob()
	live["metadata"].(object)["uid"] = "u-1"

	var job batchv1.Job
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(s.JobNow(live, "once"), &job,
		true); err != nil {
		t.Fatal(err)
	}

	owner := job.OwnerReferences[0]
	if owner.Kind != "CronJob" || owner.Name != s.Name || owner.UID != "u-1" || !*owner.Controller {
		t.Errorf("it is owned by %+v", owner)
	}

	if len(job.Name) > 63 || !reflect.DeepEqual(job.Spec, cronJob(t, s).Spec.JobTemplate.Spec) ||
		job.Labels[schedule.Label] != s.Name {
		t.Errorf("it is %+v", job)
	}

	again, other := s.JobNow(live, "once"), s.JobNow(live, "twice")
	if again["metadata"].(object)["name"] != job.Name || other["metadata"].(object)["name"] == job.Name {
		t.Error("a name says nothing about the wish")
	}
}

func TestFactsOf_jobs(t *testing.T) {
	t.Parallel()

	live := nightly().CronJob()
	live["status"] = object{"lastScheduleTime": "2026-01-03T03:00:00Z", "lastSuccessfulTime": "2026-01-02T03:01:00Z"}

	job := func(name, created string, conditions ...any) object {
		return object{
			"metadata": object{"name": name, "creationTimestamp": created}, "status": object{"conditions": conditions},
		}
	}
	condition := func(kind, at, reason string) object {
		return object{"type": kind, "status": "True", "lastTransitionTime": at, "reason": reason, "message": "as it is"}
	}

	facts, err := schedule.FactsOf(live, []object{
		job("nightly-3", "2026-01-03T03:00:00Z", condition("Failed", "2026-01-03T03:10:00Z", "BackoffLimitExceeded")),
		job("nightly-2", "2026-01-01T03:00:00Z", condition("Failed", "2026-01-01T03:10:00Z", "DeadlineExceeded")),
		job("nightly-now", "2026-01-03T12:00:00Z", condition("Complete", "2026-01-03T12:01:00Z", "")),
		job("nightly-4", "2026-01-04T03:00:00Z", object{"type": "Failed", "status": "False"}),
	})
	if err != nil {
		t.Fatal(err)
	}

	want := schedule.Facts{
		LastRun: time.Date(2026, 1, 4, 3, 0, 0, 0, time.UTC), LastSuccess: time.Date(2026, 1, 3, 12, 1, 0, 0, time.UTC),
		Active: 1,
		LastFailure: schedule.Failure{At: time.Date(2026, 1, 3, 3, 10, 0, 0, time.UTC), Job: "nightly-3",
			Reason: "BackoffLimitExceeded: as it is"},
	}
	if facts != want {
		t.Errorf("facts are %+v\nwant %+v", facts, want)
	}

	if text := facts.LastFailure.String(); text != "2026-01-03T03:10:00Z Job nightly-3: BackoffLimitExceeded: as it is" {
		t.Errorf("the failure reads %q", text)
	}

	if none, err := schedule.FactsOf(nightly().CronJob(), nil); err != nil || none != (schedule.Facts{}) {
		t.Errorf("facts of a new one are %+v, %v", none, err)
	}
}
