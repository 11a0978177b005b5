package hosttest

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/netip"
	"sync"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubelet"
)

// node is one of the host's, with its kubelet.
type node struct {
	host    *Host
	name    string
	address netip.Addr
	bootID  string

	ctx    context.Context //nolint:containedctx // from power to its end
	cancel context.CancelFunc
	server *httptest.Server
	work   sync.WaitGroup

	mu   sync.Mutex
	runs map[types.UID]*run
}

// AddNode adds a node and returns its name.
func (h *Host) AddNode(ctx context.Context) (string, error) {
	address, err := h.sim.Reserve()
	if err != nil {
		return "", err
	}

	h.mu.Lock()
	h.names++
	n := &node{host: h, name: fmt.Sprintf("host-%d", h.names), address: address, bootID: uuid.NewString()}
	h.mu.Unlock()

	_, err = h.API().CoreV1().Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: map[string]string{
			corev1.LabelHostname: n.name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
		}},
		Spec: corev1.NodeSpec{PodCIDR: h.podNetwork().String(), PodCIDRs: []string{h.podNetwork().String()}},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}

	if err := n.power(); err != nil {
		return "", err
	}

	h.admit(n)

	return n.name, h.setNodeStatus(ctx, n.name, func(status *corev1.NodeStatus) { *status = n.status() })
}

// status is the kubelet's report about its node.
func (n *node) status() corev1.NodeStatus {
	resources := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods:             resource.MustParse("250"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
	}

	return corev1.NodeStatus{
		Capacity: resources, Allocatable: resources,
		Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
			Message:           "kubelet is posting ready status",
			LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
		}},
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: n.address.String()}, {Type: corev1.NodeHostName, Address: n.name},
		},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: kubelet.Port}},
		NodeInfo: corev1.NodeSystemInfo{
			BootID: n.bootID, MachineID: n.name, SystemUUID: n.name, KernelVersion: "6.12.0", OSImage: "Linux",
			OperatingSystem: "linux",
			Architecture:    "amd64", ContainerRuntimeVersion: "containerd://2.2.0", KubeletVersion: "v1.36.3",
		},
	}
}

// power starts the kubelet; admit assigns its pods.
func (n *node) power() error {
	n.ctx, n.cancel = context.WithCancel(n.host.ctx)
	n.runs = map[types.UID]*run{}

	var err error
	n.server, err = n.serve()

	return err
}

// stop ends everything on a node at once. It does not wait.
func (n *node) stop() {
	n.mu.Lock()
	n.cancel() // sync starts nothing afterwards
	n.mu.Unlock()

	n.server.CloseClientConnections()
}

// gone waits until the node has completely stopped.
func (n *node) gone() {
	n.stop()
	n.server.Close()
	n.work.Wait()
}

// admit lets the kubelet look after the pods of its node from now on.
func (h *Host) admit(n *node) {
	h.mu.Lock()
	h.nodes[n.name] = n
	h.mu.Unlock()

	pods, err := h.pods.List(labels.Everything())
	if err != nil {
		h.log("list pods: %v", err)
	}

	for _, pod := range pods {
		h.sync(pod)
	}
}

var errNoNode = errors.New("no such node, or it is lost already")

// LoseNode takes a node off its power. Its pods stay, and are not ready; what the cluster sees of that takes no time
// here (Kubernetes 1.36, controller/nodelifecycle: 50 seconds).
func (h *Host) LoseNode(ctx context.Context, name string) error {
	h.mu.Lock()
	n := h.nodes[name]
	delete(h.nodes, name)
	h.mu.Unlock()

	if n == nil {
		return fmt.Errorf("lose node %s: %w", name, errNoNode)
	}

	n.gone()

	if err := h.markLost(ctx, name); err != nil {
		return fmt.Errorf("lose node %s: %w", name, err)
	}

	return h.markPodsLost(ctx, name)
}

// ReturnNode powers a lost node on again: its pods get new containers, and pods that are being deleted end.
func (h *Host) ReturnNode(ctx context.Context, name string) error {
	object, err := h.API().CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}

	address, err := netip.ParseAddr(object.Status.Addresses[0].Address)
	if err != nil {
		return fmt.Errorf("return node %s: %w", name, err)
	}

	n := &node{host: h, name: name, address: address, bootID: uuid.NewString()}

	if err := n.power(); err != nil {
		return err
	}

	h.admit(n)

	return h.setNodeStatus(ctx, name, func(status *corev1.NodeStatus) { *status = n.status() })
}

// markLost is the node lifecycle controller's, which the cluster has: taints follow from the condition.
func (h *Host) markLost(ctx context.Context, name string) error {
	return h.setNodeStatus(ctx, name, func(status *corev1.NodeStatus) {
		status.Conditions = []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown",
			Message:           "Kubelet stopped posting node status.",
			LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
		}}
	})
}

func (h *Host) setNodeStatus(ctx context.Context, name string, set func(*corev1.NodeStatus)) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		node, err := h.API().CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}

		set(&node.Status)

		_, err = h.API().CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})

		return err
	})
}

// markPodsLost says of the pods of a node that they are not ready (Kubernetes 1.36, controller/util/node
// MarkPodsNotReady).
func (h *Host) markPodsLost(ctx context.Context, node string) error {
	pods, err := h.API().CoreV1().Pods(metav1.NamespaceAll).List(ctx,
		metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		return err
	}

	for i := range pods.Items {
		pod := &pods.Items[i]
		kubelet.SetCondition(&pod.Status, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse,
			ObservedGeneration: pod.Generation})

		_, err := h.API().CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
	}

	return nil
}

// DeleteNode removes a node permanently: its object, its pods as the pod garbage collector does, and with it what its
// local volumes held, of which the objects stay.
func (h *Host) DeleteNode(ctx context.Context, name string) error {
	h.mu.Lock()
	n := h.nodes[name]
	delete(h.nodes, name)
	h.mu.Unlock()

	if n != nil {
		n.gone()
	}

	if err := h.API().CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}

	pods, err := h.API().CoreV1().Pods(metav1.NamespaceAll).List(ctx,
		metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})
	if err != nil {
		return err
	}

	for _, pod := range pods.Items {
		if err := h.KillPod(ctx, pod.Namespace, pod.Name); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}

	return nil
}

// nodeOf is the node of that name or address, nil when it is lost.
func (h *Host) nodeOf(is func(*node) bool) *node {
	h.mu.Lock()
	defer h.mu.Unlock()

	for _, n := range h.nodes {
		if is(n) {
			return n
		}
	}

	return nil
}
