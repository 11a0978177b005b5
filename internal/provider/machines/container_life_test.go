package machines_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/talosop/terraform-provider-talosop/internal/containers"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// A cluster of pods is created in one run, has an empty plan, is repaired after others removed parts of it, and is
// removed without a trace.
func TestContainerCluster_lifecycle(t *testing.T) {
	t.Parallel()

	s := newHostSite(t)
	d := s.drive(t, "talosop_cluster")
	config := s.cluster("dev", tftest.NewBundle(t), 3, 2)

	d.Ready(t, config)
	d.ExpectEmpty(t, "after the create", config)

	if got := s.bootstraps(); got != 1 {
		t.Errorf("etcd was bootstrapped %d times", got)
	}

	before := s.podUIDs(t)

	s.damage(t)

	operations := operationsIn(t, d.RefreshedPlan(t, config))
	for _, words := range []string{"repair on the host cluster, for cp-0: Service",
		"repair on the host cluster, for batch/1: StatefulSet"} {
		if !strings.Contains(operations, words) {
			t.Errorf("the plan does not say %q:\n%s", words, operations)
		}
	}

	d.Ready(t, config)
	d.ExpectEmpty(t, "after the repair", config)

	for name, uid := range s.podUIDs(t) {
		if before[name] != uid {
			t.Errorf("the repair replaced pod %s", name)
		}
	}

	s.destroy(t, d, "dev")
}

// podUIDs distinguish the pods of a namespace from their replacements.
func (s *hostSite) podUIDs(t *testing.T) map[string]types.UID {
	t.Helper()

	list, err := s.API().CoreV1().Pods(s.namespace).List(t.Context(), metav1.ListOptions{})
	tftest.Must(t, err)

	uids := map[string]types.UID{}
	for _, pod := range list.Items {
		uids[pod.Name] = pod.UID
	}

	return uids
}

// damage deletes the Service of the cluster and the StatefulSet of a worker, whose pod stays, and changes the
// Service of a machine.
func (s *hostSite) damage(t *testing.T) {
	t.Helper()

	orphan := metav1.DeletePropagationOrphan
	core := s.API().CoreV1()

	tftest.Must(t, core.Services(s.namespace).Delete(t.Context(), "dev", metav1.DeleteOptions{}))
	tftest.Must(t, s.API().AppsV1().StatefulSets(s.namespace).Delete(t.Context(), "dev-batch-1",
		metav1.DeleteOptions{PropagationPolicy: &orphan}))

	_, err := core.Services(s.namespace).Patch(t.Context(), "dev-cp-0", types.MergePatchType,
		[]byte(`{"spec":{"publishNotReadyAddresses":false}}`), metav1.PatchOptions{FieldManager: "somebody"})
	tftest.Must(t, err)
}

// A cluster grows and shrinks, and its Talos is upgraded pod by pod, while pods are killed.
func TestContainerCluster_scalesAndUpgrades(t *testing.T) {
	t.Parallel()
	testenv.BeforeRelease(t, "TestContainerCluster_lifecycle", "TestContainerPlan_ofReplacements", "TestPods_lifecycle")

	s := newHostSite(t)
	d := s.drive(t, "talosop_cluster")
	config := s.cluster("dev", tftest.NewBundle(t), 3, 1)

	d.Ready(t, config)

	tftest.Must(t, s.KillPod(t.Context(), s.namespace, "dev-batch-0-0"))

	config = tftest.With(tftest.With(config, "v1.13.1", "talos_version"), 5, "control_plane", "replicas")
	operations := operationsIn(t, d.RefreshedPlan(t, config))

	if !strings.Contains(operations, "upgrade Talos on cp-0: v1.13.0 -> v1.13.1") {
		t.Errorf("the plan says:\n%s", operations)
	}

	d.Ready(t, config)
	d.ExpectEmpty(t, "after the upgrade", config)

	for _, pod := range []string{"dev-cp-0-0", "dev-cp-4-0", "dev-batch-0-0"} {
		if got := s.imageOf(t, pod); got != "ghcr.io/siderolabs/talos:v1.13.1" {
			t.Errorf("pod %s has image %s", pod, got)
		}
	}

	for _, replicas := range []int{3, 1} {
		config = tftest.With(config, replicas, "control_plane", "replicas")
		d.Ready(t, config)
	}

	d.ExpectEmpty(t, "after it shrank", config)

	if got := s.pods(t, workload.LabelRole+"="+string(workload.ControlPlane)); !slices.Equal(got, []string{"dev-cp-0-0"}) {
		t.Errorf("control planes are left: %v", got)
	}

	if got := s.bootstraps(); got != 1 {
		t.Errorf("etcd was bootstrapped %d times", got)
	}

	s.destroy(t, d, "dev")
}

func (s *hostSite) imageOf(t *testing.T, pod string) string {
	t.Helper()

	found, err := s.API().CoreV1().Pods(s.namespace).Get(t.Context(), pod, metav1.GetOptions{})
	tftest.Must(t, err)

	return found.Spec.Containers[0].Image
}

// Clusters share a namespace, or have names in common, without conflicts.
func TestContainerCluster_sideBySide(t *testing.T) {
	testenv.BeforeRelease(t, "TestContainer_workersOfAControlPlane", "TestRemove_leavesNothing",
		"TestEnsure_leavesForeignObjectsAlone")
	t.Parallel()

	s := newHostSite(t)
	elsewhere := siteOn(t, s.Host)
	one, two, same := s.drive(t, "talosop_cluster"), s.drive(t, "talosop_control_plane"),
		elsewhere.drive(t, "talosop_cluster")

	plane := s.container("dev2", tftest.NewBundle(t))
	plane["replicas"] = 1

	one.Ready(t, s.cluster("dev", tftest.NewBundle(t), 1, 1))
	two.Ready(t, plane)
	same.Ready(t, elsewhere.cluster("dev", tftest.NewBundle(t), 1, 0))

	before := s.podUIDs(t)

	one.Apply(t, nil).Must(t)
	two.ExpectEmpty(t, "after its neighbour went", plane)
	same.ExpectEmpty(t, "after its namesake went", elsewhere.cluster("dev", tftest.Text(t, same.State, "secrets"), 1, 0))

	if after := s.podUIDs(t); len(after) != 1 || after["dev2-cp-0-0"] != before["dev2-cp-0-0"] {
		t.Errorf("pods are left: %v", after)
	}

	// A cluster with other secrets is a foreign cluster, whatever its name.
	other := s.drive(t, "talosop_control_plane")
	done := other.Apply(t, tftest.With(plane, tftest.NewBundle(t), "secrets"))

	if !done.Failed() || !strings.Contains(tftest.Show(done.Diagnostics), "dev2") {
		t.Errorf("a cluster of the same name was made: %s", tftest.Show(done.Diagnostics))
	}

	two.Apply(t, nil).Must(t)
	same.Apply(t, nil).Must(t)
	s.expectNothing(t, "dev2")
	s.expectNothing(t, "dev")
	elsewhere.expectNothing(t, "dev")
}

// A silent host proves nothing about its machines: they are kept, and nothing is destroyed.
func TestContainerCluster_hostIsSilent(t *testing.T) {
	t.Parallel()

	s := newHostSite(t)
	d := s.drive(t, "talosop_control_plane")
	config := s.container("dev", tftest.NewBundle(t))
	config["replicas"] = 1

	d.Ready(t, config)

	silent := &hostSite{Host: s.Host, namespace: s.namespace, wrap: func(containers.Host) containers.Host {
		h := newFakeHost()
		h.fails = map[string]error{"identity": errSilent, "observe": errSilent, "check": errSilent}

		return h
	}}

	away := *d
	away.Server = silent.serve(t)

	read := away.Refresh(t).Must(t)
	if diagnostics := tftest.Show(read.Diagnostics); !strings.Contains(diagnostics, "[machines_unreachable]") ||
		!strings.Contains(diagnostics, errSilent.Error()) {
		t.Errorf("the refresh says: %s", diagnostics)
	}

	if got, want := operationsIn(t, away.Plan(t, config).Must(t)), "wait for cp-0\nwait for etcd: "; !strings.HasPrefix(got, want) {
		t.Errorf("the plan does more than wait:\n%s", got)
	}

	if done := away.Apply(t, nil); !done.Failed() || !strings.Contains(tftest.Show(done.Diagnostics), errSilent.Error()) {
		t.Errorf("the destroy says: %s", tftest.Show(done.Diagnostics))
	}

	// A create is planned, with a warning, and creates nothing.
	fresh := silent.drive(t, "talosop_control_plane")
	if diagnostics := tftest.Show(fresh.Plan(t, config).Must(t).Diagnostics); !strings.Contains(diagnostics, "[host_not_checked]") {
		t.Errorf("the plan of a create says: %s", diagnostics)
	}

	if done := fresh.Apply(t, config); !done.Failed() || !fresh.State.IsNull() {
		t.Errorf("the create says: %s", tftest.Show(done.Diagnostics))
	}

	s.destroy(t, d, "dev")
}

// The plan finds what prevents the creation of machines and reports it at the attribute. Nothing is created.
func TestContainerCluster_preflightFailsThePlan(t *testing.T) {
	t.Parallel()

	s := newHostSite(t)

	_, err := s.API().CoreV1().ResourceQuotas(s.namespace).Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "small"},
		Spec: corev1.ResourceQuotaSpec{
			Hard: corev1.ResourceList{corev1.ResourcePods: clusterhandle.QuantityOr("0", "0")}},
	}, metav1.CreateOptions{})
	tftest.Must(t, err)

	missing := tftest.With(s.cluster("dev", tftest.NewBundle(t), 1, 0),
		tftest.Config{"storage": tftest.Config{"class": "no-such"}},
		"host", "pod")

	for name, test := range map[string]struct {
		config tftest.Config
		words  string
	}{
		"a storage class that is missing": {missing, "no-such"},
		"a quota that is too small":       {s.cluster("dev", tftest.NewBundle(t), 3, 0), "small"},
	} {
		d := s.drive(t, "talosop_cluster")

		if done := d.Apply(t, test.config); !done.Failed() || !strings.Contains(tftest.Show(done.Diagnostics), test.words) {
			t.Errorf("%s: %s", name, tftest.Show(done.Diagnostics))
		}

		if !d.State.IsNull() {
			t.Errorf("%s: something was stored", name)
		}
	}

	s.expectNothing(t, "dev")
}
