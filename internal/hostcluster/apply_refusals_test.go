package hostcluster_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// refusedFor is the error of an Ensure that has to be final and to say some words.
func (s site) refusedFor(t *testing.T, spec workload.Spec, words ...string) {
	t.Helper()

	err := s.Ensure(t.Context(), spec)
	if err == nil || !wait.IsPermanent(err) {
		t.Fatalf("Ensure ends with %v", err)
	}

	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q is not in the error: %v", word, err)
		}
	}
}

// Foreign objects with our names are reported, and neither changed nor removed. Their owner is another client, or
// a cluster of the same name with other secrets.
func TestEnsure_leavesForeignObjectsAlone(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	spec, twin := s.spec("dev", 1, 0), s.spec("dev", 1, 0)
	twin.Mark = "another"

	core := s.cluster.API().CoreV1()
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "var-dev-cp-0",
			Labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("20Gi")}},
		},
	}
	made, err := core.PersistentVolumeClaims(s.namespace).Create(t.Context(), claim,
		metav1.CreateOptions{FieldManager: "helm"})
	check(t, err)

	s.refusedFor(t, spec, "PersistentVolumeClaim "+s.namespace+"/var-dev-cp-0", "managed by Helm", "not changed",
		"another name")
	check(t, s.Remove(t.Context(), spec, "cp-0"))

	now, err := core.PersistentVolumeClaims(s.namespace).Get(t.Context(), made.Name, metav1.GetOptions{})
	check(t, err)

	if now.UID != made.UID || now.DeletionTimestamp != nil || now.Labels[workload.LabelMark] != "" ||
		len(now.OwnerReferences) > 0 {
		t.Errorf("the claim of another client is now %+v", now.ObjectMeta)
	}

	check(t, core.PersistentVolumeClaims(s.namespace).Delete(t.Context(), made.Name, metav1.DeleteOptions{}))
	check(t, s.RemoveShared(t.Context(), spec)) // it was made before the claim was seen
	check(t, s.Ensure(t.Context(), twin))

	before := s.observe(t, twin, quiet)
	s.refusedFor(t, spec, "Service "+s.namespace+"/dev", "Talos cluster dev with other secrets")

	if o, err := s.Observe(t.Context(), spec); err != nil || o.Machines["cp-0"].Exists {
		t.Errorf("the machine of the other cluster is taken for ours: %+v, %v", o, err)
	}

	for _, change := range []func() error{
		func() error { return s.Remove(t.Context(), spec, "cp-0") },
		func() error { return s.Restart(t.Context(), spec, "cp-0") },
		func() error { return s.RemoveShared(t.Context(), spec) },
	} {
		_ = change() // whatever it says
	}

	if after := s.observe(t, twin, quiet); after.Machines["cp-0"].PodUID != before.Machines["cp-0"].PodUID {
		t.Error("the pod of the other cluster is another one")
	}
}

// An object of ours that lost the labels that say so is not taken over, and the error says how to give them back.
func TestEnsure_refusesObjectsWithoutLabels(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	spec := s.spec("dev", 0, 0)
	check(t, s.Ensure(t.Context(), spec))
	s.patchService(t, "dev", `{"metadata":{"labels":{"talosop.dev/mark":null}}}`)
	s.refusedFor(t, spec, "kubectl label service -n "+s.namespace+" dev ", "talosop.dev/mark=mark-of-dev")
}

func TestEnsure_sizeAndClassOfClaims(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	yes := true

	for _, class := range []*storagev1.StorageClass{
		{ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-grows"}, Provisioner: "kubernetes.io/no-provisioner",
			AllowVolumeExpansion: &yes},
		{ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-fixed"}, Provisioner: "kubernetes.io/no-provisioner"},
	} {
		_, err := s.cluster.API().StorageV1().StorageClasses().Create(t.Context(), class, metav1.CreateOptions{})
		check(t, err)
		t.Cleanup(func() {
			check(t, s.cluster.API().StorageV1().StorageClasses().Delete(context.WithoutCancel(t.Context()), class.Name,
				metav1.DeleteOptions{}))
		})
	}

	grows, fixed := s.spec("grows", 0, 1), s.spec("fixed", 0, 1)
	grows.Machines[0].Pod.Storage.Class, fixed.Machines[0].Pod.Storage.Class = s.namespace+"-grows", s.namespace+"-fixed"

	for _, spec := range []workload.Spec{grows, fixed} {
		check(t, s.Ensure(t.Context(), spec))
		s.observe(t, spec, quiet)

		spec.Machines[0].Pod.Storage.Var = resource.MustParse("30Gi")
	}

	o := s.observe(t, grows, func(workload.Observation) bool { return true })
	if m := o.Machines["batch/0"]; !saying(m.Drift, "/var-grows-batch-0", `"20Gi" instead of "30Gi"`) ||
		len(m.Outdated) > 0 {
		t.Errorf("a claim that is to grow is observed as %+v", m)
	}

	check(t, s.Ensure(t.Context(), grows))
	s.refusedFor(t, fixed, "var-fixed-batch-0", "cannot grow to 30Gi", "allowVolumeExpansion", "20Gi")

	claim, err := s.cluster.API().CoreV1().PersistentVolumeClaims(s.namespace).Get(t.Context(), "var-grows-batch-0",
		metav1.GetOptions{})
	check(t, err)

	if size := claim.Spec.Resources.Requests[corev1.ResourceStorage]; size.String() != "30Gi" {
		t.Errorf("the claim asks for %s", size.String())
	}

	grows.Machines[0].Pod.Storage.Var = resource.MustParse("10Gi")
	s.refusedFor(t, grows, "var-grows-batch-0", "has 30Gi, but 10Gi is configured", "cannot shrink")
	s.stays(t, grows, "/var-grows-batch-0 has 30Gi, but 10Gi is configured", "cannot shrink", "set the size to 30Gi")

	fixed.Machines[0].Pod.Storage.Var, fixed.Machines[0].Pod.Storage.Class = resource.MustParse("20Gi"),
		s.namespace+"-grows"
	s.refusedFor(t, fixed, "var-fixed-batch-0", "storage class", "-grows")
	s.stays(t, fixed, "/var-fixed-batch-0 has storage class", "-grows", "class of a claim cannot change", "remove machine batch/0")

	if err := s.Replace(t.Context(), fixed, "batch/0"); !wait.IsPermanent(err) {
		t.Errorf("Replace with another storage class ends with %v", err)
	}

	fixed.Machines[0].Pod.Storage = workload.Storage{Ephemeral: true}
	s.refusedFor(t, fixed, "StatefulSet "+s.namespace+"/fixed-batch-0", "the data would be lost")

	// A machine without a class accepts the existing volume.
	fixed.Machines[0].Pod.Storage = grows.Machines[0].Pod.Storage
	fixed.Machines[0].Pod.Storage.Class, fixed.Machines[0].Pod.Storage.Var = "", resource.MustParse("20Gi")
	check(t, s.Ensure(t.Context(), fixed))
	s.observe(t, fixed, quiet)
}

// stays checks that exactly one line about a worker reports a difference that is not repaired.
func (s site) stays(t *testing.T, spec workload.Spec, words ...string) {
	t.Helper()

	m := s.observe(t, spec, func(workload.Observation) bool { return true }).Machines["batch/0"]
	if len(m.Stays) == 0 || len(m.Drift) > 0 || !saying(m.Stays, words...) {
		t.Errorf("what stays is %q and what does not %q", m.Stays, m.Drift)
	}
}

// A class that others chose for a load balancer stays where none is wanted, and so does the Service.
func TestEnsure_loadBalancerClassOfOthers(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	spec := s.spec("dev", 0, 0)
	spec.Endpoint.Type = corev1.ServiceTypeNodePort
	check(t, s.Ensure(t.Context(), spec))
	s.patchService(t, "dev-external", `{"spec":{"type":"LoadBalancer","loadBalancerClass":"example.com/theirs"}}`)

	services := s.cluster.API().CoreV1().Services(s.namespace)
	before, err := services.Get(t.Context(), "dev-external", metav1.GetOptions{})
	check(t, err)

	spec.Endpoint.Type = corev1.ServiceTypeLoadBalancer
	check(t, s.Ensure(t.Context(), spec))
	s.observe(t, spec, quiet)

	after, err := services.Get(t.Context(), "dev-external", metav1.GetOptions{})
	check(t, err)

	if after.UID != before.UID || after.Spec.LoadBalancerClass == nil {
		t.Errorf("the Service is now %+v", after.Spec)
	}
}

// A claim that another client enlarged, such as an autoresizer, stays and is no obstacle.
func TestEnsure_claimsThatOthersLetGrow(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	yes, classes := true, s.cluster.API().StorageV1().StorageClasses()
	class := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-grows"}, Provisioner: "kubernetes.io/no-provisioner",
		AllowVolumeExpansion: &yes,
	}
	_, err := classes.Create(t.Context(), class, metav1.CreateOptions{})
	check(t, err)
	t.Cleanup(func() {
		check(t, classes.Delete(context.WithoutCancel(t.Context()), class.Name, metav1.DeleteOptions{}))
	})

	spec := s.spec("dev", 0, 1)
	spec.Machines[0].Pod.Storage.Class = class.Name
	check(t, s.Ensure(t.Context(), spec))
	s.observe(t, spec, quiet)

	claims := s.cluster.API().CoreV1().PersistentVolumeClaims(s.namespace)
	_, err = claims.Patch(t.Context(), "var-dev-batch-0", types.MergePatchType,
		[]byte(`{"spec":{"resources":{"requests":{"storage":"30Gi"}}}}`), byHand)
	check(t, err)
	s.observe(t, spec, quiet)
	check(t, s.Ensure(t.Context(), spec))

	spec.Machines[0].Image = "ghcr.io/siderolabs/talos:v1.13.1"
	check(t, s.Replace(t.Context(), spec, "batch/0"))

	for _, c := range []struct{ wanted, has string }{{"20Gi", "30Gi"}, {"40Gi", "40Gi"}} {
		spec.Machines[0].Pod.Storage.Var = resource.MustParse(c.wanted)
		check(t, s.Ensure(t.Context(), spec))

		claim, err := claims.Get(t.Context(), "var-dev-batch-0", metav1.GetOptions{})
		check(t, err)

		if size := claim.Spec.Resources.Requests[corev1.ResourceStorage]; size.String() != c.has {
			t.Errorf("where %s are wanted the claim asks for %s", c.wanted, size.String())
		}
	}
}

// Services become what another way in needs, without a new pod.
func TestEnsure_changesAccess(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	spec := s.spec("dev", 1, 0)
	check(t, s.Ensure(t.Context(), spec))

	before := s.observe(t, spec, quiet)
	class := "example.com/lb"

	for _, c := range []struct {
		access   workload.Access
		machine  corev1.ServiceType
		endpoint workload.EndpointService
	}{
		{workload.NodePort, corev1.ServiceTypeNodePort, workload.EndpointService{Type: corev1.ServiceTypeNodePort}},
		{workload.LoadBalancer, corev1.ServiceTypeLoadBalancer,
			workload.EndpointService{Type: corev1.ServiceTypeLoadBalancer}},
		{workload.LoadBalancer, corev1.ServiceTypeLoadBalancer, workload.EndpointService{
			Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: class, Annotations: map[string]string{"lb": "internal"},
		}},
		{workload.LoadBalancer, corev1.ServiceTypeLoadBalancer,
			workload.EndpointService{Type: corev1.ServiceTypeLoadBalancer}},
		{workload.PortForward, corev1.ServiceTypeClusterIP, workload.EndpointService{Type: corev1.ServiceTypeClusterIP}},
	} {
		spec.Access, spec.Endpoint = c.access, &c.endpoint
		if c.endpoint.Inside() {
			s.observe(t, spec, func(o workload.Observation) bool {
				return slices.ContainsFunc(o.Drift, func(d workload.Difference) bool { return d.Cause == workload.Unwanted })
			})
		}

		check(t, s.Ensure(t.Context(), spec))

		if after := s.observe(t, spec, quiet); after.Machines["cp-0"].PodUID != before.Machines["cp-0"].PodUID {
			t.Errorf("with access %s the pod is another one", c.access)
		}

		services := s.cluster.API().CoreV1().Services(s.namespace)
		machine, err := services.Get(t.Context(), "dev-cp-0", metav1.GetOptions{})
		check(t, err)

		inside, err := services.Get(t.Context(), "dev", metav1.GetOptions{})
		check(t, err)

		if inside.Spec.Type != corev1.ServiceTypeClusterIP {
			t.Errorf("with access %s the endpoint inside is %+v", c.access, inside.Spec)
		}

		endpoint, err := services.Get(t.Context(), "dev-external", metav1.GetOptions{})
		if c.endpoint.Inside() {
			if !apierrors.IsNotFound(err) {
				t.Errorf("with access %s there is still %+v, %v", c.access, endpoint, err)
			}

			headless := machine.Spec.ClusterIP == corev1.ClusterIPNone
			if machine.Spec.Type != c.machine || !headless || !machine.Spec.PublishNotReadyAddresses {
				t.Errorf("with access %s the machine's Service is %+v", c.access, machine.Spec)
			}

			continue
		}

		check(t, err)

		headless := c.access == workload.PortForward
		if machine.Spec.Type != c.machine || (machine.Spec.ClusterIP == corev1.ClusterIPNone) != headless ||
			!machine.Spec.PublishNotReadyAddresses {
			t.Errorf("with access %s the machine's Service is %+v", c.access, machine.Spec)
		}

		if endpoint.Spec.Type != c.endpoint.Type || endpoint.Annotations["lb"] != c.endpoint.Annotations["lb"] {
			t.Errorf("with access %s the endpoint is %+v", c.access, endpoint)
		}

		if got := endpoint.Spec.LoadBalancerClass; (got == nil) != (c.endpoint.LoadBalancerClass == "") || got != nil &&
			*got != class {
			t.Errorf("with access %s the endpoint's class is not %q", c.access, c.endpoint.LoadBalancerClass)
		}
	}
}
