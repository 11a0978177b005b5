package hostcluster_test

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/preflight"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// checked is a namespace that machines could be made in.
type checked struct {
	cluster   *kubetest.Cluster
	namespace string
	config    api.Kubeconfig
}

func newChecked(t *testing.T, labels map[string]string) *checked {
	t.Helper()

	c := kubetest.Shared(t)
	made, err := c.API().CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "check-", Labels: labels},
	}, metav1.CreateOptions{})
	check(t, err)

	t.Cleanup(func() {
		check(t, c.API().CoreV1().Namespaces().Delete(context.WithoutCancel(t.Context()), made.Name, metav1.DeleteOptions{}))
	})

	// Pods need the account that a controller makes.
	soon(t, func() bool {
		_, err := c.API().CoreV1().ServiceAccounts(made.Name).Get(t.Context(), "default", metav1.GetOptions{})

		return err == nil
	})

	return &checked{cluster: c, namespace: made.Name, config: api.Kubeconfig{Path: c.Kubeconfig()}}
}

var privileged = map[string]string{"pod-security.kubernetes.io/enforce": "privileged"}

// spec of three control planes and two workers, whose data is in their pods.
func (c *checked) spec() workload.Spec {
	s := workload.Spec{
		Cluster: "dev", Mark: "m1", Namespace: c.namespace, Domain: "cluster.local", Access: workload.PortForward,
		Endpoint: &workload.EndpointService{Type: corev1.ServiceTypeClusterIP},
		Machines: []workload.Machine{machine("cp", 0), machine("cp", 1), machine("cp", 2), machine("worker", 0),
			machine("worker", 1)},
	}
	for i := range s.Machines {
		s.Machines[i].Pod.Storage.Ephemeral = true
	}

	return s
}

// claiming makes the machines keep their data in claims.
func claiming(s *workload.Spec, class string) {
	for i := range s.Machines {
		s.Machines[i].Pod.Storage = workload.Storage{
			Class: class, State: resource.MustParse("1Gi"), Var: resource.MustParse("20Gi"), Other: resource.MustParse("100Mi"),
		}
	}
}

func (c *checked) check(t *testing.T, s workload.Spec) []preflight.Finding {
	t.Helper()

	findings, err := open(t, hostcluster.Options{Kubeconfig: c.config}).Check(t.Context(), s)
	check(t, err)

	return findings
}

// want is an expected finding: its attribute and words of it. The prefix "?" marks a warning, and "~" a finding
// that may still be repaired.
type want struct{ attribute, words string }

// finds checks for exactly the wanted findings, in that order.
func (c *checked) finds(t *testing.T, s workload.Spec, wants ...want) {
	t.Helper()

	findings := c.check(t, s)
	for i, f := range findings {
		attribute := f.Attribute

		switch {
		case f.Warning:
			attribute = "?" + attribute
		case f.Pending:
			attribute = "~" + attribute
		}

		switch {
		case i >= len(wants):
			t.Errorf("there is also %+v", f)
		case attribute != wants[i].attribute || !strings.Contains(f.Found, wants[i].words) || f.Help == "":
			t.Errorf("there is %+v\nwant %+v", f, wants[i])
		}
	}

	for _, w := range wants[min(len(findings), len(wants)):] {
		t.Errorf("there is no %+v", w)
	}
}

func TestCheck_findsNothing(t *testing.T) {
	t.Parallel()

	c := newChecked(t, privileged)
	proxy := c.cluster.Proxy(t)
	c.config = api.Kubeconfig{Path: proxy.Kubeconfig()}

	s := c.spec()
	s.PodCIDRs, s.ServiceCIDRs = []netip.Prefix{netip.MustParsePrefix("10.245.0.0/16")},
		[]netip.Prefix{netip.MustParsePrefix("10.112.0.0/12")}
	c.finds(t, s)

	// It makes many requests, and changes nothing.
	tried := 0

	for _, call := range proxy.Seen(kubetest.Call.Changes) {
		switch {
		case strings.HasSuffix(call.Path, "/selfsubjectaccessreviews"):
		case strings.Contains(call.Query, "dryRun=All"):
			tried++
		default:
			t.Errorf("%s changes something", call)
		}
	}

	// Pod, Service and StatefulSet of one machine of each role, and the endpoint's Service with each.
	if tried != 8 {
		t.Errorf("%d objects were tried", tried)
	}

	// In one that is to be made there is nothing to ask.
	s.Namespace, s.CreateNamespace = "not-there-yet", true
	c.finds(t, s)
}

func TestCheck_namespaces(t *testing.T) {
	t.Parallel()

	c := newChecked(t, map[string]string{"pod-security.kubernetes.io/enforce": "baseline"})
	c.finds(t, c.spec(), want{"namespace", "violates PodSecurity"}, want{"namespace", "dev-worker-0-0"})

	s := c.spec()
	s.Namespace = "not-there"
	c.finds(t, s, want{"~namespace", "has no namespace not-there"})

	ending, err := c.cluster.API().CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "ending-"},
		Spec:       corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"example.com/held", "kubernetes"}},
	}, metav1.CreateOptions{})
	check(t, err)
	check(t, c.cluster.API().CoreV1().Namespaces().Delete(t.Context(), ending.Name, metav1.DeleteOptions{}))

	s.Namespace = ending.Name
	c.finds(t, s, want{"~namespace", "is being deleted"})

	soon(t, func() bool {
		ending, err := c.cluster.API().CoreV1().Namespaces().Get(t.Context(), ending.Name, metav1.GetOptions{})
		check(t, err)

		ending.Spec.Finalizers = nil
		_, err = c.cluster.API().CoreV1().Namespaces().Finalize(t.Context(), ending, metav1.UpdateOptions{})

		return err == nil
	})
}

// Limits that a pod does not keep to are about its resources or the pod.
func TestCheck_limits(t *testing.T) {
	t.Parallel()

	c := newChecked(t, privileged)
	_, err := c.cluster.API().CoreV1().LimitRanges(c.namespace).Create(t.Context(), &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "limits"},
		Spec: corev1.LimitRangeSpec{
			Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: quantities("cpu", "1")}}},
	}, metav1.CreateOptions{})
	check(t, err)

	s := c.spec()
	s.Machines = s.Machines[3:]
	s.Machines[0].Pod.Resources.Limits = quantities("cpu", "2")
	c.finds(t, s, want{"pod", "maximum cpu usage per Container is 1, but limit is 2"})

	s.Machines[0].Pod.Resources = corev1.ResourceRequirements{Requests: quantities("cpu", "500m"),
		Limits: quantities("cpu", "100m")}
	c.finds(t, s, want{"pod.resources", "must be less than or equal to cpu limit"}, want{"pod.resources", "StatefulSet"})
}

// A policy of the host is asked, and its answer is reported.
func TestCheck_policies(t *testing.T) {
	t.Parallel()

	c := newChecked(t, privileged)
	api := c.cluster.API().AdmissionregistrationV1()
	name := c.namespace
	_, err := api.ValidatingAdmissionPolicies().Create(t.Context(), &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": name}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				}}},
			},
			Validations: []admissionv1.Validation{{Expression: "false", Message: "no foreign pods"}},
		},
	}, metav1.CreateOptions{})
	check(t, err)

	_, err = api.ValidatingAdmissionPolicyBindings().Create(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name,
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}, metav1.CreateOptions{})
	check(t, err)

	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		check(t, api.ValidatingAdmissionPolicyBindings().Delete(ctx, name, metav1.DeleteOptions{}))
		check(t, api.ValidatingAdmissionPolicies().Delete(ctx, name, metav1.DeleteOptions{}))
	})

	s := c.spec()
	s.Machines = s.Machines[4:]

	// Policies are compiled in the background, and until then the host may refuse for that reason.
	soon(t, func() bool {
		return slices.ContainsFunc(c.check(t, s),
			func(f preflight.Finding) bool { return strings.Contains(f.Found, "no foreign pods") })
	})
	c.finds(t, s, want{"pod", "no foreign pods"})
}

func TestCheck_rights(t *testing.T) {
	t.Parallel()

	c := newChecked(t, privileged)
	most := []string{"get", "list", "create", "patch", "delete"}

	c.config = as(t, c.cluster, c.namespace, "owner", rule("statefulsets", most...), rule("services", most...),
		rule("persistentvolumeclaims", most...),
		rule("pods", "get", "list", "delete"), rule("pods/portforward", "create"))
	unseen := want{"?", "The credentials do not allow reading the namespace " + c.namespace}
	unprotected := want{"?", "has no permission to get, list, create, patch, delete poddisruptionbudgets.policy in"}
	unidentified := want{"?", "do not allow reading the namespace kube-system"}
	open := want{"?", "has no permission to get, list, create, patch, delete networkpolicies.networking.k8s.io in"}
	c.finds(t, c.spec(), unseen, unidentified, open, unprotected)

	c.config = as(t, c.cluster, c.namespace, "reader", rule("statefulsets", "get", "list"), rule("services", most...),
		rule("pods", "get", "list"))
	c.finds(t, c.spec(),
		want{"", "has no permission to create, patch, delete statefulsets.apps in the namespace " + c.namespace},
		want{"", "has no permission to delete pods in"},
		want{"", "has no permission to list persistentvolumeclaims in"},
		want{"access", "has no permission to create pods/portforward"}, unseen, unidentified, open, unprotected)

	s := c.spec()
	s.Access = workload.NodePort
	c.config = as(t, c.cluster, c.namespace, "insider", rule("*", "*"))
	c.finds(t, s, want{"access", "has no permission to list nodes."}, unidentified)
}

// The Roles in a namespace that another resource still has to make come with it. Rights outside the namespace do
// not.
func TestCheck_rightsThatComeWithTheNamespace(t *testing.T) {
	t.Parallel()

	c := newChecked(t, privileged)
	c.config = as(t, c.cluster, c.namespace, "elsewhere")
	reader := c.namespace + "-looker"
	bind(t, c.cluster, reader, c.namespace+"-elsewhere", rule("namespaces", "get"))

	s := c.spec()
	s.Namespace, s.Access = "not-there", workload.NodePort

	c.finds(t, s,
		want{"access", "has no permission to list nodes."},
		want{"~", "has no permission to get, list, create, patch, delete services in the namespace not-there"},
		want{"~", "has no permission to get, list, create, patch, delete statefulsets.apps"},
		want{"~", "has no permission to get, list, delete pods"},
		want{"~", "has no permission to list persistentvolumeclaims"},
		want{"~access", "has no permission to create pods/portforward in the namespace not-there"},
		want{"~namespace", "has no namespace not-there"},
		want{"?", "has no permission to get, list, create, patch, delete networkpolicies.networking.k8s.io"},
		want{"?", "has no permission to get, list, create, patch, delete poddisruptionbudgets.policy"},
	)
}

// bind gives a user rights in all namespaces for the time of the test.
func bind(t *testing.T, c *kubetest.Cluster, name, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()

	rbac := c.API().RbacV1()

	_, err := rbac.ClusterRoles().Create(t.Context(),
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{})
	check(t, err)

	_, err = rbac.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{Kind: "User", Name: user}},
	}, metav1.CreateOptions{})
	check(t, err)
	granted(t, c, "", user, rules...)

	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		check(t, rbac.ClusterRoleBindings().Delete(ctx, name, metav1.DeleteOptions{}))
		check(t, rbac.ClusterRoles().Delete(ctx, name, metav1.DeleteOptions{}))
	})
}

// Names of objects that do not exist.
func TestCheck_namesThatDoNotExist(t *testing.T) {
	t.Parallel()

	c := newChecked(t, privileged)
	s := c.spec()
	s.Machines = s.Machines[2:4]
	claiming(&s, "no-such-class")
	s.Machines[0].Pod.PriorityClass = "no-such-priority"
	s.Machines[0].PullSecrets = []string{"no-such-secret"}

	c.finds(t, s,
		want{"~pod.priority_class", "Priority class no-such-priority does not exist"},
		want{"~pod.storage.class", "Storage class no-such-class does not exist"},
		want{"?image_pull_secrets", "has no Secret no-such-secret"},
	)
}

// Objects of others that have our names are found before anything is made.
func TestCheck_foreignObjects(t *testing.T) {
	t.Parallel()

	c := newChecked(t, privileged)
	_, err := c.cluster.API().CoreV1().Services(c.namespace).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "dev", Labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"}},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	check(t, err)

	_, err = c.cluster.API().CoreV1().Services(c.namespace).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "dev-cp-1-peer"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	check(t, err)

	c.finds(t, c.spec(),
		want{"~namespace", "Service " + c.namespace + "/dev exists and does not belong to this cluster: it is managed by Helm."},
		want{"~namespace", "Service " + c.namespace + "/dev-cp-1-peer exists and does not belong to this cluster"})
}

// Networks must differ from those of the host.
func TestCheck_networks(t *testing.T) {
	t.Parallel()

	c := newChecked(t, privileged)
	service, err := c.cluster.API().CoreV1().Services(metav1.NamespaceDefault).Get(t.Context(), "kubernetes",
		metav1.GetOptions{})
	check(t, err)

	node := newNode(t, c.cluster)
	s := c.spec()
	node.pod(t, s, machine("other", 0), "10.77.0.9", nil)

	used := netip.MustParseAddr(service.Spec.ClusterIP)
	s.ServiceCIDRs = []netip.Prefix{netip.PrefixFrom(used, 24).Masked()}
	s.PodCIDRs = []netip.Prefix{netip.MustParsePrefix("10.77.0.0/16"), netip.MustParsePrefix("127.0.66.0/24")}
	c.finds(t, s,
		want{"pod_cidrs", "pod network 10.77.0.0/16 of the cluster overlaps with the address of pod"},
		want{"service_cidrs", "overlaps with the network of Services"},
		want{"?pod_cidrs", "127.0.66.0/24 of the cluster overlaps with the address of node"},
	)
}

// Credentials that the host does not take are a finding; a host that is not there is an error.
func TestCheck_connection(t *testing.T) {
	t.Parallel()

	c := newChecked(t, privileged)
	file, err := clientcmd.LoadFromFile(c.cluster.Kubeconfig())
	check(t, err)

	for _, user := range file.AuthInfos {
		*user = clientcmdapi.AuthInfo{Token: "expired"}
	}

	content, err := clientcmd.Write(*file)
	check(t, err)

	c.config = api.Kubeconfig{Content: content}
	c.finds(t, c.spec(), want{"", "rejects the credentials"})

	host := open(t, hostcluster.Options{Kubeconfig: api.Kubeconfig{Content: []byte(oneContext)}})

	findings, err := host.Check(t.Context(), c.spec())
	if err == nil || len(findings) > 0 || !strings.Contains(err.Error(), "https://127.0.0.1:1") {
		t.Errorf("%v, %v", findings, err)
	}
}
