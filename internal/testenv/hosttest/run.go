package hosttest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/images"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubelet"
)

// containerName is the name of the container in which Talos runs.
const containerName = "talos"

const (
	// backOff is the pause before the second restart in short time, and before the second try to pull; the
	// next ones take longer, up to maxBackOff (Kubernetes 1.36, kubelet: 10 seconds to 5 minutes).
	backOff    = 10 * time.Second / pace
	maxBackOff = 5 * time.Minute / pace
)

// run is a pod at its kubelet. All but pod is of the goroutine that runs it.
type run struct {
	node *node
	pod  atomic.Pointer[corev1.Pod]

	kill    func()          // ends everything at once: the pod's object is gone
	running context.Context //nolint:containedctx // ends when the pod is to end
	over    func()
	all     context.Context //nolint:containedctx // ends when there is nothing to report any more

	reported map[string]bool
	claims   map[string]types.UID // by name, as they were when the pod's volumes were mounted

	container container
	begun     metav1.Time
	address   string
	phase     corev1.PodPhase
}

// container is the state of the pod's container; sidecars are like it.
type container struct {
	kubelet.Container

	ended time.Time
}

func newRun(n *node, pod *corev1.Pod) *run {
	r := &run{node: n, reported: map[string]bool{}, claims: map[string]types.UID{}, begun: metav1.Now().Rfc3339Copy(),
		phase: corev1.PodPending}
	r.all, r.kill = context.WithCancel(n.ctx)
	r.running, r.over = context.WithCancel(r.all)
	r.pod.Store(pod)
	r.waits("ContainerCreating", "")

	for _, old := range pod.Status.ContainerStatuses {
		if old.Name == containerName && old.ContainerID != "" { // the node was off meanwhile
			r.container.Restarts = old.RestartCount + 1
			r.container.Last = kubelet.Terminated(old.ContainerID, 255, "Unknown", r.begun)
		}
	}

	return r
}

// see records the API's state of the pod.
func (r *run) see(pod *corev1.Pod) {
	r.pod.Store(pod)

	if !pod.DeletionTimestamp.IsZero() {
		r.over()
	}
}

// live is the life of a pod on its node.
func (r *run) live() {
	defer r.kill()

	play := r.idle
	if isTalos(r.pod.Load()) {
		play = r.machine
	}

	if err := play(); err != nil && r.running.Err() == nil {
		r.node.host.log("%s: pod %s: %v", r.node.name, r.pod.Load().Name, err)
	}

	if r.all.Err() == nil {
		r.confirm(r.all)
	}
}

func isTalos(pod *corev1.Pod) bool {
	return pod.Labels["app.kubernetes.io/name"] == "talos" && talosOf(pod) != nil
}

// talosOf is the container in which Talos runs.
func talosOf(pod *corev1.Pod) *corev1.Container {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == containerName {
			return &pod.Spec.Containers[i]
		}
	}

	return nil
}

// idle is a foreign pod.
func (r *run) idle() error {
	r.phase, r.container.Ready = corev1.PodRunning, true
	r.starts()
	r.report(r.running)
	<-r.running.Done()

	return nil
}

// machine is a pod that runs Talos.
func (r *run) machine() error {
	r.report(r.running)

	if err := r.mounts(); err != nil {
		return err
	}

	image, err := r.pulls()
	if err != nil {
		return err
	}

	s, release, err := r.node.host.take(r.running, r.pod.Load())
	if err != nil {
		return err
	}
	defer release()

	if err := s.machine.Place(sim.Placement{
		TalosVersion: image.Version, BootFails: image.BootFails, Hostname: r.pod.Load().Name, BootID: r.node.bootID,
	}); err != nil {
		return err
	}

	r.address = podAddress(s.machine.Address()).String()

	err = r.restarting(s)
	r.stop(s.machine)

	return err
}

// pulls returns what is in the pod's image as soon as it can be had.
func (r *run) pulls() (images.Image, error) {
	image := talosOf(r.pod.Load()).Image
	again := backOff

	for {
		content, err := r.node.host.sim.TalosImage(image)
		if err == nil {
			r.container.ImageID = imageID(image)

			return content, nil
		}

		// Kubernetes 1.36, kubelet/images/image_manager.go.
		reason := fmt.Sprintf("failed to pull and unpack image %q: failed to resolve reference %q: %v", image, image, err)
		if errors.Is(err, sim.ErrNoImage) {
			reason = fmt.Sprintf("rpc error: code = NotFound desc = failed to pull and unpack image %q: failed to resolve "+
				"reference %q: %s: not found", image, image, image)
		}

		r.waits("ErrImagePull", reason)
		r.tell(r.running, "Failed", fmt.Sprintf("Failed to pull image %q: %s", image, reason))
		r.report(r.running)

		if err := r.pause(again / 4); err != nil {
			return images.Image{}, err
		}

		r.waits("ImagePullBackOff", fmt.Sprintf("Back-off pulling image %q: ErrImagePull: %s", image, reason))
		r.tell(r.running, "BackOff", fmt.Sprintf("Back-off pulling image %q", image))
		r.report(r.running)

		if err := r.pause(again); err != nil {
			return images.Image{}, err
		}

		again = min(2*again, maxBackOff)
	}
}

// restarting runs containers one after the other until the pod is to end.
func (r *run) restarting(s *slot) error {
	next := backOff

	for {
		began := time.Now()

		if err := r.once(s); err != nil {
			return err
		}

		// Not until that was reported, which takes long where the host is busy: nothing would be put off then.
		ran := r.container.ended.Sub(began)
		r.container.Restarts++

		switch {
		case ran > 2*maxBackOff:
			next = backOff
		case r.container.Restarts > 1 && ran < next:
			var message string
			r.container.State, message = kubelet.CrashLoop(r.pod.Load(), containerName, next*pace)
			r.tell(r.running, "BackOff", message)
			r.report(r.running)

			if err := r.pause(next - ran); err != nil {
				return err
			}

			next = min(2*next, maxBackOff)
		}
	}
}

// once runs one container until it exits; an error means that the pod has to end.
func (r *run) once(s *slot) error {
	r.phase = corev1.PodRunning
	r.starts()

	if why := unfit(r.pod.Load()); why != "" {
		r.exits(1, why)
		r.report(r.running)

		return r.running.Err()
	}

	s.mount(r)
	s.machine.PowerOn()
	r.report(r.running)

	probing, done := context.WithCancel(r.running)
	defer done()

	results := r.probe(probing, s.machine.Address())
	off := s.machine.Off()

	for {
		select {
		case <-r.running.Done():
			return r.running.Err()
		case <-off:
			r.exits(int32(s.machine.ExitCode()), "") //nolint:gosec // a status
			r.report(r.running)

			return r.running.Err()
		case err := <-results:
			if err != nil {
				r.tell(r.running, "Unhealthy", "Readiness probe failed: "+err.Error())
			}

			if ready := err == nil; ready != r.container.Ready {
				r.container.Ready = ready
				r.report(r.running)
			}
		}
	}
}

// stop stops the machine of a pod within its grace period, or at once when no caller waits for that.
func (r *run) stop(m *sim.Machine) {
	defer m.PowerOff()

	if r.all.Err() != nil || r.container.State.Running == nil {
		return
	}

	grace := 30 * time.Second
	if seconds := r.pod.Load().DeletionGracePeriodSeconds; seconds != nil {
		grace = time.Duration(*seconds) * time.Second
	}

	timer := time.NewTimer(grace)
	defer timer.Stop()

	m.Terminate()

	select {
	case <-m.Off():
	case <-timer.C:
		m.PowerOff()
	case <-r.all.Done():
		return
	}

	r.exits(int32(m.ExitCode()), "") //nolint:gosec // a status
	r.phase = corev1.PodFailed
	r.report(r.all)
}

func (r *run) waits(reason, message string) {
	r.container.Ready = false
	r.container.State = kubelet.Waiting(reason, message)
}

func (r *run) starts() {
	r.container.ID = "containerd://" + hexadecimal(uuid.NewString()+uuid.NewString())
	r.container.State = corev1.ContainerState{
		Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now().Rfc3339Copy()}}
}

func (r *run) exits(code int32, message string) {
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: "Error", Message: message, StartedAt: r.container.State.Running.StartedAt,
		FinishedAt:  metav1.Now().Rfc3339Copy(),
		ContainerID: r.container.ID,
	}}

	r.container.Ready, r.container.State, r.container.Last, r.container.ended = false, ended, ended, time.Now()
}

func (r *run) pause(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()

	select {
	case <-timer.C:
		return nil
	case <-r.running.Done():
		return r.running.Err()
	}
}
