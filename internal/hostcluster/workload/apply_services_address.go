package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// remakeService recreates a Service whose address cannot be changed. The old one stays if the host refuses the
// address, and is restored if the host refuses it too late.
func (h *Client) remakeService(ctx context.Context, s Spec, service, live *corev1.Service) error {
	if err := h.mayGive(ctx, service); err != nil {
		return err
	}

	h.progress(fmt.Sprintf("%s is recreated, because its address cannot be changed", ServiceKind.Of(live)))

	if err := h.remove(ctx, ServiceKind, live); err != nil {
		return err
	}

	if err := h.awaitGone(ctx, ServiceKind, live); err != nil {
		return err
	}

	var refused *addressError

	err := h.ensureService(ctx, s, service, nil)
	if !errors.As(err, &refused) {
		return err
	}

	before := service.DeepCopy()
	before.Spec.ClusterIP = live.Spec.ClusterIP

	if back := h.ensureService(ctx, s, before, nil); back != nil {
		return errors.Join(err, fmt.Errorf("restore the address of %s: %w", ServiceKind.Of(live), back))
	}

	return err
}

// mayGive is an error where the host certainly refuses the address of a Service. A dry run only checks the host's
// networks (Kubernetes 1.36, core/service/ipallocator allocateService returns before it checks whether an address
// is free). So mayGive also lists other Services where that is allowed.
func (h *Client) mayGive(ctx context.Context, service *corev1.Service) error {
	address := service.Spec.ClusterIP
	if address == "" || address == corev1.ClusterIPNone {
		return nil
	}

	attempt := service.DeepCopy()
	attempt.Name, attempt.GenerateName = "", service.Name+"-"

	_, err := h.API().CoreV1().Services(service.Namespace).Create(ctx, attempt, metav1.CreateOptions{
		DryRun: []string{metav1.DryRunAll}, FieldManager: FieldManager,
	})

	switch {
	case apierrors.IsInvalid(err):
		return refusedAddress(service, final(fmt.Errorf("create %s on %s: %w", ServiceKind.Of(service), h, err)))
	// such as for an exceeded quota, or by a webhook that has no dry run: it says nothing about the address
	case err != nil && !refused(err):
		return fmt.Errorf("try the address %s on %s: %w", address, h, err)
	}

	return h.heldByOthers(ctx, service)
}

// heldByOthers is an error where another Service has the address that one is to have, as far as that may be seen.
func (h *Client) heldByOthers(ctx context.Context, service *corev1.Service) error {
	address := service.Spec.ClusterIP

	list, err := h.API().CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: "spec.clusterIP=" + address,
	})

	switch {
	case apierrors.IsForbidden(err):
		return nil
	case err != nil:
		return fmt.Errorf("find the owner of address %s on %s: %w", address, h, err)
	}

	for i := range list.Items {
		if holder := &list.Items[i]; holder.Namespace != service.Namespace || holder.Name != service.Name {
			return wait.Permanent(&addressError{service: service, cause: errors.New(ServiceKind.Of(holder) + " has it")})
		}
	}

	return nil
}

// refusedAddress is an error of the making of a Service, which says what to do if it is about the address that was
// asked for.
func refusedAddress(service *corev1.Service, err error) error {
	var status apierrors.APIStatus

	if service.Spec.ClusterIP == "" || !apierrors.IsInvalid(err) || !errors.As(err, &status) ||
		status.Status().Details == nil {
		return err
	}

	about := func(c metav1.StatusCause) bool { return strings.HasPrefix(c.Field, "spec.clusterIP") }
	if !slices.ContainsFunc(status.Status().Details.Causes, about) {
		return err
	}

	return wait.Permanent(&addressError{service: service, cause: err})
}

// addressError is that the host does not give the Service of a machine the address that others know the machine at.
type addressError struct {
	service *corev1.Service
	cause   error
}

func (e *addressError) Error() string {
	machine, address := e.service.Labels[LabelMachine], e.service.Spec.ClusterIP
	selector := labels.Set{}

	for _, label := range []string{LabelCluster, LabelMark, LabelMachine} {
		selector[label] = e.service.Labels[label]
	}

	return fmt.Sprintf("the host does not assign %s the address %s, which etcd of machine %s uses: %v. If "+
		"another Service has it, remove that one (kubectl get services -A --field-selector spec.clusterIP=%s). If it "+
		"is no longer available, recreate the machine with another one, as long as the "+
		"other control planes have quorum: kubectl delete statefulset,persistentvolumeclaim -n %s -l %s, and apply again "+
		"with a refresh",
		ServiceKind.Of(e.service), address, machine, e.cause, address, e.service.Namespace, selector)
}

func (e *addressError) Unwrap() error { return e.cause }
