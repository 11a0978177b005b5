package hostcluster_test

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgo "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster"
)

// elsewhere is the peer Service of a machine, moved to another address than its recorded one, which is now free.
func (s site) elsewhere(t *testing.T, services clientgo.ServiceInterface) (moved *corev1.Service, former string) {
	t.Helper()

	had, err := services.Get(t.Context(), "dev-cp-0-peer", metav1.GetOptions{})
	check(t, err)
	check(t, services.Delete(t.Context(), had.Name, metav1.DeleteOptions{}))

	// An address that another Service holds is refused.
	holder := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "holder"},
		Spec: corev1.ServiceSpec{ClusterIP: had.Spec.ClusterIP, Ports: had.Spec.Ports}}
	_, err = services.Create(t.Context(), holder, metav1.CreateOptions{})
	check(t, err)

	moved = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: had.Name, Labels: had.Labels},
		Spec: corev1.ServiceSpec{Ports: had.Spec.Ports, Selector: had.Spec.Selector}}
	moved, err = services.Create(t.Context(), moved, metav1.CreateOptions{})
	check(t, err)

	return moved, had.Spec.ClusterIP
}

// A Service that leads to a machine is not given up for an address that the host does not give.
func TestEnsure_peerAddressTheHostDoesNotGive(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	spec := s.spec("dev", 1, 0)
	check(t, s.Ensure(t.Context(), spec))

	services := s.cluster.API().CoreV1().Services(s.namespace)
	moved, former := s.elsewhere(t, services)

	stays := func(t *testing.T) {
		t.Helper()

		now, err := services.Get(t.Context(), moved.Name, metav1.GetOptions{})
		check(t, err)

		if now.UID != moved.UID || now.Spec.ClusterIP != moved.Spec.ClusterIP {
			t.Errorf("the Service was %s at %s, and is %s at %s", moved.UID, moved.Spec.ClusterIP, now.UID, now.Spec.ClusterIP)
		}
	}

	spec.Machines[0].PeerAddress = netip.MustParseAddr(former)
	s.refusedFor(t, spec, "Service "+s.namespace+"/dev-cp-0-peer", former, "cp-0", "Service "+s.namespace+"/holder",
		"--field-selector spec.clusterIP="+former)
	stays(t)

	// Another network of Services.
	spec.Machines[0].PeerAddress = netip.MustParseAddr("192.0.2.1")
	s.refusedFor(t, spec, "192.0.2.1", "cp-0", "not in the valid range",
		"kubectl delete statefulset,persistentvolumeclaim -n "+s.namespace)
	stays(t)

	// Without the right to see the holder, the machine still gets a Service, and the host's reason is reported.
	spec.Machines[0].PeerAddress = netip.MustParseAddr(former)
	all := []string{"get", "list", "create", "patch", "delete"}
	blind := site{cluster: s.cluster, namespace: s.namespace,
		Host: open(t, hostcluster.Options{Kubeconfig: as(t, s.cluster, s.namespace, "blind",
			rule("statefulsets", all...), rule("services", all...), rule("persistentvolumeclaims", all...),
			rule("poddisruptionbudgets", all...),
			rule("pods", "get", "list", "delete"))})}
	blind.refusedFor(t, spec, former, "cp-0", "already allocated")

	if now, err := services.Get(t.Context(), moved.Name, metav1.GetOptions{}); err != nil ||
		now.Spec.ClusterIP != moved.Spec.ClusterIP {
		t.Errorf("the Service at %s is now %v, %v", moved.Spec.ClusterIP, now, err)
	}

	// One that is not there at all.
	check(t, services.Delete(t.Context(), moved.Name, metav1.DeleteOptions{}))
	s.refusedFor(t, spec, "Service "+s.namespace+"/dev-cp-0-peer", former, "cp-0", "already allocated")

	check(t, services.Delete(t.Context(), "holder", metav1.DeleteOptions{}))
	check(t, s.Ensure(t.Context(), spec))

	if m := s.observe(t, spec, quiet).Machines["cp-0"]; m.PeerAddress.String() != former {
		t.Errorf("the machine is known at %s, and was at %s", m.PeerAddress, former)
	}
}
