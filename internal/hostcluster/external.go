package hostcluster

import (
	"context"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
)

// ExternalEndpoint is the host:port at which the Kubernetes API of the cluster is reached from outside of the host, by
// the Service that leads there: a node's address and its node port, or that of the load balancer. It is empty where
// there is no such Service and none is wanted, as far as the Spec knows. The error says when there is no address yet.
func (h *Host) ExternalEndpoint(ctx context.Context, s workload.Spec) (string, error) {
	if s.Endpoint == nil {
		return "", nil
	}

	addresses, err := h.outside(ctx, s.Namespace, s.ExternalName(), strconv.Itoa(workload.KubernetesPort), "")
	if s.Endpoint.Inside() && apierrors.IsNotFound(err) {
		return "", nil
	}

	if err != nil {
		return "", fmt.Errorf("find the address of the endpoint on %s: %w", h, err)
	}

	if len(addresses) == 0 {
		return "", nil
	}

	return addresses[0], nil
}
