package kubelet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	corev1 "k8s.io/api/core/v1"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/sim/images"
	"github.com/talosop/terraform-provider-talosop/internal/sim/kube"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// staticPodRun is one static pod of a control-plane machine as its kubelet sees it.
type staticPodRun struct {
	// Guarded by world.
	wanted   *corev1.Pod // as machined serves it; nil when there is to be none
	hash     string      // of wanted
	shown    podReport   // what the mirror pod is to show
	restarts int32       // of its containers
}

// staticPodRun returns the run of a component; world is held.
func (kl *Kubelet) staticPodRun(id string) *staticPodRun {
	if kl.staticPods[id] == nil {
		kl.staticPods[id] = &staticPodRun{}
	}

	return kl.staticPods[id]
}

// SetStaticPod hands a static pod to the kubelet; nil takes it away.
func (kl *Kubelet) SetStaticPod(id string, pod *corev1.Pod) {
	hash := ""
	if pod != nil {
		hash = podHash(pod)
	}

	kl.World.Lock()
	defer kl.World.Unlock()

	if run := kl.staticPodRun(id); run.hash != hash {
		run.wanted, run.hash = pod, hash
		kl.World.Notify()
	}
}

// looks reports whether the kubelet looks for changed static pods; the world is held. One that machined stops for
// another configuration does not.
func (kl *Kubelet) looks() bool { return kl.Starts > 0 && !kl.stopping.Load() }

// withUID is a static pod as a kubelet of a minor version runs it. The UID is a hash of all fields that this version
// knows, so another minor version replaces all static pods (Kubernetes 1.36, pkg/kubelet/config applyDefaults).
func withUID(pod *corev1.Pod, minor string) *corev1.Pod {
	sum := sha256.Sum256([]byte(podHash(pod) + minor))

	pod = pod.DeepCopy()
	pod.Annotations[configHash] = hex.EncodeToString(sum[:16])

	return pod
}

// podHash identifies the content of a static pod.
func podHash(pod *corev1.Pod) string {
	content, err := json.Marshal(pod)
	if err != nil {
		panic(err) // a pod of ours always encodes
	}

	sum := sha256.Sum256(content)

	return hex.EncodeToString(sum[:16])
}

// RunStaticPods is what the kubelet of a control plane does about its static pods,
// beginning with the first healthy etcd, before which machined serves none. They stay
// when etcd loses its quorum.
func (kl *Kubelet) RunStaticPods(ctx context.Context) {
	if kl.World.Await(ctx, func() bool { return kl.host.EtcdUp() }) != nil {
		return
	}

	kl.World.Update(func() { kl.staticPods = map[string]*staticPodRun{} })
	kl.host.Render()

	for _, id := range staticPodIDs {
		kl.Spawn(func(context.Context) { kl.runStaticPod(ctx, id) })
		kl.Spawn(func(context.Context) { kl.runMirrorPod(ctx, id) })
		kl.Spawn(func(context.Context) { kl.runPodStatus(ctx, id) })
	}
}

// runStaticPod runs one static pod after the other until ctx ends.
func (kl *Kubelet) runStaticPod(ctx context.Context, id string) {
	for first := true; ctx.Err() == nil; first = false {
		var (
			pod         *corev1.Pod
			hash, minor string
		)

		if kl.World.Await(ctx, func() bool {
			run := kl.staticPodRun(id)
			pod, hash, minor = run.wanted, run.hash, kl.minor

			return pod != nil
		}) != nil {
			return
		}

		life, end := context.WithCancel(ctx)

		kl.Spawn(func(context.Context) {
			defer end()

			kl.awaitOther(life, id, hash, minor)
		})
		kl.runContainer(life, id, withUID(pod, minor), first)
		end()
		kl.retirePod(id)
	}
}

// awaitOther returns when a kubelet notices that it has to replace a static pod, or with the end of ctx. A changed pod
// runs on until then.
func (kl *Kubelet) awaitOther(ctx context.Context, id, hash, minor string) {
	other := func() bool {
		if minor == "" { // it runs since before the first kubelet
			minor = kl.minor
		}

		return kl.looks() && (kl.staticPodRun(id).hash != hash || kl.minor != minor)
	}

	for {
		if kl.World.Await(ctx, other) != nil || timing.Pause(ctx, kl.Delays.StaticPod) != nil {
			return
		}

		kl.World.Lock()
		noticed := other()
		kl.World.Unlock()

		if noticed {
			return
		}
	}
}

// runContainer is the life of a static pod's container: the image, then the process,
// over and over again while it crashes.
func (kl *Kubelet) runContainer(ctx context.Context, id string, pod *corev1.Pod, first bool) {
	image := pod.Spec.Containers[0].Image
	kl.report(id, podReport{pod: pod, waiting: "ContainerCreating"})

	if kl.pullForPod(ctx, id, pod, first) != nil {
		return
	}

	for ctx.Err() == nil {
		err := kl.runProcess(ctx, id, imageTag(image), func() { kl.report(id, podReport{pod: pod, ready: true}) })
		if ctx.Err() != nil {
			return
		}

		kl.World.Update(func() { kl.staticPodRun(id).restarts++ })

		message := fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_kube-system", kube.CrashPause, id,
			kl.mirrorName(id))
		kl.World.Logf("%s: %s: %v", kl.Name(), id, err)
		kl.report(id, podReport{pod: pod, waiting: "CrashLoopBackOff", message: message, event: &podEvent{
			reason: "BackOff", message: fmt.Sprintf("Back-off restarting failed container %s in pod %s_kube-system(%s)", id,
				kl.mirrorName(id), pod.Annotations[configHash]),
		}})

		_ = timing.Pause(ctx, kube.CrashPause) // ends with ctx, as the loop does
	}
}

// runProcess runs the component's process. It returns when the process crashed, or with
// the end of ctx.
func (kl *Kubelet) runProcess(ctx context.Context, id, version string, running func()) error {
	crash, crashed := context.WithCancel(ctx)
	defer crashed()

	if kl.Broken(id, version) {
		return machined.ErrComponentBroken
	}

	if id == k8s.APIServerID {
		if err := admissionRefused(kl.Config()); err != nil {
			return err
		}
	}

	kl.Spawn(func(context.Context) {
		defer crashed()

		_ = kl.World.Await(crash, func() bool { return kl.BreaksNow(id, version) }) // ends with crash, which is all
	})

	delay := kl.Delays.StaticPodStart
	if id == k8s.APIServerID {
		// It has no probes, so its pod is ready before it answers (Talos 1.13,
		// k8s/control_plane_static_pod.go).
		running()

		delay = kl.Delays.APIServer
	}

	if timing.Pause(crash, delay) != nil {
		return machined.ErrComponentBroken
	}

	if id == k8s.APIServerID {
		kl.runAPIServer(version)
		defer kl.runAPIServer("")

		if err := kl.host.ServeKubernetes(crash, version); err != nil {
			return err
		}

		return machined.ErrComponentBroken
	}

	running()
	<-crash.Done()

	return machined.ErrComponentBroken
}

// runAPIServer notes which version of kube-apiserver runs.
func (kl *Kubelet) runAPIServer(version string) {
	kl.World.Update(func() {
		if kl.APIServer = version; version != "" {
			kl.APIServerStarts++
		}

		kl.host.TellVersions()
	})
}

// pullForPod gets the image of a static pod, as long as it takes.
func (kl *Kubelet) pullForPod(ctx context.Context, id string, pod *corev1.Pod, first bool) error {
	image := pod.Spec.Containers[0].Image

	delay := kl.Delays.Pull
	if first {
		delay = 0 // it is part of what a boot takes
	}

	for {
		_, err := kl.images.Fetch(ctx, images.PodSpace, image, delay, func(int64, int64) {})
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}

		kl.report(id, podReport{
			pod: pod, waiting: "ImagePullBackOff",
			message: fmt.Sprintf("Back-off pulling image %q: %s: %s", image, errImagePull, err),
			event:   &podEvent{reason: "Failed", message: fmt.Sprintf("Failed to pull image %q: %s", image, err)},
		})

		if err := timing.Pause(ctx, kube.CrashPause); err != nil {
			return err
		}
	}
}

// errImagePull is a kubelet's reason for a failed pull (Kubernetes 1.36, kubelet/images/types.go).
const errImagePull = "ErrImagePull"

// retirePod removes the mirror pod of an unwanted static pod; one that is only replaced is reported again.
func (kl *Kubelet) retirePod(id string) {
	kl.World.Update(func() {
		if run := kl.staticPodRun(id); run.wanted == nil {
			run.shown = podReport{}
		}
	})
}

// imageTag is the tag of an image without what follows a "-" that is no release, such as -slim.
func imageTag(image string) string {
	tag, found := kubenames.Tag(image)
	if !found {
		return DefaultKubeletVersion
	}

	for _, variant := range []string{"-slim", "-fat"} {
		tag = strings.TrimSuffix(tag, variant)
	}

	return tag
}

// RunsStaticPods reports whether there were static pods to run in this boot; the world is held.
func (kl *Kubelet) RunsStaticPods() bool { return kl.staticPods != nil }

// PodReady reports whether a static pod is ready; the world is held.
func (kl *Kubelet) PodReady(id string) bool {
	run := kl.staticPods[id]

	return run != nil && run.shown.ready
}

// staticPodIDs are the static pods of a control plane in the order of Talos.
var staticPodIDs = []string{k8s.APIServerID, k8s.ControllerManagerID, k8s.SchedulerID}

// DefaultKubeletVersion is reported by a node whose kubelet image carries no tag.
const DefaultKubeletVersion = "v1.36.2"
