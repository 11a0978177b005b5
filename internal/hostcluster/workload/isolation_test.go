package workload_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
)

// The pods of an isolated cluster connect to each other and to nothing else, however talosop reaches them.
func TestIsolation_ofAnIsolatedCluster(t *testing.T) {
	t.Parallel()

	in := []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
	out := []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}
	both := slices.Concat(in, out)
	exposed := &workload.EndpointService{TalosAPI: true}

	for name, test := range map[string]struct {
		access   workload.Access
		endpoint *workload.EndpointService
		isolated bool
		want     []networkingv1.PolicyType // nil for no policy
	}{
		"forwarded":                 {want: in},
		"forwarded, isolated":       {isolated: true, want: both},
		"exposed":                   {endpoint: exposed},
		"exposed, isolated":         {endpoint: exposed, isolated: true, want: out},
		"at node ports, isolated":   {access: workload.NodePort, isolated: true, want: out},
		"at node ports":             {access: workload.NodePort},
		"at its pods' addresses":    {access: workload.Pod},
		"at its pods', isolated":    {access: workload.Pod, isolated: true, want: out},
		"behind balancer, isolated": {access: workload.LoadBalancer, isolated: true, want: out},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			spec := workload.Spec{Cluster: "dev", Mark: "0123", Namespace: "talos", Access: test.access, Endpoint: test.endpoint,
				Isolated: test.isolated}
			policy := spec.Isolation(workload.Machine{Name: "cp-0", Pool: "cp", Role: workload.ControlPlane})

			if policy == nil {
				if test.want != nil {
					t.Errorf("there is no policy, want one of %v", test.want)
				}

				return
			}

			if diff := cmp.Diff(test.want, policy.Spec.PolicyTypes); diff != "" {
				t.Errorf("kinds of the policy (-want +got):\n%s", diff)
			}

			var to []map[string]string
			for _, rule := range policy.Spec.Egress {
				for _, peer := range rule.To {
					to = append(to, peer.PodSelector.MatchLabels)
				}

				if len(rule.Ports) > 0 || len(rule.To) != 1 {
					t.Errorf("a rule lets pods out to %v at %v", rule.To, rule.Ports)
				}
			}

			own := []map[string]string{{workload.LabelCluster: "dev", workload.LabelMark: "0123"}}
			if !test.isolated {
				own = nil
			}

			if diff := cmp.Diff(own, to); diff != "" {
				t.Errorf("pods may connect to (-want +got):\n%s", diff)
			}
		})
	}
}
