package sim_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/images"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// template is that of pods which run everywhere, with an image.
func template(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "x"}},
		Spec: corev1.PodSpec{
			Containers:  []corev1.Container{{Name: "x", Image: image}},
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		},
	}
}

func addWorkloads(t *testing.T, kube kubernetes.Interface, pods corev1.PodTemplateSpec) {
	t.Helper()

	meta := metav1.ObjectMeta{Name: "x", Namespace: "kube-system"}
	selector := &metav1.LabelSelector{MatchLabels: pods.Labels}

	check(t, second(kube.AppsV1().DaemonSets("kube-system").Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: pods},
	}, metav1.CreateOptions{})))
	check(t, second(kube.AppsV1().Deployments("kube-system").Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: new(int32(2)), Selector: selector, Template: pods},
	}, metav1.CreateOptions{})))
}

// expectPods waits until the workloads report so many pods wanted, of the present template, and ready.
func expectPods(t *testing.T, kube kubernetes.Interface, daemonSet, deployment [3]int32) {
	t.Helper()

	eventually(t, "workloads", func(ctx context.Context) error {
		set, err := kube.AppsV1().DaemonSets("kube-system").Get(ctx, "x", metav1.GetOptions{})
		check(t, err)

		d, err := kube.AppsV1().Deployments("kube-system").Get(ctx, "x", metav1.GetOptions{})
		check(t, err)

		sets := [3]int32{set.Status.DesiredNumberScheduled, set.Status.UpdatedNumberScheduled, set.Status.NumberReady}
		deployments := [3]int32{d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.ReadyReplicas}

		if set.Status.ObservedGeneration != set.Generation || d.Status.ObservedGeneration != d.Generation ||
			sets != daemonSet || deployments != deployment {
			return fmt.Errorf("daemon set %v, want %v; deployment %v, want %v", sets, daemonSet, deployments, deployment)
		}

		return nil
	})
}

func setTemplate(t *testing.T, kube kubernetes.Interface, pods corev1.PodTemplateSpec) {
	t.Helper()

	// The controllers of the simulator write statuses meanwhile.
	check(t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		set, err := kube.AppsV1().DaemonSets("kube-system").Get(t.Context(), "x", metav1.GetOptions{})
		check(t, err)

		set.Spec.Template = pods

		return second(kube.AppsV1().DaemonSets("kube-system").Update(t.Context(), set, metav1.UpdateOptions{}))
	}))
	check(t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		d, err := kube.AppsV1().Deployments("kube-system").Get(t.Context(), "x", metav1.GetOptions{})
		check(t, err)

		d.Spec.Template = pods

		return second(kube.AppsV1().Deployments("kube-system").Update(t.Context(), d, metav1.UpdateOptions{}))
	}))
}

func TestWorkloads_followNodesAndImages(t *testing.T) {
	rollsOut(t, sim.Options{})
}

func TestWorkloads_followNodesAndImagesWithRealParts(t *testing.T) {
	t.Parallel()
	testenv.BeforeRelease(t, "TestWorkloads_followNodesAndImages")

	rollsOut(t, sim.Options{Assets: kubernetesAssets(t)})
}

func rollsOut(t *testing.T, opts sim.Options) {
	t.Helper()

	opts.Log = t.Logf
	simulator := sim.ForTest(t, opts)
	cps, workers := addMachines(t, simulator, "cp", 1), addMachines(t, simulator, "worker", 2)
	cluster := newTestCluster(t, simulator)
	cluster.create(cps, workers)

	kube := cluster.kubernetes(cps[0])
	addWorkloads(t, kube, template("registry.k8s.io/x:1"))
	expectPods(t, kube, [3]int32{3, 3, 3}, [3]int32{2, 2, 2})

	// The DaemonSet's pod on a dead machine is missed, the Deployment's run elsewhere.
	workers[0].PowerOff()
	expectPods(t, kube, [3]int32{3, 3, 2}, [3]int32{2, 2, 2})
	workers[0].PowerOn()
	check(t, workers[0].AwaitReady(within(t, time.Minute)))
	expectPods(t, kube, [3]int32{3, 3, 3}, [3]int32{2, 2, 2})

	// A missing image stops the rollout at the first pod, until it exists.
	check(t, simulator.SetImage("registry.k8s.io/x:2", images.Image{Missing: true}))
	setTemplate(t, kube, template("registry.k8s.io/x:2"))
	expectPods(t, kube, [3]int32{3, 1, 2}, [3]int32{2, 1, 1})

	check(t, simulator.SetImage("registry.k8s.io/x:2", images.Image{}))
	expectPods(t, kube, [3]int32{3, 3, 3}, [3]int32{2, 2, 2})
}

// Pods of a DaemonSet go to cordoned nodes, too. Those of a Deployment only stay there.
func TestWorkloads_onACordonedNode(t *testing.T) {
	m, _, kube := oneNode(t)
	cordon := func(yes bool) {
		check(t, second(kube.CoreV1().Nodes().Patch(t.Context(), m.Hostname(), types.StrategicMergePatchType,
			fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, yes), metav1.PatchOptions{})))
	}

	addWorkloads(t, kube, template("registry.k8s.io/x:1"))
	expectPods(t, kube, [3]int32{1, 1, 1}, [3]int32{2, 2, 2})

	cordon(true)
	setTemplate(t, kube, template("registry.k8s.io/x:2"))
	expectPods(t, kube, [3]int32{1, 1, 1}, [3]int32{2, 1, 1})

	cordon(false)
	expectPods(t, kube, [3]int32{1, 1, 1}, [3]int32{2, 2, 2})
}

// Without a CNI only pods on the host's network run.
func TestWorkloads_withoutANetwork(t *testing.T) {
	simulator := sim.ForTest(t, sim.Options{})
	m := addMachines(t, simulator, "cp", 1)[0]
	cluster := newTestCluster(t, simulator)
	cluster.cni = constants.NoneCNI

	cluster.apply(m, machinetype.TypeControlPlane)
	cluster.bootstrap(m)

	kube := cluster.kubernetes(m)
	eventually(t, "a node", func(ctx context.Context) error {
		return second(kube.CoreV1().Nodes().Get(ctx, m.Hostname(), metav1.GetOptions{}))
	})

	pods := template("registry.k8s.io/x:1")
	addWorkloads(t, kube, pods)
	expectPods(t, kube, [3]int32{1, 1, 0}, [3]int32{2, 2, 0})

	pods.Spec.HostNetwork = true
	setTemplate(t, kube, pods)
	expectPods(t, kube, [3]int32{1, 1, 1}, [3]int32{2, 2, 2})
}
