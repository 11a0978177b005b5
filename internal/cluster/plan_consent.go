package cluster

import (
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// refuseUnconsented refuses to bootstrap etcd with secrets that are older than the plan while no etcd answers. The
// cluster of these secrets may be powered off, or have other control planes than the spec lists. A bootstrap would
// make a second etcd with the same authorities, which Talos does not prevent (Talos 1.13, Bootstrap checks its own
// data directory only). The rule comes before the first configuration is sent.
func refuseUnconsented(want Spec, have Snapshot, d *Decision) {
	if !want.NeedsConsent || !want.OwnsBootstrap() || want.Bootstrapped || want.RestoreFrom != "" ||
		EtcdAnswers(want, have) {
		return
	}

	for _, m := range want.everyControlPlane() {
		if have.Machines[m.Name].Access == step.Unobserved {
			d.hold(m.Name, "not observed yet")

			return
		}
	}

	d.refuse("", "the secrets are older than this apply, and no etcd of their cluster responds: "+
		DescribeControlPlanes(want, have), ConsentRemedy)
}

// ConsentRemedy is what to do when a bootstrap needs consent.
const ConsentRemedy = "If a cluster runs with these secrets, start its control planes, or import it. To start from a " +
	"snapshot of it, set restore_from. If no cluster uses them, set allow_bootstrap = true for this apply"

// EtcdAnswers reports whether anything shows that the cluster has an etcd: its members, the nodes of its Kubernetes
// API, a control plane with data, or another resource of this process that bootstraps it.
func EtcdAnswers(want Spec, have Snapshot) bool {
	if len(have.Etcd.Members) > 0 || etcdElsewhere(have) != "" {
		return true
	}

	for _, m := range want.everyControlPlane() {
		s := have.Machines[m.Name]

		if s.Access == step.Member && (s.BootstrapRequested || s.EtcdService.ProvesData()) {
			return true
		}
	}

	return false
}

// DescribeControlPlanes says what each control plane shows instead of an etcd.
func DescribeControlPlanes(want Spec, have Snapshot) string {
	var shown []string

	for _, m := range want.everyControlPlane() {
		s := have.Machines[m.Name]

		switch {
		case s.Access == step.Gone:
			shown = append(shown, m.Name+" has no pod")
		case s.Access == step.Member:
			shown = append(shown, m.Name+" has no etcd data")
		default:
			shown = append(shown, m.Name+" "+stageOf(s))
		}
	}

	return strings.Join(shown, ", ")
}
