package machined

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
)

// Status is the machine's stage, readiness, and what readiness waits for.
func (b *Boot) Status() (runtime.MachineStage, bool, []string) {
	stage, unmet := b.conditions()

	texts := make([]string, 0, len(unmet))
	for _, c := range unmet {
		texts = append(texts, c.Name+": "+c.Reason)
	}

	return stage, len(unmet) == 0, texts
}

// conditions computes the readiness checks; only booting and running have any.
func (b *Boot) conditions() (runtime.MachineStage, []runtime.UnmetCondition) {
	b.Mu.Lock()
	stage := b.stage
	name, seen, ready := b.NodeName, b.nodeSeen, b.nodeReady
	pods := b.staticPodProblems()
	b.Mu.Unlock()

	if stage != runtime.MachineStageBooting && stage != runtime.MachineStageRunning {
		return stage, nil
	}

	required := []string{"apid", "machined", "kubelet"}
	if b.ControlPlane() {
		required = append(required, "etcd", "trustd")
	}

	var unmet []runtime.UnmetCondition

	if !b.Synced.Load() {
		unmet = append(unmet, runtime.UnmetCondition{Name: "time", Reason: "time is not synced"})
	}

	if problems := b.Services.problems(required); len(problems) > 0 {
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

// RefreshStatus writes the MachineStatus resource and, when it changed, publishes the event and wakes the waiting
// clients.
func (b *Boot) RefreshStatus() {
	b.statusMu.Lock()
	defer b.statusMu.Unlock()

	stage, unmet := b.conditions()
	next := runtime.MachineStatusSpec{
		Stage:  stage,
		Status: runtime.MachineStatusStatus{Ready: len(unmet) == 0, UnmetConditions: unmet},
	}

	if stage == runtime.MachineStageUnknown || equalStatus(next, b.lastStatus) {
		return
	}

	b.lastStatus = next

	Modify(b, runtime.NewMachineStatus(), func(ms *runtime.MachineStatus) { *ms.TypedSpec() = next })
	b.Published.Store(int64(stage))

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

	b.Events.publish("", ev)

	if stage == runtime.MachineStageRunning && next.Status.Ready {
		b.confirmUpgrade()
	}

	b.World.Update(func() {})
}

func equalStatus(a, b runtime.MachineStatusSpec) bool {
	return a.Stage == b.Stage && a.Status.Ready == b.Status.Ready &&
		slices.Equal(a.Status.UnmetConditions, b.Status.UnmetConditions)
}

// SetNode records the kubelet's state of its node.
func (b *Boot) SetNode(ctx context.Context, seen, ready, unschedulable bool) {
	if ctx.Err() != nil {
		return
	}

	b.Mu.Lock()
	b.nodeSeen, b.nodeReady = seen, ready
	name := b.NodeName
	b.Mu.Unlock()

	b.publishNodeStatus(name, seen, ready, unschedulable)
	b.RefreshStatus()
}

// staticPodProblems is why the "staticPods" readiness check fails (Talos 1.13, runtime/machine_status.go). mu is
// held.
func (b *Boot) staticPodProblems() string {
	problems := slices.DeleteFunc(slices.Sorted(maps.Values(b.PodProblems)), func(p string) bool { return p == "" })

	return strings.Join(problems, ", ")
}

// RunsNode reports whether the machine's kubelet registered a node of that name.
func (b *Boot) RunsNode(name string) bool {
	b.Mu.Lock()
	defer b.Mu.Unlock()

	return b.NodeName == name && b.nodeSeen
}

// NameNode fixes the name the node will have; readiness depends on it from then on.
func (b *Boot) NameNode() {
	if b.Config().K8sNodeConfig().SkipNodeRegistration() {
		return
	}

	name := b.Nodename()

	b.Mu.Lock()
	b.NodeName = name
	b.Mu.Unlock()
}
