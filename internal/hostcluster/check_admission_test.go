package hostcluster_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
)

func quantities(of ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(of); i += 2 {
		list[corev1.ResourceName(of[i])] = resource.MustParse(of[i+1])
	}

	return list
}

// quota makes one, which counts when the controller has seen it.
func (c *checked) quota(t *testing.T, quota corev1.ResourceQuota) {
	t.Helper()

	api := c.cluster.API().CoreV1().ResourceQuotas(c.namespace)
	made, err := api.Create(t.Context(), &quota, metav1.CreateOptions{})
	check(t, err)
	soon(t, func() bool {
		seen, err := api.Get(t.Context(), made.Name, metav1.GetOptions{})

		return err == nil && len(seen.Status.Hard) > 0
	})
}

// A machine that exceeds a quota is reported with what the quota leaves, and with the effect of limits on the pod.
func TestCheck_exceededQuota(t *testing.T) {
	t.Parallel()

	c := newChecked(t, privileged)
	_, err := c.cluster.API().CoreV1().LimitRanges(c.namespace).Create(t.Context(), &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "limits"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, DefaultRequest: quantities("memory", "1Gi"), Max: quantities("cpu", "4"),
		}}},
	}, metav1.CreateOptions{})
	check(t, err)

	c.quota(t, corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "all"},
		Spec: corev1.ResourceQuotaSpec{Hard: quantities(
			"requests.cpu", "9", "requests.memory", "512Mi", "services.nodeports", "0",
			"local.storageclass.storage.k8s.io/requests.storage", "10Gi",
		)}})

	s := c.spec()
	s.Machines = s.Machines[3:4]
	claiming(&s, "local")
	s.Access = workload.NodePort
	s.Machines[0].Pod.Resources = corev1.ResourceRequirements{Requests: quantities("cpu", "2"),
		Limits: quantities("cpu", "2")}

	c.class(t, "local", false)
	c.finds(t, s,
		want{"~access", "exceeded quota: all, requested: services.nodeports=1, used: services.nodeports=0, limited: " +
			"services.nodeports=0"},
		want{"~pod", "exceeded quota: all, requested: requests.memory=1Gi, used: requests.memory=0, limited: " +
			"requests.memory=512Mi"},
		want{"~pod.storage", "exceeded quota: all, requested: local.storageclass.storage.k8s.io/requests.storage=20Gi"},
	)
}

// class makes a storage class for the time of the test.
func (c *checked) class(t *testing.T, name string, isDefault bool) {
	t.Helper()

	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: "example.com/none"}
	if isDefault {
		class.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
	}

	api := c.cluster.API().StorageV1().StorageClasses()
	_, err := api.Create(t.Context(), class, metav1.CreateOptions{})
	check(t, err)

	t.Cleanup(func() { check(t, api.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{})) })
}
