package machines

import (
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// State records which host cluster has the machines of a resource: a kubeconfig selects it each time by a context
// that any user may switch. host_uid identifies the host. A CLI whose provider is killed during an update keeps
// attributes and nothing of the private state (Terraform 1.11.4, OpenTofu 1.12.6), where the connection is, for
// people.

// belong fills in the identities of the machines' surroundings that a plan did not know.
func (m *CommonModel) belong(p writtenSet, host workload.Identity) {
	if m.HostUID.IsUnknown() {
		m.HostUID = tf.TextOrNull(host.UID)
	}

	if m.SecretsDigest.IsUnknown() {
		m.SecretsDigest = tf.TextOrNull(p.providedIdentity())
	}
}

// belongAsPlanned fills in those that a plan knows: machines on metal have no host.
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

// belongAsSeen fills in those of a refresh.
func (m *CommonModel) belongAsSeen(p writtenSet, host workload.Identity) {
	m.HostUID, m.SecretsDigest = types.StringUnknown(), types.StringUnknown()
	m.belong(p, host)
}

// keepsConnection reports whether two sets reach their machines by the same settings, as far as resources have them.
func (p writtenSet) keepsConnection(prior writtenSet) bool {
	return p.Host == nil || prior.Host == nil || reflect.DeepEqual(p.Host.Connection, prior.Host.Connection)
}

// recordable is the host cluster of a refresh, to be recorded: a confirmed one, or one that has any machine when
// nothing was recorded yet.
func (h hostReport) recordable(before workload.Identity) workload.Identity {
	if h.host.UID == "" || before.UID == "" && !h.present {
		return before
	}

	return h.host
}

// warnOfGone names the recorded machines that were not on the host cluster when a run started.
func (r run) warnOfGone(when machineset.GoneWhen) finding.List {
	return machineset.WarnOfGone(r.gone, r.host, when)
}
