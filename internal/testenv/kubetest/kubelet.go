package kubetest

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	clientgo "k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubelet"
)

// tick is how often the stand-in looks at what informers have.
const tick = 50 * time.Millisecond

// kubelets are kubelets and provisioner of a cluster. The simulator removes pods that are being deleted. Nodes
// outside of the site have their own kubelets.
type kubelets struct {
	api clientgo.Interface
	sim *sim.Simulator
	log func(format string, args ...any)

	pods   corelisters.PodLister
	nodes  corelisters.NodeLister
	claims corelisters.PersistentVolumeClaimLister
	// volumes and classes for provisioning.
	volumes corelisters.PersistentVolumeLister
	classes storagelisters.StorageClassLister

	runs map[types.UID]*run
	logs logServers
}

// run is the state of a pod beside its object.
type run struct {
	begun    time.Time // of its node
	reported map[string]bool
}

// runKubelets works until ctx ends.
func (c *Cluster) runKubelets(ctx context.Context) {
	factory := informers.NewSharedInformerFactory(c.api, 0)
	core := factory.Core().V1()
	k := &kubelets{
		api: c.api, sim: c.sim, log: c.log, runs: map[types.UID]*run{},
		pods: core.Pods().Lister(), nodes: core.Nodes().Lister(), claims: core.PersistentVolumeClaims().Lister(),
		volumes: core.PersistentVolumes().Lister(), classes: factory.Storage().V1().StorageClasses().Lister(),
	}

	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())

	defer factory.Shutdown()
	defer k.logs.close()

	ticker := time.NewTicker(tick)
	defer ticker.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			k.look(ctx)
		}
	}
}

// look moves everything one step further.
func (k *kubelets) look(ctx context.Context) {
	nodes, err := k.nodes.List(labels.Everything())
	if err != nil {
		k.log("list nodes: %v", err)
	}

	pods, err := k.pods.List(labels.Everything())
	if err != nil {
		k.log("list pods: %v", err)
	}

	k.logs.serve(ctx, nodes, k)
	k.forget(pods)
	k.provision(ctx)

	for _, pod := range pods {
		if pod.Annotations[corev1.MirrorPodAnnotationKey] != "" || !pod.DeletionTimestamp.IsZero() {
			continue
		}

		// An object that changed meanwhile is handled again soon.
		if err := k.runPod(ctx, pod, nodes); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) &&
			!apierrors.IsNotFound(err) {
			k.log("stand-in of the kubelet: pod %s/%s: %v", pod.Namespace, pod.Name, err)
		}
	}
}

func (k *kubelets) forget(pods []*corev1.Pod) {
	living := make(map[types.UID]bool, len(pods))
	for _, pod := range pods {
		living[pod.UID] = true
	}

	for uid := range k.runs {
		if !living[uid] {
			delete(k.runs, uid)
		}
	}
}

func (k *kubelets) runOf(pod *corev1.Pod) *run {
	r := k.runs[pod.UID]
	if r == nil {
		r = &run{reported: map[string]bool{}}
		k.runs[pod.UID] = r
	}

	return r
}

// runPod lets the status of a pod follow from its script and the time that it has run.
func (k *kubelets) runPod(ctx context.Context, pod *corev1.Pod, nodes []*corev1.Node) error {
	node := nodeOf(pod, nodes)
	if node == nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil
	}

	machine := k.machineOf(node)
	if machine == nil || machine.Stage() != sim.StageRunning {
		return nil
	}

	r := k.runOf(pod)
	if r.begun.IsZero() {
		r.begun = time.Now()
	}

	seen := statusOf(pod, node, r.begun, time.Now())
	if seen.event != nil {
		kubelet.Warn(ctx, k.api, pod, r.reported, seen.event.reason, seen.event.message)
	}

	if seen.installsCNI {
		machine.InstallCNI()
	}

	if status := seen.Status(pod); !equality.Semantic.DeepEqual(status, &pod.Status) {
		changed := pod.DeepCopy()
		changed.Status = *status

		_, err := k.api.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{})

		return err
	}

	return nil
}

func nodeOf(pod *corev1.Pod, nodes []*corev1.Node) *corev1.Node {
	for _, node := range nodes {
		if node.Name == pod.Spec.NodeName {
			return node
		}
	}

	return nil
}

// machineOf is the machine of a node, nil for a node that is none of the site's.
func (k *kubelets) machineOf(node *corev1.Node) *sim.Machine {
	for _, m := range k.sim.Machines() {
		if m.Address().String() == addressOf(node) {
			return m
		}
	}

	return nil
}

func addressOf(node *corev1.Node) string {
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			return address.Address
		}
	}

	return ""
}

// warning is an event about a pod, as kubelets make them.
type warning struct{ reason, message string }
