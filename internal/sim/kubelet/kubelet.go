// Package kubelet is the kubelet of a simulated machine. It has its start and its certificate, the node that it
// registers and reports, the static pods and their mirror pods, and the cordon that machined requests.
package kubelet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/labels"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/sim/images"
	"github.com/talosop/terraform-provider-talosop/internal/sim/kube"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
	"github.com/talosop/terraform-provider-talosop/internal/versions"
)

// Host is what the kubelet needs of the rest of the machine and of its cluster.
type Host interface {
	// Kubernetes waits for an API server that the kubelet reaches; AnyKubernetes is nil while there
	// is none, and ServedKubernetes is that for callers that hold the world.
	Kubernetes(ctx context.Context) (*kube.Client, error)
	AnyKubernetes() *kube.Client
	ServedKubernetes() *kube.Client
	// ServeKubernetes runs the machine's kube-apiserver of a version until ctx ends. An error
	// says that it could not run.
	ServeKubernetes(ctx context.Context, version string) error
	// Render writes the resources that follow from the configuration.
	Render()
	// EtcdUp says whether etcd is healthy, Signed whether a controller manager signs certificates,
	// and LaterRuns whether the kubelet of a later boot runs; the world is held.
	EtcdUp() bool
	Signed() bool
	LaterRuns() bool
	// Networked says whether a control plane of the cluster installs a CNI; the world is held.
	Networked() bool
	// Signer is the authority that it signs with.
	Signer() []byte
	// Outlive runs something that the end of the boot does not end.
	Outlive(f func())
	// TellVersions says that another version of the kubelet or of kube-apiserver runs, or none; the world is held.
	TellVersions()
	// CordonTimeout is how long cordoning the node may take.
	CordonTimeout() time.Duration
}

// Kubelet is the kubelet of one boot, and what it does for the node and the static pods.
type Kubelet struct {
	*machined.Boot

	host     Host
	images   *images.Store
	rendered timing.Notifier // what the kubelet is to run with changed
	wanted   kubeletConfig   // guarded by the boot's Mu

	// Guarded by World.
	staticPods map[string]*staticPodRun
	// Version and APIServer are the versions of the kubelet and of kube-apiserver that run; empty while none does.
	Version, APIServer string
	Ran                bool // it was started before
	Starts             int  // counts the starts of the kubelet; 0 while it does not run
	// APIServerStarts counts those of kube-apiserver, and minor is the minor version of the kubelet that ran last.
	APIServerStarts int
	minor           string

	// stopping is true from another wanted configuration until the kubelet starts with it.
	stopping atomic.Bool

	applies atomic.Int64 // calls of Apply
}

// New is the kubelet of a boot; it does not run yet.
func New(b *machined.Boot, host Host, store *images.Store) *Kubelet {
	return &Kubelet{Boot: b, host: host, images: store}
}

// Serve starts the machine's kubelet and restarts it when its configuration changes.
func (kl *Kubelet) Serve(ctx context.Context) {
	for run := 1; ctx.Err() == nil; run++ {
		wanted, changed := kl.kubeletWanted()

		delay := kl.Delays.KubeletStart
		if run == 1 {
			delay = 0
		}

		if !kl.startKubelet(ctx, wanted, changed, delay) {
			continue
		}

		life, end := context.WithCancel(ctx)

		kl.Spawn(func(context.Context) {
			defer end()

			select {
			case <-life.Done():
			case <-changed:
			}
		})
		kl.serveNode(life, wanted, run)
		end()
	}
}

// serveNode is one run of the kubelet: it registers the node, reports it Ready, and
// leaves it to become lost when it does not come back.
func (kl *Kubelet) serveNode(ctx context.Context, cfg kubeletConfig, run int) {
	first := false

	kl.World.Update(func() {
		first, kl.Starts, kl.Ran = !kl.Ran, run, true
		kl.Version = imageTag(cfg.image)
		kl.minor = versions.MinorOf(kl.Version)
		kl.stopping.Store(kl.wantsOther(cfg))
		kl.host.TellVersions()
	})

	if kl.NodeName == "" {
		<-ctx.Done()
	} else {
		kl.keepNode(ctx, imageTag(cfg.image), first)
	}

	kl.World.Update(func() {
		kl.Starts, kl.Version = 0, ""
		kl.host.TellVersions()
	})

	if kl.Ctx.Err() == nil {
		kl.Services.Stop("kubelet")
	}

	if kl.NodeName != "" {
		kl.host.Outlive(kl.LoseNode)
	}
}

// keepNode does for the node what a kubelet of a version does until ctx ends.
func (kl *Kubelet) keepNode(ctx context.Context, version string, first bool) {
	kl.forgetCertificate()

	if kl.enroll(ctx) != nil || timing.Pause(ctx, kl.Delays.NodeRegister) != nil {
		return
	}

	ready := kl.networked()
	registered := kl.reportNode(ctx, version, ready && !first, true)
	kl.World.Update(func() {}) // who waits for the kubelet looks again

	if registered {
		kl.Spawn(kl.Apply)
	}

	if registered && ready && first && timing.Pause(ctx, kl.Delays.NodeReady) == nil {
		kl.reportNode(ctx, version, true, false)
	}

	if registered && !ready && kl.World.Await(ctx, func() bool { return kl.Disk.CNI }) == nil {
		kl.reportNode(ctx, version, true, false)
	}

	<-ctx.Done()
}

// startKubelet starts the kubelet's service after a delay. It gives up when the image does not exist, as in Talos
// (Talos 1.13, containers/image.Pull and system/service_runner.go), and with every change of the wanted
// configuration.
func (kl *Kubelet) startKubelet(
	ctx context.Context, cfg kubeletConfig, changed <-chan struct{}, delay time.Duration,
) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	kl.Spawn(func(context.Context) {
		defer cancel()

		select {
		case <-ctx.Done():
		case <-changed:
		}
	})

	if timing.Pause(ctx, delay) != nil || kl.AwaitTime(ctx, "kubelet") != nil {
		return false
	}

	kl.Services.Set("kubelet", machined.ServicePreparing, "Running pre state")

	if err := kl.images.PullForService(ctx, cfg.image); err != nil {
		if ctx.Err() == nil {
			kl.Services.Set("kubelet", machined.ServiceFailed, "failed to run pre stage: "+err.Error())
		}

		<-ctx.Done()

		return false
	}

	for kl.Broken("kubelet", imageTag(cfg.image)) || unknownFlag(cfg.args) != "" {
		kl.Services.Set("kubelet", machined.ServiceWaiting,
			`Error running Containerd(kubelet), going to restart forever: task "kubelet" failed: exit code 1`)

		if timing.Pause(ctx, kube.CrashPause) != nil {
			return false
		}
	}

	kl.Services.Start("kubelet")

	return ctx.Err() == nil
}

// networked reports whether pods get a network here.
func (kl *Kubelet) networked() bool {
	kl.World.Lock()
	defer kl.World.Unlock()

	return kl.host.Networked() || kl.Disk.CNI
}

// reportNode updates the machine's node until it succeeds or ctx ends; a kubelet that begins creates one that is
// missing.
func (kl *Kubelet) reportNode(ctx context.Context, version string, ready, begins bool) bool {
	for {
		node, err := kl.applyNode(ctx, version, ready, begins)
		if err == nil {
			kl.SetNode(ctx, true, ready, node.Spec.Unschedulable)

			return true
		}

		if timing.Pause(ctx, kube.KubeletRetry) != nil {
			return false
		}
	}
}

func (kl *Kubelet) applyNode(ctx context.Context, version string, ready, begins bool) (*corev1.Node, error) {
	k, err := kl.host.Kubernetes(ctx)
	if err != nil {
		return nil, err
	}

	node, err := k.GetNode(ctx, kl.NodeName)

	switch {
	case apierrors.IsNotFound(err) && !begins:
		// Another client deleted it. A kubelet registers again only when it starts.
		return &corev1.Node{}, nil
	case apierrors.IsNotFound(err):
		node = kl.newNode()
		kl.fillStatus(node, version, ready)

		return node, k.CreateNode(ctx, node)
	case err != nil:
		return nil, err
	}

	if node.Annotations[cordonedAnnotation] == "true" {
		delete(node.Annotations, cordonedAnnotation)
		node.Spec.Unschedulable = false
	}

	kl.fillStatus(node, version, ready)

	return node, k.UpdateNode(ctx, node)
}

// newNode is the object that a kubelet registers, which NodeRestriction keeps from most labels: Apply puts those of the
// configuration there. Its taints come with it since Talos 1.14, before that of control planes alone
// (k8s/kubelet_spec.go, RegisterWithTaints).
func (kl *Kubelet) newNode() *corev1.Node {
	node := &corev1.Node{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: kl.NodeName, Labels: map[string]string{
			corev1.LabelHostname:   kl.NodeName,
			corev1.LabelOSStable:   "linux",
			corev1.LabelArchStable: runtime.GOARCH,
		}},
		Spec: corev1.NodeSpec{Taints: taintsOf(kl.Config().K8sNodeConfig().Taints())},
	}

	if !kl.Since(1, 14) {
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool {
			return t.Key != constants.LabelNodeRoleControlPlane
		})
	}

	return node
}

// fillStatus writes the kubelet's report about the machine.
func (kl *Kubelet) fillStatus(node *corev1.Node, version string, ready bool) {
	id := strings.ReplaceAll(kl.UUID(), "-", "")

	node.Status.Capacity = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("64Gi"),
		corev1.ResourcePods: resource.MustParse("110"),
	}
	node.Status.Allocatable = node.Status.Capacity
	node.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: kl.Advertised().String()},
		{Type: corev1.NodeHostName, Address: kl.NodeName},
	}
	node.Status.NodeInfo = corev1.NodeSystemInfo{
		MachineID: id, SystemUUID: kl.UUID(), BootID: kl.KernelBoot(),
		KernelVersion: "6.18.0-talos", OSImage: fmt.Sprintf("Talos (%s)", kl.TalosVersion()),
		ContainerRuntimeVersion: "containerd://2.2.0", KubeletVersion: version,
		OperatingSystem: "linux", Architecture: runtime.GOARCH,
	}

	condition := corev1.NodeCondition{
		Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady",
		Message: "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady",
	}
	if ready {
		condition.Status, condition.Reason, condition.Message = corev1.ConditionTrue, "KubeletReady",
			"kubelet is posting ready status"
	}

	kube.SetCondition(node, condition)
}

// LoseNode is the node controller: a node whose kubelet stopped reporting becomes Unknown after a while, and its
// pods not ready, unless the kubelet or a later boot of the machine has reported again.
func (kl *Kubelet) LoseNode() {
	ctx := kl.Site()

	if timing.Pause(ctx, kl.Delays.NodeLost) != nil {
		return
	}

	// An API that does not answer now is asked again: the node controller never gives a node up.
	for err := kl.reportLost(ctx); err != nil; err = kl.reportLost(ctx) {
		kl.World.Logf("%s: mark node lost: %v", kl.Name(), err)

		if timing.Pause(ctx, kube.KubeletRetry) != nil {
			return
		}
	}

	// A kubelet that restarts corrects the API's status of its pods (Kubernetes 1.36,
	// kubelet/status/status_manager.go needsReconcile).
	kl.World.Update(kl.RepeatReports)
}

// reportLost marks the node and its pods once there is an API, unless the kubelet is back by then. That
// the simulator ends is no error.
func (kl *Kubelet) reportLost(ctx context.Context) error {
	k, err := kl.host.Kubernetes(ctx)
	if err != nil {
		return nil //nolint:nilerr // ctx has ended
	}

	lost, err := k.LoseNode(ctx, kl.NodeName, kl.KernelBoot(), kl.kubeletRuns)
	if lost {
		err = k.LosePods(ctx, kl.NodeName)
	}

	return err
}

// kubeletRuns reports whether the kubelet is up, in this boot or in the next, and may report the node at any moment.
func (kl *Kubelet) kubeletRuns() bool {
	kl.World.Lock()
	defer kl.World.Unlock()

	return kl.Starts > 0 || kl.host.LaterRuns()
}

// kubeletConfig is the start configuration of a kubelet.
type kubeletConfig struct {
	image   string
	args    []string
	version string // of the KubeletSpec resource
}

// kubeletWanted is the wanted configuration of the kubelet, and a channel that is closed when it changes.
func (kl *Kubelet) kubeletWanted() (kubeletConfig, <-chan struct{}) {
	changed := kl.rendered.Next()

	kl.Mu.Lock()
	defer kl.Mu.Unlock()

	return kl.wanted, changed
}

// Want sets the kubelet's image, arguments and version from now on; a change restarts it.
func (kl *Kubelet) Want(image string, args []string, version string) {
	kl.Mu.Lock()
	changed := kl.wanted.version != version
	kl.stopping.Store(kl.stopping.Load() || changed)
	kl.wanted = kubeletConfig{image: image, args: args, version: version}
	kl.Mu.Unlock()

	if changed {
		kl.rendered.Ring()
	}
}

// wantsOther reports whether another configuration is wanted.
func (kl *Kubelet) wantsOther(cfg kubeletConfig) bool {
	kl.Mu.Lock()
	defer kl.Mu.Unlock()

	return kl.wanted.version != cfg.version
}

// Restart restarts the kubelet with its current configuration.
func (kl *Kubelet) Restart() { kl.rendered.Ring() }

// ErrNoServer is why a load balancer cuts a connection.
var ErrNoServer = errors.New("no kube-apiserver answers")

// taintsOf are the taints of a configuration, in the order of their keys.
func taintsOf(wanted map[string]string) []corev1.Taint {
	var taints []corev1.Taint

	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		value, effect := labels.ParseTaint(wanted[key])
		taints = append(taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
	}

	return taints
}
