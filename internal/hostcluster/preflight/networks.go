package preflight

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
)

// network is one that the host uses.
type network struct {
	prefix netip.Prefix
	what   string
	// warning is true for a network whose overlap need not break anything.
	warning bool
}

// podSample is how many pods are read: where pods have addresses that no node says, a few show where from.
const podSample = 200

// checkNetworks compares the networks of the Talos cluster with the host's. Where they overlap, the inner
// kube-proxy or pod network catches traffic for the host, which never arrives there.
func (c *checking) checkNetworks(ctx context.Context) error {
	if len(c.spec.PodCIDRs)+len(c.spec.ServiceCIDRs) == 0 {
		return nil
	}

	var used []network

	for _, list := range []func(context.Context) ([]network, error){c.serviceNetworks, c.nodeNetworks, c.podNetworks} {
		more, err := list(ctx)
		if err != nil {
			return err
		}

		used = append(used, more...)
	}

	// Certain failures come before possible ones.
	breaks := slices.DeleteFunc(slices.Clone(used), func(n network) bool { return n.warning })
	used = append(breaks, slices.DeleteFunc(used, func(n network) bool { return !n.warning })...)

	c.compare(attributePodCIDRs, "pod", c.spec.PodCIDRs, used)
	c.compare(attributeServiceCIDRs, "service", c.spec.ServiceCIDRs, used)

	return nil
}

// compare says of each network of the cluster the first of the host's that it overlaps with.
func (c *checking) compare(attribute, what string, own []netip.Prefix, used []network) {
	for _, prefix := range own {
		i := slices.IndexFunc(used, func(n network) bool { return n.prefix.Overlaps(prefix) })
		if i < 0 {
			continue
		}

		c.add(Finding{
			Warning: used[i].warning, Attribute: attribute,
			Found: fmt.Sprintf("The %s network %s of the cluster overlaps with %s of the host, %s: its machines could not "+
				"reach addresses in it.",
				what, prefix, used[i].what, used[i].prefix),
			Help: "Choose a network that the host does not use; it cannot change after the cluster is created.",
		})
	}
}

// serviceNetworks are the networks of Services: what the host reports since 1.33, or the address of its own API.
func (c *checking) serviceNetworks(ctx context.Context) ([]network, error) {
	var used []network

	ranges, err := c.host.API().NetworkingV1().ServiceCIDRs().List(ctx, metav1.ListOptions{})

	switch {
	case apierrors.IsNotFound(err):
	case c.unseenIf(err, "the networks of Services"):
	case err != nil:
		return nil, fmt.Errorf("list the networks of Services: %w", err)
	default:
		for _, r := range ranges.Items {
			for _, cidr := range r.Spec.CIDRs {
				used = appendNetwork(used, cidr, "the network of Services", false)
			}
		}

		return used, nil
	}

	service, err := c.host.API().CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})

	switch {
	case apierrors.IsNotFound(err), c.unseenIf(err, "the networks of Services"):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read Service default/kubernetes: %w", err)
	}

	for _, ip := range service.Spec.ClusterIPs {
		used = appendNetwork(used, ip, "the address of Service default/kubernetes", false)
	}

	return used, nil
}

// nodeNetworks are the networks of the nodes' pods, and the addresses of the nodes.
func (c *checking) nodeNetworks(ctx context.Context) ([]network, error) {
	nodes, err := c.host.API().CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if c.unseenIf(err, "nodes") {
		return nil, nil
	}

	if err != nil {
		return nil, fmt.Errorf("list the nodes: %w", err)
	}

	var used, addresses []network

	for i := range nodes.Items {
		node := &nodes.Items[i]
		for _, cidr := range node.Spec.PodCIDRs {
			used = appendNetwork(used, cidr, "the pod network of node "+node.Name, false)
		}

		for _, a := range node.Status.Addresses {
			if a.Type == corev1.NodeInternalIP {
				addresses = appendNetwork(addresses, a.Address, "the address of node "+node.Name, true)
			}
		}
	}

	return append(used, addresses...), nil
}

// podNetworks are addresses that pods have: of all namespaces, or of the one that may be looked at.
func (c *checking) podNetworks(ctx context.Context) ([]network, error) {
	pods, err := c.host.API().CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: podSample})
	if apierrors.IsForbidden(err) {
		pods, err = c.host.API().CoreV1().Pods(c.spec.Namespace).List(ctx, metav1.ListOptions{Limit: podSample})
	}

	if c.unseenIf(err, "pods") {
		return nil, nil
	}

	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}

	var used []network

	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Spec.HostNetwork {
			continue
		}

		for _, ip := range workload.PodIPs(pod) {
			used = appendNetwork(used, ip, fmt.Sprintf("the address of pod %s/%s", pod.Namespace, pod.Name), false)
		}
	}

	return used, nil
}

// appendNetwork appends networks and addresses. Other values are skipped, because they cannot be a destination.
func appendNetwork(used []network, text, what string, warning bool) []network {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			return used
		}

		prefix = netip.PrefixFrom(ip.Unmap(), ip.Unmap().BitLen())
	}

	return append(used, network{prefix: prefix.Masked(), what: what, warning: warning})
}
