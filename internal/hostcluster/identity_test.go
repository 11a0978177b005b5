package hostcluster_test

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// A host is identified by its namespace kube-system, shown with the names of its context and its server.
func TestIdentity_ofAHost(t *testing.T) {
	t.Parallel()

	c := kubetest.Shared(t)
	file, err := clientcmd.LoadFromFile(c.Kubeconfig())
	check(t, err)

	system, err := c.API().CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{})
	check(t, err)

	host := open(t, hostcluster.Options{Kubeconfig: api.Kubeconfig{Path: c.Kubeconfig()}})
	found, err := host.Identity(t.Context())
	check(t, err)

	want := "context " + file.CurrentContext + " (" + c.Endpoint() + ", kube-system UID " + string(system.UID) + ")"
	if found.UID != string(system.UID) || found.String() != want {
		t.Errorf("it is %s, not %s", found, want)
	}

	silent := open(t, hostcluster.Options{Kubeconfig: api.Kubeconfig{Content: []byte(oneContext)}})
	if found, err := silent.Identity(t.Context()); err == nil || found.UID != "" {
		t.Errorf("a host that does not answer is %s: %v", found, err)
	}
}

// Credentials limited to one namespace get no identity. A Role in kube-system is enough to get it.
func TestIdentity_rights(t *testing.T) {
	t.Parallel()

	c := newChecked(t, privileged)
	as := as(t, c.cluster, c.namespace, "tenant", rule("pods", "list"))
	host := open(t, hostcluster.Options{Kubeconfig: as})

	found, err := host.Identity(t.Context())
	if err != nil || found.UID != "" || !strings.Contains(found.String(), "no permission") {
		t.Errorf("without the right it is %s: %v", found, err)
	}

	rbac, name := c.cluster.API().RbacV1(), c.namespace+"-tenant"

	_, err = rbac.Roles("kube-system").Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"},
			ResourceNames: []string{"kube-system"}, Verbs: []string{"get"}}}}, metav1.CreateOptions{})
	check(t, err)

	_, err = rbac.RoleBindings("kube-system").Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{Kind: "User", Name: name}},
	}, metav1.CreateOptions{})
	check(t, err)

	soon(t, func() bool {
		found, err := host.Identity(t.Context())
		check(t, err)

		return found.UID != ""
	})
}
