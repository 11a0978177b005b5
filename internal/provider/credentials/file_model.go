package credentials

import (
	"context"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// credentialsFile is the model of one kind of file.
type credentialsFile interface {
	// common is what all kinds share.
	common() *fileModel
	// validate checks the arguments of this kind alone.
	validate() diag.Diagnostics
	// ordered reads the arguments of this kind alone.
	ordered(r *tf.Reader, handle clusterhandle.AccessModel, o *order)
	// foresee reports in a plan what would prevent the credentials.
	foresee(ctx context.Context, m *providerdata.ProviderData, handle clusterhandle.AccessModel, bundle *pki.Bundle,
		o order) diag.Diagnostics
	// issue makes the credentials.
	issue(ctx context.Context, m *providerdata.ProviderData, handle clusterhandle.AccessModel, bundle *pki.Bundle,
		o order) (issued, diag.Diagnostics)
}

// fileModel is what files of all kinds have in common.
type fileModel struct {
	Cluster     types.Object `tfsdk:"cluster"`
	Path        types.String `tfsdk:"path"`
	TTL         tf.Duration  `tfsdk:"ttl"`
	RenewBefore tf.Duration  `tfsdk:"renew_before"`

	writtenModel
}

// writtenModel is what is known of a written file.
type writtenModel struct {
	Status      types.String      `tfsdk:"status"`
	NotAfter    timetypes.RFC3339 `tfsdk:"not_after"`
	Fingerprint types.String      `tfsdk:"fingerprint"`
}

// The values of status.
const (
	statusValid   = "valid"
	statusDue     = "due"
	statusMissing = "missing"
	statusChanged = "changed"
)

func (m *fileModel) common() *fileModel { return m }

// toBeWritten is what a plan knows of a file that an apply writes.
func toBeWritten() writtenModel {
	return writtenModel{Status: types.StringValue(statusValid), NotAfter: timetypes.NewRFC3339Unknown(),
		Fingerprint: types.StringUnknown()}
}

// written is what state keeps of a file.
func written(out issued) writtenModel {
	return writtenModel{Status: types.StringValue(statusValid), NotAfter: timetypes.NewRFC3339TimeValue(out.NotAfter),
		Fingerprint: types.StringValue(pki.ConfigFingerprint(out.file))}
}

// orderOf reads the known part of the order in a configuration.
func orderOf(
	ctx context.Context, data *providerdata.ProviderData, config credentialsFile, authority string,
	diags *diag.Diagnostics,
) (o order, known bool) {
	r, m := &tf.Reader{}, config.common()

	handle, more := data.AccessFrom(ctx, m.Cluster)
	diags.Append(more...)

	var bundle *pki.Bundle // nil while the secrets are not known

	if !handle.Secrets.IsUnknown() && !more.HasError() {
		var err error
		if bundle, err = pki.Parse([]byte(handle.Secrets.ValueString())); err != nil {
			diags.Append(tf.InvalidSecrets(path.Root("cluster").AtName("secrets"), err))
		}
	}

	o.clusterOf(r, handle, bundle, authority)
	o.timesOf(r, m.TTL, m.RenewBefore)
	config.ordered(r, handle, &o)
	diags.Append(r.Diags...)

	return o, !r.Unknown
}

// validateCommon checks the arguments of all kinds.
func (m *fileModel) validateCommon() diag.Diagnostics {
	diags := m.validatePath()
	r := &tf.Reader{}

	var o order
	o.timesOf(r, m.TTL, m.RenewBefore)

	if r.Diags.HasError() { // their type reports mistakes
		return diags
	}

	if !m.TTL.IsUnknown() && (o.TTL < time.Minute || o.TTL > longestFileTTL) {
		return append(diags, tf.Diagnostic(invalidFileTTL.At(
			finding.Root("ttl"), finding.Args{"value": m.TTL.ValueString()})))
	}

	if m.RenewBefore.IsNull() || r.Unknown {
		return diags
	}

	if o.RenewBefore < 0 || o.RenewBefore >= o.TTL {
		diags.Append(tf.Diagnostic(invalidRenewBefore.At(finding.Root("renew_before"),
			finding.Args{"value": m.RenewBefore.ValueString(), "ttl": o.TTL})))
	}

	return diags
}

func (m *fileModel) validatePath() diag.Diagnostics {
	if m.Path.IsUnknown() {
		return nil
	}

	at := finding.Root("path")

	switch text := m.Path.ValueString(); {
	case strings.TrimSpace(text) == "":
		return diag.Diagnostics{tf.Diagnostic(emptyPath.At(at, nil))}
	case strings.HasPrefix(text, "~"):
		return diag.Diagnostics{tf.Diagnostic(pathWithHome.At(at, finding.Args{"path": text}))}
	case strings.HasSuffix(text, "/"):
		return diag.Diagnostics{tf.Diagnostic(pathOfFolder.At(at, finding.Args{"path": text}))}
	default:
		return nil
	}
}
