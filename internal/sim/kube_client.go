package sim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/talosop/terraform-provider-talosop/internal/sim/kube"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// kubeClient is the simulator's own way to the Kubernetes API through one machine's API
// server, for what kubelets and machined do there.
type kubeClient struct {
	server kube.Server
	access *rest.Config
	typed  kubernetes.Interface
}

func newKubeClient(server kube.Server) (*kubeClient, error) {
	access := server.Config()

	typed, err := kubernetes.NewForConfig(access)
	if err != nil {
		return nil, fmt.Errorf("make Kubernetes client: %w", err)
	}

	return &kubeClient{server: server, access: access, typed: typed}, nil
}

// createNode registers a node with its status.
func (k *kubeClient) createNode(ctx context.Context, node *corev1.Node) error {
	created, err := k.typed.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create node: %w", err)
	}

	created.Status = node.Status

	if _, err := k.typed.CoreV1().Nodes().UpdateStatus(ctx, created, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update node status: %w", err)
	}

	return nil
}

// updateNode writes metadata, spec and status.
func (k *kubeClient) updateNode(ctx context.Context, node *corev1.Node) error {
	updated, err := k.typed.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("update node: %w", err)
	}

	updated.Status = node.Status

	if _, err := k.typed.CoreV1().Nodes().UpdateStatus(ctx, updated, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update node status: %w", err)
	}

	return nil
}

// getNode is the node as the API has it; see apierrors.IsNotFound.
func (k *kubeClient) getNode(ctx context.Context, name string) (*corev1.Node, error) {
	return k.typed.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
}

// loseNode marks a node Unknown unless its kubelet is back or a later boot of the machine
// has reported, and says whether it did. It asks for the kubelet after it has read the
// node: a report that comes later than that makes the update a conflict, and the kubelet,
// which reports once, keeps the last word.
func (k *kubeClient) loseNode(ctx context.Context, name, boot string, back func() bool) (bool, error) {
	lost := false

	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		node, err := k.getNode(ctx, name)
		if err != nil {
			if apierrors.IsNotFound(err) {
				return nil
			}

			return err
		}

		if back() || node.Status.NodeInfo.BootID != boot {
			return nil
		}

		setCondition(node, corev1.NodeCondition{
			Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown",
			Message: "Kubelet stopped posting node status.",
		})

		err = k.updateNode(ctx, node)
		lost = err == nil

		return err
	})

	return lost, err
}

// losePods marks the pods of a node not ready, as the node controller does with a node
// that is lost.
func (k *kubeClient) losePods(ctx context.Context, node string) error {
	pods, err := k.typed.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		return fmt.Errorf("list pods of node %s: %w", node, err)
	}

	for _, pod := range pods.Items {
		if err := k.losePod(ctx, &pod); err != nil {
			return fmt.Errorf("update status of pod %s: %w", pod.Name, err)
		}
	}

	return nil
}

// losePod marks a pod not ready, also when others write its status at the same time.
func (k *kubeClient) losePod(ctx context.Context, pod *corev1.Pod) error {
	pods := k.typed.CoreV1().Pods(pod.Namespace)

	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		for i, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				pod.Status.Conditions[i].Status = corev1.ConditionFalse
				pod.Status.Conditions[i].LastTransitionTime = metav1.Now()
			}
		}

		_, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
		if !apierrors.IsConflict(err) {
			return err
		}

		now, lookErr := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if lookErr != nil {
			return lookErr
		}

		pod = now

		return err
	})
	if apierrors.IsNotFound(err) {
		return nil
	}

	return err
}

// kubernetes returns a way to the cluster's API, waiting for one.
func (b *boot) kubernetes(ctx context.Context) (*kubeClient, error) {
	var k *kubeClient

	err := b.World.Await(ctx, func() bool {
		k = b.servedKubernetes()

		return k != nil
	})

	return k, err
}

// anyKubernetes returns a way to the cluster's API, nil if there is none right now.
func (b *boot) anyKubernetes() *kubeClient {
	b.World.Lock()
	defer b.World.Unlock()

	return b.servedKubernetes()
}

// servedKubernetes is anyKubernetes for callers that hold world. It is the API server
// that the machine's kubelet and machined reach: with KubePrism any that answers, their
// own first; without it a control plane's own and nothing else (Talos 1.13,
// secrets/kubelet.go and secrets/root.go). Workers then use the cluster's endpoint, and
// KubePrism itself knows nothing else without discovery.
func (b *boot) servedKubernetes() *kubeClient {
	if b.cluster == nil {
		return nil
	}

	prism := b.Config().Machine().Features().KubePrism().Enabled()

	switch {
	case b.kubeUp != nil || b.ControlPlane() && !prism:
		return b.kubeUp
	case !prism || !b.Config().Cluster().Discovery().Enabled():
		return b.behindEndpoint()
	}

	for _, other := range b.cluster.boots {
		if other.kubeUp != nil {
			return other.kubeUp
		}
	}

	return nil
}

// serveKubernetes runs the machine's kube-apiserver of a version until ctx ends. An error
// says that it could not run.
func (b *boot) serveKubernetes(ctx context.Context, version string) error {
	node := b.etcdNode()
	if node == nil {
		return errors.New("no etcd member")
	}

	k, err := b.joined().kubeOf(b, node.Group())
	if err != nil {
		return err
	}

	port := b.Config().Cluster().LocalAPIServerPort()

	own, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", net.JoinHostPort(b.m.Address().String(), strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("listen for Kubernetes: %w", err)
	}

	server, err := k.Serve(own, version)
	if err != nil {
		return err
	}
	defer server.Stop()

	client, err := newKubeClient(server)
	if err != nil {
		return err
	}

	if awaitReady(ctx, server) != nil {
		return nil // it is not wanted any more
	}

	b.World.Update(func() { b.kubeUp = client })
	b.World.Logf("%s: Kubernetes API %s on %s", b.m.Name(), version, own.Addr())

	<-ctx.Done()
	b.World.Update(func() { b.kubeUp = nil })

	return nil
}

func awaitReady(ctx context.Context, server kube.Server) error {
	for server.Ready(ctx) != nil {
		if err := timing.Pause(ctx, kube.JoinRetry); err != nil {
			return err
		}
	}

	return ctx.Err()
}
