package sim

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	corev1 "k8s.io/api/core/v1"

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
func (b *boot) staticPodRun(id string) *staticPodRun {
	if b.staticPods[id] == nil {
		b.staticPods[id] = &staticPodRun{}
	}

	return b.staticPods[id]
}

// setStaticPod hands a static pod to the kubelet; nil takes it away.
func (b *boot) setStaticPod(id string, pod *corev1.Pod) {
	hash := ""
	if pod != nil {
		hash = podHash(pod)
	}

	b.World.Lock()
	defer b.World.Unlock()

	if run := b.staticPodRun(id); run.hash != hash {
		run.wanted, run.hash = pod, hash
		b.World.Notify()
	}
}

// podHash is what a kubelet takes for a static pod's UID.
func podHash(pod *corev1.Pod) string {
	content, err := json.Marshal(pod)
	if err != nil {
		panic(err) // a pod of ours always encodes
	}

	sum := sha256.Sum256(content)

	return hex.EncodeToString(sum[:16])
}

// runStaticPods is what the kubelet of a control plane does about its static pods,
// beginning with the first healthy etcd, before which machined serves none. They stay
// when etcd loses its quorum.
func (b *boot) runStaticPods(ctx context.Context) {
	if b.World.Await(ctx, func() bool { return b.etcdUp }) != nil {
		return
	}

	b.World.Update(func() { b.staticPods = map[string]*staticPodRun{} })
	b.render()

	for _, id := range staticPodIDs {
		b.Spawn(func(context.Context) { b.runStaticPod(ctx, id) })
		b.Spawn(func(context.Context) { b.runMirrorPod(ctx, id) })
		b.Spawn(func(context.Context) { b.runPodStatus(ctx, id) })
	}
}

// runStaticPod runs one static pod after the other until ctx ends.
func (b *boot) runStaticPod(ctx context.Context, id string) {
	for first := true; ctx.Err() == nil; first = false {
		var (
			pod  *corev1.Pod
			hash string
		)

		if b.World.Await(ctx, func() bool {
			run := b.staticPodRun(id)
			pod, hash = run.wanted, run.hash

			return pod != nil
		}) != nil {
			return
		}

		life, end := context.WithCancel(ctx)

		b.Spawn(func(context.Context) {
			defer end()

			// A changed pod runs on until the kubelet notices; a stopped kubelet does not.
			if b.World.Await(life, func() bool { return b.kubeletRun > 0 && b.staticPodRun(id).hash != hash }) == nil {
				_ = timing.Pause(life, b.m.Delays.StaticPod) // ends with life, which is over then anyway
			}
		})
		b.runContainer(life, id, pod, first)
		end()
		b.retirePod(id)
	}
}

// runContainer is the life of a static pod's container: the image, then the process,
// over and over again while it crashes.
func (b *boot) runContainer(ctx context.Context, id string, pod *corev1.Pod, first bool) {
	image := pod.Spec.Containers[0].Image
	b.report(id, podReport{pod: pod, waiting: "ContainerCreating"})

	if b.pullForPod(ctx, id, pod, first) != nil {
		return
	}

	for ctx.Err() == nil {
		err := b.runProcess(ctx, id, imageTag(image), func() { b.report(id, podReport{pod: pod, ready: true}) })
		if ctx.Err() != nil {
			return
		}

		b.World.Update(func() { b.staticPodRun(id).restarts++ })

		message := fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_kube-system", kube.CrashPause, id, b.mirrorName(id))
		b.World.Logf("%s: %s: %v", b.m.Name(), id, err)
		b.report(id, podReport{pod: pod, waiting: "CrashLoopBackOff", message: message, event: &podEvent{
			reason: "BackOff", message: fmt.Sprintf("Back-off restarting failed container %s in pod %s_kube-system(%s)", id, b.mirrorName(id), podHash(pod)),
		}})

		_ = timing.Pause(ctx, kube.CrashPause) // ends with ctx, as the loop does
	}
}

// runProcess runs the component's process. It returns when the process crashed, or with
// the end of ctx.
func (b *boot) runProcess(ctx context.Context, id, version string, running func()) error {
	crash, crashed := context.WithCancel(ctx)
	defer crashed()

	if b.Broken(id, version) {
		return machined.ErrComponentBroken
	}

	b.Spawn(func(context.Context) {
		defer crashed()

		_ = b.World.Await(crash, func() bool { return b.BreaksNow(id, version) }) // ends with crash, which is all
	})

	delay := b.m.Delays.StaticPodStart
	if id == k8s.APIServerID {
		// It has no probes, so its pod is ready before it answers (Talos 1.13,
		// k8s/control_plane_static_pod.go).
		running()

		delay = b.m.Delays.APIServer
	}

	if timing.Pause(crash, delay) != nil {
		return machined.ErrComponentBroken
	}

	if id == k8s.APIServerID {
		if err := b.serveKubernetes(crash, version); err != nil {
			return err
		}

		return machined.ErrComponentBroken
	}

	running()
	<-crash.Done()

	return machined.ErrComponentBroken
}

// pullForPod gets the image of a static pod, as long as it takes.
func (b *boot) pullForPod(ctx context.Context, id string, pod *corev1.Pod, first bool) error {
	image := pod.Spec.Containers[0].Image

	delay := b.m.Delays.Pull
	if first {
		delay = 0 // it is part of what a boot takes
	}

	for {
		_, err := b.Images.Fetch(ctx, images.PodSpace, image, delay, func(int64, int64) {})
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}

		b.report(id, podReport{
			pod: pod, waiting: "ImagePullBackOff", message: fmt.Sprintf("Back-off pulling image %q: %s: %s", image, errImagePull, err),
			event: &podEvent{reason: "Failed", message: fmt.Sprintf("Failed to pull image %q: %s", image, err)},
		})

		if err := timing.Pause(ctx, kube.CrashPause); err != nil {
			return err
		}
	}
}

// errImagePull is a kubelet's reason for a failed pull (Kubernetes 1.36, kubelet/images/types.go).
const errImagePull = "ErrImagePull"

// retirePod takes a static pod's mirror pod away that is not wanted any more; one that is
// only replaced is reported anew.
func (b *boot) retirePod(id string) {
	b.World.Update(func() {
		if run := b.staticPodRun(id); run.wanted == nil {
			run.shown = podReport{}
		}
	})
}

// imageTag is the tag of an image without what follows a "-" that is no release, such as -slim.
func imageTag(image string) string {
	image, _, _ = strings.Cut(image, "@")

	_, tag, found := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	if !found {
		return DefaultKubeletVersion
	}

	for _, variant := range []string{"-slim", "-fat"} {
		tag = strings.TrimSuffix(tag, variant)
	}

	return tag
}
