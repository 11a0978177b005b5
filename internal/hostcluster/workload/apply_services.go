package workload

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ensureEndpoint makes or repairs what is in front of the control planes, and takes away what leads there from outside
// and should not any more.
func (h *Client) ensureEndpoint(ctx context.Context, s Spec, found *Inventory) error {
	for _, service := range s.EndpointServices() {
		if err := h.ensureService(ctx, s, service, found.Services[service.Name]); err != nil {
			return err
		}
	}

	if left := s.leftOutside(found); left != nil {
		return final(h.remove(ctx, ServiceKind, left))
	}

	return nil
}

// leftOutside is the Service that leads to the Kubernetes API from outside where none should any more, nil otherwise.
func (s Spec) leftOutside(found *Inventory) *corev1.Service {
	left := found.Services[s.ExternalName()]
	if s.Endpoint == nil || !s.Endpoint.Inside() || left == nil || left.DeletionTimestamp != nil || !s.Ours(left) {
		return nil
	}

	return left
}

// ensureService makes or repairs a Service. It recreates one whose address cannot be changed to the wanted one.
func (h *Client) ensureService(ctx context.Context, s Spec, service, live *corev1.Service) error {
	turns, err := convertible(live, service)
	if err != nil {
		return err
	}

	if !turns {
		return h.remakeService(ctx, s, service, live)
	}

	wanted, err := fieldsOf(ServiceKind, service)
	if err != nil {
		return err
	}

	apply := func(live *corev1.Service) error {
		_, err := h.ensure(ctx, s, ServiceKind, wanted, OrNil(live),
			func(o Object) (fields, error) { return serviceBody(o, wanted) })

		return err
	}

	if err = apply(live); live == nil || !apierrors.IsInvalid(err) {
		return refusedAddress(service, err)
	}

	// Others renumbered or renamed a port: an apply leaves theirs beside ours, which contradict.
	if live, err = h.putPorts(ctx, live, service.Spec.Ports); err != nil {
		return err
	}

	return apply(live)
}

// serviceBody is what to apply to an existing Service. An address that the host assigned is not set; an address
// that talosop once requested stays requested.
func serviceBody(live Object, wanted fields) (fields, error) {
	if wanted.part("spec")["clusterIP"] == corev1.ClusterIPNone {
		return wanted, nil
	}

	owned, err := ownedFields(ServiceKind, live)
	if err != nil {
		return nil, err
	}

	return wanted.with(wanted.part("metadata"), map[string]any{"clusterIP": owned.part("spec")["clusterIP"]}), nil
}

// putPorts replaces all ports of one of our Services. Unchanged ports keep their node ports.
func (h *Client) putPorts(
	ctx context.Context, live *corev1.Service, ports []corev1.ServicePort,
) (*corev1.Service, error) {
	wanted := slices.Clone(ports)

	for i := range wanted {
		for _, had := range live.Spec.Ports {
			if had.Name == wanted[i].Name {
				wanted[i].NodePort = had.NodePort
			}
		}
	}

	patch, err := replacing(live, "/spec/ports", wanted)
	if err != nil {
		return nil, err
	}

	became, err := h.API().CoreV1().Services(live.Namespace).Patch(ctx, live.Name, types.JSONPatchType, patch,
		metav1.PatchOptions{FieldManager: FieldManager})
	if err != nil {
		return nil, final(fmt.Errorf("change the ports of %s on %s: %w", ServiceKind.Of(live), h, err))
	}

	return became, nil
}

// convertible reports whether the API lets a Service become another. A Service with an address cannot lose or
// change it, one without cannot get one, and a load balancer keeps its class (Kubernetes 1.36, core/validation
// validateUpgradeDowngradeClusterIPs and validateLoadBalancerClassField). A class of another client stays where
// none is wanted. A Service that does not exist, or is being deleted, is no obstacle.
func convertible(live, wanted *corev1.Service) (bool, error) {
	if live == nil || live.DeletionTimestamp != nil {
		return true, nil
	}

	headless := func(service *corev1.Service) bool { return service.Spec.ClusterIP == corev1.ClusterIPNone }
	if headless(live) != headless(wanted) {
		return false, nil
	}

	if wants := wanted.Spec.ClusterIP; wants != "" && wants != live.Spec.ClusterIP {
		return false, nil
	}

	if live.Spec.Type != corev1.ServiceTypeLoadBalancer || wanted.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return true, nil
	}

	had, wants := live.Spec.LoadBalancerClass, wanted.Spec.LoadBalancerClass
	if wants != nil {
		return had != nil && *had == *wants, nil
	}

	owned, err := ownedFields(ServiceKind, live)
	if err != nil {
		return false, err
	}

	return owned.part("spec")["loadBalancerClass"] == nil, nil
}
