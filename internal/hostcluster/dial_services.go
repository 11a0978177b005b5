package hostcluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
)

// addressTime is the time that one of several addresses has to answer.
const addressTime = 3 * time.Second

// dialService makes a connection to what the Service of a pod's machine has outside.
func (h *Host) dialService(ctx context.Context, s workload.Spec, pod *corev1.Pod, port string) (net.Conn, error) {
	addresses, err := h.outside(ctx, s.Namespace, s.Cluster+"-"+pod.Labels[workload.LabelMachine], port, pod.Spec.NodeName)
	if err != nil {
		return nil, err
	}

	if len(addresses) == 0 {
		return nil, fmt.Errorf("the type of the machine's Service is not reachable from outside, which access %s requires",
			s.Access)
	}

	return h.dialFirst(ctx, addresses)
}

// dialFirst tries addresses in turn.
func (h *Host) dialFirst(ctx context.Context, addresses []string) (net.Conn, error) {
	var reasons []error

	for _, to := range addresses {
		attempt, cancel := context.WithTimeoutCause(ctx, addressTime,
			fmt.Errorf("%s: no connection within %s", to, addressTime))
		conn, err := h.reach(attempt, "tcp", to)

		if err == nil {
			cancel()

			return conn, nil
		}

		if ctx.Err() == nil && attempt.Err() != nil {
			err = context.Cause(attempt)
		}

		cancel()

		reasons = append(reasons, err)

		if ctx.Err() != nil {
			break
		}
	}

	return nil, errors.Join(reasons...)
}

// outside are the addresses at which a port of a Service is reached from outside of the host, as host:port; nothing for
// a Service that is not reached from there. Those of its pod's node come first.
func (h *Host) outside(ctx context.Context, namespace, name, port, node string) ([]string, error) {
	service, err := h.API().CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read Service %s/%s: %w", namespace, name, err)
	}

	i := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return strconv.Itoa(int(p.Port)) == port })
	if i < 0 {
		return nil, fmt.Errorf("Service %s/%s has no port %s", namespace, name, port) //nolint:staticcheck // a kind's name
	}

	switch service.Spec.Type {
	case corev1.ServiceTypeNodePort:
		if service.Spec.Ports[i].NodePort == 0 {
			return nil, fmt.Errorf("Service %s/%s has no node port for %s yet", namespace, name, port) //nolint:staticcheck // a kind's name
		}

		return h.nodeAddresses(ctx, strconv.Itoa(int(service.Spec.Ports[i].NodePort)), node)
	case corev1.ServiceTypeLoadBalancer:
		return balanced(service, port)
	default:
		return nil, nil
	}
}

// balanced are the addresses that a load balancer has.
func balanced(service *corev1.Service, port string) ([]string, error) {
	var addresses []string

	for _, ingress := range service.Status.LoadBalancer.Ingress {
		if host := cmp.Or(ingress.IP, ingress.Hostname); host != "" {
			addresses = append(addresses, net.JoinHostPort(host, port))
		}
	}

	if len(addresses) == 0 {
		return nil, fmt.Errorf("Service %s/%s has no load balancer address yet, %s after its creation", //nolint:staticcheck // a kind's name
			service.Namespace, service.Name, time.Since(service.CreationTimestamp.Time).Round(time.Second))
	}

	return addresses, nil
}

// nodeAddresses are those of nodes that are ready, with a port. A node's external addresses come before its internal
// ones, which may mean something else from here, and external ones of all nodes before internal ones.
func (h *Host) nodeAddresses(ctx context.Context, port, first string) ([]string, error) {
	nodes, err := h.API().CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the nodes of the host for node ports: %w", err)
	}

	slices.SortStableFunc(nodes.Items, func(a, b corev1.Node) int { return worse(a.Name != first, b.Name != first) })

	var addresses []string

	for _, kind := range []corev1.NodeAddressType{corev1.NodeExternalIP, corev1.NodeInternalIP} {
		for i := range nodes.Items {
			if !isNodeReady(&nodes.Items[i]) {
				continue
			}

			for _, a := range nodes.Items[i].Status.Addresses {
				if a.Type == kind {
					addresses = append(addresses, net.JoinHostPort(a.Address, port))
				}
			}
		}
	}

	if len(addresses) == 0 {
		return nil, errors.New("no ready node of the host has an address for the node port")
	}

	return addresses, nil
}

func isNodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
