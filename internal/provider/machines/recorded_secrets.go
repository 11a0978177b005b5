package machines

import (
	"cmp"
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// Which secrets the machines of a resource were last read with is in its state, as digests: where the provider was
// given the secrets, state has none that others could be compared with. secrets_digest tells them from those of
// another cluster also where private state was lost.

// secretsKey and identityKey are where private state holds the digests; see providerdata.RecordedSecrets.
const (
	secretsKey  = "secrets"
	identityKey = "cluster_identity"
)

// recordSecrets stores the digests of the secrets.
func (p writtenSet) recordSecrets(ctx context.Context, private tf.PrivateStore) diag.Diagnostics {
	bundle, err := pki.Parse([]byte(p.Secrets))
	if err != nil {
		return nil // whoever needed them said so
	}

	return append(tf.StorePrivate(ctx, private, secretsKey, bundle.Digest()),
		tf.StorePrivate(ctx, private, identityKey, bundle.Identity())...)
}

// providedIdentity tells the secrets of the provider block from those of other clusters; empty where state has them,
// and while they are not known.
func (p writtenSet) providedIdentity() string {
	if bundle, err := pki.Parse([]byte(p.Secrets)); err == nil && p.Provided {
		return bundle.Identity()
	}

	return ""
}

// recallSecrets finds the secrets that were recorded.
func (p *writtenSet) recallSecrets(
	ctx context.Context, m *providerdata.ProviderData, private tf.PrivateState,
) diag.Diagnostics {
	var recorded providerdata.RecordedSecrets

	diags := append(tf.ReadPrivate(ctx, private, secretsKey, &recorded.Digest),
		tf.ReadPrivate(ctx, private, identityKey, &recorded.Identity)...)
	recorded.Identity = cmp.Or(p.RecordedSecrets, recorded.Identity)
	p.RecordedSecrets = recorded.Identity

	return append(diags, p.addProvided(ctx, m, recorded)...)
}

// addProvided fills in the secrets and the settings that the provider was given. After an error the secrets count as
// not known.
func (p *writtenSet) addProvided(
	ctx context.Context, m *providerdata.ProviderData, recorded providerdata.RecordedSecrets,
) diag.Diagnostics {
	m.ProvideSettings(ctx, &p.Set, p.clusterName, recorded)

	if !p.Provided {
		return nil
	}

	secrets, found := m.SecretsOf(p.clusterName, recorded, p.ClusterPath("secrets"))
	p.Secrets, p.Sealed = secrets.ValueString(), secrets.IsUnknown()

	return tf.Diagnostics(found)
}

// notRead warns that machines were not read.
func (p writtenSet) notRead() finding.List {
	return finding.List{finding.Warn("Machines were not read", fmt.Sprintf("The secrets of cluster %s are in the "+
		"provider's configuration, and not known before the apply. State keeps what was read before.",
		finding.Quote(p.Settings.Name)))}
}
