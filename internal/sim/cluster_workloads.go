package sim

import (
	"context"
	"slices"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	corev1 "k8s.io/api/core/v1"

	"github.com/talosop/terraform-provider-talosop/internal/image"
	"github.com/talosop/terraform-provider-talosop/internal/sim/kube"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
	"github.com/talosop/terraform-provider-talosop/internal/sim/workloads"
)

const workloadShare = 20

// After controllers looked, they pause for so many times as long, up to a limit: large
// sites should spend their time on something else.
const (
	workloadPause = 500 * time.Millisecond
)

// runWorkloads reports DaemonSets and Deployments rolled out, until ctx ends. That is
// what their controllers, the scheduler and the kubelets do together, as far as clients
// see it in the status: it follows from the nodes that are there and ready, from taints
// and node selectors, and from the images that registries have. No pods, ReplicaSets or
// ControllerRevisions are made, and node affinity is not looked at.
func (c *cluster) runWorkloads(ctx context.Context) {
	for ctx.Err() == nil {
		var client *kube.Client

		if c.world.Await(ctx, func() bool {
			client = c.controllersAPI()

			return client != nil && !c.sim.controlled
		}) != nil {
			return
		}

		changed, began := changesOf(client.Server), time.Now()

		if err := workloads.Report(ctx, client.Typed, c.sim.canPull); err != nil && ctx.Err() == nil {
			c.world.Logf("kube-controller-manager: %v", err)
		}

		if timing.Pause(ctx, min(workloadShare*time.Since(began), workloadPause)) != nil {
			return
		}

		awaitChange(ctx, changed)
	}
}

// controllersAPI is the API server of a machine whose kube-controller-manager runs, which
// talks to its own; any of them may be the leader. world is held.
func (c *cluster) controllersAPI() *kube.Client {
	for _, b := range c.boots {
		if b.kubeUp != nil && b.kubelet.PodReady(k8s.ControllerManagerID) {
			return b.kubeUp
		}
	}

	return nil
}

// changesOf is closed when an object behind an API server changes, nil if that cannot be
// known.
func changesOf(server kube.Server) <-chan struct{} {
	s, ok := server.(*kube.StandInServer)
	if !ok {
		return nil
	}

	return s.Store.Next()
}

// awaitChange returns when something may have changed: images change without a sign.
func awaitChange(ctx context.Context, changed <-chan struct{}) {
	timer := time.NewTimer(kube.HealthPeriod)
	defer timer.Stop()

	select {
	case <-ctx.Done():
	case <-changed:
	case <-timer.C:
	}
}

// canPull reports whether the registries have every image of a pod.
func (s *Simulator) canPull(pod *corev1.PodSpec) bool {
	for _, container := range slices.Concat(pod.InitContainers, pod.Containers) {
		ref, err := image.ParseReference(container.Image)
		if err != nil {
			return false
		}

		if _, _, img := s.registries.Resolve(ref); img.Missing || img.Unavailable {
			return false
		}
	}

	return true
}
