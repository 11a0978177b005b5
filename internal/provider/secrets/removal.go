package secrets

import (
	"fmt"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
)

// protected refuses to remove secrets, and says how to save them in a file.
func protected(clusterID, operation string) finding.List {
	refusal := finding.Protected("talosop_secrets", clusterID, operation)
	refusal.Detail += " The bundle is still in state, as `bundle` of this resource; machines that run with it obey " +
		"nobody who has no copy of it." + saveFirst(clusterID) + "What is left over as deposed cannot be changed: save its " +
		"bundle, `state rm` its address, and import the file with the bundle that the machines have."

	return finding.List{refusal}
}

// warnOfLoss warns of secrets that a plan removes. kept is what is known to keep running with them.
func warnOfLoss(clusterID, kept string) finding.List {
	return finding.List{finding.Warn("The secrets of a cluster will be lost", loss(clusterID)+saveFirst(clusterID)+kept)}
}

// warnOfLost warns of secrets that an apply has removed.
func warnOfLost(clusterID, kept string) finding.List {
	return finding.List{finding.Warn("The secrets of a cluster are no longer in state", loss(clusterID)+
		" The state from before this run still has it: terraform.tfstate.backup beside a local state, or the version before "+
		"this one where the state is stored.\n"+kept)}
}

func loss(clusterID string) string {
	return fmt.Sprintf("The bundle of cluster id %q leaves state. Machines that still run with it, also those that were "+
		"preserved (on_destroy = \"preserve\") or removed from state, can no longer be read, changed or reset by anybody "+
		"who has no copy of it, and no snapshot of their etcd can be restored.", clusterID)
}

// saveFirst says how to save a bundle in a file without showing it. It finds the bundle by the ID of its cluster,
// whatever its address. The CLIs do not wrap a line that starts with spaces.
func saveFirst(clusterID string) string {
	return fmt.Sprintf(" To save it to a file first (with tofu alike):\n    (umask 077; terraform state pull | jq -er "+
		"'first(.. | objects | select(.cluster_id == %q) | .bundle // empty)' > secrets.yaml)\n", clusterID)
}

// kept names the machines that are known to keep running with the secrets.
func kept(m *providerdata.ProviderData, bundle string) string {
	parsed, err := pki.Parse([]byte(bundle))
	if err != nil {
		return ""
	}

	machines := m.Ledger().KeptMachines(parsed)
	if len(machines) == 0 {
		return ""
	}

	return "These go on running with it:\n  - " + strings.Join(machines, "\n  - ")
}
