package hostcluster_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster"
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

// What quotas leave is compared with all machines at once; what limits do to them counts.
func TestCheckOfQuotas(t *testing.T) {
	t.Parallel()

	c := newChecked(t, privileged)
	_, err := c.cluster.API().CoreV1().LimitRanges(c.namespace).Create(t.Context(), &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "limits"},
		Spec:       corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, DefaultRequest: quantities("memory", "1Gi"), Max: quantities("cpu", "4")}}},
	}, metav1.CreateOptions{})
	check(t, err)

	c.quota(t, corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: corev1.ResourceQuotaSpec{Hard: quantities(
		"pods", "4", "requests.cpu", "9", "requests.memory", "4Gi", "services", "9", "count/statefulsets.apps", "5",
		"services.nodeports", "5", "persistentvolumeclaims", "24", "requests.storage", "200Gi", "local.storageclass.storage.k8s.io/requests.storage", "100Gi",
	)}})
	c.quota(t, corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "urgent"}, Spec: corev1.ResourceQuotaSpec{
		Hard: quantities("pods", "0"), Scopes: []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopePriorityClass},
	}})

	s := c.spec()
	claiming(&s, "local")
	s.Access = hostcluster.NodePort

	for i := range s.Machines {
		s.Machines[i].Pod.Resources.Requests = quantities("cpu", "2")
		s.Machines[i].Pod.Resources.Limits = quantities("cpu", "2")
	}

	c.class(t, "local", false)
	c.finds(t, s,
		want{"~access", "need 8 of services.nodeports, and ResourceQuota " + c.namespace + "/all leaves 5 of 5"},
		want{"~namespace", "need 5 of pods"},
		want{"~pod.resources", "need 10 of requests.cpu"},
		want{"~pod.resources", "need 5Gi of requests.memory"},
		want{"~pod.storage", "of local.storageclass.storage.k8s.io/requests.storage"},
		want{"~pod.storage", "need 25 of persistentvolumeclaims"},
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
