package backupschedule

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/backup/schedule"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/etcdbackup"
	"github.com/talosop/terraform-provider-talosop/internal/provider/store"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/provider/timetable"
)

func (r *etcdBackupScheduleResource) ValidateConfig(
	ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse,
) {
	if tf.HasBlanks(ctx, req.Config) {
		return // tf.BlankTexts says so
	}

	var config etcdBackupScheduleModel

	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)

	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(config.validate(ctx)...)
	}
}

// validate checks a configuration as far as it is known.
func (m etcdBackupScheduleModel) validate(ctx context.Context) diag.Diagnostics {
	diags := store.ValidateStore(path.Empty(), m.S3, types.ObjectNull(nil))

	diags.Append(m.validateNames(ctx)...)
	diags.Append(m.validateTimes()...)
	diags.Append(m.validateBucket()...)
	diags.Append(m.validateEncryption(ctx)...)
	diags.Append(m.validateImage()...)
	diags.Append(m.validatePod()...)
	diags.Append(etcdbackup.Model{Retain: m.Retain}.ValidateRetain(ctx)...)

	return diags
}

func (m etcdBackupScheduleModel) validateNames(ctx context.Context) diag.Diagnostics {
	handle, diags := clusterhandle.AccessFrom(ctx, m.Cluster)
	at := path.Root("cluster")

	for _, name := range []struct {
		attribute string
		Value     types.String
		longest   int
	}{{"name", m.Name, schedule.LongestName}, {"namespace", m.Namespace, 63}} {
		text := name.Value.ValueString()
		if name.Value.IsNull() || name.Value.IsUnknown() || tf.Label.MatchString(text) && len(text) <= name.longest {
			continue
		}

		diags.Append(tf.Invalid(path.Root(name.attribute), name.attribute, "found "+finding.Quote(text),
			fmt.Sprintf("allowed are 1 to %d lower-case letters, digits and hyphens, and no hyphen at the ends", name.longest),
			"choose such a name"))
	}

	if secrets := handle.Secrets; !secrets.IsUnknown() && !secrets.IsNull() {
		if _, err := pki.Parse([]byte(secrets.ValueString())); err != nil {
			diags.Append(tf.InvalidSecrets(at.AtName("secrets"), err))
		}
	}

	// It is a folder of the bucket, and part of the name of a file in the pod.
	if name := handle.Name.ValueString(); !handle.Name.IsUnknown() &&
		(strings.Contains(name, "/") || strings.Trim(name, ".") == "") {
		diags.Append(tf.Invalid(at.AtName("name"), "name", "found "+finding.Quote(name),
			"allowed is a name without slashes: it is a folder in the bucket",
			"use the name that the cluster has"))
	}

	return diags
}

func (m etcdBackupScheduleModel) validateTimes() diag.Diagnostics {
	var diags diag.Diagnostics

	if text := m.Schedule.ValueString(); !m.Schedule.IsUnknown() {
		if _, err := timetable.Read(text, m.TimeZone.ValueString()); err != nil {
			diags.Append(timetable.Invalid(path.Root("schedule"), text, err))
		}
	}

	diags.Append(atLeast("starting_deadline", m.StartingDeadline, 10*time.Second)...)
	diags.Append(atLeast("run_timeout", m.RunTimeout, time.Minute)...)

	return diags
}

// atLeast checks a duration that Kubernetes counts in seconds.
func atLeast(name string, v tf.Duration, least time.Duration) diag.Diagnostics {
	if v.IsNull() || v.IsUnknown() {
		return nil
	}

	d, wrong := v.ValueGoDuration()
	if wrong.HasError() || d >= least && d%time.Second == 0 {
		return nil // its type speaks of what is no duration
	}

	return diag.Diagnostics{tf.Invalid(path.Root(name), name, "found "+finding.Quote(v.ValueString()),
		fmt.Sprintf("allowed are whole seconds, %s or more", least),
		"write such as 10m")}
}

func (m etcdBackupScheduleModel) validateBucket() diag.Diagnostics {
	var diags diag.Diagnostics

	if m.S3.IsNull() || m.S3.IsUnknown() {
		return nil
	}

	// talos-backup makes the name of AWS's server of the region (commit 0b3984d, pkg/s3/s3.go).
	if b := (tf.Fields{Reader: &tf.Reader{}, Attributes: m.S3}); b.Absent("region") && b.Absent("endpoint") {
		diags.Append(tf.Invalid(path.Root("s3").AtName("region"), "region", "found neither region nor endpoint",
			"allowed is a bucket on AWS with its "+
				"region, or one at an endpoint",
			"set the region of the bucket"))
	}

	return diags
}

func (m etcdBackupScheduleModel) validateEncryption(ctx context.Context) diag.Diagnostics {
	var diags diag.Diagnostics

	at := path.Root("encryption")

	if m.Encryption.IsNull() {
		return diag.Diagnostics{tf.Questionable(at, "encryption", "found none",
			"A database of etcd holds every Secret of the cluster, and whoever can read the bucket reads them",
			"Give a recipient of age")}
	}

	encryption, ok := tf.Object[scheduleEncryptionModel](ctx, &tf.Reader{}, m.Encryption)
	if !ok || encryption.Recipients.IsUnknown() {
		return nil
	}

	recipients, known := tf.KnownStrings(encryption.Recipients)

	switch {
	case len(recipients) != 1:
		diags.Append(tf.Invalid(at.AtName("recipients"), "recipients", fmt.Sprintf("found %d", len(recipients)),
			"allowed is exactly one: talos-backup "+
				"encrypts for one key",
			"give the key that is to open the snapshots, or leave encryption out for none"))
	case known:
		if err := schedule.CheckRecipient(recipients[0]); err != nil {
			// The value may be a private key by mistake, so it is not shown.
			diags.Append(tf.Invalid(at.AtName("recipients").AtListIndex(0), "recipient", err.Error(),
				"allowed is one such as age1…; keys of SSH are not taken",
				"copy the public key that `age-keygen` prints, not the secret one"))
		}
	}

	return diags
}

var (
	repositories = regexp.MustCompile(`^[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)*$`)
	tags         = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}(@sha256:[0-9a-f]{64})?$`)
)

func (m etcdBackupScheduleModel) validateImage() diag.Diagnostics {
	var diags diag.Diagnostics

	image, at := tf.Fields{Reader: &tf.Reader{}, Attributes: m.Image}, path.Root("image")

	if text, ok := image.Value("repository"); ok && !repositories.MatchString(text) {
		diags.Append(tf.Invalid(at.AtName("repository"), "repository", "found "+finding.Quote(text),
			"allowed is a registry with a repository, such as "+
				"registry.example.org/talos-backup",
			"leave out what begins with https://, and give the tag as tag"))
	}

	tag, ok := image.Value("tag")
	if ok && !tags.MatchString(tag) {
		diags.Append(tf.Invalid(at.AtName("tag"), "tag", "found "+finding.Quote(tag),
			"allowed is a tag such as "+schedule.DefaultTag+", with @sha256:… behind it "+
				"for a digest",
			"copy it from the registry"))
	}

	if m.Compression.ValueString() == backup.Zstd && tag != "" && !(schedule.Image{Tag: tag}).Compresses() {
		diags.Append(tf.Invalid(path.Root("compression"), "compression", "found zstd with talos-backup "+tag,
			"allowed is a build after v0.1.0-beta.3, "+
				"which is the first that compresses",
			"leave image.tag out, or compression"))
	}

	return diags
}

func (m etcdBackupScheduleModel) validatePod() diag.Diagnostics {
	var diags diag.Diagnostics

	for _, name := range []string{"successful", "failed"} {
		if kept := (tf.Fields{Reader: &tf.Reader{}, Attributes: m.History}).Number(name); kept < 0 || kept > 1000 {
			diags.Append(tf.Invalid(path.Root("history").AtName(name), name, fmt.Sprintf("found %d", kept),
				"allowed is 0 to 1000", "write how many Jobs are kept"))
		}
	}

	for _, name := range []string{"requests", "limits"} {
		quantities, _ := m.Resources.Attributes()[name].(types.Map)

		for key, text := range (&tf.Reader{}).TextMap(quantities) {
			if _, err := apiresource.ParseQuantity(text); err != nil && text != "" {
				diags.Append(tf.Invalid(path.Root("resources").AtName(name).AtMapKey(key), "quantity", "found "+finding.Quote(text),
					"allowed is a number with a unit, "+
						"such as 64Mi or 100m",
					"write it as Kubernetes does"))
			}
		}
	}

	return diags
}
