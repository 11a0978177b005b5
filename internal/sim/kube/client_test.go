package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// A kubelet reports its node once, when it starts. What marks the node lost must not overwrite that report, whichever
// request the kubelet comes between.
func TestNode_keepsTheReportOfAReturningKubelet(t *testing.T) {
	for _, verb := range []string{"get", "update"} {
		t.Run(verb, func(t *testing.T) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
			node.Status.NodeInfo.BootID = "boot"
			SetCondition(node, corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue})

			back := false
			client := fake.NewClientset(node)
			client.PrependReactor(verb, "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
				if back || verb == "get" {
					back = true

					return false, nil, nil
				}

				back = true

				return true, nil, apierrors.NewConflict(corev1.Resource("nodes"), node.Name, nil)
			})

			k := &Client{Typed: client}

			lost, err := k.LoseNode(t.Context(), node.Name, "boot", func() bool { return back })
			if err != nil || lost {
				t.Fatalf("lost %v, error %v", lost, err)
			}

			got, err := k.GetNode(t.Context(), node.Name)
			if err != nil {
				t.Fatal(err)
			}

			if ready := got.Status.Conditions[0]; ready.Status != corev1.ConditionTrue {
				t.Errorf("the node is %s: %s", ready.Status, ready.Reason)
			}
		})
	}
}
