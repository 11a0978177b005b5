package hosttest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// expose gives a Service of type LoadBalancer an address.
func (h *Host) expose(service *corev1.Service) {
	_, hangs := service.Annotations[kubetest.HangAnnotation]
	if service.Spec.Type != corev1.ServiceTypeLoadBalancer || hangs || service.Spec.LoadBalancerClass != nil ||
		len(service.Status.LoadBalancer.Ingress) > 0 || !service.DeletionTimestamp.IsZero() {
		return
	}

	h.mu.Lock()
	h.given++
	address := netip.AddrFrom4([4]byte{198, 51, byte(100 + h.given/250), byte(1 + h.given%250)}).String()
	h.mu.Unlock()

	h.work.Go(func() {
		changed := service.DeepCopy()
		changed.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: address}}

		// A Service that changed meanwhile is handled again.
		_, err := h.API().CoreV1().Services(service.Namespace).UpdateStatus(h.ctx, changed, metav1.UpdateOptions{})
		if err != nil && h.ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			h.log("give service %s/%s an address: %v", service.Namespace, service.Name, err)
		}
	})
}

// Reach connects to what can be reached from outside of the host, and to pods: addresses of pods, nodes with the ports
// of Services, and load balancers. Services lead to what their EndpointSlices have. Names are not resolved.
func (h *Host) Reach(ctx context.Context, network, address string) (net.Conn, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network,
			Err: &net.DNSError{Err: "no such host", Name: address, IsNotFound: true}}
	}

	target, err := h.route(to)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: net.TCPAddrFromAddrPort(to), Err: err}
	}

	return (&net.Dialer{}).DialContext(ctx, "tcp4", target)
}

// route is the loopback address for an address.
func (h *Host) route(to netip.AddrPort) (string, error) {
	if h.podNetwork().Contains(to.Addr()) {
		return h.routeToPod(to.Addr().String(), int(to.Port()))
	}

	services, err := h.services.List(labels.Everything())
	if err != nil {
		return "", err
	}

	node, err := h.isNode(to.Addr())
	if err != nil {
		return "", err
	}

	for _, service := range services {
		for _, port := range service.Spec.Ports {
			if node && port.NodePort == int32(to.Port()) || balances(service, to, port) {
				return h.routeToService(service, port)
			}
		}
	}

	if node {
		return "", syscall.ECONNREFUSED
	}

	return "", syscall.EHOSTUNREACH
}

// isNode reports whether a node that runs has the address, the host's control plane included.
func (h *Host) isNode(address netip.Addr) (bool, error) {
	nodes, err := h.objects.List(labels.Everything())

	return slices.ContainsFunc(nodes, func(node *corev1.Node) bool {
		return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}) && slices.ContainsFunc(node.Status.Addresses,
			func(a corev1.NodeAddress) bool { return a.Address == address.String() })
	}), err
}

func balances(service *corev1.Service, to netip.AddrPort, port corev1.ServicePort) bool {
	return slices.ContainsFunc(service.Status.LoadBalancer.Ingress, func(ingress corev1.LoadBalancerIngress) bool {
		return ingress.IP == to.Addr().String() && port.Port == int32(to.Port())
	})
}

// routeToService picks a ready backend, as a node does.
func (h *Host) routeToService(service *corev1.Service, port corev1.ServicePort) (string, error) {
	list, err := h.backends.EndpointSlices(service.Namespace).List(
		labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: service.Name}))
	if err != nil {
		return "", err
	}

	var last error = syscall.ECONNREFUSED

	for _, slice := range list {
		for _, p := range slice.Ports {
			if p.Name == nil || *p.Name != port.Name || p.Port == nil {
				continue
			}

			for _, endpoint := range slice.Endpoints {
				if endpoint.Conditions.Ready == nil || !*endpoint.Conditions.Ready {
					continue
				}

				target, err := h.routeToPod(endpoint.Addresses[0], int(*p.Port))
				if err == nil {
					return target, nil
				}

				last = err
			}
		}
	}

	return "", last
}

var errNoPod = errors.New("no pod has this address")

// routeToPod needs a pod that has the address now, on a node that runs.
func (h *Host) routeToPod(address string, port int) (string, error) {
	pods, err := h.pods.List(labels.Everything())
	if err != nil {
		return "", err
	}

	for _, pod := range pods {
		if pod.Status.PodIP != address || h.nodeOf(func(n *node) bool { return n.name == pod.Spec.NodeName }) == nil {
			continue
		}

		if err := h.letsIn(pod, int32(port)); err != nil { //nolint:gosec // a port
			return "", err
		}

		of, err := netip.ParseAddr(address)
		if err != nil {
			return "", fmt.Errorf("pod %s: %w", pod.Name, err)
		}

		return net.JoinHostPort(machineAddress(of).String(), strconv.Itoa(port)), nil
	}

	return "", fmt.Errorf("%w: %w", syscall.EHOSTUNREACH, errNoPod)
}

// letsIn is nil where policies let in what comes from elsewhere than pods. Packets that they do not are dropped, which
// takes no time here.
func (h *Host) letsIn(pod *corev1.Pod, port int32) error {
	policies, err := h.API().NetworkingV1().NetworkPolicies(pod.Namespace).List(h.ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}

	isolated := false

	for _, policy := range policies.Items {
		selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
		if err != nil {
			return err
		}

		if !selector.Matches(labels.Set(pod.Labels)) {
			continue
		}

		isolated = true

		for _, rule := range policy.Spec.Ingress {
			if len(rule.From) == 0 && slices.ContainsFunc(rule.Ports, func(p networkingv1.NetworkPolicyPort) bool {
				return *p.Protocol == corev1.ProtocolTCP && p.Port.IntVal <= port && port <= *p.EndPort
			}) {
				return nil
			}
		}
	}

	if isolated {
		return syscall.ETIMEDOUT
	}

	return nil
}
