package hostcluster_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// The reason why a pod does not run is the host's text.
func TestObserve_diagnosis(t *testing.T) {
	t.Parallel()

	s := newSite(t)

	for _, c := range []struct {
		name  string
		spec  func(*workload.Spec)
		words []string
	}{
		{
			"image", func(spec *workload.Spec) {
				spec.Machines[0].Pod.Annotations = map[string]string{kubetest.MissingImageAnnotation: ""}
			},
			[]string{"ImagePullBackOff", "talos:v1.13.0", "not found", "last event: Warning"},
		},
		{
			"crash", func(spec *workload.Spec) {
				spec.Machines[0].Pod.Annotations = map[string]string{kubetest.FailAnnotation: "exit code 3: no config"}
			},
			[]string{"CrashLoopBackOff", "exit code 3", "last event: Warning BackOff"},
		},
		{
			"nowhere", func(spec *workload.Spec) { spec.Machines[0].Pod.NodeSelector = map[string]string{"no": "where"} },
			[]string{"is not scheduled (Unschedulable: 0/", "didn't match Pod's node affinity/selector", "FailedScheduling"},
		},
		{
			"unbound", func(spec *workload.Spec) { spec.Annotations = map[string]string{kubetest.HangAnnotation: "false"} },
			[]string{"unbound immediate PersistentVolumeClaims", "/state-unbound-batch-0 is not bound (no storage class",
				"last event"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()

			spec := s.spec(c.name, 0, 1)
			c.spec(&spec)
			check(t, s.Ensure(t.Context(), spec))

			s.observe(t, spec, func(o workload.Observation) bool {
				m := o.Machines["batch/0"]

				return saying([]string{m.Diagnosis}, c.words...) && m.Exists && m.Complete && m.Container == "" && !m.Ready &&
					!m.VolumesLost &&
					len(m.Drift)+len(m.Outdated) == 0
			})
		})
	}
}

// What prevents a pod is reported with the last event of the StatefulSet.
func TestObserve_podsThatTheHostRefuses(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	_, err := s.cluster.API().CoreV1().ResourceQuotas(s.namespace).Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "none"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
	}, metav1.CreateOptions{})
	check(t, err)

	spec := s.spec("dev", 0, 1)
	check(t, s.Ensure(t.Context(), spec))
	s.observe(t, spec, func(o workload.Observation) bool {
		return saying([]string{o.Machines["batch/0"].Diagnosis}, "has not created its pod", "FailedCreate", "exceeded quota")
	})
}

// lostNode is a node of the host that no other pods come to.
func (s site) lostNode(t *testing.T) *corev1.Node {
	t.Helper()

	nodes := s.cluster.API().CoreV1().Nodes()
	node, err := nodes.Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "lost-" + s.namespace,
			Labels: map[string]string{corev1.LabelHostname: "lost-" + s.namespace}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "lost", Effect: corev1.TaintEffectNoSchedule}}},
	}, metav1.CreateOptions{})
	check(t, err)
	t.Cleanup(func() { _ = nodes.Delete(context.WithoutCancel(t.Context()), node.Name, metav1.DeleteOptions{}) })

	return s.readiness(t, node, corev1.ConditionTrue, "KubeletReady")
}

func (s site) readiness(t *testing.T, node *corev1.Node, status corev1.ConditionStatus, reason string) *corev1.Node {
	t.Helper()

	node.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("110")}
	node.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: status, Reason: reason, LastTransitionTime: metav1.Now()}}
	node, err := s.cluster.API().CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{})
	check(t, err)

	return node
}

// A pod whose node is lost says so, since when and what to do; also while it is deleted, which waits for the node.
func TestObserve_lostNodes(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	node := s.lostNode(t)
	spec := s.spec("dev", 0, 1)
	spec.Machines[0].Pod.NodeSelector = map[string]string{corev1.LabelHostname: node.Name}
	spec.Machines[0].Pod.Tolerations = []corev1.Toleration{{Key: "lost", Operator: corev1.TolerationOpExists}}

	check(t, s.Ensure(t.Context(), spec))
	s.observe(t, spec, func(o workload.Observation) bool { return o.Machines["batch/0"].Node == node.Name })
	s.readiness(t, node, corev1.ConditionUnknown, "NodeStatusUnknown")

	words := []string{"its node " + node.Name + " is not ready since 20", "NodeStatusUnknown", "delete the Node",
		"out-of-service"}
	s.observe(t, spec, func(o workload.Observation) bool {
		return saying([]string{o.Machines["batch/0"].Diagnosis}, words...)
	})

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)

	go func() { ended <- s.Restart(ctx, spec, "batch/0") }()

	s.observe(t, spec, func(o workload.Observation) bool {
		return saying([]string{o.Machines["batch/0"].Diagnosis}, append(words, "has been terminating since 20")...)
	})
	cancel()

	if err := <-ended; !saying([]string{fmt.Sprint(err)}, append(words, "dev-batch-0-0")...) {
		t.Errorf("a restart that waits for a lost node ends with %v", err)
	}

	check(t, s.cluster.API().CoreV1().Nodes().Delete(t.Context(), node.Name, metav1.DeleteOptions{}))

	m := s.observe(t, spec, func(workload.Observation) bool { return true }).Machines["batch/0"]
	if m.Pod != "" && !saying([]string{m.Diagnosis}, "no longer exists") {
		t.Errorf("of a pod on a node that no longer exists the observation is %+v", m)
	}
}

// Volumes are lost when no node that exists can use them, and not before.
func TestObserve_lostVolumes(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	node := s.lostNode(t)
	spec := s.spec("dev", 0, 1)
	spec.Annotations = map[string]string{kubetest.HangAnnotation: ""} // the volumes are the test's
	spec.Machines[0].Pod.NodeSelector = map[string]string{"no": "where"}

	check(t, s.Ensure(t.Context(), spec))

	for name, o := range s.claims(t, spec) {
		claim, ok := o.(*corev1.PersistentVolumeClaim)
		if !ok {
			t.Fatalf("%s is a %T", name, o)
		}

		s.localVolume(t, claim, node.Name)
	}

	s.observe(t, spec, func(o workload.Observation) bool {
		m := o.Machines["batch/0"]

		return saying([]string{m.Diagnosis}, "is not scheduled", "affinity/selector") && !m.VolumesLost
	})

	s.readiness(t, node, corev1.ConditionUnknown, "NodeStatusUnknown")

	if m := s.observe(t, spec, func(workload.Observation) bool { return true }).Machines["batch/0"]; m.VolumesLost {
		t.Error("volumes of a node that may come back are lost")
	}

	check(t, s.cluster.API().CoreV1().Nodes().Delete(t.Context(), node.Name, metav1.DeleteOptions{}))
	s.observe(t, spec, func(o workload.Observation) bool {
		m := o.Machines["batch/0"]

		return m.VolumesLost && saying([]string{m.Diagnosis}, "var-dev-batch-0", "on a node that no longer exists")
	})

	// Nothing but a wipe cures that.
	had := s.claims(t, spec)
	check(t, s.Ensure(t.Context(), spec))

	for name, o := range s.claims(t, spec) {
		if uidOf(had, name) != o.GetUID() {
			t.Errorf("Ensure replaced %s", name)
		}
	}

	spec.Annotations = nil
	check(t, s.Wipe(t.Context(), spec, "batch/0"))
	s.observe(t, spec, func(o workload.Observation) bool {
		m := o.Machines["batch/0"]

		return m.Complete && !m.VolumesLost && saying([]string{m.Diagnosis}, "is not scheduled")
	})
}

// localVolume makes a volume on one node that a claim gets.
func (s site) localVolume(t *testing.T, claim *corev1.PersistentVolumeClaim, node string) {
	t.Helper()

	volumes := s.cluster.API().CoreV1().PersistentVolumes()
	class := ""

	if claim.Spec.StorageClassName != nil {
		class = *claim.Spec.StorageClassName
	}

	made, err := volumes.Create(t.Context(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "local-" + string(claim.UID)},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes, StorageClassName: class,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: "/var/local/" + claim.Name}},
			NodeAffinity: &corev1.VolumeNodeAffinity{
				Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{
						{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
				}}}},
		},
	}, metav1.CreateOptions{})
	check(t, err)
	t.Cleanup(func() { _ = volumes.Delete(context.WithoutCancel(t.Context()), made.Name, metav1.DeleteOptions{}) })
}

// A machine that the host has and the Spec lacks is reported when it belongs to a pool of the Spec.
func TestObserve_orphans(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	all := s.spec("dev", 1, 2)
	check(t, s.Ensure(t.Context(), all))

	some := all
	some.Machines = all.Machines[1:2]

	o := s.observe(t, some, func(o workload.Observation) bool { return true })
	if len(o.Orphans) != 1 || o.Orphans[0] != "batch-1" || len(o.Machines) != 1 {
		t.Errorf("the observation is %+v", o)
	}
}

// Credentials for one namespace can do everything there, except to make or see objects outside of a namespace.
func TestRights_inOneNamespaceSuffice(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	confined := site{Host: openHost(t, s.confined(t)), cluster: s.cluster, namespace: s.namespace}
	spec := confined.spec("dev", 1, 0)
	spec.Endpoint = nil

	check(t, confined.Ensure(t.Context(), spec))
	before := confined.observe(t, spec, quiet)

	spec.Machines[0].Image = "ghcr.io/siderolabs/talos:v1.13.9"
	spec.Machines[0].Pod.Annotations = map[string]string{kubetest.MissingImageAnnotation: ""}

	check(t, confined.Replace(t.Context(), spec, "cp-0"))
	confined.observe(t, spec, func(o workload.Observation) bool {
		m := o.Machines["cp-0"]

		return m.PodUID != before.Machines["cp-0"].PodUID &&
			saying([]string{m.Diagnosis}, "ImagePullBackOff", "no permission to list events") && !m.VolumesLost
	})
	check(t, confined.Remove(t.Context(), spec, "cp-0"))
	check(t, confined.RemoveShared(t.Context(), spec))

	// A namespace that may not be read exists, and another client made it.
	spec.CreateNamespace = true
	check(t, confined.Ensure(t.Context(), spec))
	confined.observe(t, spec, func(o workload.Observation) bool {
		return o.Machines["cp-0"].Complete && len(o.Missing)+len(o.Drift) == 0
	})
	check(t, confined.Remove(t.Context(), spec, "cp-0"))
	check(t, confined.RemoveShared(t.Context(), spec))
}

// confined is the kubeconfig of an account that has rights in the namespace alone.
func (s site) confined(t *testing.T) string {
	t.Helper()

	core, rbac := s.cluster.API().CoreV1(), s.cluster.API().RbacV1()
	named := metav1.ObjectMeta{Name: "talosop"}

	_, err := core.ServiceAccounts(s.namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: named},
		metav1.CreateOptions{})
	check(t, err)

	rules := []rbacv1.PolicyRule{
		{
			APIGroups: []string{""}, Resources: []string{"services", "persistentvolumeclaims"},
			Verbs: []string{"get", "list", "create", "patch", "delete"},
		},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "delete"}},
		{APIGroups: []string{"apps"}, Resources: []string{"statefulsets"},
			Verbs: []string{"get", "list", "create", "patch", "delete"}},
	}
	_, err = rbac.Roles(s.namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: named, Rules: rules},
		metav1.CreateOptions{})
	check(t, err)

	_, err = rbac.RoleBindings(s.namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: named, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: named.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.namespace, Name: named.Name}},
	}, metav1.CreateOptions{})
	check(t, err)
	granted(t, s.cluster, s.namespace, "system:serviceaccount:"+s.namespace+":"+named.Name, rules...)

	token, err := core.ServiceAccounts(s.namespace).CreateToken(t.Context(), named.Name, &authenticationv1.TokenRequest{},
		metav1.CreateOptions{})
	check(t, err)

	admin := s.cluster.Config()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	content, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{
			"host": {Server: admin.Host, CertificateAuthorityData: admin.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"talosop": {Token: token.Status.Token}},
		Contexts:       map[string]*clientcmdapi.Context{"host": {Cluster: "host", AuthInfo: "talosop"}},
		CurrentContext: "host",
	})
	check(t, err)
	check(t, os.WriteFile(path, content, 0o600))

	return path
}
