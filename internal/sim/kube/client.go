package kube

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
)

// Client is the simulator's own way to the Kubernetes API through one machine's API
// server, for what kubelets and machined do there.
type Client struct {
	Server Server
	Access *rest.Config
	Typed  kubernetes.Interface
}

// NewClient makes a client of an API server.
func NewClient(server Server) (*Client, error) {
	access := server.Config()

	typed, err := kubernetes.NewForConfig(access)
	if err != nil {
		return nil, fmt.Errorf("make Kubernetes client: %w", err)
	}

	return &Client{Server: server, Access: access, Typed: typed}, nil
}

// CreateNode registers a node with its status.
func (k *Client) CreateNode(ctx context.Context, node *corev1.Node) error {
	created, err := k.Typed.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create node: %w", err)
	}

	created.Status = node.Status

	if _, err := k.Typed.CoreV1().Nodes().UpdateStatus(ctx, created, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update node status: %w", err)
	}

	return nil
}

// UpdateNode writes metadata, spec and status.
func (k *Client) UpdateNode(ctx context.Context, node *corev1.Node) error {
	updated, err := k.Typed.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("update node: %w", err)
	}

	updated.Status = node.Status

	if _, err := k.Typed.CoreV1().Nodes().UpdateStatus(ctx, updated, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update node status: %w", err)
	}

	return nil
}

// GetNode is the node as the API has it; see apierrors.IsNotFound.
func (k *Client) GetNode(ctx context.Context, name string) (*corev1.Node, error) {
	return k.Typed.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
}

// LoseNode marks a node Unknown unless its kubelet is back or a later boot of the machine
// has reported, and says whether it did. It asks for the kubelet after it has read the
// node: a report that comes later than that makes the update a conflict, and the kubelet,
// which reports once, keeps the last word.
func (k *Client) LoseNode(ctx context.Context, name, boot string, back func() bool) (bool, error) {
	lost := false

	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		node, err := k.GetNode(ctx, name)
		if err != nil {
			if apierrors.IsNotFound(err) {
				return nil
			}

			return err
		}

		if back() || node.Status.NodeInfo.BootID != boot {
			return nil
		}

		SetCondition(node, corev1.NodeCondition{
			Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown",
			Message: "Kubelet stopped posting node status.",
		})

		err = k.UpdateNode(ctx, node)
		lost = err == nil

		return err
	})

	return lost, err
}

// LosePods marks the pods of a node not ready, as the node controller does with a node
// that is lost.
func (k *Client) LosePods(ctx context.Context, node string) error {
	pods, err := k.Typed.CoreV1().Pods(metav1.NamespaceAll).List(ctx,
		metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
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
func (k *Client) losePod(ctx context.Context, pod *corev1.Pod) error {
	pods := k.Typed.CoreV1().Pods(pod.Namespace)

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

// SetCondition sets a condition of a node; its time of transition stays where the status does.
func SetCondition(node *corev1.Node, condition corev1.NodeCondition) {
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
