package hostcluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// denial of an object that the host was asked to make for a try.
type denial struct {
	kind   *kind
	object object
	err    error
}

// checkAdmission has the host try to make one machine of each shape, without storing anything: the standards of the namespace, limits,
// quotas, policies and webhooks are all asked then. Quotas are compared with one object at a time; that all machines together need more
// than is left is said by the event of the StatefulSet whose pod does not come, and a larger quota lets the apply go on. It does so where the namespace is there; in one that is to be made, Talos is allowed to
// run by a label, and there are no quotas.
func (c *checking) checkAdmission(ctx context.Context) error {
	if c.found == nil {
		return nil
	}

	var (
		mu      sync.Mutex
		denials []denial
	)

	group, ctx := errgroup.WithContext(ctx)
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
func (c *checking) shapes() map[string]Machine {
	shapes := map[string]Machine{}

	for _, m := range c.missing() {
		shape := c.shape(m)
		if _, known := shapes[shape]; !known {
			shapes[shape] = m
		}
	}

	return shapes
}

func (c *checking) shape(m Machine) string {
	own := m.Label()
	m.Name, m.Ordinal = "", 0

	text, err := json.Marshal(m)
	if err != nil {
		return own // what cannot be compared is like nothing else
	}

	return string(text)
}

// try makes everything of a machine for a try.
func (c *checking) try(ctx context.Context, m Machine) (denials []denial, err error) {
	for _, o := range append(c.othersOf(m), wantedObject{podKind, c.podOf(m)}) {
		if !c.allowed[right{groupOf(o.kind), o.kind.resource, "create"}] {
			continue // it was said, or is another's work
		}

		err := c.dryRun(ctx, o.kind, o.object)

		switch {
		case err == nil, apierrors.IsAlreadyExists(err): // it is ours, or was found to be another's
		case isVerdict(err):
			denials = append(denials, denial{kind: o.kind, object: o.object, err: err})
		default:
			return nil, fmt.Errorf("try to make %s: %w", o.kind.of(o.object), err)
		}
	}

	return denials, nil
}

// podOf is the pod that the machine's StatefulSet will make.
func (c *checking) podOf(m Machine) *corev1.Pod {
	set := c.spec.statefulSet(m)
	wanted := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
	wanted.Name, wanted.Namespace = c.spec.podName(m), c.spec.Namespace

	if c.classless(wanted.Spec.PriorityClassName) {
		wanted.Spec.PriorityClassName = "" // that it is missing is found without a try
	}

	return wanted
}

// wantedObject is one that is to be made.
type wantedObject struct {
	kind   *kind
	object object
}

// othersOf is what there will be for a machine besides its pod.
func (c *checking) othersOf(m Machine) []wantedObject {
	others := []wantedObject{{setKind, c.spec.statefulSet(m)}, {serviceKind, c.spec.machineService(m)}}

	if service := c.spec.endpointService(); service != nil {
		others = append(others, wantedObject{serviceKind, service})
	}

	for _, claim := range c.spec.claims(m) {
		others = append(others, wantedObject{claimKind, claim})
	}

	return others
}

func groupOf(k *kind) string {
	group, _, grouped := strings.Cut(k.apiVersion, "/")
	if !grouped {
		return ""
	}

	return group
}

func (c *checking) dryRun(ctx context.Context, k *kind, o object) error {
	return k.client(c.host.API()).Post().NamespaceIfScoped(o.GetNamespace(), !k.cluster).Resource(k.resource).
		VersionedParams(&metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: fieldManager}, parameters).
		Body(o).Do(ctx).Error()
}

// isVerdict says whether an error is what the host thinks of an object, and not that it has no time or is gone. A webhook that
// does not answer is one, too: it would not answer later either.
func isVerdict(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || apierrors.IsUnauthorized(err) {
		return false
	}

	code := status.Status().Code

	return code == http.StatusInternalServerError || code >= http.StatusBadRequest && code < http.StatusInternalServerError &&
		code != http.StatusTooManyRequests && code != http.StatusRequestTimeout
}

// deny says what the host refuses.
func (c *checking) deny(d denial) {
	if apierrors.IsNotFound(d.err) && c.namespace == nil {
		c.await(attributeNamespace, "The host has no namespace %s.", "Create it, or set create_namespace and let the user of the kubeconfig look at namespaces.",
			c.spec.Namespace)

		return
	}

	attribute, help := attributePod, "Change what of the machine is refused, or have the policy of the host let it pass."

	switch d.kind {
	case claimKind:
		attribute = attributeStorage
	case serviceKind:
		attribute = attributeAccess
		if d.object.GetName() == c.spec.Cluster {
			attribute = attributeService
		}
	case podKind:
		if level := c.level(); level != "" && level != privilegedLevel && apierrors.IsForbidden(d.err) {
			attribute = attributeNamespace
			help = fmt.Sprintf("Talos needs a privileged pod. Let them into the namespace, which has the level %s: `kubectl label namespace %s %s=%s --overwrite`; "+
				"or choose another namespace.", level, c.spec.Namespace, enforceLabel, privilegedLevel)
		}
	}

	if about := aboutResources(d.err); about != "" {
		attribute = about
	}

	note := c.find

	// There is no other sign of it (Kubernetes 1.36, apiserver/pkg/admission/plugin/resourcequota/controller.go checkRequest). What is
	// replaced gives back what it uses.
	if apierrors.IsForbidden(d.err) && strings.Contains(d.err.Error(), "exceeded quota") {
		note, help = c.await, "Let the machines need less, have the quota raised, or choose another namespace."
	}

	note(attribute, "The host refuses %s: %s.", help, d.kind.of(d.object), strings.TrimSuffix(d.err.Error(), "."))
}

func (c *checking) level() string {
	if c.namespace == nil {
		return ""
	}

	return c.namespace.Labels[enforceLabel]
}

// aboutResources says whether fields of a pod that the host cannot take are those of resources.
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
