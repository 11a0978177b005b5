package hosttest

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// paths of a machine's data, by the labels of the volumes.
var paths = map[string]string{sim.VolumeState: "/system/state", sim.VolumeEphemeral: "/var"}

// take waits until no other pod has the machine of a pod, and returns it with what gives it back.
func (h *Host) take(ctx context.Context, pod *corev1.Pod) (*slot, func(), error) {
	name := machineName(pod.Namespace, pod.Name)

	h.mu.Lock()
	s := h.slots[name]
	if s == nil {
		s = &slot{held: make(chan struct{}, 1), volumes: map[string]string{}}
		h.slots[name] = s
	}
	h.mu.Unlock()

	select {
	case s.held <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}

	release := func() { <-s.held }

	if s.machine == nil {
		m, err := h.sim.AddMachine(ctx, sim.MachineOptions{Name: name, Platform: machined.Container, PoweredOff: true})
		if err != nil {
			release()

			return nil, nil, err
		}

		s.machine = m
	}

	return s, release, nil
}

// mounts waits until the claims of the pod are bound, as the attach and mount of their volumes would.
func (r *run) mounts() error {
	pod := r.pod.Load()

	return wait.Until(r.running, pollPeriod, func(context.Context) error {
		for _, volume := range pod.Spec.Volumes {
			if volume.PersistentVolumeClaim == nil {
				continue
			}

			name := volume.PersistentVolumeClaim.ClaimName

			claim, err := r.node.host.claims.PersistentVolumeClaims(pod.Namespace).Get(name)
			if err != nil {
				return err
			}

			if claim.Status.Phase != corev1.ClaimBound {
				return fmt.Errorf("claim %s is not bound", name)
			}

			r.claims[name] = claim.UID
		}

		return nil
	})
}

// mount empties what another volume than before is mounted for in the container that is to start.
func (s *slot) mount(r *run) {
	var fresh []string

	for label, path := range paths {
		if volume := r.volumeAt(path); s.volumes[label] != volume {
			s.volumes[label] = volume
			fresh = append(fresh, label)
		}
	}

	if len(fresh) > 0 {
		s.machine.WipeVolumes(fresh...)
	}
}

// volumeAt identifies what is mounted at a path: a claim, an emptyDir of the pod, or the container's own file system.
func (r *run) volumeAt(path string) string {
	pod := r.pod.Load()

	for _, mount := range talosOf(pod).VolumeMounts {
		if mount.MountPath != path {
			continue
		}

		for _, volume := range pod.Spec.Volumes {
			if volume.Name == mount.Name && volume.PersistentVolumeClaim != nil {
				return "claim " + string(r.claims[volume.PersistentVolumeClaim.ClaimName])
			}
		}

		return "pod " + string(pod.UID)
	}

	return "container " + r.container.ID
}

// unfit returns why Talos does not start in a pod (Talos 1.13, integration/k8s/tink.go has one in which it does).
func unfit(pod *corev1.Pod) string {
	spec := talosOf(pod)

	switch security := spec.SecurityContext; {
	case security == nil || security.Privileged == nil || !*security.Privileged:
		return "mount: operation not permitted: the container is not privileged"
	case !slices.ContainsFunc(spec.Env,
		func(e corev1.EnvVar) bool { return e.Name == "PLATFORM" && e.Value == "container" }):
		return "failed to determine platform: PLATFORM is not container"
	case security.ReadOnlyRootFilesystem == nil || !*security.ReadOnlyRootFilesystem:
		return ""
	}

	for _, path := range []string{"/run", "/system", "/tmp", "/system/state", "/var", "/etc/cni", "/etc/kubernetes",
		"/usr/libexec/kubernetes"} {
		if !mounted(spec, path) {
			return path + ": read-only file system"
		}
	}

	if mounted(spec, "/opt") {
		return "/opt: the volume hides the CNI plugins of the image"
	}

	return ""
}

func mounted(spec *corev1.Container, path string) bool {
	return slices.ContainsFunc(spec.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == path })
}
