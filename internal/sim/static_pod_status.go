package sim

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

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
		if b.sim.await(ctx, func() bool { return b.kubeletRun != run || !reflect.DeepEqual(b.staticPodRun(id).shown, last) }) != nil {
			return
		}

		b.sim.mu.Lock()
		stopped := b.kubeletRun != run
		run = b.kubeletRun
		b.sim.mu.Unlock()

		if stopped {
			b.publishPodStatus(id, podReport{})
		}

		if timing.Pause(ctx, b.m.delays.StaticPod) != nil {
			return
		}

		b.sim.mu.Lock()
		if last = b.staticPodRun(id).shown; b.kubeletRun != 0 {
			stopped = false
		}
		b.sim.mu.Unlock()

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
		remove(b, resource)
	} else {
		status := b.podStatus(id, r)

		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
		if err != nil {
			b.sim.logf("%s: encode status of %s: %v", b.m.name, name, err)

			return
		}

		modify(b, resource, func(r *k8s.StaticPodStatus) { r.TypedSpec().PodStatus = content })

		switch {
		case status.Phase == corev1.PodPending:
			problem = name + " pending"
		case !r.ready:
			problem = name + " not ready"
		}
	}

	b.mu.Lock()
	if b.podProblems == nil {
		b.podProblems = map[string]string{}
	}

	b.podProblems[id] = problem
	b.mu.Unlock()
	b.refreshStatus()
}

// staticPodProblems is what keeps the "staticPods" readiness check from passing (Talos
// 1.13, runtime/machine_status.go). mu is held.
func (b *boot) staticPodProblems() string {
	problems := slices.DeleteFunc(slices.Sorted(maps.Values(b.podProblems)), func(p string) bool { return p == "" })

	return strings.Join(problems, ", ")
}
