package machines

import (
	"cmp"
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// State records, as digests, the secrets with which the machines of a resource were last read: with secrets in the
// provider, state has no others to compare. secrets_digest distinguishes them from those of another cluster even
// after a loss of private state.

// providedIdentity identifies the secrets of the provider block; empty when state has them, and while they are
// unknown.
func (p writtenSet) providedIdentity() string {
	if bundle, err := pki.Parse([]byte(p.Secrets)); err == nil && p.Provided {
		return bundle.Identity()
	}

	return ""
}

// recallSecrets finds the recorded secrets. When neither state nor the provider has them, the set is secretless, and
// its secrets count as unknown.
func (p *writtenSet) recallSecrets(
	ctx context.Context, m *providerdata.ProviderData, remembered record.Secrets,
) diag.Diagnostics {
	recorded := providerdata.RecordedSecrets(remembered)
	recorded.Identity = cmp.Or(p.RecordedSecrets, recorded.Identity)
	p.RecordedSecrets, p.recorded = recorded.Identity, recorded

	if p.Provided && m.LacksSecretsOf(p.clusterName, recorded) {
		m.ProvideSettings(ctx, &p.Set, p.clusterName, recorded)

		p.secretless = true
		p.Unknown.Note(machineset.UnknownSecrets, true)

		return nil
	}

	return p.addProvided(ctx, m, recorded)
}

// addProvided fills in secrets and settings of the provider's configuration. After an error the secrets count as
// unknown.
func (p *writtenSet) addProvided(
	ctx context.Context, m *providerdata.ProviderData, recorded providerdata.RecordedSecrets,
) diag.Diagnostics {
	m.ProvideSettings(ctx, &p.Set, p.clusterName, recorded)

	if !p.Provided {
		return nil
	}

	secrets, found := m.SecretsOf(p.clusterName, recorded, p.ClusterPath("secrets"))
	p.Secrets = secrets.ValueString()
	p.Unknown.Note(machineset.UnknownSecrets, secrets.IsUnknown())

	return tf.Diagnostics(found)
}

// takeSecrets gives a secretless set of state the secrets of the configuration: those of the provider block were
// moved to the resource. It refuses others than the recorded ones.
func (p *writtenSet) takeSecrets(now writtenSet) finding.List {
	if !p.secretless || now.Unknown.Has(machineset.UnknownSecrets) || now.Secrets == "" {
		return nil
	}

	if !p.recorded.Is(now.Secrets) {
		return finding.List{otherSecrets.At(p.ClusterPath("secrets"), finding.Args{"cluster": p.Settings.Name})}
	}

	p.Secrets, p.secretless = now.Secrets, false
	p.Unknown = p.Unknown.Without(machineset.UnknownNewSecrets)

	return nil
}

// refuseSecretless refuses a removal without available secrets.
func (p writtenSet) refuseSecretless(m *providerdata.ProviderData) finding.List {
	if !p.secretless {
		return nil
	}

	return finding.List{m.NoSecretsInState(p.clusterName)}
}

// refuseSecretlessReplacement refuses to replace an object while its secrets move from the provider to the resource:
// the CLI destroys it with the former state, which has none.
func (p writtenSet) refuseSecretlessReplacement(moved bool) finding.List {
	if !moved {
		return nil
	}

	return finding.List{secretsMoveWithReplacement.At(p.ClusterPath("secrets"),
		finding.Args{"cluster": p.Settings.Name})}
}

// notRead warns that machines were not read.
func (p writtenSet) notRead() finding.List {
	if p.secretless {
		return finding.List{providerdata.NotReadWithoutSecrets(p.clusterName)}
	}

	return finding.List{notRead.With(finding.Args{"cluster": p.Settings.Name})}
}
