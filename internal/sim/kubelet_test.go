package sim_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/talos/pkg/machinery/resources/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// A kubelet with another image is another process: its service goes away and comes back,
// and the node reports the new version. Talos's own upgrade waits for just that.
func TestKubelet_restartsForAnotherImage(t *testing.T) {
	cp, cluster, kube := oneNode(t)
	ctx := within(t, time.Minute)

	events := make(chan state.Event)
	check(t, cluster.secure(cp).COSI.Watch(ctx,
		resource.NewMetadata(v1alpha1.NamespaceName, v1alpha1.ServiceType, "kubelet", resource.VersionUndefined), events))

	if first := <-events; first.Type != state.Created {
		t.Fatalf("first event %s", first.Type)
	}

	cluster.setImage(cp, kubeletImage, "v1.36.0-slim")

	for _, want := range []state.EventType{state.Destroyed, state.Created} {
		for event := range events {
			if event.Type == want {
				break
			}

			if event.Type == state.Errored {
				t.Fatalf("watch: %v", event.Error)
			}
		}
	}

	eventually(t, "node of the new version", func(ctx context.Context) error {
		node, err := kube.CoreV1().Nodes().Get(ctx, cp.Hostname(), metav1.GetOptions{})
		if err != nil {
			return err
		}

		if version := node.Status.NodeInfo.KubeletVersion; version != "v1.36.0" || !nodeReady(node) {
			return fmt.Errorf("kubelet %s, ready %v", version, nodeReady(node))
		}

		return nil
	})
	check(t, cp.AwaitReady(ctx))
}

func TestKubelet_brokenOneLosesItsNode(t *testing.T) {
	cp, cluster, kube := oneNode(t)

	cp.BreakComponent("kubelet", "v1.36.0")
	cluster.setImage(cp, kubeletImage, "v1.36.0")
	expectLost(t, cp, kube)

	cp.RepairComponent("kubelet", "v1.36.0")
	check(t, cp.AwaitReady(within(t, time.Minute)))
}

// A kubelet with an argument that it does not know exits again and again.
func TestKubelet_unknownArgument(t *testing.T) {
	cp, cluster, kube := oneNode(t)

	cluster.rewrite(cp, `kubelet:\n( +)image:`, "kubelet:\n${1}extraArgs: {no-such-flag: a}\n${1}image:")
	expectLost(t, cp, kube)

	cluster.rewrite(cp, "no-such-flag", "max-pods")
	check(t, cp.AwaitReady(within(t, time.Minute)))
}

// expectLost waits until the node of a machine is not Ready, and checks that the machine is not either.
func expectLost(t *testing.T, cp *sim.Machine, kube kubernetes.Interface) {
	t.Helper()

	eventually(t, "lost node", func(ctx context.Context) error {
		node, err := kube.CoreV1().Nodes().Get(ctx, cp.Hostname(), metav1.GetOptions{})
		if err != nil {
			return err
		}

		if nodeReady(node) {
			return errors.New("it is ready")
		}

		return nil
	})

	if ready, _ := cp.Ready(); ready {
		t.Error("the machine is ready without its kubelet")
	}
}
