package lifecycle_test

import (
	"slices"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/health"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// One control plane is enough to find all others, and nothing is changed. A machine that is gone is waited for once.
func TestExamine_findsTheOtherControlPlanes(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 1, sim.Options{})
	s.create()

	first := s.want
	first.Machines = first.Machines[:1]

	s.sim.ForgetCalls()

	runner := s.runner()
	runner.Kubernetes.(*kubernetes.Client).Options.EachServer = true

	have := runner.Examine(bounded(t), first)
	if len(have.Etcd.Views) != 3 || len(have.Peers) != 2 || len(have.Kubernetes.Nodes) != 4 {
		t.Errorf("%d views, %d peers and %d nodes, want 3, 2 and 4", len(have.Etcd.Views), len(have.Peers),
			len(have.Kubernetes.Nodes))
	}

	if seen := health.Of(first, have, health.Expiry{}); !seen.Healthy() {
		t.Errorf("the cluster is %s", seen.Summary())
	}

	if changes := s.changes(); len(changes) > 0 {
		t.Errorf("machines were changed: %v", changes)
	}

	s.sim.Machines()[2].PowerOff()

	gone := health.Of(first, s.runner().Examine(bounded(t), first), health.Expiry{})
	if gone.Healthy() || len(gone.Silent) != 1 {
		t.Errorf("without cp-3 the cluster is %s; silent are %q", gone.Summary(), gone.Silent)
	}
}

// Without Kubernetes there are no requests to it, and a control plane without a leader is not asked for the member
// list.
func TestExamine_withoutAQuorum(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 0, sim.Options{})
	s.create()

	machines := s.sim.Machines()
	machines[1].PowerOff()
	machines[2].PowerOff()

	r := s.runner()
	r.Kubernetes = nil

	have := r.Examine(bounded(t), s.want)

	etcd := health.OfEtcd(s.want, have)
	if etcd.Healthy() || !etcd.Reachable || len(etcd.Members) > 0 {
		t.Errorf("etcd is %+v", etcd)
	}

	i := slices.IndexFunc(etcd.Conditions, func(c health.Condition) bool { return c.Name == health.EtcdQuorum })
	if etcd.Conditions[i].Status != health.False {
		t.Errorf("the quorum is %+v", etcd.Conditions[i])
	}
}
