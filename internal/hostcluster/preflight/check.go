package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/panics"
)

// Check finds all that would prevent the machines of a Spec, before anything is made. It changes nothing. What
// only the host knows, such as refusals of its policies, it learns with dry-run requests.
//
// The Spec has the wanted machines, and none that are to be removed. All findings are returned together: certain
// obstacles, present obstacles, and warnings; existing machines are not checked again. What the credentials may
// not read is one warning, since it may be fine. The error means that the host did not answer, which proves
// nothing.
func Check(ctx context.Context, h *workload.Client, s workload.Spec) ([]Finding, error) {
	c := &checking{host: h, spec: s, allowed: map[right]bool{}}

	err := c.run(ctx)
	if apierrors.IsUnauthorized(err) {
		c.find("", "The host rejects the credentials of the kubeconfig: %s reports them as unauthorized.",
			"Check that the token or certificate in the context of the kubeconfig is valid for this cluster and has not "+
				"expired.", h)

		err = nil
	}

	if err != nil {
		return nil, fmt.Errorf("check %s: %w", h, err)
	}

	if len(c.unseen) > 0 {
		slices.Sort(c.unseen)
		c.warn("", "The credentials do not allow reading %s, so related checks are skipped.",
			"No action is needed; machines that cannot run report the reason.", strings.Join(slices.Compact(c.unseen), ", "))
	}

	return arranged(c.findings), nil
}

// checking is one check.
type checking struct {
	host *workload.Client
	spec workload.Spec
	// allowed are the rights of the user.
	allowed map[right]bool
	// namespace that the machines will be in, nil when it is not there, or may not be read.
	namespace *corev1.Namespace
	// found is the content of the namespace.
	found *workload.Inventory
	// priorities are the priority classes that are missing.
	priorities []string

	mu       sync.Mutex
	findings []Finding
	// unseen is what the user has no right to read.
	unseen []string
}

func (c *checking) run(ctx context.Context) error {
	exists, err := c.checkNamespace(ctx)
	if err != nil {
		return err
	}

	if err := c.checkRights(ctx, exists); err != nil {
		return err
	}

	if exists && c.mayList() {
		if c.found, err = c.host.Inventory(ctx, c.spec, ""); err != nil {
			return err
		}

		c.checkForeign()
	}

	if err := c.checkClasses(ctx); err != nil {
		return err
	}

	group, ctx := panics.WithContext(ctx)
	for _, check := range []func(context.Context) error{
		c.checkIdentity, c.checkNetworks, c.checkPullSecrets, c.checkAdmission,
	} {
		group.Go(func() error { return check(ctx) })
	}

	return group.Wait()
}

func (c *checking) add(f Finding) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.findings = append(c.findings, f)
}

// find records an obstacle, whatever else happens.
func (c *checking) find(attribute, found, help string, about ...any) {
	c.add(Finding{Attribute: attribute, Found: fmt.Sprintf(found, about...), Help: help})
}

// await records an obstacle that another resource may remove in time.
func (c *checking) await(attribute, found, help string, about ...any) {
	c.add(Finding{Pending: true, Attribute: attribute, Found: fmt.Sprintf(found, about...), Help: help})
}

func (c *checking) warn(attribute, found, help string, about ...any) {
	c.add(Finding{Warning: true, Attribute: attribute, Found: fmt.Sprintf(found, about...), Help: help})
}

// unseenIf records what the credentials may not read, and reports whether that is the reason for an error.
func (c *checking) unseenIf(err error, what string) bool {
	if !apierrors.IsForbidden(err) {
		return false
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	c.unseen = append(c.unseen, what)

	return true
}

// checkNamespace reports whether there is one. When it may not be read, it is taken to be there.
func (c *checking) checkNamespace(ctx context.Context) (exists bool, err error) {
	name := c.spec.Namespace
	found, err := c.host.API().CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})

	switch {
	case apierrors.IsNotFound(err) && c.spec.CreateNamespace:
		return false, nil
	case apierrors.IsNotFound(err):
		c.await(attributeNamespace, "%s has no namespace %s.",
			"Create it, with the label "+workload.EnforceLabel+"="+workload.PrivilegedLevel+
				", which Talos needs, or set create_namespace.", c.host, name)

		return false, nil
	case c.unseenIf(err, "the namespace "+name):
		return true, nil
	case err != nil:
		return false, err
	}

	if found.Status.Phase == corev1.NamespaceTerminating {
		var held []string

		for _, condition := range found.Status.Conditions {
			if condition.Status == corev1.ConditionTrue {
				held = append(held, condition.Message)
			}
		}

		c.await(attributeNamespace, "Namespace %s is being deleted, so no objects can be created in it. %s",
			"Wait for its deletion, or choose another namespace.", name, strings.Join(held, " "))

		return false, nil
	}

	c.namespace = found

	return true, nil
}

// checkIdentity reports when the host cannot be distinguished from another one.
func (c *checking) checkIdentity(ctx context.Context) error {
	found, err := c.host.Identity(ctx)
	if err == nil && found.UID == "" {
		c.warn("", "The credentials do not allow reading the namespace "+metav1.NamespaceSystem+", whose UID identifies "+
			"%s. A wrong context is not detected, and its machines look deleted.",
			"Grant permission to get that namespace with a Role in it.", c.host)
	}

	return err
}

// checkForeign finds objects that have names of ours, and what ours can never become. Before the machines are made they
// may be gone, as all are of a resource that is replaced.
func (c *checking) checkForeign() {
	check := func(k *workload.Kind, o workload.Object) {
		if o == nil || c.spec.Ours(o) {
			return
		}

		help := "Remove or rename it, or choose another name for the cluster or another namespace."
		if workload.LostLabels(o) {
			help = fmt.Sprintf("If only its labels were removed, restore them: %s=%s, %s=%s. Otherwise: %s",
				workload.LabelCluster, c.spec.Cluster, workload.LabelMark, c.spec.Mark, help)
		}

		c.await(attributeNamespace, "%s exists and does not belong to this cluster: %s.", help, k.Of(o), workload.Whose(o))
	}

	if c.spec.Endpoint != nil {
		for _, service := range c.spec.EndpointServices() {
			check(workload.ServiceKind, workload.OrNil(c.found.Services[service.Name]))
		}

		check(workload.BudgetKind, workload.OrNil(c.found.Budgets[c.spec.Cluster]))
	}

	for _, m := range c.spec.Machines {
		name := c.spec.HostName(m)
		check(workload.SetKind, workload.OrNil(c.found.Sets[name]))
		check(workload.PodKind, workload.OrNil(c.found.Pods[c.spec.PodName(m)]))

		for _, service := range c.spec.Services(m) {
			check(workload.ServiceKind, workload.OrNil(c.found.Services[service.Name]))
		}

		for _, claim := range c.spec.Claims(m) {
			check(workload.ClaimKind, workload.OrNil(c.found.Claims[claim.Name]))
		}

		for _, conflict := range c.found.Conflicts(c.spec, m) {
			c.await(attributeStorage, "%s.", "Nothing was changed.", conflict)
		}
	}
}

// missing are the machines that have no StatefulSet.
func (c *checking) missing() []workload.Machine {
	if c.found == nil {
		return c.spec.Machines
	}

	return slices.DeleteFunc(slices.Clone(c.spec.Machines),
		func(m workload.Machine) bool { return c.found.Sets[c.spec.HostName(m)] != nil })
}
