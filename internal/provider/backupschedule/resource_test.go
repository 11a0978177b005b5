package backupschedule_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/talosop/terraform-provider-talosop/internal/backup/schedule"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/backupschedule"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/secretstest"
)

const scheduleResource = "talosop_etcd_backup_schedule"

// baseSchedule is a valid configuration.
func baseSchedule() tftest.Config {
	return tftest.Config{
		"cluster":    tftest.Config{"name": "prod", "endpoint": "https://10.0.0.10:6443", "secrets": tftest.Bundle()},
		"name":       "nightly",
		"schedule":   "0 3 * * *",
		"s3":         tftest.Config{"bucket": "prod-backups", "region": "eu-central-1"},
		"encryption": tftest.Config{"recipients": []any{ageRecipient}},
	}
}

// configuration of a schedule in the site's cluster.
func (s *scheduleSite) configuration(namespace, name string) tftest.Config {
	base := baseSchedule()
	base["name"], base["namespace"] = name, namespace

	return tftest.With(base, s.endpoint, "cluster", "endpoint")
}

func (s *scheduleSite) namespace(t *testing.T, name string) {
	t.Helper()

	_, err := s.API.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

func TestSchedule_invalidConfiguration(t *testing.T) {
	t.Parallel()

	if got := tftest.Validate(t, scheduleResource, baseSchedule()); len(got) > 0 {
		t.Errorf("a right one: %s", tftest.Show(got))
	}

	for name, test := range map[string]struct {
		Path    []string
		Value   any
		says    []string
		warning bool
	}{
		"cron": {Path: []string{"schedule"}, Value: "0 3 * *",
			says: []string{`"0 3 * *": expected exactly 5 fields, found 4. `, "[invalid_schedule]"}},
		"hour in cron": {Path: []string{"schedule"}, Value: "0 25 * * *", says: []string{"(25) above maximum (23)"}},
		"never":        {Path: []string{"schedule"}, Value: "0 3 31 2 *", says: []string{"names no time"}},
		"zone in cron": {Path: []string{"schedule"}, Value: "TZ=UTC 0 3 * * *", says: []string{"time zone", "time_zone"}},
		"time zone": {Path: []string{"time_zone"}, Value: "Europe/Nowhere",
			says: []string{`"Europe/Nowhere"`, "IANA"}},
		"name":      {Path: []string{"name"}, Value: "Nightly", says: []string{"[schedule_value_invalid]", `"Nightly"`, "1 to 52"}},
		"long name": {Path: []string{"name"}, Value: strings.Repeat("n", 53), says: []string{"1 to 52"}},
		"namespace": {Path: []string{"namespace"}, Value: "a.b", says: []string{`"a.b"`, "1 to 63"}},
		"no region": {Path: []string{"s3"}, Value: tftest.Config{"bucket": "prod-backups"},
			says: []string{"[schedule_bucket_without_region]"}},
		"half a key": {Path: []string{"s3", "access_key_id_wo"}, Value: "id", says: []string{"secret_access_key_wo"}},
		"two recipients": {Path: []string{"encryption", "recipients"}, Value: []any{ageRecipient, ageRecipient},
			says: []string{"[schedule_recipients]", "Found 2"}},
		"no recipient": {Path: []string{"encryption"}, Value: tftest.Config{"recipients": []any{}},
			says: []string{"[schedule_recipients]", "Found 0"}},
		"SSH key": {Path: []string{"encryption", "recipients"}, Value: []any{"ssh-ed25519 AAAA"},
			says: []string{"[schedule_recipient_invalid]"}},
		"no duration": {Path: []string{"run_timeout"}, Value: "1x", says: []string{`Found "1x"`, "168h"}},
		"days": {Path: []string{"retain"}, Value: tftest.Config{"count": 3, "min_age": "7d"},
			says: []string{`Found "7d"`, "168h"}},
		"private key": {Path: []string{"encryption", "recipients"}, Value: []any{"AGE-SECRET-KEY-1ABC"},
			says: []string{"[schedule_recipient_invalid]"}},
		"clear text": {Path: []string{"encryption"}, Value: nil,
			says: []string{"[schedule_not_encrypted]"}, warning: true},
		"retain none":      {Path: []string{"retain"}, Value: tftest.Config{"count": 0}, says: []string{"[invalid_retain_count]"}},
		"tag":              {Path: []string{"image", "tag"}, Value: "a b", says: []string{`"a b"`}},
		"repository":       {Path: []string{"image", "repository"}, Value: "https://ghcr.io/x", says: []string{"https://"}},
		"history":          {Path: []string{"history", "failed"}, Value: -1, says: []string{"[invalid_history]", "Found -1"}},
		"deadline":         {Path: []string{"starting_deadline"}, Value: "5s", says: []string{"10s or more"}},
		"part of a second": {Path: []string{"run_timeout"}, Value: "90.5s", says: []string{"[schedule_value_invalid]"}},
		"quantity": {Path: []string{"resources", "limits"}, Value: tftest.Config{"memory": "much"},
			says: []string{`"much"`}},
		"effect": {Path: []string{"tolerations"}, Value: []any{tftest.Config{"effect": "Never"}},
			says: []string{`"Never"`, "NoExecute"}},
		"slash":   {Path: []string{"cluster", "name"}, Value: "a/b", says: []string{"[schedule_cluster_name]"}},
		"secrets": {Path: []string{"cluster", "secrets"}, Value: "nothing", says: []string{"[invalid_secrets]"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := tftest.Validate(t, scheduleResource, tftest.With(baseSchedule(), test.Value, test.Path...))
			if len(got) != 1 || (got[0].Severity == tfprotov6.DiagnosticSeverityWarning) != test.warning {
				t.Fatalf("it says %s", tftest.Show(got))
			}

			for _, words := range test.says {
				if !strings.Contains(tftest.Show(got), words) {
					t.Errorf("it does not say %q: %s", words, tftest.Show(got))
				}
			}

			if strings.Contains(got[0].Detail, "AGE-SECRET-KEY") {
				t.Error("it shows a private key")
			}
		})
	}

	old := tftest.With(tftest.With(baseSchedule(), "v0.1.0-beta.3", "image", "tag"), "zstd", "compression")
	if got := tftest.Validate(t, scheduleResource, old); len(got) != 1 ||
		!strings.Contains(tftest.Show(got), "[schedule_compression_unsupported]") {
		t.Errorf("compression by a version that has none: %s", tftest.Show(got))
	}
}

// An unknown value is neither a mistake nor required.
func TestSchedule_unknownValues(t *testing.T) {
	t.Parallel()

	full := func() tftest.Config {
		base := baseSchedule()

		more := tftest.Config{
			"namespace": "backups", "create_namespace": false, "time_zone": "Etc/UTC", "suspend": false, "compression": "zstd",
			"retain": tftest.Config{"count": 3, "min_age": "1h"}, "run_now": "once", "starting_deadline": "1m",
			"run_timeout": "10m",
			"image": tftest.Config{"repository": "registry.example.org:5000/talos-backup", "tag": "v1",
				"pull_secret": "pull"},
			"history":       tftest.Config{"successful": 1, "failed": 0},
			"resources":     tftest.Config{"requests": tftest.Config{"cpu": "100m"}, "limits": tftest.Config{"memory": "1Gi"}},
			"node_selector": tftest.Config{"a": "b"}, "tolerations": []any{tftest.Config{"key": "k", "operator": "Exists"}},
		}
		maps.Copy(base, more)

		return tftest.With(base, "https://127.0.0.1:1", "cluster", "endpoint")
	}

	d := tftest.Drive(t, scheduleResource, nil)

	for name := range full() {
		config := full()
		config[name] = tftest.Unknown{}

		if got := tftest.Validate(t, scheduleResource, config); len(got) > 0 {
			t.Errorf("%s is unknown: %s", name, tftest.Show(got))
		}

		if planned := d.Plan(t, config); len(planned.Diagnostics) > 0 {
			t.Errorf("the plan with %s unknown: %s", name, tftest.Show(planned.Diagnostics))
		}
	}

	for _, path := range [][]string{
		{"cluster", "secrets"}, {"cluster", "name"}, {"cluster", "endpoint"}, {"s3", "bucket"}, {"s3", "endpoint"},
		{"encryption", "recipients"}, {"image", "tag"},
	} {
		if planned := d.Plan(t, tftest.With(full(), tftest.Unknown{}, path...)); len(planned.Diagnostics) > 0 {
			t.Errorf("the plan with %v unknown: %s", path, tftest.Show(planned.Diagnostics))
		}
	}

	if planned := d.Plan(t, full()); len(planned.Diagnostics) > 0 ||
		tftest.Text(t, planned.Value, "id") != "prod/backups/nightly" {
		t.Errorf("the plan for a cluster that does not answer: %s of %s", tftest.Show(planned.Diagnostics),
			tftest.Text(t, planned.Value, "id"))
	}
}

// An unknown prefix may make other keys: a plan must not promise those in state.
func TestScheduleKeyPrefix_isUnknownWithThePrefix(t *testing.T) {
	t.Parallel()

	d := tftest.Drive(t, scheduleResource, nil)

	made, err := tftypes.Transform(d.Plan(t, baseSchedule()).Value,
		func(_ *tftypes.AttributePath, v tftypes.Value) (tftypes.Value, error) {
			if !v.IsKnown() {
				return tftypes.NewValue(v.Type(), nil), nil
			}

			return v, nil
		})
	tftest.Must(t, err)

	d.State = made
	planned := d.Plan(t, tftest.With(baseSchedule(), tftest.Unknown{}, "s3", "prefix"))

	if len(planned.Diagnostics) > 0 || tftest.AttributeOf(t, planned.Value, "key_prefix").IsKnown() {
		t.Errorf("key_prefix is planned as %s: %s", tftest.AttributeOf(t, planned.Value, "key_prefix"),
			tftest.Show(planned.Diagnostics))
	}
}

// When Talos refuses the namespace, the error contains the required patch, and the objects made so far are removed.
func (s *scheduleSite) testRefusedByTalos(t *testing.T) {
	bundle, err := pki.Parse([]byte(s.Secrets))
	tftest.Must(t, err)

	api := sitetest.KubernetesAt(t, s.endpoint, bundle)
	t.Cleanup(api.Close)

	refused := &backupschedule.Scheduler{
		API: api, Timeout: time.Minute, Pause: 10 * time.Millisecond,
		Spec: schedule.Spec{
			Namespace: "forbidden", Name: "nightly", Cluster: "prod", Mark: bundle.Mark(), Schedule: "@daily",
			RunTimeout: time.Hour,
			Image:      schedule.Image{Repository: "r", Tag: "t"}, Bucket: schedule.Bucket{Name: "b"},
		},
	}

	begun, err := refused.Establish(t.Context(), schedule.Credentials{}, false, true)
	if !errors.Is(err, backupschedule.ErrTalosAccess) || !begun {
		t.Fatalf("it ends with %v, begun %v", err, begun)
	}

	out, cancel := context.WithTimeoutCause(t.Context(), 0, &tf.RanOutError{Operation: tf.OpCreate, Limit: time.Hour})
	defer cancel()

	text := backupschedule.ScheduleFailed(out, "create", refused, err, finding.Message{}).Detail()
	for _, words := range []string{"Namespace is not allowed: forbidden",
		"allowedKubernetesNamespaces:\n        - forbidden", "- os:etcd:backup", "config_patches", "timed out after 1h (`timeouts.create`)"} {
		if !strings.Contains(text, words) {
			t.Errorf("it does not say %q:\n%s", words, text)
		}
	}

	if stays, err := refused.Remove(t.Context()); err != nil || len(stays) > 0 {
		t.Errorf("removed with %v, %v", stays, err)
	}

	ns, err := s.API.CoreV1().Namespaces().Get(t.Context(), "forbidden", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) && (err != nil || ns.DeletionTimestamp == nil) {
		t.Errorf("the namespace stays: %v", err)
	}
}

// Foreign objects are neither taken over nor removed; those of a killed create are.
func (s *scheduleSite) testForeign(t *testing.T) {
	s.namespace(t, "foreign")

	cronJobs := s.any.Resource(schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"}).Namespace(
		"foreign")
	spec := schedule.Spec{Namespace: "foreign", Name: "nightly", Schedule: "@yearly", RunTimeout: time.Hour,
		Image: schedule.Image{Repository: "r", Tag: "t"}}
	foreign := &unstructured.Unstructured{Object: spec.CronJob()}
	foreign.SetLabels(nil)

	_, err := cronJobs.Create(t.Context(), foreign, metav1.CreateOptions{})
	tftest.Must(t, err)

	d := tftest.Drive(t, scheduleResource, nil)

	failed := d.Apply(t, s.configuration("foreign", "nightly"))
	if !failed.Failed() || !strings.Contains(tftest.Show(failed.Diagnostics),
		"there is a CronJob foreign/nightly that this resource did not make") || !d.State.IsNull() {
		t.Errorf("a foreign CronJob: %s", tftest.Show(failed.Diagnostics))
	}

	hourly := tftest.With(s.configuration("foreign", "hourly"), "v1.13.0", "cluster", "talos_version")
	d.Apply(t, hourly).Must(t)
	d.ExpectEmpty(t, "after the create", hourly)
	d.ExpectEmpty(t, "after an upgrade of Talos", tftest.With(hourly, "v1.13.2", "cluster", "talos_version"))

	// The process was killed before it could store anything.
	again := tftest.Drive(t, scheduleResource, nil)
	again.Apply(t, hourly).Must(t)
	again.ExpectEmpty(t, "after the second create", hourly)

	again.Apply(t, tftest.With(hourly, true, "suspend")).Must(t)

	if next := tftest.Text(t, again.State, "next_run"); next != "" {
		t.Errorf("the next run of a suspended schedule is %s", next)
	}

	again.Apply(t, nil).Must(t)

	if got := s.objects(t, "foreign"); got != "CronJob nightly, Secret hourly-talos" {
		t.Errorf("left is %s", got)
	}

	if ns, err := s.API.CoreV1().Namespaces().Get(t.Context(), "foreign", metav1.GetOptions{}); err != nil ||
		ns.DeletionTimestamp != nil {
		t.Errorf("a foreign namespace goes: %v", err)
	}
}

// Without the namespace, and without permission to create it, nothing is created.
func (s *scheduleSite) testNoNamespace(t *testing.T) {
	d := tftest.Drive(t, scheduleResource, nil)

	failed := d.Apply(t, tftest.With(s.configuration("missing", "nightly"), false, "create_namespace"))
	if !failed.Failed() || !strings.Contains(tftest.Show(failed.Diagnostics), "there is no namespace missing") ||
		!d.State.IsNull() {
		t.Errorf("without a namespace: %s", tftest.Show(failed.Diagnostics))
	}
}

// A cluster that does not answer proves nothing about the schedule, which is kept. A cluster without its objects
// does.
func (s *scheduleSite) testSilence(t *testing.T) {
	s.namespace(t, "silence")

	config := s.configuration("silence", "weekly")
	d := tftest.Drive(t, scheduleResource, nil)
	d.Apply(t, config).Must(t)

	was, cluster := d.State, tftest.FieldsOf(t, d.State)["cluster"]
	silent := tftest.FieldsOf(t, cluster)
	silent["endpoint"] = tftest.ValueOf(t, silent["endpoint"].Type(), "https://127.0.0.1:1")
	d.Set(t, "cluster", silent)

	unanswered := d.State
	read := d.Refresh(t)

	if read.Failed() || !strings.Contains(tftest.Show(read.Diagnostics), "[schedule_not_read]") ||
		!d.State.Equal(unanswered) {
		t.Errorf("a silent cluster: %s", tftest.Show(read.Diagnostics))
	}

	d.State = was

	for _, o := range []objects.Reference{
		{APIVersion: "batch/v1", Kind: "cronjobs", Name: "weekly"}, {APIVersion: "v1", Kind: "secrets", Name: "weekly-s3"},
		{APIVersion: schedule.TalosAPI, Kind: "serviceaccounts", Name: "weekly-talos"},
	} {
		tftest.Must(t, s.any.Resource(schema.FromAPIVersionAndKind(o.APIVersion,
			o.Kind).GroupVersion().WithResource(o.Kind)).Namespace("silence").
			Delete(t.Context(), o.Name, metav1.DeleteOptions{}))
	}

	if d.Refresh(t).Must(t); !d.State.IsNull() {
		t.Errorf("what is gone is %v", d.State)
	}
}

// The secrets of another cluster replace the schedule; another name of the same one does not.
func (s *scheduleSite) testAnotherCluster(t *testing.T) {
	s.namespace(t, "others")

	config := s.configuration("others", "monthly")
	d := tftest.Drive(t, scheduleResource, nil)
	d.Apply(t, config).Must(t)

	other, err := secretstest.Generate()
	tftest.Must(t, err)

	secrets, err := other.YAML()
	tftest.Must(t, err)

	for name, test := range map[string]struct {
		wanted   tftest.Config
		replaces int
	}{
		"its secrets": {tftest.With(s.configuration("others", "monthly"), string(secrets), "cluster",
			"secrets"), 1},
		"another name, same secrets": {tftest.With(s.configuration("others", "monthly"), "renamed", "cluster", "name"), 0},
	} {
		wanted := tftest.ValueOf(t, tftest.TypeOf(t, scheduleResource), test.wanted)

		resp, err := d.Server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
			TypeName: scheduleResource, PriorState: tftest.Dynamic(t, d.State),
			ProposedNewState: tftest.Dynamic(t, d.Proposed(t, wanted)),
			Config:           tftest.Dynamic(t, wanted),
		})
		tftest.Must(t, err)

		if len(resp.RequiresReplace) != test.replaces {
			t.Errorf("%s: it is replaced for %v: %s", name, resp.RequiresReplace, tftest.Show(resp.Diagnostics))
		}
	}

	d.Apply(t, nil).Must(t)
}
