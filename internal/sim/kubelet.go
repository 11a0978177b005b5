package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/constants"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/sim/kube"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// runKubelet starts the machine's kubelet and restarts it when its configuration changes.
func (b *boot) runKubelet(ctx context.Context) {
	for run := 1; ctx.Err() == nil; run++ {
		wanted, changed := b.kubeletWanted()

		delay := b.m.Delays.KubeletStart
		if run == 1 {
			delay = 0
		}

		if !b.startKubelet(ctx, wanted, changed, delay) {
			continue
		}

		life, end := context.WithCancel(ctx)

		b.Spawn(func(context.Context) {
			defer end()

			select {
			case <-life.Done():
			case <-changed:
			}
		})
		b.serveNode(life, wanted, run)
		end()
	}
}

// serveNode is one run of the kubelet: it registers the node, reports it Ready, and
// leaves it to become lost when it does not come back.
func (b *boot) serveNode(ctx context.Context, cfg kubeletConfig, run int) {
	first := false

	b.World.Update(func() { first, b.kubeletRun, b.kubeletRan = !b.kubeletRan, run, true })

	if b.NodeName == "" {
		<-ctx.Done()
	} else {
		b.keepNode(ctx, imageTag(cfg.image), first)
	}

	b.World.Update(func() { b.kubeletRun = 0 })

	if b.Ctx.Err() == nil {
		b.Services.Stop("kubelet")
	}

	if b.NodeName != "" {
		b.sim.Work.Go(b.loseNode)
	}
}

// keepNode does for the node what a kubelet of a version does until ctx ends.
func (b *boot) keepNode(ctx context.Context, version string, first bool) {
	if b.enrol(ctx) != nil || timing.Pause(ctx, b.m.Delays.NodeRegister) != nil {
		return
	}

	ready := b.networked()
	registered := b.reportNode(ctx, version, ready && !first)
	b.World.Update(func() {}) // who waits for the kubelet looks again

	if registered && ready && first && timing.Pause(ctx, b.m.Delays.NodeReady) == nil {
		b.reportNode(ctx, version, true)
	}

	if registered && !ready && b.World.Await(ctx, func() bool { return b.m.Disk.CNI }) == nil {
		b.reportNode(ctx, version, true)
	}

	<-ctx.Done()
}

// startKubelet brings the kubelet's service up, after a delay. It is given up when the image
// does not exist, as in Talos (Talos 1.13, containers/image.Pull and system/service_runner.go),
// and with every change of what is to run.
func (b *boot) startKubelet(ctx context.Context, cfg kubeletConfig, changed <-chan struct{}, delay time.Duration) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	b.Spawn(func(context.Context) {
		defer cancel()

		select {
		case <-ctx.Done():
		case <-changed:
		}
	})

	if timing.Pause(ctx, delay) != nil || b.AwaitTime(ctx, "kubelet") != nil {
		return false
	}

	b.Services.Set("kubelet", machined.ServicePreparing, "Running pre state")

	if err := b.Images.PullForService(ctx, cfg.image); err != nil {
		if ctx.Err() == nil {
			b.Services.Set("kubelet", machined.ServiceFailed, "failed to run pre stage: "+err.Error())
		}

		<-ctx.Done()

		return false
	}

	for b.Broken("kubelet", imageTag(cfg.image)) {
		b.Services.Set("kubelet", machined.ServiceWaiting,
			`Error running Containerd(kubelet), going to restart forever: task "kubelet" failed: exit code 1`)

		if timing.Pause(ctx, kube.CrashPause) != nil {
			return false
		}
	}

	b.Services.Start("kubelet")

	return ctx.Err() == nil
}

// networked says whether pods get a network here.
func (b *boot) networked() bool {
	b.World.Lock()
	defer b.World.Unlock()

	return b.CNIReadies() || b.m.Disk.CNI
}

// reportNode creates or updates the machine's node until it succeeds or ctx ends.
func (b *boot) reportNode(ctx context.Context, version string, ready bool) bool {
	for {
		node, err := b.applyNode(ctx, version, ready)
		if err == nil {
			b.SetNode(ctx, true, ready, node.Spec.Unschedulable)

			return true
		}

		if timing.Pause(ctx, kube.KubeletRetry) != nil {
			return false
		}
	}
}

func (b *boot) applyNode(ctx context.Context, version string, ready bool) (*corev1.Node, error) {
	k, err := b.kubernetes(ctx)
	if err != nil {
		return nil, err
	}

	node, err := k.getNode(ctx, b.NodeName)

	switch {
	case apierrors.IsNotFound(err) && ready && b.RunsNode(b.NodeName):
		// Somebody deleted it. A kubelet registers again only when it starts.
		return &corev1.Node{}, nil
	case apierrors.IsNotFound(err):
		node = b.newNode()
		b.fillStatus(node, version, ready)

		return node, k.createNode(ctx, node)
	case err != nil:
		return nil, err
	}

	if node.Annotations[cordonedAnnotation] == "true" {
		delete(node.Annotations, cordonedAnnotation)
		node.Spec.Unschedulable = false
	}

	b.fillStatus(node, version, ready)

	return node, k.updateNode(ctx, node)
}

// newNode is the object a kubelet registers with the configuration's labels and taints.
func (b *boot) newNode() *corev1.Node {
	cfg := b.Config()
	labels := map[string]string{
		corev1.LabelHostname:   b.NodeName,
		corev1.LabelOSStable:   "linux",
		corev1.LabelArchStable: architecture(),
	}

	node := &corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: b.NodeName, Labels: labels},
	}

	if b.ControlPlane() {
		labels[constants.LabelNodeRoleControlPlane] = ""

		if !cfg.Cluster().ScheduleOnControlPlanes() {
			node.Spec.Taints = append(node.Spec.Taints,
				corev1.Taint{Key: constants.LabelNodeRoleControlPlane, Effect: corev1.TaintEffectNoSchedule})
		}
	}

	for key, value := range cfg.Machine().NodeLabels() {
		labels[key] = value
	}

	if annotations := cfg.Machine().NodeAnnotations(); len(annotations) > 0 {
		node.Annotations = map[string]string(annotations)
	}

	for key, value := range cfg.Machine().NodeTaints() {
		taint := corev1.Taint{Key: key}
		if v, effect, found := strings.Cut(value, ":"); found {
			taint.Value, taint.Effect = v, corev1.TaintEffect(effect)
		} else {
			taint.Effect = corev1.TaintEffect(value)
		}

		node.Spec.Taints = append(node.Spec.Taints, taint)
	}

	return node
}

// fillStatus writes what the kubelet reports about the machine.
func (b *boot) fillStatus(node *corev1.Node, version string, ready bool) {
	id := strings.ReplaceAll(b.m.UUID(), "-", "")

	node.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: b.m.Advertised().String()},
		{Type: corev1.NodeHostName, Address: b.NodeName},
	}
	node.Status.NodeInfo = corev1.NodeSystemInfo{
		MachineID: id, SystemUUID: b.m.UUID(), BootID: b.KernelBoot(),
		KernelVersion: "6.18.0-talos", OSImage: fmt.Sprintf("Talos (%s)", b.TalosVersion()),
		ContainerRuntimeVersion: "containerd://2.2.0", KubeletVersion: version,
		OperatingSystem: "linux", Architecture: architecture(),
	}

	condition := corev1.NodeCondition{
		Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady",
		Message: "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady",
	}
	if ready {
		condition.Status, condition.Reason, condition.Message = corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status"
	}

	setCondition(node, condition)
}

func setCondition(node *corev1.Node, condition corev1.NodeCondition) {
	now := metav1.Now()
	condition.LastHeartbeatTime, condition.LastTransitionTime = now, now

	node.Status.Conditions = slices.DeleteFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		if c.Type == condition.Type && c.Status == condition.Status {
			condition.LastTransitionTime = c.LastTransitionTime
		}

		return c.Type == condition.Type
	})
	node.Status.Conditions = append(node.Status.Conditions, condition)
}

// loseNode is the node controller: a node whose kubelet stopped posting becomes Unknown
// after a while, and its pods not ready, unless the kubelet or a later boot of the machine
// has reported again.
func (b *boot) loseNode() {
	ctx := b.sim.Ctx

	if timing.Pause(ctx, b.m.Delays.NodeLost) != nil {
		return
	}

	// An API that does not answer now is asked again: the node controller never gives a node up.
	for err := b.reportLost(ctx); err != nil; err = b.reportLost(ctx) {
		b.World.Logf("%s: mark node lost: %v", b.m.Name(), err)

		if timing.Pause(ctx, kube.KubeletRetry) != nil {
			return
		}
	}

	// A kubelet that comes back corrects what the API says of its pods (Kubernetes 1.36,
	// kubelet/status/status_manager.go needsReconcile).
	b.World.Update(b.repeatReports)
}

// reportLost marks the node and its pods once there is an API, unless the kubelet is back by then. That
// the simulator ends is no error.
func (b *boot) reportLost(ctx context.Context) error {
	k, err := b.kubernetes(ctx)
	if err != nil {
		return nil //nolint:nilerr // ctx has ended
	}

	lost, err := k.loseNode(ctx, b.NodeName, b.KernelBoot(), b.kubeletRuns)
	if lost {
		err = k.losePods(ctx, b.NodeName)
	}

	return err
}

// kubeletRuns says whether the kubelet is up, in this boot or in the next, and may report the node at any moment.
func (b *boot) kubeletRuns() bool {
	b.World.Lock()
	defer b.World.Unlock()

	return b.kubeletRun > 0 || b.m.boot != nil && b.m.boot.kubeletRun > 0
}
