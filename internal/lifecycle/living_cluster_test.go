package lifecycle_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// beside describes the same cluster on other machines, as a second state with the same secrets does.
func (s *site) beside(prefix string, controlPlanes, workers int, endpoint string, isolated bool) *site {
	s.t.Helper()

	other := &site{t: s.t, sim: s.sim, bundle: s.bundle, configs: map[string][]byte{}, policy: cluster.DefaultPolicy()}
	other.isolated = isolated
	other.want = cluster.Spec{Name: s.want.Name, Endpoint: endpoint, Isolated: isolated, NodesBecomeReady: true}

	other.add(prefix+"-cp", controlPlanes, step.ControlPlane)
	other.add(prefix+"-w", workers, step.Worker)

	return other
}

// anotherEndpoint is an endpoint that no cluster has.
func (s *site) anotherEndpoint() string {
	s.t.Helper()

	endpoint, err := s.sim.Endpoint()
	if err != nil {
		s.t.Fatal(err)
	}

	return endpoint
}

// membership is the etcd members and the nodes of the cluster.
func (s *site) membership() []string {
	s.t.Helper()

	have := s.runner().Observe(bounded(s.t), s.want)

	var parts []string
	for _, m := range have.Etcd.Members {
		parts = append(parts, "member "+m.ID+" "+m.Name)
	}

	for _, n := range have.Kubernetes.Nodes {
		parts = append(parts, "node "+n.Name)
	}

	slices.Sort(parts)

	return parts
}

// expectRefused runs a spec that must not reach a running cluster.
func (s *site) expectRefused(says string) {
	s.t.Helper()
	s.sim.ForgetCalls()

	result, err := s.runner().Converge(bounded(s.t), s.want)

	var refused *lifecycle.RefusedError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), says) {
		s.t.Errorf("the run ended with %v, want a refusal that says %q", err, says)
	}

	if result.Touched {
		s.t.Error("the run says that it touched a machine")
	}

	if changes := s.changes(); len(changes) > 0 {
		s.t.Errorf("machines were changed: %v", changes)
	}
}

// TestRestore_nextToALivingCluster: a second state with the same secrets, name and endpoint restores a snapshot on
// three spare machines. No machine gets a configuration, and the cluster keeps its members and nodes.
func TestRestore_nextToALivingCluster(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 1, sim.Options{})
	s.create()

	before := s.membership()

	rehearsal := s.beside("spare", 3, 0, s.want.Endpoint, false)
	rehearsal.want.RestoreFrom, rehearsal.snapshot = "backups/prod.db", &held{data: s.takeSnapshot()}
	rehearsal.expectRefused("isolated = true")

	if rehearsal.snapshot.fetched > 0 {
		t.Error("the snapshot was fetched")
	}

	if after := s.membership(); !slices.Equal(after, before) {
		t.Errorf("the cluster consists of %v, before of %v", after, before)
	}
}

// TestCreate_nextToALivingCluster: the same without a snapshot.
func TestCreate_nextToALivingCluster(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 1, sim.Options{})
	s.create()

	before := s.membership()

	s.beside("spare", 1, 1, s.want.Endpoint, false).expectRefused("a cluster with these secrets already runs")

	if after := s.membership(); !slices.Equal(after, before) {
		t.Errorf("the cluster consists of %v, before of %v", after, before)
	}
}

// TestRestore_isolatedNextToALivingCluster: a rehearsal with the same secrets and its own endpoint restores the
// snapshot, and the cluster keeps its members and nodes. A second run changes nothing.
func TestRestore_isolatedNextToALivingCluster(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 1, sim.Options{})
	s.create()

	before := s.membership()

	rehearsal := s.beside("spare", 3, 1, s.anotherEndpoint(), true)
	rehearsal.want.RestoreFrom, rehearsal.snapshot = "backups/prod.db", &held{data: s.takeSnapshot()}

	result, err := rehearsal.runner().Converge(bounded(t), rehearsal.want)
	if err != nil {
		t.Fatal(err)
	}

	if n, clusters := len(result.Snapshot.Etcd.Members), s.sim.EtcdClusters(); n != 3 || clusters != 2 {
		t.Errorf("the rehearsal has %d members, and there are %d clusters of etcd; want 3 and 2", n, clusters)
	}

	if phase := cluster.PhaseOf(rehearsal.want, result.Snapshot); phase != cluster.Ready {
		t.Errorf("the rehearsal is %s, want Ready", phase)
	}

	if after := s.membership(); !slices.Equal(after, before) {
		t.Errorf("the cluster consists of %v, before of %v", after, before)
	}

	rehearsal.want.RestoredAt, rehearsal.want.RestoreFrom = lastRestored(result.Snapshot), ""
	rehearsal.record(result.Snapshot)

	if again, err := rehearsal.runner().Converge(bounded(t), rehearsal.want); err != nil || len(again.Done) > 0 {
		t.Errorf("a second run did %v (%v)", again.Done, err)
	}
}

// TestRestore_isolatedAtTheEndpointOfALivingCluster: isolation does not permit a rehearsal at the endpoint of the
// running cluster.
func TestRestore_isolatedAtTheEndpointOfALivingCluster(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 0, sim.Options{})
	s.create()

	rehearsal := s.beside("spare", 1, 0, s.want.Endpoint, true)
	rehearsal.want.RestoreFrom, rehearsal.snapshot = "backups/prod.db", &held{data: s.takeSnapshot()}
	rehearsal.expectRefused("a separate endpoint")
}

// TestRestore_elsewhereWhileTheMembersOfTheSnapshotRun: another endpoint hides the running cluster, and the machines
// would join it through discovery. The snapshot names its control planes.
func TestRestore_elsewhereWhileTheMembersOfTheSnapshotRun(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 0, sim.Options{})
	s.create()

	before := s.membership()

	rehearsal := s.beside("spare", 1, 0, s.anotherEndpoint(), false)
	rehearsal.want.RestoreFrom = "backups/prod.db"
	rehearsal.snapshot = &held{data: s.takeSnapshot(), members: []string{s.want.Machines[0].Address, "192.0.2.9"}}
	rehearsal.timeouts.Connect = time.Second
	rehearsal.expectRefused(s.want.Machines[0].Address + " in the snapshot backups/prod.db still respond")

	if after := s.membership(); !slices.Equal(after, before) {
		t.Errorf("the cluster consists of %v, before of %v", after, before)
	}
}
