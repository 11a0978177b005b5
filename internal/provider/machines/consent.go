package machines

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// Secrets that are older than the plan may have a cluster that is missing in state. A create bootstraps etcd with
// them only if the configuration allows it, and joins an etcd that answers.

func allowBootstrapAttribute() schema.BoolAttribute {
	return tf.OptionalBool("Consent, for one apply, to bootstrap etcd with secrets older than the plan (default " +
		"`false`), because a cluster with them may be powered off " +
		"([guide](../guides/disaster-recovery.md#create-a-cluster-with-existing-secrets)). Not needed with " +
		"`talosop_secrets` of the same apply, an etcd that answers, or `restore_from`." + tf.TerraformOnly)
}

// createsWithoutConsent reports whether a create may not bootstrap etcd. It is false while the plan cannot know.
// replaces is true for the create of a replacement: its cluster is the one in state, which the plan destroys.
func (p writtenSet) createsWithoutConsent(m *providerdata.ProviderData, replaces bool) bool {
	if !p.beginsEtcd() || p.Restore.From != "" || p.Unknown.Has(machineset.UnknownSnapshot) ||
		p.allowBootstrap.IsUnknown() || p.allowBootstrap.ValueBool() || replaces && p.Guarded() {
		return false
	}

	if p.Unknown.Has(machineset.UnknownSecrets) {
		return p.Provided // the secrets of the provider block are older than its configuration
	}

	bundle, err := pki.Parse([]byte(p.Secrets))

	return err == nil && !m.Ledger().Unused(bundle)
}

// beginsEtcd reports whether the resource bootstraps etcd.
func (p writtenSet) beginsEtcd() bool {
	return p.OwnsControlPlane() && !p.Joins
}

// updatesWithoutConsent is createsWithoutConsent for a create that did not finish.
func (p writtenSet) updatesWithoutConsent(remembered record.Surroundings, before cluster.Phase) bool {
	return remembered.NeedsConsent && !machineset.Bootstrapped(before) && p.beginsEtcd() && !p.allowBootstrap.ValueBool()
}

// refuseWithoutConsent refuses a create that would bootstrap etcd without consent. It asks the control planes,
// because an etcd that answers is joined. A plan that may not ask them yet finds none.
func (p writtenSet) refuseWithoutConsent(ctx context.Context, m *providerdata.ProviderData) finding.List {
	if m == nil {
		return nil
	}

	found := "the machines, or the secrets, are not known before the apply"

	if !p.Unknown.Has(machineset.UnknownAddresses) && !p.Unknown.Has(machineset.UnknownSecrets) {
		want, have, err := p.lookForEtcd(ctx, m)

		switch {
		case err != nil:
			found = err.Error()
		case cluster.EtcdAnswers(want, have):
			return nil
		default:
			found = cluster.DescribeControlPlanes(want, have)
		}
	}

	return finding.List{consentMissing.At(finding.Root("allow_bootstrap"),
		finding.Args{"cluster": p.Settings.Name, "observed": found})}
}

// lookForEtcd observes the known control planes.
func (p writtenSet) lookForEtcd(
	ctx context.Context, m *providerdata.ProviderData,
) (cluster.Spec, cluster.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, m.PlanTimeout)
	defer cancel()

	reading := *m
	reading.Talos.TrustNodeNames = true

	s, err := openSession(ctx, &reading, pki.Observing, p.Set, machineset.PriorState{}, false)
	if err != nil {
		return cluster.Spec{}, cluster.Snapshot{}, err
	}

	defer s.Close()

	s.want.Machines = cluster.OfRole(s.want.Machines, step.ControlPlane)
	s.want.OtherControlPlanes = p.AskedBeforeEtcd(machineset.PriorState{})

	return s.want, s.runner.Observe(ctx, s.want), nil
}

// remindOfConsent warns of consent that is still in the configuration of a cluster with an etcd.
func (p writtenSet) remindOfConsent(before cluster.Phase) finding.List {
	if !p.allowBootstrap.ValueBool() || !machineset.Bootstrapped(before) {
		return nil
	}

	return finding.List{consentReminder.With(finding.Args{"object": objectOf(p.Set)})}
}

// clusterInState reports whether the refreshed state of this plan has the cluster of these secrets.
func (p writtenSet) clusterInState(m *providerdata.ProviderData) bool {
	bundle, err := pki.Parse([]byte(p.Secrets))

	return err == nil && m.Ledger().Recorded(bundle)
}

// noteCluster notes that the state has the cluster of these secrets.
func (p writtenSet) noteCluster(m *providerdata.ProviderData) {
	if bundle, err := pki.Parse([]byte(p.Secrets)); err == nil && p.OwnsControlPlane() {
		m.Ledger().NoteRecorded(bundle)
	}
}

// noteExposed notes whether the plan exposes the Kubernetes API of containers outside of their host cluster.
func (p writtenSet) noteExposed(m *providerdata.ProviderData) {
	bundle, err := pki.Parse([]byte(p.Secrets))
	if err != nil || p.Host == nil || p.Host.Endpoint == nil {
		return
	}

	m.Ledger().PlanExposed(bundle, string(p.Host.Endpoint.Type) != clusterhandle.ServiceClusterIP)
}

// noteEnd notes that a destroy ended the cluster of these secrets: they are unused now.
func (p writtenSet) noteEnd(m *providerdata.ProviderData) {
	if bundle, err := pki.Parse([]byte(p.Secrets)); err == nil && p.OwnsControlPlane() && p.Guarded() && !p.Preserves {
		m.Ledger().NoteUnused(bundle)
	}
}
