package hostcluster_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

func rule(resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{resource}, Verbs: verbs}
}

// as is the kubeconfig of a user with rights in one namespace only.
func as(t *testing.T, c *kubetest.Cluster, namespace, user string, rules ...rbacv1.PolicyRule) api.Kubeconfig {
	t.Helper()

	rbac := c.API().RbacV1()

	_, err := rbac.Roles(namespace).Create(t.Context(),
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}, metav1.CreateOptions{})
	check(t, err)

	_, err = rbac.RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: user},
		Subjects: []rbacv1.Subject{{Kind: "User", Name: namespace + "-" + user}},
	}, metav1.CreateOptions{})
	check(t, err)
	granted(t, c, namespace, namespace+"-"+user, rules...)

	file, err := clientcmd.LoadFromFile(c.Kubeconfig())
	check(t, err)

	for _, who := range file.AuthInfos {
		who.Impersonate = namespace + "-" + user
	}

	content, err := clientcmd.Write(*file)
	check(t, err)

	return api.Kubeconfig{Content: content}
}

// granted waits until the host grants a user rights in a namespace: new roles take effect with a delay.
func granted(t *testing.T, c *kubetest.Cluster, namespace, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()

	for _, rule := range rules {
		for _, r := range rule.Resources {
			resource, subresource, _ := strings.Cut(r, "/")

			for _, verb := range rule.Verbs {
				soon(t, func() bool {
					review, err := c.API().AuthorizationV1().SubjectAccessReviews().Create(t.Context(),
						&authorizationv1.SubjectAccessReview{
							Spec: authorizationv1.SubjectAccessReviewSpec{User: user,
								ResourceAttributes: &authorizationv1.ResourceAttributes{
									Namespace: namespace, Verb: verb, Group: rule.APIGroups[0], Resource: resource, Subresource: subresource,
								}},
						}, metav1.CreateOptions{})
					check(t, err)

					return review.Status.Allowed
				})
			}
		}
	}
}

// reachByMap is a network of the addresses in a map alone.
func reachByMap(to map[string]string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if to[address] == "" {
			return nil, fmt.Errorf("dial %s: %w", address, syscall.ECONNREFUSED)
		}

		return (&net.Dialer{}).DialContext(ctx, network, to[address])
	}
}

func TestOpen_namesWhatIsMissing(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")

	for want, o := range map[string]hostcluster.Options{
		"not both":                           {InCluster: true, Kubeconfig: api.Kubeconfig{Path: "k"}},
		"KUBERNETES_SERVICE_HOST is not set": {InCluster: true},
		"the file is empty":                  {},
		"no such file":                       {Kubeconfig: api.Kubeconfig{Path: t.TempDir() + "/none"}},
		"not valid kubeconfig YAML":          {Kubeconfig: api.Kubeconfig{Content: []byte("apiVersion: v1\nkind: [")}},
		"context production not found": {
			Kubeconfig: api.Kubeconfig{Content: []byte(oneContext), Context: "production"}},
	} {
		host, err := hostcluster.Open(o)
		if err == nil {
			host.Close()
		}

		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

const oneContext = `
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: hidden}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`
