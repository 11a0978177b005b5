package preflight

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/panics"
)

// denial of an object that the host was asked to make for a try.
type denial struct {
	kind   *workload.Kind
	object workload.Object
	err    error
}

// checkAdmission has the host try to make one machine of each shape, without storing anything. This asks the
// standards of the namespace, limits, quotas, policies and webhooks. Quotas are compared with one object at a
// time. If all machines together need more, the event of the StatefulSet without a pod says so, and a larger quota
// lets the apply continue. The check runs where the namespace exists. In a namespace that is to be made, a label
// allows Talos to run, and there are no quotas.
func (c *checking) checkAdmission(ctx context.Context) error {
	if c.found == nil {
		return nil
	}

	var (
		mu      sync.Mutex
		denials []denial
	)

	group, ctx := panics.WithContext(ctx)
	for _, m := range c.shapes() {
		group.Go(func() error {
			refused, err := c.try(ctx, m)

			mu.Lock()
			defer mu.Unlock()

			denials = append(denials, refused...)

			return err
		})
	}

	if err := group.Wait(); err != nil {
		return err
	}

	for _, d := range denials {
		c.deny(d)
	}

	return nil
}

// shapes are machines to be made that differ in more than their name, one of each.
func (c *checking) shapes() map[string]workload.Machine {
	shapes := map[string]workload.Machine{}

	for _, m := range c.missing() {
		shape := c.shape(m)
		if _, known := shapes[shape]; !known {
			shapes[shape] = m
		}
	}

	return shapes
}

func (c *checking) shape(m workload.Machine) string {
	own := m.Label()
	m.Name, m.Ordinal = "", 0

	text, err := json.Marshal(m)
	if err != nil {
		return own // what cannot be compared is like nothing else
	}

	return string(text)
}

// try makes everything of a machine for a try.
func (c *checking) try(ctx context.Context, m workload.Machine) (denials []denial, err error) {
	for _, o := range append(c.othersOf(m), wantedObject{workload.PodKind, c.podOf(m)}) {
		if !c.allowed[right{groupOf(o.kind), o.kind.Resource, "create"}] {
			continue // it was said, or is another's work
		}

		err := c.dryRun(ctx, o.kind, o.object)

		switch {
		case err == nil, apierrors.IsAlreadyExists(err): // it is ours, or was found to be another's
		case isVerdict(err):
			denials = append(denials, denial{kind: o.kind, object: o.object, err: err})
		default:
			return nil, fmt.Errorf("dry run of creating %s: %w", o.kind.Of(o.object), err)
		}
	}

	return denials, nil
}

// podOf is the pod that the machine's StatefulSet will make.
func (c *checking) podOf(m workload.Machine) *corev1.Pod {
	set := c.spec.StatefulSet(m)
	wanted := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
	wanted.Name, wanted.Namespace = c.spec.PodName(m), c.spec.Namespace

	if c.classless(wanted.Spec.PriorityClassName) {
		wanted.Spec.PriorityClassName = "" // that it is missing is found without a try
	}

	return wanted
}

// wantedObject is an object that is to be made.
type wantedObject struct {
	kind   *workload.Kind
	object workload.Object
}

// othersOf is what there will be for a machine besides its pod.
func (c *checking) othersOf(m workload.Machine) []wantedObject {
	others := []wantedObject{{workload.SetKind, c.spec.StatefulSet(m)}, {workload.ServiceKind, c.spec.MachineService(m)}}

	for _, service := range c.spec.EndpointServices() {
		others = append(others, wantedObject{workload.ServiceKind, service})
	}

	for _, claim := range c.spec.Claims(m) {
		others = append(others, wantedObject{workload.ClaimKind, claim})
	}

	return others
}

func groupOf(k *workload.Kind) string {
	group, _, grouped := strings.Cut(k.APIVersion, "/")
	if !grouped {
		return ""
	}

	return group
}

func (c *checking) dryRun(ctx context.Context, k *workload.Kind, o workload.Object) error {
	return k.Client(c.host.API()).Post().NamespaceIfScoped(o.GetNamespace(), !k.Cluster).Resource(k.Resource).
		VersionedParams(&metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: workload.FieldManager},
			scheme.ParameterCodec).
		Body(o).Do(ctx).Error()
}

// isVerdict reports whether an error is what the host thinks of an object, and not that it has no time or is gone. A
// webhook that does not answer is one, too: it would not answer later either.
func isVerdict(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || apierrors.IsUnauthorized(err) {
		return false
	}

	code := status.Status().Code

	return code == http.StatusInternalServerError || code >= http.StatusBadRequest &&
		code < http.StatusInternalServerError &&
		code != http.StatusTooManyRequests && code != http.StatusRequestTimeout
}

// deny records what the host refuses.
func (c *checking) deny(d denial) {
	if apierrors.IsNotFound(d.err) && c.namespace == nil {
		c.await(attributeNamespace, "Namespace %s does not exist on the host.",
			"Create it, or set create_namespace and allow the user of the kubeconfig to read namespaces.",
			c.spec.Namespace)

		return
	}

	attribute, help := attributePod, "Change the rejected settings of the machine, or allow them on the host."

	switch d.kind {
	case workload.ClaimKind:
		attribute = attributeStorage
	case workload.ServiceKind:
		attribute = attributeAccess
		if d.object.GetName() == c.spec.Cluster {
			attribute = attributeService
		}
	case workload.PodKind:
		if level := c.level(); level != "" && level != workload.PrivilegedLevel && apierrors.IsForbidden(d.err) {
			attribute = attributeNamespace
			help = fmt.Sprintf("Talos needs a privileged pod. Let them into the namespace, which has the level %s: `kubectl "+
				"label namespace %s %s=%s --overwrite`; or choose another "+
				"namespace.", level, c.spec.Namespace, workload.EnforceLabel, workload.PrivilegedLevel)
		}
	}

	if about := aboutResources(d.err); about != "" {
		attribute = about
	}

	note := c.find

	// There is no other sign of it (Kubernetes 1.36, apiserver/pkg/admission/plugin/resourcequota/controller.go
	// checkRequest). A replaced object frees what it uses.
	if apierrors.IsForbidden(d.err) && strings.Contains(d.err.Error(), "exceeded quota") {
		note, help = c.await, "Reduce the resources of the machines, raise the quota, or choose another namespace."
	}

	note(attribute, "The host rejects %s: %s.", help, d.kind.Of(d.object), strings.TrimSuffix(d.err.Error(), "."))
}

func (c *checking) level() string {
	if c.namespace == nil {
		return ""
	}

	return c.namespace.Labels[workload.EnforceLabel]
}

// aboutResources reports whether the host refused fields of a pod's resources.
func aboutResources(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return ""
	}

	for _, cause := range status.Status().Details.Causes {
		if strings.Contains(cause.Field, ".resources") {
			return attributeResources
		}
	}

	return ""
}
