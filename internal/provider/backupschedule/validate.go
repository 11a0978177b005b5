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
func (m *mistakes) unless(holds bool, at path.Path, what, found, allowed, remedy string) {
	if !holds {
		m.Append(tf.Invalid(at, what, found, allowed, remedy))
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
		path.Root("s3").AtName("region"), "region", "found neither region nor endpoint",
		"allowed is a bucket on AWS with its region, or one at an endpoint", "set the region of the bucket")

	tag, _ := r.Fields(m.Image).Value("tag")
	wrong.unless(m.Compression.ValueString() != backup.Zstd || tag == "" || (schedule.Image{Tag: tag}).Compresses(),
		path.Root("compression"), "compression", "found zstd with talos-backup "+tag,
		"allowed is a build after v0.1.0-beta.3, which is the first that compresses", "leave image.tag out, or compression")

	for _, name := range []string{"successful", "failed"} {
		kept := r.Fields(m.History).Number(name, 0)
		wrong.unless(kept >= 0 && kept <= 1000, path.Root("history").AtName(name), name, fmt.Sprintf("found %d", kept),
			"allowed is 0 to 1000", "write how many Jobs are kept")
	}

	return wrong.Diagnostics
}

func (m scheduleModel) validateCluster(ctx context.Context, wrong *mistakes) {
	handle, diags := clusterhandle.AccessFrom(ctx, m.Cluster)
	at := path.Root("cluster")

	wrong.Append(diags...)

	if secrets := handle.Secrets; !secrets.IsUnknown() && !secrets.IsNull() {
		if _, err := pki.Parse([]byte(secrets.ValueString())); err != nil {
			wrong.Append(tf.InvalidSecrets(at.AtName("secrets"), err))
		}
	}

	// It is a folder of the bucket, and part of a file name in the pod.
	name := handle.Name.ValueString()
	wrong.unless(handle.Name.IsUnknown() || !strings.Contains(name, "/") && strings.Trim(name, ".") != "",
		at.AtName("name"), "name", "found "+finding.Quote(name),
		"allowed is a name without slashes: it is a folder in the bucket", "use the name that the cluster has")
}

func (m scheduleModel) validateEncryption(wrong *mistakes) {
	if m.Encryption.IsNull() {
		wrong.Append(tf.Questionable(path.Root("encryption"), "encryption", "found none",
			"A database of etcd holds every Secret of the cluster, for all who can read the bucket",
			"Give a recipient of age"))

		return
	}

	list, ok := m.Encryption.Attributes()["recipients"].(types.List)
	if !ok || list.IsUnknown() {
		return
	}

	recipients, known := tf.KnownStrings(list)
	at := path.Root("encryption").AtName("recipients")

	wrong.unless(len(recipients) == 1, at, "recipients", fmt.Sprintf("found %d", len(recipients)),
		"allowed is exactly one: talos-backup encrypts for one key",
		"give the key that is to open the snapshots, or leave encryption out for none")

	if known && len(recipients) == 1 {
		// The value may be a private key by mistake, so it is not shown.
		wrong.unless(schedule.IsRecipient(recipients[0]), at.AtListIndex(0), "recipient",
			"it is no public X25519 key of age", "allowed is one such as age1…; keys of SSH are not taken",
			"copy the public key that `age-keygen` prints, not the secret one")
	}
}

// accepts validates texts against what is allowed. tf.BlankTexts reports blank ones.
func accepts(what string, is func(text string) bool, allowed, remedy string) validator.String {
	return tf.StringCheck{Allowed: allowed, Check: func(at path.Path, text string) diag.Diagnostic {
		if tf.IsBlank(text) || is(text) {
			return nil
		}

		return tf.Invalid(at, what, "found "+finding.Quote(text), allowed, remedy)
	}}
}

func acceptsLabel(name string, longest int) validator.String {
	return accepts(name, func(text string) bool { return tf.Label.MatchString(text) && len(text) <= longest },
		fmt.Sprintf("allowed are 1 to %d lower-case letters, digits and hyphens, and no hyphen at the ends", longest),
		"choose such a name")
}

// acceptsFrom validates durations: Kubernetes counts in seconds. Their type reports other texts.
func acceptsFrom(least time.Duration, name string) validator.String {
	return accepts(name, func(text string) bool {
		d, err := time.ParseDuration(text)

		return err != nil || d >= least && d%time.Second == 0
	}, fmt.Sprintf("allowed are whole seconds, %s or more", least), "write such as 10m")
}

var (
	acceptsRepository = accepts("repository",
		regexp.MustCompile(`^[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)*$`).MatchString,
		"allowed is a registry with a repository, such as registry.example.org/talos-backup",
		"leave out what begins with https://, and give the tag as tag")
	acceptsTag = accepts("tag",
		regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}(@sha256:[0-9a-f]{64})?$`).MatchString,
		"allowed is a tag such as "+schedule.DefaultTag+", with @sha256:… behind it for a digest",
		"copy it from the registry")
	acceptsQuantity = accepts("quantity", func(text string) bool {
		_, err := apiresource.ParseQuantity(text)

		return err == nil
	}, "allowed is a number with a unit, such as 64Mi or 100m", "write it as Kubernetes does")
)
