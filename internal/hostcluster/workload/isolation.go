package workload

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// Isolation closes the ports of Talos to all pods outside of the cluster. It is nil where the ports have to be
// reachable from elsewhere. Without it, a pod without a configuration would accept one from any client. Traffic
// through the API of the host comes from the pod's own node, which a policy never blocks. Policies only allow, so
// all other ports are listed. Where the network of the host enforces no policies, nothing is blocked.
//
// The pods of an isolated cluster reach each other and nothing else, not even the DNS of the host.
func (s Spec) Isolation(m Machine) *networkingv1.NetworkPolicy {
	own := []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: s.identity()}}}
	policy := &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: s.HostName(m), Namespace: s.Namespace, Labels: s.machineLabels(m),
			Annotations: merged(s.Annotations)},
		Spec: networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{MatchLabels: s.machineSelector(m)}},
	}

	if s.Forwards() && (s.Endpoint == nil || !s.Endpoint.TalosAPI || m.Role != ControlPlane) {
		policy.Spec.PolicyTypes = append(policy.Spec.PolicyTypes, networkingv1.PolicyTypeIngress)
		policy.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{From: own}, {Ports: portsOfOthers()}}
	}

	if s.Isolated {
		policy.Spec.PolicyTypes = append(policy.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
		policy.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{To: own}}
	}

	if len(policy.Spec.PolicyTypes) == 0 {
		return nil
	}

	return policy
}

// portsOfOthers are all ports but those of Talos.
func portsOfOthers() []networkingv1.NetworkPolicyPort {
	const last = 1<<16 - 1

	ports := func(protocol corev1.Protocol, from, to int32) networkingv1.NetworkPolicyPort {
		first := intstr.FromInt32(from)

		return networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: &first, EndPort: &to}
	}

	return []networkingv1.NetworkPolicyPort{ports(corev1.ProtocolTCP, 1, talosPort-1),
		ports(corev1.ProtocolTCP, trustPort+1, last), ports(corev1.ProtocolUDP, 1, last)}
}

// ensureIsolation makes or repairs the policy of a machine before it has a pod, and removes an unwanted one.
// Without the right to do so, the machine gets none.
func (h *Client) ensureIsolation(ctx context.Context, s Spec, m Machine, found *Inventory) error {
	wanted, live := s.Isolation(m), found.Policies[s.HostName(m)]

	var err error

	switch {
	case wanted != nil:
		var body fields
		if body, err = fieldsOf(PolicyKind, wanted); err == nil {
			_, err = h.ensure(ctx, s, PolicyKind, body, OrNil(live), func(Object) (fields, error) { return body, nil })
		}
	case live != nil && s.Ours(live):
		err = h.remove(ctx, PolicyKind, live)
	}

	if apierrors.IsForbidden(err) && s.Isolated {
		return wait.Permanent(fmt.Errorf("%s is isolated, but its NetworkPolicy cannot be created, so its pods could reach "+
			"other clusters; allow the user of the host's kubeconfig all verbs on networkpolicies: %w", s.Cluster, err))
	}

	if apierrors.IsForbidden(err) {
		h.progress(fmt.Sprintf("Any client in the network of the host may configure %s before talosop does: %v", m.Name, err))

		return nil
	}

	return err
}

// observeIsolation reports differences of a machine's policy that can be repaired. Without the right to make or
// change it, the policy counts as absent.
func (h *Client) observeIsolation(ctx context.Context, s Spec, m Machine, found *Inventory) ([]Difference, error) {
	wanted, live := s.Isolation(m), found.Policies[s.HostName(m)]

	switch {
	case found.Policies == nil:
		return nil, nil
	case wanted == nil && live != nil && s.Ours(live):
		return []Difference{{Object: PolicyKind.ref(live), Cause: Unwanted}}, nil
	case wanted == nil:
		return nil, nil
	}

	body, err := fieldsOf(PolicyKind, wanted)
	if err != nil {
		return nil, err
	}

	if live != nil && live.DeletionTimestamp == nil {
		if may, err := differs(PolicyKind, live, body); err != nil || !may {
			return nil, err
		}

		_, drift, err := h.differences(ctx, PolicyKind, live, body)

		return drift, err
	}

	if _, err := h.apply(ctx, PolicyKind, s.Namespace, body, applyMode{dryRun: true}); apierrors.IsForbidden(err) {
		return nil, nil
	}

	return []Difference{{Object: PolicyKind.ref(wanted), Cause: Missing}}, nil
}
