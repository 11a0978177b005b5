package secrets

import (
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
)

// protected refuses to remove secrets, and says how to save them to a file.
func protected(clusterID, operation string) finding.List {
	return finding.List{secretsProtected.At(
		finding.Root("deletion_protection"), finding.Args{"id": clusterID, "operation": operation})}
}

// warnOfLoss warns of secrets that a plan removes. kept is what is known to keep running with them.
func warnOfLoss(clusterID string, kept []string) finding.List {
	return finding.List{secretsWillBeLost.With(finding.Args{"id": clusterID, "machines": kept})}
}

// warnOfLost warns of secrets that an apply has removed.
func warnOfLost(clusterID string, kept []string) finding.List {
	return finding.List{secretsLost.With(finding.Args{"id": clusterID, "machines": kept})}
}

// kept names the machines that are known to keep running with the secrets.
func kept(m *providerdata.ProviderData, bundle string) []string {
	parsed, err := pki.Parse([]byte(bundle))
	if err != nil {
		return nil
	}

	return m.Ledger().KeptMachines(parsed)
}
