package kubelet

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
func (kl *Kubelet) runPodStatus(ctx context.Context, id string) {
	var (
		last podReport
		run  int
	)

	for {
		if kl.World.Await(ctx, func() bool {
			return kl.Starts != run ||
				!reflect.DeepEqual(kl.staticPodRun(id).shown, last)
		}) != nil {
			return
		}

		kl.World.Lock()
		stopped := kl.Starts != run
		run = kl.Starts
		kl.World.Unlock()

		if stopped {
			kl.publishPodStatus(id, podReport{})
		}

		if timing.Pause(ctx, kl.Delays.StaticPod) != nil {
			return
		}

		kl.World.Lock()
		if last = kl.staticPodRun(id).shown; kl.Starts != 0 {
			stopped = false
		}
		kl.World.Unlock()

		if !stopped {
			kl.publishPodStatus(id, last)
		}
	}
}

// publishPodStatus writes or removes a static pod's status and lets the machine's
// readiness follow.
func (kl *Kubelet) publishPodStatus(id string, r podReport) {
	name := "kube-system/" + kl.mirrorName(id)
	resource := k8s.NewStaticPodStatus(k8s.NamespaceName, name)
	problem := ""

	if r.pod == nil {
		machined.Remove(kl.Boot, resource)
	} else {
		status := kl.podStatus(id, r)

		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
		if err != nil {
			kl.World.Logf("%s: encode status of %s: %v", kl.Name(), name, err)

			return
		}

		machined.Modify(kl.Boot, resource, func(r *k8s.StaticPodStatus) { r.TypedSpec().PodStatus = content })

		switch {
		case status.Phase == corev1.PodPending:
			problem = name + " pending"
		case !r.ready:
			problem = name + " not ready"
		}
	}

	kl.Mu.Lock()
	if kl.PodProblems == nil {
		kl.PodProblems = map[string]string{}
	}

	kl.PodProblems[id] = problem
	kl.Mu.Unlock()
	kl.RefreshStatus()
}
