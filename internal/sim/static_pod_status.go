package sim

import (
	"context"
	"reflect"

	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// runPodStatus lets the status of a static pod follow what the kubelet has, a while
// later: machined asks it every 15 seconds, and forgets the statuses of a kubelet that
// stops (Talos 1.13, k8s/kubelet_static_pod.go).
func (b *boot) runPodStatus(ctx context.Context, id string) {
	var (
		last podReport
		run  int
	)

	for {
		if b.World.Await(ctx, func() bool { return b.kubeletRun != run || !reflect.DeepEqual(b.staticPodRun(id).shown, last) }) != nil {
			return
		}

		b.World.Lock()
		stopped := b.kubeletRun != run
		run = b.kubeletRun
		b.World.Unlock()

		if stopped {
			b.publishPodStatus(id, podReport{})
		}

		if timing.Pause(ctx, b.m.Delays.StaticPod) != nil {
			return
		}

		b.World.Lock()
		if last = b.staticPodRun(id).shown; b.kubeletRun != 0 {
			stopped = false
		}
		b.World.Unlock()

		if !stopped {
			b.publishPodStatus(id, last)
		}
	}
}

// publishPodStatus writes or removes a static pod's status and lets the machine's
// readiness follow.
func (b *boot) publishPodStatus(id string, r podReport) {
	name := "kube-system/" + b.mirrorName(id)
	resource := k8s.NewStaticPodStatus(k8s.NamespaceName, name)
	problem := ""

	if r.pod == nil {
		machined.Remove(b.Boot, resource)
	} else {
		status := b.podStatus(id, r)

		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
		if err != nil {
			b.World.Logf("%s: encode status of %s: %v", b.m.Name(), name, err)

			return
		}

		machined.Modify(b.Boot, resource, func(r *k8s.StaticPodStatus) { r.TypedSpec().PodStatus = content })

		switch {
		case status.Phase == corev1.PodPending:
			problem = name + " pending"
		case !r.ready:
			problem = name + " not ready"
		}
	}

	b.Mu.Lock()
	if b.PodProblems == nil {
		b.PodProblems = map[string]string{}
	}

	b.PodProblems[id] = problem
	b.Mu.Unlock()
	b.RefreshStatus()
}
