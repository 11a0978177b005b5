package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
)

// status is the machine's stage, readiness, and what readiness waits for.
func (b *boot) status() (Stage, bool, []string) {
	stage, unmet := b.conditions()

	texts := make([]string, 0, len(unmet))
	for _, c := range unmet {
		texts = append(texts, c.Name+": "+c.Reason)
	}

	return stage, len(unmet) == 0, texts
}

// conditions computes the readiness checks; only booting and running have any.
func (b *boot) conditions() (Stage, []runtime.UnmetCondition) {
	b.mu.Lock()
	stage := b.stage
	name, seen, ready := b.nodeName, b.nodeSeen, b.nodeReady
	pods := b.staticPodProblems()
	b.mu.Unlock()

	if stage != StageBooting && stage != StageRunning {
		return stage, nil
	}

	required := []string{"apid", "machined", "kubelet"}
	if b.controlPlane() {
		required = append(required, "etcd", "trustd")
	}

	var unmet []runtime.UnmetCondition

	if !b.synced.Load() {
		unmet = append(unmet, runtime.UnmetCondition{Name: "time", Reason: "time is not synced"})
	}

	if problems := b.services.problems(required); len(problems) > 0 {
		unmet = append(unmet, runtime.UnmetCondition{Name: "services", Reason: strings.Join(problems, ", ")})
	}

	if pods != "" {
		unmet = append(unmet, runtime.UnmetCondition{Name: "staticPods", Reason: pods})
	}

	switch {
	case name == "" || ready:
		// The node name is not known yet (Talos skips the check), or all is well.
	case !seen:
		unmet = append(unmet, runtime.UnmetCondition{
			Name: "nodeReady", Reason: fmt.Sprintf("node %q status is not available yet", name),
		})
	default:
		unmet = append(unmet, runtime.UnmetCondition{Name: "nodeReady", Reason: fmt.Sprintf("node %q is not ready", name)})
	}

	return stage, unmet
}

// refreshStatus writes the MachineStatus resource and, when it changed, publishes the
// event and wakes whoever waits for the machine.
func (b *boot) refreshStatus() {
	b.statusMu.Lock()
	defer b.statusMu.Unlock()

	stage, unmet := b.conditions()
	next := runtime.MachineStatusSpec{
		Stage:  stage,
		Status: runtime.MachineStatusStatus{Ready: len(unmet) == 0, UnmetConditions: unmet},
	}

	if stage == StageUnknown || equalStatus(next, b.lastStatus) {
		return
	}

	b.lastStatus = next

	modify(b, runtime.NewMachineStatus(), func(ms *runtime.MachineStatus) { *ms.TypedSpec() = next })
	b.published.Store(int64(stage))

	ev := &machine.MachineStatusEvent{
		Stage: machine.MachineStatusEvent_MachineStage(stage), //nolint:gosec // same numbers
		Status: &machine.MachineStatusEvent_MachineStatus{
			Ready: next.Status.Ready,
		},
	}
	for _, c := range unmet {
		ev.Status.UnmetConditions = append(ev.Status.UnmetConditions,
			&machine.MachineStatusEvent_MachineStatus_UnmetCondition{Name: c.Name, Reason: c.Reason})
	}

	b.events.publish("", ev)

	if stage == StageRunning && next.Status.Ready {
		b.confirmUpgrade()
	}

	b.sim.update(func() {})
}

func equalStatus(a, b runtime.MachineStatusSpec) bool {
	return a.Stage == b.Stage && a.Status.Ready == b.Status.Ready &&
		slices.Equal(a.Status.UnmetConditions, b.Status.UnmetConditions)
}

// setNode records what the kubelet knows about its node.
func (b *boot) setNode(ctx context.Context, seen, ready, unschedulable bool) {
	if ctx.Err() != nil {
		return
	}

	b.mu.Lock()
	b.nodeSeen, b.nodeReady = seen, ready
	name := b.nodeName
	b.mu.Unlock()

	b.publishNodeStatus(name, seen, ready, unschedulable)
	b.refreshStatus()
}
