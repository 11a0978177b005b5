package preflight

import (
	"context"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/panics"
)

// right is something that a user may or may not do.
type right struct{ group, Resource, verb string }

// String returns a text such as "apps/statefulsets".
func (r right) String() string {
	if r.group == "" {
		return r.Resource
	}

	return r.Resource + "." + r.group
}

// need is an operation on a resource.
type need struct {
	group, Resource string
	verbs           []string
	// Cluster is true for a resource outside of a namespace.
	Cluster bool
	// attribute that makes it necessary, and the alternative.
	attribute, otherwise string
	// pending is true for rights that may come with a namespace, warning for those without which there are machines all
	// the same.
	pending, warning bool
}

// rightsAtOnce is the number of concurrent requests.
const rightsAtOnce = 8

// needs are talosop's operations on a host. Applying an object needs the right to patch it, and the right to
// create it where it does not exist (Kubernetes 1.36, apiserver/pkg/endpoints/handlers/patch.go
// withAuthorization).
func (c *checking) needs(exists bool) []need {
	all := []string{"get", "list", "create", "patch", "delete"}
	needs := []need{
		{group: "apps", Resource: "statefulsets", verbs: all},
		{Resource: "services", verbs: all},
		{Resource: "pods", verbs: []string{"get", "list", "delete"}},
	}

	claims := need{Resource: "persistentvolumeclaims", verbs: []string{"list"}}
	if slices.ContainsFunc(c.spec.Machines, func(m workload.Machine) bool { return !m.Pod.Storage.Ephemeral }) {
		claims.verbs = all
	}

	needs = append(needs, claims)

	// For every kind of access, the request to a pod before it has a configuration goes through the API of the
	// host.
	needs = append(needs, need{Resource: "pods/portforward", verbs: []string{"create"}, attribute: attributeAccess})

	if c.spec.Access == workload.NodePort {
		needs = append(needs, need{
			Resource: "nodes", verbs: []string{"list"}, Cluster: true, attribute: attributeAccess,
			otherwise: " Or choose another access than node-port, which requires the addresses of the nodes.",
		})
	}

	needs = append(needs, need{
		group: "networking.k8s.io", Resource: "networkpolicies", verbs: all, warning: true,
		otherwise: " Without it any client in the network of the host may configure a machine before talosop does; all " +
			"else works.",
	})

	if c.spec.Budget() != nil {
		needs = append(needs, need{
			group: "policy", Resource: "poddisruptionbudgets", verbs: all, warning: true,
			otherwise: " Without it, a drain of the host can stop several control planes at once; all else works.",
		})
	}

	if !exists && c.spec.CreateNamespace {
		needs = append(needs, need{
			Resource: "namespaces", verbs: []string{"get", "create", "patch"}, Cluster: true, attribute: attributeCreate,
			otherwise: " Or have another user create the namespace.",
		})
	}

	// Another resource makes the namespace and the Roles in it.
	for i := range needs {
		needs[i].pending = !exists && !c.spec.CreateNamespace && !needs[i].Cluster
	}

	return needs
}

// checkRights requests each right separately. The host can also list them, but the list is not complete with every
// authorizer (Kubernetes 1.36, SelfSubjectRulesReview status.incomplete).
func (c *checking) checkRights(ctx context.Context, exists bool) error {
	needs := c.needs(exists)
	asked := append(needs[:len(needs):len(needs)], need{Resource: "pods", verbs: []string{"create"}})

	group, ctx := panics.WithContext(ctx)
	group.SetLimit(rightsAtOnce)

	for _, n := range asked {
		for _, verb := range n.verbs {
			group.Go(func() error { return c.ask(ctx, n, verb) })
		}
	}

	err := group.Wait()
	if apierrors.IsForbidden(err) {
		c.find("", "The host does not allow the user of the kubeconfig to check its own permissions, as all authenticated "+
			"users can: %v.",
			"Check that the kubeconfig's context has a user with credentials.", err)

		return nil
	}

	if err != nil {
		return err
	}

	for _, n := range needs {
		c.judge(n)
	}

	return nil
}

func (c *checking) ask(ctx context.Context, n need, verb string) error {
	resource, sub, _ := strings.Cut(n.Resource, "/")
	attributes := &authorizationv1.ResourceAttributes{Group: n.group, Resource: resource, Subresource: sub, Verb: verb}

	if !n.Cluster {
		attributes.Namespace = c.spec.Namespace
	}

	review, err := c.host.API().AuthorizationV1().SelfSubjectAccessReviews().Create(ctx,
		&authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes},
		}, metav1.CreateOptions{})
	if err != nil {
		return err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	c.allowed[right{n.group, n.Resource, verb}] = review.Status.Allowed

	return nil
}

// judge reports which rights of a need the user lacks.
func (c *checking) judge(n need) {
	var lacking []string

	for _, verb := range n.verbs {
		if !c.allowed[right{n.group, n.Resource, verb}] {
			lacking = append(lacking, verb)
		}
	}

	if len(lacking) == 0 {
		return
	}

	place, role := " in the namespace "+c.spec.Namespace, "a Role in that namespace"
	if n.Cluster {
		place, role = "", "a ClusterRole"
	}

	note := c.find

	switch {
	case n.warning:
		note = c.warn
	case n.pending:
		note = c.await
	}

	note(n.attribute, "The user of the kubeconfig has no permission to %s %s%s.", "Grant it with "+role+"."+n.otherwise,
		strings.Join(lacking, ", "), right{group: n.group, Resource: n.Resource}, place)
}

// mayList reports whether the user may list the objects.
func (c *checking) mayList() bool {
	return c.allowed[right{"apps", "statefulsets", "list"}] && c.allowed[right{"", "services", "list"}] &&
		c.allowed[right{"", "pods", "list"}] &&
		c.allowed[right{"", "persistentvolumeclaims", "list"}]
}
