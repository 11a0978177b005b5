package hostcluster

import (
	"context"
	"fmt"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// ContainerAt identifies the run of Talos at an address of a cluster, as [Host.Dial] takes it, for callers that do not
// know the machines of the cluster. It is empty while none runs. ours is false for an address outside of the cluster.
func (h *Host) ContainerAt(
	ctx context.Context, s workload.Spec, address string,
) (container string, ours bool, err error) {
	t, err := h.target(ctx, s, address)
	if err != nil || t.machine == "" {
		return "", false, err
	}

	list, err := h.pods.current(ctx, s)
	if err != nil {
		return "", true, err
	}

	if pod := list.machine(t.machine); pod != nil {
		container = workload.ContainerOf(pod)
	}

	return container, true, nil
}

// RestartAt restarts the machine at an address of a cluster, see [workload.Client.RestartPod]. An address outside of
// the cluster is an error.
func (h *Host) RestartAt(ctx context.Context, s workload.Spec, address string) error {
	t, err := h.target(ctx, s, address)
	if err != nil {
		return err
	}

	if t.machine == "" {
		return wait.Permanent(fmt.Errorf("cluster %s has no machine at %s", s.Cluster, address))
	}

	return h.RestartPod(ctx, s, t.machine)
}
