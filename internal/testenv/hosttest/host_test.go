package hosttest_test

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/hosttest"
)

func TestMain(m *testing.M) { hosttest.Run(m) }

// TestPod_isAMachine is the life of a machine in a pod: it has what its volumes have, whatever pod runs it.
func TestPod_isAMachine(t *testing.T) {
	t.Parallel()
	testenv.BeforeRelease(t, "TestContainerCluster_lifecycle")

	s, c := newSite(t, hosttest.Shared(t)), newCluster(t)
	s.probe = 6443 // only after etcd was bootstrapped

	first := s.create(c, "dev-cp-0", "v1.13.1")
	m := s.machine("dev-cp-0")

	if m.TalosVersion() != "v1.13.1" || talosOf(first).Image != image+"v1.13.1" {
		t.Errorf("release %s, status %+v", m.TalosVersion(), talosOf(first))
	}

	// The pod goes: an orderly stop, another address, and all is as before.
	s.delete(first)
	second := s.podThat("dev-cp-0", after(first))

	if second.Status.PodIP == first.Status.PodIP || talosOf(second).ContainerID == talosOf(first).ContainerID {
		t.Errorf("the next pod has the same address or container: %+v", second.Status)
	}

	// The container exits: another container in the same pod.
	s.call(c, "dev-cp-0", func(ctx context.Context, t *client.Client) error {
		_, err := t.ApplyConfiguration(ctx,
			&machine.ApplyConfigurationRequest{Data: c.config,
				Mode: machine.ApplyConfigurationRequest_REBOOT}) //nolint:staticcheck // what Talos 1.13 takes

		return err
	})

	restarted := s.podThat("dev-cp-0", func(pod *corev1.Pod) error {
		if talosOf(pod).RestartCount == 0 {
			return errors.New("no restart")
		}

		return ready(pod)
	})

	if talosOf(restarted).ContainerID == talosOf(second).ContainerID || restarted.Status.PodIP != second.Status.PodIP {
		t.Errorf("after a restart: %+v", restarted.Status)
	}

	if ended := talosOf(restarted).LastTerminationState.Terminated; ended == nil || ended.ExitCode != 129 ||
		ended.ContainerID != talosOf(second).ContainerID {
		t.Errorf("the last container: %+v", ended)
	}

	// Another image is another release of the same machine, once the pod is replaced.
	s.setImage("dev-cp-0", "v1.13.2")
	s.delete(restarted)
	s.podThat("dev-cp-0", after(restarted))

	if m.TalosVersion() != "v1.13.2" || !m.Configured() {
		t.Errorf("release %s, configured %v", m.TalosVersion(), m.Configured())
	}
}

func (s *site) setImage(name, tag string) {
	s.t.Helper()

	_, err := s.API().AppsV1().StatefulSets(s.namespace).Patch(s.t.Context(), name, types.StrategicMergePatchType,
		[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"talos","image":"`+image+tag+`"}]}}}}`),
		metav1.PatchOptions{})
	must(s.t, err)
}

// renew deletes claims of a machine and its pod, and makes the claims again.
func (s *site) renew(name string, pod *corev1.Pod, volumes ...string) {
	s.t.Helper()

	claims := s.API().CoreV1().PersistentVolumeClaims(s.namespace)

	for _, volume := range volumes {
		must(s.t, claims.Delete(s.t.Context(), volume+"-"+name, metav1.DeleteOptions{}))
	}

	s.delete(pod)

	for _, volume := range volumes {
		soon(s.t, func(ctx context.Context) error { return s.claim(ctx, name, volume) })
	}
}

// TestVolumes_areTheMachine: the configuration goes with one volume, and the data of etcd with another.
func TestVolumes_areTheMachine(t *testing.T) {
	t.Parallel()

	s, c := newSite(t, hosttest.Shared(t)), newCluster(t)
	s.probe = 6443

	pod := s.create(c, "dev-cp-0", "v1.13.1")

	s.renew("dev-cp-0", pod, "state")
	s.podThat("dev-cp-0", another(pod))
	s.configure(c, "dev-cp-0")
	pod = s.podThat("dev-cp-0", ready) // its etcd has its data

	s.renew("dev-cp-0", pod, "var")
	s.podThat("dev-cp-0", another(pod))
	s.call(c, "dev-cp-0", func(ctx context.Context, t *client.Client) error {
		return t.Bootstrap(ctx, &machine.BootstrapRequest{})
	})
	pod = s.podThat("dev-cp-0", ready)

	s.renew("dev-cp-0", pod, slices.Collect(maps.Keys(kept))...)
	s.podThat("dev-cp-0", another(pod))
	s.in("dev-cp-0", sim.StageMaintenance)
}

// another is a pod that runs, but the one before.
func another(old *corev1.Pod) func(*corev1.Pod) error {
	return func(pod *corev1.Pod) error {
		if pod.UID == old.UID {
			return errors.New("still the same pod")
		}

		return running(pod)
	}
}

// TestVolumes_ephemeralOnesGoWithThePod, and stay when its container only starts again.
func TestVolumes_ephemeralOnesGoWithThePod(t *testing.T) {
	t.Parallel()

	s, c := newSite(t, hosttest.Shared(t)), newCluster(t)
	s.ephemeral = true

	s.make("dev-cp-0", "v1.13.1")
	s.podThat("dev-cp-0", ready)
	s.configure(c, "dev-cp-0")

	m := s.machine("dev-cp-0")
	m.PowerOff() // as a crash does
	pod := s.podThat("dev-cp-0", func(next *corev1.Pod) error {
		if talosOf(next).RestartCount == 0 {
			return errors.New("no restart")
		}

		return ready(next)
	})

	if !m.Configured() || talosOf(pod).LastTerminationState.Terminated.ExitCode != 137 {
		t.Errorf("configured %v after a crash: %+v", m.Configured(), talosOf(pod))
	}

	must(t, s.KillPod(t.Context(), s.namespace, pod.Name))
	s.podThat("dev-cp-0", after(pod))

	if m.Configured() {
		t.Error("the configuration is still there")
	}
}

// TestPod_withRealParts: the etcd and the kube-apiserver in the pods can be real ones, whose data stays, too.
func TestPod_withRealParts(t *testing.T) {
	t.Parallel()
	testenv.BeforeRelease(t, "TestAccContainer_addonAndBackup")

	s, c := newSite(t, hosttest.New(t, hosttest.Options{Assets: filepath.Dir(clitest.Asset(t, "etcd"))})), newCluster(t)
	s.probe = 6443

	pod := s.create(c, "dev-cp-0", "v1.13.1")
	s.delete(pod)
	s.podThat("dev-cp-0", after(pod))
}
