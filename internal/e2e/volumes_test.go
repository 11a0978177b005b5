package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/sim/kube"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// TestAccVolumes_killed kills the provider process with SIGKILL while a volume lingers on a drained node: during the
// wait for it and, in make test-all, at each call that changes a machine, before and after the machine executes it.
// The next apply waits for the rest, and reboots each machine once.
func TestAccVolumes_killed(t *testing.T) {
	const changes = 4 // a configuration and a reboot of each machine

	clis := clitest.All(t)

	for n := 0; n <= changes; n++ {
		for i, served := range []bool{false, true} {
			// No call is served during the wait.
			if n == 0 && served || n > 0 && !testenv.Everything() {
				continue
			}

			t.Run(fmt.Sprintf("%d served=%t", n, served), func(t *testing.T) {
				t.Parallel()
				killedWithVolumes(t, clis[(n+i)%len(clis)], n, served)
			})
		}
	}
}

// killedWithVolumes kills the provider at the n-th change of a machine, or for zero during the wait for the volume.
func killedWithVolumes(t *testing.T, cli clitest.CLI, n int, served bool) {
	t.Helper()

	s, machines := standIn(t, 1, 1)
	w := s.files(t, cli)
	w.MustRun("apply", "-auto-approve")

	worker, api := machines.Machine("worker-1"), s.kubernetesAPI(t, w)
	if err := worker.AttachVolume(t.Context(), kube.Volume{Name: "db", Linger: 3 * time.Second}); err != nil {
		t.Fatal(err)
	}

	boots := map[string]int{}
	for _, m := range machines.Machines() {
		boots[m.Name()] = m.Boots()
	}

	s.patches = append(s.patches, rebootPatch)
	w.Write(variables, s.variables(t, false))

	if n > 0 {
		kill(t, machines, w, n, served, "apply", "-auto-approve")
	} else {
		killWaiting(t, w, api)
	}

	var early atomic.Bool

	machines.SetOnCall(func(c fault.Call) error {
		if c.Method == "Reboot" && c.Machine == worker.Name() && !detached(t.Context(), api) {
			early.Store(true)
		}

		return nil
	})
	defer machines.SetOnCall(nil)

	w.MustRun("apply", "-auto-approve")
	s.isUsable(t, w)
	plansNothing(t, w, "after the change that was killed")

	if early.Load() || !detached(t.Context(), api) {
		t.Error("the worker was rebooted before its volume was detached")
	}

	for _, m := range machines.Machines() {
		if again := m.Boots() - boots[m.Name()]; again != 1 {
			t.Errorf("%s was rebooted %d times, want once", m.Name(), again)
		}
	}
}

// killWaiting kills the provider of an apply after the pod of the volume is gone, while the volume is attached.
func killWaiting(t *testing.T, w *clitest.Workspace, api kubernetes.Interface) {
	t.Helper()

	p := w.Start("apply", "-auto-approve")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)

	defer cancel()

	if err := wait.Until(ctx, 20*time.Millisecond, func(ctx context.Context) error {
		_, err := api.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, "db", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}

		return errors.Join(errors.New("the pod is not evicted yet"), err)
	}); err != nil {
		t.Fatalf("%v\n%s", err, p.Output())
	}

	p.KillProvider()

	if result := p.Wait(); result.Exit == 0 {
		t.Fatalf("the apply succeeded although its provider was killed\n%s", result.Output())
	}

	if detached(t.Context(), api) {
		t.Fatal("the provider was killed after the volume was detached")
	}
}

// detached reports whether the volume is.
func detached(ctx context.Context, api kubernetes.Interface) bool {
	_, err := api.StorageV1().VolumeAttachments().Get(ctx, "csi-db", metav1.GetOptions{})

	return apierrors.IsNotFound(err)
}
