package machines

import (
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// Which host cluster has the machines of a resource is in its state: a kubeconfig says it anew every time, by a context
// that anybody may switch. host_uid tells it from others. A CLI whose provider is killed during an update keeps
// attributes and nothing of the private state (Terraform 1.11.4, OpenTofu 1.12.6), where what led there is, for people.

// belong fills in what tells the surroundings of machines from others that a plan did not know.
func (m *CommonModel) belong(p writtenSet, host workload.Identity) {
	if m.HostUID.IsUnknown() {
		m.HostUID = tf.TextOrNull(host.UID)
	}

	if m.SecretsDigest.IsUnknown() {
		m.SecretsDigest = tf.TextOrNull(p.providedIdentity())
	}
}

// belongAsPlanned fills in what a plan knows of that: machines on metal have no host.
func (m *CommonModel) belongAsPlanned(p writtenSet) {
	if p.Host == nil && m.HostUID.IsUnknown() {
		m.HostUID = types.StringNull()
	}

	switch {
	case p.Provided && p.Unknown.Has(machineset.UnknownSecrets):
		m.SecretsDigest = types.StringUnknown()
	case m.SecretsDigest.IsUnknown():
		m.SecretsDigest = tf.TextOrNull(p.providedIdentity())
	}
}

// belongAsSeen is what a refresh says of it.
func (m *CommonModel) belongAsSeen(p writtenSet, host workload.Identity) {
	m.HostUID, m.SecretsDigest = types.StringUnknown(), types.StringUnknown()
	m.belong(p, host)
}

// keepsConnection is whether two sets are of machines that are reached by the same settings, as far as resources have
// them.
func (p writtenSet) keepsConnection(prior writtenSet) bool {
	return p.Host == nil || prior.Host == nil || reflect.DeepEqual(p.Host.Connection, prior.Host.Connection)
}

// recordable is the host cluster that a refresh found, to be recorded: one that was confirmed, or that has any machine
// where nothing was recorded yet.
func (h hostReport) recordable(before workload.Identity) workload.Identity {
	if h.host.UID == "" || before.UID == "" && !h.present {
		return before
	}

	return h.host
}

// warnOfGone names the machines that state knows and that were not on the host cluster when a run began.
func (r run) warnOfGone(next string) finding.List {
	return machineset.WarnOfGone(r.gone, r.host, next)
}
