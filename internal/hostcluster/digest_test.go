package hostcluster_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
)

// A digest covers the template of the pod. It excludes versions of Talos, which are upgraded, sizes of volumes,
// and the access.
func TestPodDigest_ofWhatThePodIsMadeOf(t *testing.T) {
	t.Parallel()

	spec := func(change func(*workload.Spec, *workload.Machine)) workload.Spec {
		m := workload.Machine{
			Name: "cp-0", Pool: "cp", Role: workload.ControlPlane, Image: "registry.local:5000/talos:v1.13.0",
			Pod: workload.PodSpec{Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}},
		}
		s := workload.Spec{Cluster: "dev", Mark: "0123456789abcdef", Namespace: "talos", Domain: "cluster.local",
			Access: workload.PortForward}
		change(&s, &m)

		s.Machines = []workload.Machine{m}

		return s
	}

	digest := func(change func(*workload.Spec, *workload.Machine)) string {
		d, err := workload.PodDigest(spec(change), "cp-0")
		if err != nil {
			t.Fatal(err)
		}

		return d
	}

	base := digest(func(*workload.Spec, *workload.Machine) {})

	for name, test := range map[string]struct {
		change func(*workload.Spec, *workload.Machine)
		same   bool
	}{
		"another tag": {change: func(_ *workload.Spec, m *workload.Machine) { m.Image = "registry.local:5000/talos:v1.13.2" },
			same: true},
		"spelt otherwise": {change: func(_ *workload.Spec, m *workload.Machine) {
			m.Pod.Resources.Requests["cpu"] = resource.MustParse("1000m")
		}, same: true},
		"size of a volume": {change: func(_ *workload.Spec,
			m *workload.Machine) {
			m.Pod.Storage.Var = resource.MustParse("40Gi")
		}, same: true},
		"the way in": {change: func(s *workload.Spec, _ *workload.Machine) { s.Access = workload.NodePort },
			same: true},
		"another image": {change: func(_ *workload.Spec,
			m *workload.Machine) {
			m.Image = "registry.local/talos:v1.13.0"
		}},
		"more of a thing": {change: func(_ *workload.Spec, m *workload.Machine) {
			m.Pod.Resources.Requests["cpu"] = resource.MustParse("2")
		}},
		"another node": {change: func(_ *workload.Spec, m *workload.Machine) {
			m.Pod.NodeSelector = map[string]string{"disk": "ssd"}
		}},
		"a pull secret": {change: func(_ *workload.Spec, m *workload.Machine) { m.PullSecrets = []string{"registry"} }},
		"a label of all": {change: func(s *workload.Spec,
			_ *workload.Machine) {
			s.Labels = map[string]string{"team": "a"}
		}},
		"data in the pod": {change: func(_ *workload.Spec, m *workload.Machine) { m.Pod.Storage.Ephemeral = true }},
		"an annotation": {change: func(_ *workload.Spec,
			m *workload.Machine) {
			m.Pod.Annotations = map[string]string{"a": "b"}
		}},
		"a priority": {change: func(_ *workload.Spec, m *workload.Machine) { m.Pod.PriorityClass = "high" }},
		"a toleration more": {change: func(_ *workload.Spec, m *workload.Machine) {
			m.Pod.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		}},
	} {
		if got := digest(test.change); (got == base) != test.same {
			t.Errorf("%s: the digest is the same: %t", name, got == base)
		}
	}

	if d, err := workload.PodDigest(spec(func(*workload.Spec, *workload.Machine) {}), "cp-7"); d != "" || err != nil {
		t.Errorf("a machine that there is not has digest %q (%v)", d, err)
	}
}
