package sim_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// asset returns the path of a real program, or skips the test that needs it.
func asset(t *testing.T, name string) string {
	t.Helper()

	path := filepath.Join(os.Getenv("TALOSOP_TEST_ASSETS"), name)

	if os.Getenv("TALOSOP_TEST_ASSETS") != "" {
		if found, err := exec.LookPath(path); err == nil {
			return found
		}
	}

	if testenv.AssetsRequired() {
		t.Fatalf("%s is missing: TALOSOP_TEST_ASSETS must name a folder that has it", name)
	}

	t.Skipf("%s is missing: set TALOSOP_TEST_ASSETS to a folder that has it", name)

	return ""
}

func TestCluster_withRealEtcdAndKubernetes(t *testing.T) {
	t.Parallel()

	folder := filepath.Dir(asset(t, "kube-apiserver"))

	simulator := sim.ForTest(t, sim.Options{Assets: folder, Log: t.Logf})
	cps := addMachines(t, simulator, "cp", 3)
	workers := addMachines(t, simulator, "worker", 1)

	cluster := newTestCluster(t, simulator)
	cluster.create(cps, workers)

	members, err := simulator.EtcdMembers(t.Context())
	check(t, err)

	if len(members) != 3 || simulator.EtcdClusters() != 1 {
		t.Fatalf("etcd members %v in %d clusters, want 3 voters in one", members, simulator.EtcdClusters())
	}

	kube := cluster.kubernetes(cps[0])

	nodes, err := kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	check(t, err)

	if len(nodes.Items) != 4 || slices.ContainsFunc(nodes.Items, func(n corev1.Node) bool { return !nodeReady(&n) }) {
		t.Fatalf("got %d nodes, want 4 that are ready: %v", len(nodes.Items), nodes.Items)
	}

	// The API survives a control plane: the endpoint moves, etcd elects.
	cps[0].PowerOff()
	eventually(t, "list nodes without cp-1", func(ctx context.Context) error {
		_, err := kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})

		return err
	})
	cps[0].PowerOn()
	check(t, cps[0].AwaitReady(within(t, time.Minute)))

	for _, m := range slices.Concat(workers, cps[1:]) {
		cluster.reset(m, true)
		check(t, m.AwaitStage(within(t, time.Minute), sim.StageMaintenance))
	}

	cluster.reset(cps[0], false)
	check(t, cps[0].AwaitStage(within(t, time.Minute), sim.StageMaintenance))
}
