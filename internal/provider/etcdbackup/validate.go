package etcdbackup

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/store"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// validate checks the known part of a configuration.
func (m Model) validate(ctx context.Context) diag.Diagnostics {
	diags := store.ValidateStore(path.Empty(), m.S3, m.File)
	diags.Append(m.validateCluster(ctx)...)
	diags.Append(m.validateEncryption(ctx)...)
	diags.Append(ValidateRetain(ctx, m.Retain)...)

	return diags
}

func (m Model) validateCluster(ctx context.Context) diag.Diagnostics {
	handle, diags := clusterhandle.AccessFrom(ctx, m.Cluster)
	at := finding.Root("cluster")

	if _, known := tf.KnownStrings(handle.TalosEndpoints); known {
		if len(clusterhandle.EndpointsOf(handle, &diags)) == 0 && !diags.HasError() {
			diags.Append(tf.Diagnostic(noControlPlanes.At(at.AtName("talos_endpoints"), nil)))
		}
	}

	if handle.Name.IsUnknown() {
		return diags
	}

	if name := handle.Name.ValueString(); name == "" || name == "." || name == ".." || strings.Contains(name, "/") {
		diags.Append(tf.Diagnostic(invalidClusterName.At(at.AtName("name"), finding.Args{"name": name})))
	}

	return diags
}

func (m Model) validateEncryption(ctx context.Context) diag.Diagnostics {
	var diags diag.Diagnostics

	at := finding.Root("encryption")

	if m.Encryption.IsNull() {
		if m.sealedWithSecrets() {
			diags.Append(tf.Diagnostic(secretsWithoutEncryption.At(finding.Root("include_secrets"), nil)))
		}

		return diags
	}

	encryption, ok := tf.Object[encryptionModel](ctx, &tf.Reader{}, m.Encryption)
	if !ok || encryption.Recipients.IsUnknown() || encryption.Passphrase.IsUnknown() {
		return diags
	}

	if encryption.Recipients.IsNull() == encryption.Passphrase.IsNull() {
		diags.Append(tf.Diagnostic(oneEncryption.At(at, finding.Args{"both": !encryption.Recipients.IsNull()})))

		return diags
	}

	if !encryption.Passphrase.IsNull() {
		if encryption.Passphrase.ValueString() == "" {
			diags.Append(tf.Diagnostic(emptyPassphrase.At(at.AtName("passphrase_wo"), nil)))
		}

		return diags
	}

	if len(encryption.Recipients.Elements()) == 0 {
		diags.Append(tf.Diagnostic(noRecipients.At(at.AtName("recipients"), nil)))
	}

	for i, element := range encryption.Recipients.Elements() {
		text, ok := element.(types.String)
		if !ok || text.IsUnknown() {
			continue
		}

		// The value may be a private key by mistake, so it is not shown.
		if (backup.Sealing{Recipients: []string{text.ValueString()}}).Check() != nil {
			diags.Append(tf.Diagnostic(invalidRecipient.At(at.AtName("recipients").AtListIndex(i), nil)))
		}
	}

	return diags
}

// ValidateRetain checks `retain`: how many snapshots are kept.
func ValidateRetain(ctx context.Context, given types.Object) diag.Diagnostics {
	var diags diag.Diagnostics

	r := &tf.Reader{}

	retain, ok := tf.Object[retainModel](ctx, r, given)
	if !ok || r.Diags.HasError() { // its types report mistakes
		return diags
	}

	at := finding.Root("retain")

	if count := retain.Count; !count.IsUnknown() && (count.ValueInt64() < 1 || count.ValueInt64() > 1_000_000) {
		diags.Append(tf.Diagnostic(invalidRetainCount.At(at.AtName("count"), finding.Args{"count": count.ValueInt64()})))
	}

	if !retain.MinAge.IsNull() && !retain.MinAge.IsUnknown() {
		if age, more := retain.MinAge.ValueGoDuration(); !more.HasError() && age < 0 {
			diags.Append(tf.Diagnostic(invalidMinAge.At(
				at.AtName("min_age"), finding.Args{"value": retain.MinAge.ValueString()})))
		}
	}

	return diags
}
