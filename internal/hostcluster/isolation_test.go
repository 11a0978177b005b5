package hostcluster_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
)

// Each machine has a policy that closes the ports of Talos to foreign pods. It is recreated after a deletion, and
// removed where the ports are exposed and with its machine. Credentials without the right do without it.
func TestIsolation_ofMachines(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	spec := s.spec("dev", 1, 1)
	policies := s.cluster.API().NetworkingV1().NetworkPolicies(s.namespace)
	there := func(names ...string) {
		t.Helper()

		found := s.objects(t, spec)
		for _, name := range []string{"dev-cp-0", "dev-batch-0"} {
			want := false
			for _, one := range names {
				want = want || one == name
			}

			if _, got := found["NetworkPolicy "+name]; got != want {
				t.Errorf("there is a policy of %s: %t", name, got)
			}
		}
	}
	drift := func(machine string) []string {
		t.Helper()

		seen, err := s.Observe(t.Context(), spec)
		check(t, err)

		return workload.Lines(seen.Machines[machine].Drift)
	}

	check(t, s.Ensure(t.Context(), spec))
	there("dev-cp-0", "dev-batch-0")

	if lines := drift("cp-0"); len(lines) > 0 {
		t.Errorf("drift after it was made: %q", lines)
	}

	check(t, policies.Delete(t.Context(), "dev-cp-0", metav1.DeleteOptions{}))

	if lines := drift("cp-0"); !saying(lines, "NetworkPolicy", "/dev-cp-0 does not exist") {
		t.Errorf("drift is %q", lines)
	}

	check(t, s.Ensure(t.Context(), spec))
	there("dev-cp-0", "dev-batch-0")

	spec.Endpoint.TalosAPI = true

	if lines := drift("cp-0"); !saying(lines, "NetworkPolicy", "/dev-cp-0") {
		t.Errorf("drift is %q", lines)
	}

	check(t, s.Ensure(t.Context(), spec))
	there("dev-batch-0")

	spec.Endpoint.TalosAPI, spec.Access = false, workload.NodePort
	check(t, s.Ensure(t.Context(), spec))
	there()

	spec.Access = workload.PortForward
	check(t, s.Ensure(t.Context(), spec))
	there("dev-cp-0", "dev-batch-0")

	check(t, s.Remove(t.Context(), spec, "batch/0"))
	there("dev-cp-0")

	all := []string{"get", "list", "create", "patch", "delete"}
	blind := site{cluster: s.cluster, namespace: s.namespace, Host: open(t, hostcluster.Options{
		Kubeconfig: as(t, s.cluster, s.namespace, "blind", rule("statefulsets", all...), rule("services", all...),
			rule("persistentvolumeclaims", all...), rule("pods", "get", "list", "delete"))})}
	other := s.spec("other", 1, 0)
	check(t, blind.Ensure(t.Context(), other))

	seen, err := blind.Observe(t.Context(), other)
	check(t, err)

	if lines := workload.Lines(seen.Machines["cp-0"].Drift); len(lines) > 0 {
		t.Errorf("drift without the right to see policies: %q", lines)
	}
}
