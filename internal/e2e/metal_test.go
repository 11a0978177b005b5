package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
)

// withMeta gives every machine of the quickstart a value in META, its name.
const withMeta = `
resource "talosop_control_plane" "this" {
  machines = { for name, address in var.control_planes : name => { address = address, meta = { user_1 = name } } }
}

resource "talosop_worker" "this" {
  machines = { for name, address in var.workers : name => { address = address, meta = { user_1 = name } } }
}
`

// userMeta is the key of user_1 as Talos writes it.
const userMeta = "0x0c"

// metal: what only machines with disks can do. The machines are installed with a value in META, upgraded while the
// provider is killed, roll back from a Talos that does not boot, take a configuration with a reboot, and are wiped:
// Talos and META stay on their disks. Of several control planes one is lost, then all, and they shrink to one.
func (s site) metal(t *testing.T, cli clitest.CLI) {
	for _, ability := range []string{"install", "reset"} {
		s.needs(t, ability)
	}

	w := s.workspace(t, cli)
	w.Write("meta_override.tf", withMeta)
	s.applied(t, w, "create with installation")
	s.holdsMeta(t, w)

	if s.can("upgrade") {
		s.upgradedDespiteAKill(t, w)
		s.goesBack(t, w)
	} else {
		t.Log("left out: the upgrades, because these machines cannot be upgraded (TALOSOP_E2E_CANNOT)")
	}

	before := bootIDs(t, w)
	s.patches = append(s.patches, rebootPatch)
	s.applied(t, w, "a configuration that takes a reboot")
	rebooted(t, w, before)

	if len(s.controlPlanes) > 1 {
		s.replaces(t, w)
		s.restored(t, w)
		s.shrinks(t, w)
	}

	s.destroy(t, w)

	for name, address := range s.named() {
		if err := keptItsDisk(t.Context(), address, s.talosVersion, name); err != nil {
			t.Errorf("%s after its reset: %v", name, err)
		}
	}
}

// replaces wipes the data of the last control plane outside Terraform: its member leaves etcd, it is configured
// again and joins. No other machine is touched.
func (s site) replaces(t *testing.T, w *clitest.Workspace) {
	t.Helper()

	before, last := bootIDs(t, w), len(s.controlPlanes)
	s.wipe(t, w, s.controlPlanes[last-1])

	lost := fmt.Sprintf("cp-%d", last)
	if _, output := w.PlanIsEmpty(); !strings.Contains(output, lost) {
		t.Errorf("the plan does not name %s, which has lost its disks:\n%s", lost, output)
	}

	s.applied(t, w, "a control plane in place of one that lost its data")
	s.holdsMeta(t, w)

	for name, boot := range bootIDs(t, w) {
		if name != lost && boot != before[name] {
			t.Errorf("%s was rebooted while %s was replaced", name, lost)
		}
	}
}

// named are the addresses of all machines by name.
func (s site) named() map[string]string {
	all := named("cp", s.controlPlanes)
	for name, address := range named("worker", s.workers) {
		all[name] = address
	}

	return all
}

// holdsMeta checks that META of every machine holds its name.
func (s site) holdsMeta(t *testing.T, w *clitest.Workspace) {
	t.Helper()

	b := bundle(t, w)

	for name, address := range s.named() {
		item, err := safe.StateGetByID[*runtime.MetaKey](t.Context(), s.client(t, b, address).COSI, userMeta)
		if err != nil {
			t.Errorf("META of %s: %v", name, err)
		} else if got := item.TypedSpec().Value; got != name {
			t.Errorf("META of %s holds %q under %s, want its name", name, got, userMeta)
		}
	}
}

// upgradedDespiteAKill upgrades Talos. The provider process is killed with SIGKILL when the first machine is down,
// and the next apply finishes the upgrade. The pods of the workers are evicted first.
func (s *site) upgradedDespiteAKill(t *testing.T, w *clitest.Workspace) {
	t.Helper()

	before := bootIDs(t, w)
	b, api := bundle(t, w), s.kubernetesAPI(t, w)
	first := s.client(t, b, s.controlPlanes[0])
	pods := s.deploys(t, api)

	s.talosVersion = s.talosAfter
	w.Write(variables, s.variables(t, false))

	apply := w.Start("apply", "-auto-approve")
	s.await(t, apply, "a machine that goes down for its upgrade", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()

		if _, err := first.Version(ctx); err == nil {
			return errors.New("it still answers")
		}

		return nil
	})
	apply.KillProvider()
	failed(t, apply)

	s.applied(t, w, "the upgrade of Talos that was killed")
	rebooted(t, w, before)
	s.schedulable(t, api)

	for _, m := range observed(t, w) {
		for name, machine := range m {
			if machine.TalosVersion != s.talosAfter {
				t.Errorf("%s runs Talos %s after the upgrade to %s", name, machine.TalosVersion, s.talosAfter)
			}
		}
	}

	if s.image == "" {
		return
	}

	eventually(t, s.boot, "the pod of the drained worker elsewhere or replaced", func(ctx context.Context) error {
		now, err := runningPods(ctx, api)
		if err != nil {
			return err
		}

		if len(now) != 1 || now[0].UID == pods[0].UID {
			return fmt.Errorf("there are %d pods that run", len(now))
		}

		return nil
	})
}

// goesBack upgrades to a Talos whose boot fails. The first machine comes back with the previous version. The rollout
// ends there and reports the reason: no other machine is touched, and none stays cordoned.
func (s site) goesBack(t *testing.T, w *clitest.Workspace) {
	t.Helper()

	if s.talosFailing == "" {
		t.Log("left out: the upgrade whose boot fails, because no such release is given (TALOSOP_E2E_TALOS_FAILING)")

		return
	}

	began, before := time.Now(), bootIDs(t, w)

	failing := s
	failing.talosVersion = s.talosFailing
	w.Write(variables, failing.variables(t, false))

	result := w.Run("apply", "-auto-approve")
	if output := result.Unwrapped(); result.Exit == 0 || !strings.Contains(output, "Talos rolled the upgrade back") ||
		!strings.Contains(output, s.talosFailing) {
		t.Fatalf("the apply of a Talos that does not boot ended with %d and does not say that it was rolled back:\n%s",
			result.Exit, result.Output())
	}

	for name, boot := range bootIDs(t, w) {
		if touched := boot != before[name]; touched != (name == "cp-1") {
			t.Errorf("%s was rebooted: %t", name, touched)
		}
	}

	s.schedulable(t, s.kubernetesAPI(t, w))
	t.Logf("the upgrade that Talos rolled back: %s", time.Since(began).Round(time.Second))
	s.applied(t, w, "taking back the Talos that does not boot")
}

// rebooted checks that every machine has rebooted since these boot IDs.
func rebooted(t *testing.T, w *clitest.Workspace, before map[string]string) {
	t.Helper()

	for name, boot := range bootIDs(t, w) {
		if boot == before[name] {
			t.Errorf("%s was not rebooted", name)
		}
	}
}

// schedulable checks that no node is cordoned.
func (s site) schedulable(t *testing.T, api kubernetes.Interface) {
	t.Helper()

	nodes, err := api.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}

	for _, node := range nodes.Items {
		if node.Spec.Unschedulable {
			t.Errorf("node %s is cordoned", node.Name)
		}
	}
}

// deploys lets the first worker run a pod, on machines that run pods, and returns the running pods.
func (s site) deploys(t *testing.T, api kubernetes.Interface) []corev1.Pod {
	t.Helper()

	if s.image == "" {
		return nil
	}

	one, labels := int32(1), map[string]string{"app": "e2e"}

	_, err := api.AppsV1().Deployments(metav1.NamespaceDefault).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "e2e"},
		Spec: appsv1.DeploymentSpec{Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				NodeSelector: map[string]string{corev1.LabelHostname: "worker-1"},
				Containers:   []corev1.Container{{Name: "wait", Image: s.image}},
			}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	var pods []corev1.Pod

	eventually(t, s.boot, "a pod on a worker", func(ctx context.Context) (err error) {
		if pods, err = runningPods(ctx, api); err == nil && len(pods) != 1 {
			err = fmt.Errorf("there are %d that run", len(pods))
		}

		return err
	})

	return pods
}

// runningPods are the pods of deploys that run and do not terminate.
func runningPods(ctx context.Context, api kubernetes.Interface) ([]corev1.Pod, error) {
	list, err := api.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: "app=e2e"})
	if err != nil {
		return nil, err
	}

	var running []corev1.Pod

	for _, pod := range list.Items {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			running = append(running, pod)
		}
	}

	return running, nil
}

// keptItsDisk returns nil when a machine in maintenance mode runs the Talos on its disk, with its value in META.
func keptItsDisk(ctx context.Context, address, version, meta string) (err error) {
	c, err := asStranger(ctx, address)
	if err != nil {
		return err
	}

	defer func() { err = errors.Join(err, c.Close()) }()

	runs, err := c.Version(ctx)
	if err != nil {
		return err
	}

	if tag := runs.GetMessages()[0].GetVersion().GetTag(); tag != version {
		return fmt.Errorf("it runs Talos %s, want %s from its disk", tag, version)
	}

	item, err := safe.StateGetByID[*runtime.MetaKey](ctx, c.COSI, userMeta)
	if err != nil {
		return fmt.Errorf("read its META: %w", err)
	}

	if got := item.TypedSpec().Value; got != meta {
		return fmt.Errorf("META holds %q under %s, want %q", got, userMeta, meta)
	}

	return nil
}
