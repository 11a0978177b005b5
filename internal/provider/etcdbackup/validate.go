package etcdbackup

import (
	"context"
	"fmt"
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
	at := path.Root("cluster")

	if _, known := tf.KnownStrings(handle.TalosEndpoints); known {
		if len(clusterhandle.EndpointsOf(handle, &diags)) == 0 && !diags.HasError() {
			diags.Append(tf.Invalid(at.AtName("talos_endpoints"), "talos_endpoints", "found no address",
				"allowed are the addresses of control planes",
				"list at least one, where the Talos API is reached"))
		}
	}

	if handle.Name.IsUnknown() {
		return diags
	}

	if name := handle.Name.ValueString(); name == "" || name == "." || name == ".." || strings.Contains(name, "/") {
		diags.Append(tf.Invalid(at.AtName("name"), "name", "found "+finding.Quote(name),
			"allowed is a name without slashes: it is a folder in the place of the backups",
			"use the name that the cluster has"))
	}

	return diags
}

func (m Model) validateEncryption(ctx context.Context) diag.Diagnostics {
	var diags diag.Diagnostics

	at := path.Root("encryption")

	if m.Encryption.IsNull() {
		if m.sealedWithSecrets() {
			diags.Append(tf.Invalid(path.Root("include_secrets"), "include_secrets", "found it without encryption",
				"allowed is include_secrets with encryption",
				"set encryption, too: the secrets of a cluster are not stored in clear text"))
		}

		return diags
	}

	encryption, ok := tf.Object[encryptionModel](ctx, &tf.Reader{}, m.Encryption)
	if !ok || encryption.Recipients.IsUnknown() || encryption.Passphrase.IsUnknown() {
		return diags
	}

	if encryption.Recipients.IsNull() == encryption.Passphrase.IsNull() {
		found := "found both recipients and passphrase_wo"
		if encryption.Recipients.IsNull() {
			found = "found neither recipients nor passphrase_wo"
		}

		diags.Append(tf.Invalid(at, "encryption", found, "allowed is exactly one of them",
			"give public keys of age, or a passphrase"))

		return diags
	}

	if !encryption.Passphrase.IsNull() {
		if encryption.Passphrase.ValueString() == "" {
			diags.Append(tf.Invalid(at.AtName("passphrase_wo"), "passphrase_wo", "found an empty one",
				"allowed is any other text", "choose a long one"))
		}

		return diags
	}

	if len(encryption.Recipients.Elements()) == 0 {
		diags.Append(tf.Invalid(at.AtName("recipients"), "recipients", "found none", "allowed is one or more",
			"add a public key, as `age-keygen` prints it"))
	}

	for i, element := range encryption.Recipients.Elements() {
		text, ok := element.(types.String)
		if !ok || text.IsUnknown() {
			continue
		}

		// The value may be a private key by mistake, so it is not shown.
		if (backup.Sealing{Recipients: []string{text.ValueString()}}).Check() != nil {
			diags.Append(tf.Invalid(at.AtName("recipients").AtListIndex(i), "recipient",
				fmt.Sprintf("found no public key of age in recipients[%d]", i),
				"allowed is one such as age1…; keys of SSH are not taken",
				"copy the public key that `age-keygen` prints, not the secret one"))
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

	at := path.Root("retain")

	if count := retain.Count; !count.IsUnknown() && (count.ValueInt64() < 1 || count.ValueInt64() > 1_000_000) {
		diags.Append(tf.Invalid(at.AtName("count"), "count", fmt.Sprintf("found %d", count.ValueInt64()),
			"allowed is at least 1: the newest snapshot always stays",
			"leave retain out to keep all"))
	}

	if !retain.MinAge.IsNull() && !retain.MinAge.IsUnknown() {
		if age, more := retain.MinAge.ValueGoDuration(); !more.HasError() && age < 0 {
			diags.Append(tf.Invalid(at.AtName("min_age"), "min_age", "found "+finding.Quote(retain.MinAge.ValueString()),
				"allowed is a duration of 0s or more, such as 168h",
				"leave it out for none"))
		}
	}

	return diags
}
