package hostcluster

import (
	"context"
	"fmt"
	"strconv"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
)

// ExternalEndpoint is the host:port at which the Kubernetes API of the cluster is reached from outside of the host, by
// the Service in front of its control planes: a node's address and its node port, or that of the load balancer. It is
// empty for a Service that is only reached inside, and for a resource that has none. The error says when there is none
// yet.
func (h *Host) ExternalEndpoint(ctx context.Context, s workload.Spec) (string, error) {
	if s.Endpoint == nil {
		return "", nil
	}

	addresses, err := h.outside(ctx, s.Namespace, s.Cluster, strconv.Itoa(workload.KubernetesPort), "")
	if err != nil {
		return "", fmt.Errorf("find the address of the endpoint on %s: %w", h, err)
	}

	if len(addresses) == 0 {
		return "", nil
	}

	return addresses[0], nil
}
