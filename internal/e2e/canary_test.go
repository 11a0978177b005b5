package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
)

// withCanary adds a canary pool and a health check to the example. The contract stays, so that only Talos changes.
const withCanary = `
resource "talosop_cluster" "this" {
  version_contract = "v1.13"
  workers          = { canary = { replicas = 1 }, worker = { replicas = var.workers } }
  upgrade          = { canary = { pool = "canary", soak = "4m" } }
  health_checks    = { shop = { http = { url = %q } } }
}
`

// The canary machine and the annotation of its node.
const (
	canaryNode = hostedName + "-canary-0"
	soakNote   = "talosop.dev/canary-soak"
)

// canary: an upgrade reaches a worker of its own pool first, which then runs a newer Talos than its control plane. The
// provider is killed during the soak. The next apply soaks for the rest of it, and then upgrades the others.
func (h hosted) canary(t *testing.T, cli clitest.CLI) {
	if h.talosNext == "" {
		t.Skip("nothing says which tag of the image is Talos 1.14 (TALOSOP_E2E_HOST_TALOS_NEXT)")
	}

	var checks atomic.Int32

	shop := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { checks.Add(1) }))
	t.Cleanup(shop.Close)

	h.canaries = 1
	w := h.workspace(t, cli)
	w.Write("canary_override.tf", fmt.Sprintf(withCanary, shop.URL))
	h.applied(t, w, "create")
	h.remember(t, w)

	before, former := h.starts(t), h.talosVersion
	h.talosVersion = h.talosNext
	w.Write(variables, h.variables(t))

	apply := w.Start("apply", "-auto-approve")
	end := h.soaks(t, w, apply, 1, former)

	passed := checks.Load()
	awaitDuring(t, apply, 3*time.Minute, "a health check during the soak", func(context.Context) error {
		if checks.Load() == passed {
			return errors.New("none ran")
		}

		return nil
	})
	apply.KillProvider()
	failed(t, apply)

	apply = w.Start("apply", "-auto-approve")
	if again := h.soaks(t, w, apply, 2, former); !again.Equal(end) {
		t.Errorf("the second apply soaks until %s, and the first one until %s", again, end)
	}

	soaked := h.starts(t)
	h.restarted(t, "before the end of the soak", before, soaked, canaryNode)

	if result := apply.Wait(); result.Exit != 0 {
		t.Fatalf("the second apply failed:\n%s", result.Output())
	}

	h.restarted(t, "after the soak", soaked, h.starts(t), hostedName+"-cp-0", hostedName+"-worker-0")
	h.followed(t, end)
	h.applied(t, w, "the upgrade to Talos "+h.talosNext)
	h.remembers(t, w)
	h.asks(t, w, "no soak on the node of the canary", func(ctx context.Context, inside *kubernetes.Clientset) error {
		node, err := inside.CoreV1().Nodes().Get(ctx, canaryNode, metav1.GetOptions{})
		if err == nil && node.Annotations[soakNote] != "" {
			err = fmt.Errorf("it has the annotations %v", node.Annotations)
		}

		return err
	})
	h.destroy(t, w)
}

// observedUntil is what an apply reports at the beginning of a soak.
var observedUntil = regexp.MustCompile(`pool canary is observed until ([^" ]+Z)`)

// soaks waits for the soak of the n-th apply, and returns when it ends. Until then the canary is a Ready node with the
// new Talos, and all others have the former one.
func (h hosted) soaks(t *testing.T, w *clitest.Workspace, apply *clitest.Process, n int, former string) time.Time {
	t.Helper()

	var end time.Time

	awaitDuring(t, apply, 20*time.Minute, fmt.Sprintf("soak %d", n), func(context.Context) error {
		reported := observedUntil.FindAllStringSubmatch(w.Read("progress.jsonl"), -1)
		if len(reported) < n {
			return fmt.Errorf("%d applies soak", len(reported))
		}

		var err error
		end, err = time.Parse(time.RFC3339, reported[n-1][1])

		return err
	})

	h.asks(t, w, "nodes during the soak", func(ctx context.Context, inside *kubernetes.Clientset) error {
		list, err := inside.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}

		for _, node := range list.Items {
			if err := h.isDuringSoak(node, former); err != nil {
				return err
			}
		}

		return nil
	})

	if left := time.Until(end); left < 0 {
		t.Errorf("soak %d ended %s ago, before its nodes were seen", n, -left)
	}

	return end
}

// isDuringSoak checks one node.
func (h hosted) isDuringSoak(node corev1.Node, former string) error {
	runs, want := node.Status.NodeInfo, former
	if node.Name == canaryNode {
		want = h.talosVersion
	}

	_, noted := node.Annotations[soakNote]

	if !ready(node) || !strings.Contains(runs.OSImage, want) || noted != (node.Name == canaryNode) {
		return fmt.Errorf("node %s is Ready: %t, runs %s with kubelet %s, and soaks: %t; want Talos %s", node.Name,
			ready(node), runs.OSImage, runs.KubeletVersion, noted, want)
	}

	return nil
}

// restarted checks which machines have another pod, and only these.
func (h hosted) restarted(t *testing.T, when string, before, after map[string]string, want ...string) {
	t.Helper()

	var restarted []string

	for _, machine := range h.machines() {
		if before[machine] != after[machine] {
			restarted = append(restarted, machine)
		}
	}

	if strings.Join(restarted, " ") != strings.Join(want, " ") {
		t.Errorf("%v restarted %s, want %v", restarted, when, want)
	}
}

// followed checks that the pods of the others are younger than the soak, that of the control plane first.
func (h hosted) followed(t *testing.T, end time.Time) {
	t.Helper()

	pods, after := h.host(t).CoreV1().Pods(hostedNamespace), end

	for _, machine := range []string{"cp-0", "worker-0"} {
		pod, err := pods.Get(t.Context(), hostedName+"-"+machine+"-0", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}

		if made := pod.CreationTimestamp.Time; made.Before(after) {
			t.Errorf("the pod of %s was made at %s, before %s", machine, made, after)
		} else {
			after = made
		}
	}
}
