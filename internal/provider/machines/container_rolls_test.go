package machines_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// A change of the pods is rolled out pod by pod, a change that restarts Talos in the existing pods, and another
// Kubernetes version without either. Two control planes are never down together, and all volumes are kept.
func TestContainer_changesOneByOne(t *testing.T) {
	testenv.BeforeRelease(t, "TestContainerCluster_lifecycle", "TestPods_lifecycle")
	t.Parallel()

	s := newHostSite(t)
	m := momentsOf(t, s)
	d := s.drive(t, "talosop_cluster")
	config := tftest.With(s.cluster("rolling", tftest.NewBundle(t), 3, 1), "v1.35.4", "kubernetes_version")

	d.Ready(t, config)

	volumes, pods := s.claimUIDs(t), s.podUIDs(t)

	config = tftest.With(config, tftest.Config{"requests": tftest.Config{"cpu": "100m"}}, "host", "pod", "resources")

	s.watchPlanes(t, m, "rolling", 3)

	if operations := operationsIn(t, d.Plan(t, config).Must(t)); !strings.Contains(operations, "cp-0") ||
		!strings.Contains(operations, "replace pod") {
		t.Errorf("the plan says:\n%s", operations)
	}

	d.Ready(t, config)
	d.ExpectEmpty(t, "after the roll", config)

	if got := m.with("host Replace "); !slices.Equal(slices.Sorted(slices.Values(got)),
		[]string{"batch/0", "cp-0", "cp-1", "cp-2"}) || got[3] != "batch/0" {
		t.Errorf("pods were replaced in the order %v", got)
	}

	for name, uid := range s.podUIDs(t) {
		if cpu := s.Pod(t, name).Spec.Containers[0].Resources.Requests.Cpu().String(); cpu != "100m" || uid == pods[name] {
			t.Errorf("pod %s requests %s, and is another one: %t", name, cpu, uid != pods[name])
		}
	}

	s.restartInPlace(t, d, m, config)
	s.expectEtcd(t, "rolling", 3)

	for name, uid := range s.claimUIDs(t) {
		if volumes[name] != uid {
			t.Errorf("volume %s is another one", name)
		}
	}

	m.listen(nil)
	s.destroy(t, d, "rolling")
}

// restartInPlace changes a setting that restarts Talos, and then Kubernetes, which does not.
func (s *hostSite) restartInPlace(t *testing.T, d *tftest.Driven, m *moments, config tftest.Config) {
	t.Helper()

	pods, before := s.podUIDs(t), s.containers(t)
	config = tftest.With(config, []any{"machine: {files: [{path: /var/etc/hello, op: create, permissions: 0o644, content: " +
		"hello}]}"}, "control_plane", "config_patches")

	s.watchPlanes(t, m, "rolling", 3)
	d.Ready(t, config)
	d.ExpectEmpty(t, "after the restart", config)

	if got := m.with("host "); len(got) > 0 {
		t.Errorf("the host was asked to %v", got)
	}

	for i := range 3 {
		if restarts := m.with(fmt.Sprintf("talos rolling-cp-%d-0 ApplyConfiguration reboot", i)); len(restarts) != 1 {
			t.Errorf("cp-%d was restarted %d times: %v", i, len(restarts), m.with(""))
		}
	}

	after := s.containers(t)
	for name, uid := range s.podUIDs(t) {
		if plane := strings.HasPrefix(name, "rolling-cp-"); pods[name] != uid || plane == (before[name] == after[name]) {
			t.Errorf("%s: another pod: %t, another container: %t", name, pods[name] != uid, before[name] != after[name])
		}
	}

	config = tftest.With(config, "v1.36.3", "kubernetes_version")

	d.Ready(t, config)
	d.ExpectEmpty(t, "after the upgrade of Kubernetes", config)

	if !strings.Contains(string(s.Machine(s.namespace, "rolling-cp-0-0").Config()), "kube-apiserver:v1.36.3") {
		t.Error("the API server is another one")
	}

	for name, container := range s.containers(t) {
		if container != after[name] {
			t.Errorf("%s was restarted for another Kubernetes", name)
		}
	}
}

func (s *hostSite) Pod(t *testing.T, name string) *corev1.Pod {
	t.Helper()

	found, err := s.API().CoreV1().Pods(s.namespace).Get(t.Context(), name, metav1.GetOptions{})
	tftest.Must(t, err)

	return found
}

// containers identify the runs of Talos in the pods.
func (s *hostSite) containers(t *testing.T) map[string]string {
	t.Helper()

	ids := map[string]string{}
	for name := range s.podUIDs(t) {
		ids[name] = s.Pod(t, name).Status.ContainerStatuses[0].ContainerID
	}

	return ids
}

// A machine without volumes is not restarted by replacing its pod.
func TestContainer_withoutVolumesIsNotRestarted(t *testing.T) {
	t.Parallel()

	h := newFakeHost("cp-0")
	f := containersOn(h, memberAlways, 0, "cp-0")
	f.Watch.Spec.Machines[0].Pod.Storage.Ephemeral = true

	err := f.Machine(cluster.Machine{Name: "cp-0"}).Reboot(t.Context(), "")
	if !wait.IsPermanent(err) || !errors.Is(err, talos.ErrUnsupported) ||
		!strings.Contains(err.Error(), "storage.ephemeral") {
		t.Errorf("the restart ends with %v", err)
	}

	if len(h.calls) > 0 {
		t.Errorf("the host was asked for %v", h.calls)
	}
}
