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

func (r *scheduleResource) ValidateConfig(
	ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse,
) {
	if tf.HasBlanks(ctx, req.Config) {
		return // tf.BlankTexts says so
	}

	var config scheduleModel

	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)

	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(config.validate(ctx)...)
	}
}

// validate checks a configuration as far as it is known.
func (m scheduleModel) validate(ctx context.Context) diag.Diagnostics {
	diags := store.ValidateStore(path.Empty(), m.S3, types.ObjectNull(nil))

	diags.Append(etcdbackup.ValidateRetain(ctx, m.Retain)...)
	diags.Append(m.validateCluster(ctx)...)
	diags.Append(m.validateTexts()...)
	diags.Append(m.validateEncryption()...)
	diags.Append(m.validateCompression()...)
	diags.Append(m.validatePod()...)

	if text := m.Schedule.ValueString(); !m.Schedule.IsUnknown() {
		if _, err := timetable.Read(text, m.TimeZone.ValueString()); err != nil {
			diags.Append(timetable.Invalid(path.Root("schedule"), text, err))
		}
	}

	// talos-backup makes the name of AWS's server of the region (commit 0b3984d, pkg/s3/s3.go).
	if b := (&tf.Reader{}).Fields(m.S3); !m.S3.IsNull() && !m.S3.IsUnknown() && b.Absent("region") && b.Absent("endpoint") {
		diags.Append(tf.Invalid(path.Root("s3").AtName("region"), "region", "found neither region nor endpoint",
			"allowed is a bucket on AWS with its region, or one at an endpoint", "set the region of the bucket"))
	}

	return diags
}

func (m scheduleModel) validateCluster(ctx context.Context) diag.Diagnostics {
	handle, diags := clusterhandle.AccessFrom(ctx, m.Cluster)
	at := path.Root("cluster")

	if secrets := handle.Secrets; !secrets.IsUnknown() && !secrets.IsNull() {
		if _, err := pki.Parse([]byte(secrets.ValueString())); err != nil {
			diags.Append(tf.InvalidSecrets(at.AtName("secrets"), err))
		}
	}

	// It is a folder of the bucket, and part of the name of a file in the pod.
	if name := handle.Name.ValueString(); !handle.Name.IsUnknown() &&
		(strings.Contains(name, "/") || strings.Trim(name, ".") == "") {
		diags.Append(tf.Invalid(at.AtName("name"), "name", "found "+finding.Quote(name),
			"allowed is a name without slashes: it is a folder in the bucket", "use the name that the cluster has"))
	}

	return diags
}

var (
	repository = regexp.MustCompile(`^[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)*$`)
	tag        = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}(@sha256:[0-9a-f]{64})?$`)
)

// validateTexts checks the texts that stand for themselves.
func (m scheduleModel) validateTexts() diag.Diagnostics {
	var diags diag.Diagnostics

	check := func(at path.Path, what string, value types.String, valid bool, allowed, remedy string) {
		if !value.IsNull() && !value.IsUnknown() && !valid {
			diags.Append(tf.Invalid(at.AtName(what), what, "found "+finding.Quote(value.ValueString()), allowed, remedy))
		}
	}
	label := func(name string, value types.String, longest int) {
		check(path.Empty(), name, value, tf.Label.MatchString(value.ValueString()) && len(value.ValueString()) <= longest,
			fmt.Sprintf("allowed are 1 to %d lower-case letters, digits and hyphens, and no hyphen at the ends", longest),
			"choose such a name")
	}
	// Kubernetes counts in seconds. The type of durations speaks of what is none.
	duration := func(name string, value tf.Duration, least time.Duration) {
		d, err := time.ParseDuration(value.ValueString())
		check(path.Empty(), name, value.StringValue, err != nil || d >= least && d%time.Second == 0,
			fmt.Sprintf("allowed are whole seconds, %s or more", least), "write such as 10m")
	}

	label("name", m.Name, schedule.LongestName)
	label("namespace", m.Namespace, 63)
	duration("starting_deadline", m.StartingDeadline, 10*time.Second)
	duration("run_timeout", m.RunTimeout, time.Minute)

	image, at := m.Image.Attributes(), path.Root("image")

	if text, ok := image["repository"].(types.String); ok {
		check(at, "repository", text, repository.MatchString(text.ValueString()),
			"allowed is a registry with a repository, such as registry.example.org/talos-backup",
			"leave out what begins with https://, and give the tag as tag")
	}

	if text, ok := image["tag"].(types.String); ok {
		check(at, "tag", text, tag.MatchString(text.ValueString()),
			"allowed is a tag such as "+schedule.DefaultTag+", with @sha256:… behind it for a digest",
			"copy it from the registry")
	}

	return diags
}

func (m scheduleModel) validateEncryption() diag.Diagnostics {
	at := path.Root("encryption")

	if m.Encryption.IsNull() {
		return diag.Diagnostics{tf.Questionable(at, "encryption", "found none",
			"A database of etcd holds every Secret of the cluster, and whoever can read the bucket reads them",
			"Give a recipient of age")}
	}

	recipients, at := m.Encryption.Attributes()["recipients"], at.AtName("recipients")

	list, ok := recipients.(types.List)
	if !ok || list.IsUnknown() {
		return nil
	}

	texts, known := tf.KnownStrings(list)
	if len(texts) != 1 {
		return diag.Diagnostics{tf.Invalid(at, "recipients", fmt.Sprintf("found %d", len(texts)),
			"allowed is exactly one: talos-backup encrypts for one key",
			"give the key that is to open the snapshots, or leave encryption out for none")}
	}

	if err := schedule.CheckRecipient(texts[0]); known && err != nil {
		// The value may be a private key by mistake, so it is not shown.
		return diag.Diagnostics{tf.Invalid(at.AtListIndex(0), "recipient", err.Error(),
			"allowed is one such as age1…; keys of SSH are not taken",
			"copy the public key that `age-keygen` prints, not the secret one")}
	}

	return nil
}

func (m scheduleModel) validateCompression() diag.Diagnostics {
	tag, _ := (&tf.Reader{}).Fields(m.Image).Value("tag")
	if m.Compression.ValueString() != backup.Zstd || tag == "" || (schedule.Image{Tag: tag}).Compresses() {
		return nil
	}

	return diag.Diagnostics{tf.Invalid(path.Root("compression"), "compression", "found zstd with talos-backup "+tag,
		"allowed is a build after v0.1.0-beta.3, which is the first that compresses",
		"leave image.tag out, or compression")}
}

func (m scheduleModel) validatePod() diag.Diagnostics {
	var diags diag.Diagnostics

	r := &tf.Reader{}

	for _, name := range []string{"successful", "failed"} {
		if kept := r.Fields(m.History).Number(name, 0); kept < 0 || kept > 1000 {
			diags.Append(tf.Invalid(path.Root("history").AtName(name), name, fmt.Sprintf("found %d", kept),
				"allowed is 0 to 1000", "write how many Jobs are kept"))
		}
	}

	for _, name := range []string{"requests", "limits"} {
		for key, text := range r.Fields(m.Resources).TextMap(name) {
			if _, err := apiresource.ParseQuantity(text); err != nil && text != "" {
				diags.Append(tf.Invalid(path.Root("resources").AtName(name).AtMapKey(key), "quantity", "found "+finding.Quote(text),
					"allowed is a number with a unit, such as 64Mi or 100m", "write it as Kubernetes does"))
			}
		}
	}

	return diags
}
