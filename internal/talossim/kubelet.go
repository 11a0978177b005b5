package talossim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/constants"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// cordonedAnnotation marks a node that Talos itself cordoned; it uncordons only those.
const cordonedAnnotation = "talos.dev/cordoned"

// kubeletRetry is the pause after a failed request to the Kubernetes API.
const kubeletRetry = 20 * time.Millisecond

// cordonTimeout bounds the attempt to cordon a node through an API that may be down.
const cordonTimeout = 2 * time.Second

// runKubelet keeps the machine's Node object as the kubelet does: it registers the
// node once per boot, reports it Ready, and leaves it to become lost afterwards.
func (b *boot) runKubelet(ctx context.Context) {
	if b.nodeName == "" {
		return
	}

	k, err := b.kubernetes(ctx)
	if err != nil || pause(ctx, b.m.delays.NodeRegister) != nil {
		return
	}

	ready := b.cniReadies()
	registered := b.reportNode(ctx, k, false)
	b.sim.update(func() {}) // who waits for the kubelet looks again

	if registered && ready && pause(ctx, b.m.delays.NodeReady) == nil {
		b.reportNode(ctx, k, true)
	}

	<-ctx.Done()

	if registered {
		b.sim.work.Go(func() { b.loseNode(k) })
	}
}

// runsNode reports whether the machine's kubelet registered a node of that name.
func (b *boot) runsNode(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.nodeName == name && b.nodeSeen
}

// nameNode fixes the name the node will have; readiness depends on it from then on.
func (b *boot) nameNode() {
	if b.config().Machine().Kubelet().SkipNodeRegistration() {
		return
	}

	name := b.nodename()

	b.mu.Lock()
	b.nodeName = name
	b.mu.Unlock()
}

// cniReadies says whether the cluster gets a CNI by itself; without one nodes stay NotReady.
func (b *boot) cniReadies() bool {
	return b.config().Cluster().Network().CNI().Name() != constants.NoneCNI
}

// reportNode creates or updates the machine's node until it succeeds or ctx ends.
func (b *boot) reportNode(ctx context.Context, k kubeBackend, ready bool) bool {
	for {
		node, err := b.applyNode(ctx, k, ready)
		if err == nil {
			b.setNode(ctx, true, ready, node.Spec.Unschedulable)

			return true
		}

		if pause(ctx, kubeletRetry) != nil {
			return false
		}
	}
}

func (b *boot) applyNode(ctx context.Context, k kubeBackend, ready bool) (*corev1.Node, error) {
	node, err := k.getNode(ctx, b.nodeName)

	switch {
	case errors.Is(err, errNoSuchNode) && ready:
		// Somebody deleted it. A kubelet registers again only when it starts.
		return &corev1.Node{}, nil
	case errors.Is(err, errNoSuchNode):
		node = b.newNode()
		b.fillStatus(node, ready)

		return node, k.createNode(ctx, node)
	case err != nil:
		return nil, err
	}

	if node.Annotations[cordonedAnnotation] == "true" {
		delete(node.Annotations, cordonedAnnotation)
		node.Spec.Unschedulable = false
	}

	b.fillStatus(node, ready)

	return node, k.updateNode(ctx, node)
}

// newNode is the object a kubelet registers with the configuration's labels and taints.
func (b *boot) newNode() *corev1.Node {
	cfg := b.config()
	labels := map[string]string{
		corev1.LabelHostname:   b.nodeName,
		corev1.LabelOSStable:   "linux",
		corev1.LabelArchStable: architecture(),
	}

	node := &corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: b.nodeName, Labels: labels},
	}

	if b.controlPlane() {
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
func (b *boot) fillStatus(node *corev1.Node, ready bool) {
	id := strings.ReplaceAll(b.m.uuid, "-", "")

	node.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: b.m.Address().String()},
		{Type: corev1.NodeHostName, Address: b.nodeName},
	}
	node.Status.NodeInfo = corev1.NodeSystemInfo{
		MachineID: id, SystemUUID: b.m.uuid, BootID: b.id,
		KernelVersion: "6.18.0-talos", OSImage: fmt.Sprintf("Talos (%s)", b.talosVersion()),
		ContainerRuntimeVersion: "containerd://2.2.0", KubeletVersion: b.kubeletVersion(),
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

// kubeletVersion is the tag of the configured kubelet image, without -slim or -fat.
func (b *boot) kubeletVersion() string {
	image, _, _ := strings.Cut(b.config().Machine().Kubelet().Image(), "@")

	_, tag, found := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	if !found {
		return DefaultKubeletVersion
	}

	tag, _, _ = strings.Cut(tag, "-")

	return tag
}

// loseNode is the node controller: a node whose kubelet stopped posting becomes
// Unknown after a while, unless a later boot of the machine has reported again.
func (b *boot) loseNode(k kubeBackend) {
	ctx := b.sim.ctx

	if pause(ctx, b.m.delays.NodeLost) != nil {
		return
	}

	node, err := k.getNode(ctx, b.nodeName)
	if err != nil || node.Status.NodeInfo.BootID != b.id {
		return
	}

	setCondition(node, corev1.NodeCondition{
		Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown",
		Message: "Kubelet stopped posting node status.",
	})

	if err := k.updateNode(ctx, node); err != nil && ctx.Err() == nil {
		b.sim.logf("%s: mark node lost: %v", b.m.name, err)
	}
}

// cordonNode marks the node unschedulable before the machine goes, as machined does in
// the stages resetting and shutting down, graceful or not. Errors are only logged.
func (b *boot) cordonNode(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, cordonTimeout)
	defer cancel()

	k := b.anyKubernetes()
	if k == nil || b.nodeName == "" {
		return
	}

	node, err := k.getNode(ctx, b.nodeName)
	if err != nil {
		b.sim.logf("%s: cordon: %v", b.m.name, err)

		return
	}

	if node.Spec.Unschedulable {
		return
	}

	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}

	node.Annotations[cordonedAnnotation] = "true"
	node.Spec.Unschedulable = true

	if err := k.updateNode(ctx, node); err != nil {
		b.sim.logf("%s: cordon: %v", b.m.name, err)
	}
}
