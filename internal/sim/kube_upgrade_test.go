package sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// watchError begins what talosctl says of a list or watch of pods that failed and that it repeats (Talos 1.13,
// cluster/kubernetes/talos_managed.go: checkPodStatus). On real Talos that happens in any upgrade through a virtual IP,
// which stays at a machine while its kube-apiserver is replaced: with its own image, and once more with the
// kube-scheduler's, whose configuration is a file of the kube-apiserver's pod (k8s/render_config_static_pods.go).
const watchError = "kubernetes endpoint watch error: "

// TestTalosctl_upgradesKubernetes lets Talos's own upgrade of Kubernetes judge: it pulls
// images, replaces the components one by one, waits for each as it does on real machines,
// and brings the bootstrap manifests up to date.
func TestTalosctl_upgradesKubernetes(t *testing.T) {
	t.Parallel()
	testenv.BeforeRelease(t, "TestTalosctl_lifecycle", "TestKubernetesUpgrade_inTwoHops", "TestAccKubernetesUpgrade_ofAWholeCluster")

	ctl := newTalosctl(t)
	simulator := sim.ForTest(t, sim.Options{Log: t.Logf})
	cps, workers := addMachines(t, simulator, "cp", 3), addMachines(t, simulator, "worker", 1)
	cluster := newTestCluster(t, simulator)
	cluster.create(cps, workers)
	ctl.config = cluster.talosconfig(ctl.dir)

	out := ctl.within(5*time.Minute, at(cps[0], "upgrade-k8s", "--from", "1.35.2", "--to", "1.36.0",
		"--endpoint", cluster.input.ControlPlaneEndpoint)...)

	for line := range strings.Lines(out) {
		if strings.Contains(line, "error") && !strings.HasPrefix(line, watchError) {
			t.Errorf("talosctl upgrade-k8s says %q in:\n%s", line, out)
		}
	}

	// Three components of each control plane, and every kubelet.
	if done, want := strings.Count(out, "successfully updated"), 4*len(cps)+len(workers); done != want {
		t.Errorf("talosctl upgrade-k8s updated %d times, want %d:\n%s", done, want, out)
	}

	kube := cluster.kubernetes(cps[0])

	for _, m := range cps {
		check(t, serves(cluster.apiOf(m), "v1.36.0"))

		for id, image := range map[string]string{
			k8s.APIServerID: apiServerImage, k8s.ControllerManagerID: managerImage, k8s.SchedulerID: schedulerImage,
		} {
			cluster.settled(kube, m, id, image+":v1.36.0")
		}
	}

	nodes, err := kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	check(t, err)

	for _, node := range nodes.Items {
		if version := node.Status.NodeInfo.KubeletVersion; version != "v1.36.0" {
			t.Errorf("node %s has kubelet %s", node.Name, version)
		}
	}

	proxy, err := kube.AppsV1().DaemonSets("kube-system").Get(t.Context(), "kube-proxy", metav1.GetOptions{})
	check(t, err)

	if image := proxy.Spec.Template.Spec.Containers[0].Image; image != proxyImage+":v1.36.0" {
		t.Errorf("kube-proxy has image %s", image)
	}
}
