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
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
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
	var config scheduleModel

	if tf.ReadForValidation(ctx, req.Config, &config, &resp.Diagnostics) {
		resp.Diagnostics.Append(config.validate(ctx)...)
	}
}

// mistakes are the errors in the known part of a configuration.
type mistakes struct{ diag.Diagnostics }

// unless adds a mistake where what has to hold does not.
func (m *mistakes) unless(holds bool, mistake finding.Finding) {
	if !holds {
		m.Append(tf.Diagnostic(mistake))
	}
}

func (m scheduleModel) validate(ctx context.Context) diag.Diagnostics {
	wrong := &mistakes{store.ValidateStore(path.Empty(), m.S3, types.ObjectNull(nil))}
	wrong.Append(etcdbackup.ValidateRetain(ctx, m.Retain)...)

	m.validateCluster(ctx, wrong)
	m.validateEncryption(wrong)

	if text := m.Schedule.ValueString(); !m.Schedule.IsUnknown() {
		if _, err := timetable.Read(text, m.TimeZone.ValueString()); err != nil {
			wrong.Append(timetable.Invalid(path.Root("schedule"), text, err))
		}
	}

	r := &tf.Reader{}

	// talos-backup uses the AWS server of the region (commit 0b3984d, pkg/s3/s3.go).
	bucket := r.Fields(m.S3)
	wrong.unless(m.S3.IsNull() || m.S3.IsUnknown() || !bucket.Absent("region") || !bucket.Absent("endpoint"),
		regionMissing.At(finding.Root("s3").AtName("region"), nil))

	tag, _ := r.Fields(m.Image).Value("tag")
	wrong.unless(m.Compression.ValueString() != backup.Zstd || tag == "" || (schedule.Image{Tag: tag}).Compresses(),
		compressionUnsupported.At(finding.Root("compression"), finding.Args{"tag": tag}))

	for _, name := range []string{"successful", "failed"} {
		kept := r.Fields(m.History).Number(name, 0)
		wrong.unless(kept >= 0 && kept <= 1000,
			invalidHistory.At(finding.Root("history").AtName(name), finding.Args{"count": kept}))
	}

	return wrong.Diagnostics
}

func (m scheduleModel) validateCluster(ctx context.Context, wrong *mistakes) {
	handle, diags := clusterhandle.AccessFrom(ctx, m.Cluster)
	wrong.Append(diags...)

	if secrets := handle.Secrets; !secrets.IsUnknown() && !secrets.IsNull() {
		if _, err := pki.Parse([]byte(secrets.ValueString())); err != nil {
			wrong.Append(tf.InvalidSecrets(path.Root("cluster").AtName("secrets"), err))
		}
	}

	// It is a folder of the bucket, and part of a file name in the pod.
	name := handle.Name.ValueString()
	wrong.unless(handle.Name.IsUnknown() || !strings.Contains(name, "/") && strings.Trim(name, ".") != "",
		invalidClusterName.At(finding.Root("cluster").AtName("name"), finding.Args{"name": name}))
}

func (m scheduleModel) validateEncryption(wrong *mistakes) {
	if m.Encryption.IsNull() {
		wrong.Append(tf.Diagnostic(notEncrypted.At(
			finding.Root("encryption"), finding.Args{"name": m.Name.ValueString()})))

		return
	}

	list, ok := m.Encryption.Attributes()["recipients"].(types.List)
	if !ok || list.IsUnknown() {
		return
	}

	recipients, known := tf.KnownStrings(list)
	at := finding.Root("encryption").AtName("recipients")

	wrong.unless(len(recipients) == 1, oneRecipient.At(at, finding.Args{"count": len(recipients)}))

	if known && len(recipients) == 1 {
		// The value may be a private key by mistake, so it is not shown.
		wrong.unless(schedule.IsRecipient(recipients[0]), invalidRecipient.At(at.AtListIndex(0), nil))
	}
}

// accepts validates texts against what is allowed. tf.BlankTexts reports blank ones.
func accepts(is func(text string) bool, allowed, solution string) validator.String {
	return tf.StringCheck{Allowed: allowed, Check: func(at path.Path, text string) diag.Diagnostic {
		if tf.IsBlank(text) || is(text) {
			return nil
		}

		return tf.Diagnostic(invalidValue.At(
			tf.PathOf(at), finding.Args{"value": text, "allowed": allowed, "solution": solution}))
	}}
}

func acceptsLabel(longest int) validator.String {
	return accepts(func(text string) bool { return tf.Label.MatchString(text) && len(text) <= longest },
		fmt.Sprintf("1 to %d lower-case letters, digits and hyphens, and no hyphen at the ends", longest),
		"Choose such a name.")
}

// acceptsFrom validates durations: Kubernetes counts in seconds. Their type reports other texts.
func acceptsFrom(least time.Duration) validator.String {
	return accepts(func(text string) bool {
		d, err := time.ParseDuration(text)

		return err != nil || d >= least && d%time.Second == 0
	}, fmt.Sprintf("whole seconds, %s or more", least), "Write a duration such as 10m.")
}

var (
	acceptsRepository = accepts(
		regexp.MustCompile(`^[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)*$`).MatchString,
		"a registry with a repository, such as registry.example.org/talos-backup",
		"Remove https://, and set the tag in `tag`.")
	acceptsTag = accepts(
		regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}(@sha256:[0-9a-f]{64})?$`).MatchString,
		"a tag such as "+schedule.DefaultTag+", with or without a digest (@sha256:…)",
		"Copy the tag from the registry.")
	acceptsQuantity = accepts(func(text string) bool {
		_, err := apiresource.ParseQuantity(text)

		return err == nil
	}, "a Kubernetes quantity such as 64Mi or 100m", "Write a number with a unit.")
)
