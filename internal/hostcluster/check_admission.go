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
// policies and webhooks are all asked then. It does so where the namespace is there; in one that is to be made, Talos is allowed to
// run by a label, and there are no quotas.
func (c *checking) checkAdmission(ctx context.Context) error {
	if c.found == nil {
		return nil
	}

	var (
		mu      sync.Mutex
		denials []denial
	)

	// What the host fills in, such as limits, by shape.
	filled := map[string]*corev1.Pod{}
	shapes := c.shapes()

	group, gather := errgroup.WithContext(ctx)
	for shape, m := range shapes {
		group.Go(func() error {
			pod, refused, err := c.try(gather, m)

			mu.Lock()
			defer mu.Unlock()

			denials, filled[shape] = append(denials, refused...), pod

			return err
		})
	}

	if err := group.Wait(); err != nil {
		return err
	}

	short, err := c.checkQuotas(ctx, filled)
	if err != nil {
		return err
	}

	for _, d := range denials {
		c.deny(d, short)
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

// try makes everything of a machine for a try. The pod is as the host would have it, nil where that is not known.
func (c *checking) try(ctx context.Context, m Machine) (pod *corev1.Pod, denials []denial, err error) {
	attempt := func(k *kind, o object) (object, error) {
		if !c.allowed[right{groupOf(k), k.resource, "create"}] {
			return nil, nil //nolint:nilnil // it was said, or is another's work
		}

		made, err := c.dryRun(ctx, k, o)

		switch {
		case err == nil:
			return made, nil
		case apierrors.IsAlreadyExists(err):
			return nil, nil //nolint:nilnil // it is ours, or was found to be another's
		case isVerdict(err):
			denials = append(denials, denial{kind: k, object: o, err: err})

			return nil, nil //nolint:nilnil // it would not be made
		default:
			return nil, fmt.Errorf("try to make %s: %w", k.of(o), err)
		}
	}

	for _, o := range c.othersOf(m) {
		if _, err := attempt(o.kind, o.object); err != nil {
			return nil, nil, err
		}
	}

	made, err := attempt(podKind, c.podOf(m))
	if made != nil {
		pod, _ = made.(*corev1.Pod)
	}

	return pod, denials, err
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

func (c *checking) dryRun(ctx context.Context, k *kind, o object) (object, error) {
	made := k.empty()
	err := k.client(c.host.client()).Post().NamespaceIfScoped(o.GetNamespace(), !k.cluster).Resource(k.resource).
		VersionedParams(&metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: fieldManager}, parameters).
		Body(o).Do(ctx).Into(made)

	return made, err
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

// deny says what the host refuses. What quotas are short of was found without a try.
func (c *checking) deny(d denial, short bool) {
	// There is no other sign of it (Kubernetes 1.36, apiserver/pkg/admission/plugin/resourcequota/controller.go checkRequest).
	quota := apierrors.IsForbidden(d.err) && strings.Contains(d.err.Error(), "exceeded quota")
	if quota && short {
		return
	}

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
	if quota {
		note = c.await // as others that are found without a try
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
