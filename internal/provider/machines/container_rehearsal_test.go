package machines_test

import (
	"slices"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// A snapshot is restored in pods beside its cluster, on one host and under another name. Pods of the rehearsal connect
// only to each other.
func TestRehearsal_inPodsBesideTheCluster(t *testing.T) {
	t.Parallel()

	s := newHostSite(t)
	bundle := tftest.NewBundle(t)
	production := s.drive(t, "talosop_cluster")
	config := s.cluster("dev", bundle, 1, 1)
	production.Ready(t, config)

	from := sitetest.BackedUp(t, production, t.TempDir())
	before := s.podUIDs(t)

	rehearsal := tftest.Drive(t, "talosop_cluster", nil)
	rehearsal.Server = production.Server

	isolated := tftest.With(tftest.With(s.cluster("drill", bundle, 1, 1), from, "restore_from"), true, "isolated")
	rehearsal.Ready(t, isolated)
	rehearsal.ExpectEmpty(t, "after the rehearsal", isolated)

	policies, err := s.API().NetworkingV1().NetworkPolicies(s.namespace).List(t.Context(),
		metav1.ListOptions{LabelSelector: workload.LabelCluster + "=drill"})
	tftest.Must(t, err)

	if n := len(policies.Items); n != 2 {
		t.Errorf("the rehearsal has %d policies, want one for each of its two machines", n)
	}

	for _, policy := range policies.Items {
		if !slices.Contains(policy.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) || len(policy.Spec.Egress) != 1 ||
			policy.Spec.Egress[0].To[0].PodSelector.MatchLabels[workload.LabelCluster] != "drill" {
			t.Errorf("%s lets pods out: %v", policy.Name, policy.Spec.Egress)
		}
	}

	// The cluster is unchanged.
	for name, uid := range before {
		if now := s.podUIDs(t)[name]; now != uid {
			t.Errorf("pod %s was replaced", name)
		}
	}

	production.ExpectEmpty(t, "beside the rehearsal", config)
	s.destroy(t, rehearsal, "drill")
	production.ExpectEmpty(t, "after the rehearsal", config)
	s.destroy(t, production, "dev")
}
