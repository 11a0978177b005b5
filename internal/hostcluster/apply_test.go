package hostcluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// testTime bounds what a test waits for, which only matters in failure: a busy machine may take long.
const testTime = 3 * time.Minute

// site is a namespace of the shared host, and the host as talosop opens it.
type site struct {
	*hostcluster.Host
	cluster   *kubetest.Cluster
	namespace string
}

func newSite(t *testing.T) site {
	t.Helper()

	cluster := kubetest.Shared(t)

	return site{Host: openHost(t, cluster.Kubeconfig()), cluster: cluster, namespace: cluster.Namespace(t)}
}

func openHost(t *testing.T, kubeconfig string) *hostcluster.Host {
	t.Helper()

	host, err := hostcluster.Open(hostcluster.Options{Kubeconfig: api.Kubeconfig{Path: kubeconfig}})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(host.Close)

	return host
}

// spec is one of a cluster with control planes and workers that is small enough for any host.
func (s site) spec(name string, controlPlanes, workers int) workload.Spec {
	spec := workload.Spec{
		Cluster: name, Mark: "mark-of-" + name, Namespace: s.namespace, Domain: "cluster.local", Access: workload.PortForward,
		Endpoint: &workload.EndpointService{Type: corev1.ServiceTypeClusterIP},
	}

	for n := range controlPlanes {
		spec.Machines = append(spec.Machines, podMachine(fmt.Sprintf("cp-%d", n), "cp", n, workload.ControlPlane))
	}

	for n := range workers {
		spec.Machines = append(spec.Machines, podMachine(fmt.Sprintf("batch/%d", n), "batch", n, workload.Worker))
	}

	return spec
}

func podMachine(name, pool string, ordinal int, role workload.Role) workload.Machine {
	return workload.Machine{
		Name: name, Pool: pool, Ordinal: ordinal, Role: role, Image: "ghcr.io/siderolabs/talos:v1.13.0",
		Pod: workload.PodSpec{Storage: workload.Storage{
			State: resource.MustParse("1Gi"), Var: resource.MustParse("20Gi"), Other: resource.MustParse("100Mi"),
		}},
	}
}

// objects of a cluster in the namespace, by kind and name: everything that has its labels.
func (s site) objects(t *testing.T, spec workload.Spec) map[string]metav1.Object {
	t.Helper()

	options := metav1.ListOptions{LabelSelector: spec.Selector()}
	found := map[string]metav1.Object{}
	add := func(kind string, list runtime.Object, err error) {
		t.Helper()
		check(t, err)

		items, err := meta.ExtractList(list)
		check(t, err)

		for _, item := range items {
			o, err := meta.Accessor(item)
			check(t, err)

			found[kind+" "+o.GetName()] = o
		}
	}

	api := s.cluster.API()

	sets, err := api.AppsV1().StatefulSets(s.namespace).List(t.Context(), options)
	add("StatefulSet", sets, err)
	pods, err := api.CoreV1().Pods(s.namespace).List(t.Context(), options)
	add("Pod", pods, err)
	claims, err := api.CoreV1().PersistentVolumeClaims(s.namespace).List(t.Context(), options)
	add("PersistentVolumeClaim", claims, err)
	services, err := api.CoreV1().Services(s.namespace).List(t.Context(), options)
	add("Service", services, err)
	budgets, err := api.PolicyV1().PodDisruptionBudgets(s.namespace).List(t.Context(), options)
	add("PodDisruptionBudget", budgets, err)
	policies, err := api.NetworkingV1().NetworkPolicies(s.namespace).List(t.Context(), options)
	add("NetworkPolicy", policies, err)
	revisions, err := api.AppsV1().ControllerRevisions(s.namespace).List(t.Context(), options)
	add("ControllerRevision", revisions, err)
	slices, err := api.DiscoveryV1().EndpointSlices(s.namespace).List(t.Context(), options)
	add("EndpointSlice", slices, err)

	return found
}

// await waits for a condition of the host.
func await(t *testing.T, condition func(context.Context) error) {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	defer cancel()

	check(t, wait.Until(ctx, 50*time.Millisecond, condition))
}

// observe returns what the host has once it is as a test wants it.
func (s site) observe(t *testing.T, spec workload.Spec, wants func(workload.Observation) bool) workload.Observation {
	t.Helper()

	var seen workload.Observation

	await(t, func(ctx context.Context) (err error) {
		if seen, err = s.Observe(ctx, spec); err != nil {
			return wait.Permanent(err)
		}

		if !wants(seen) {
			return fmt.Errorf("the observation is %+v", seen)
		}

		return nil
	})

	return seen
}

// quiet reports whether everything is there, runs, and is as it should be.
func quiet(o workload.Observation) bool {
	for _, m := range o.Machines {
		if !m.Exists || !m.Complete || !m.Ready || len(m.Outdated)+len(m.Drift) > 0 || m.Diagnosis != "" || m.VolumesLost {
			return false
		}
	}

	return len(o.Missing)+len(o.Drift) == 0
}

func TestEnsure_makesWhatMachinesNeedOnce(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	spec := s.spec("dev", 1, 2)
	spec.Labels, spec.Annotations = map[string]string{"team": "blue", workload.LabelMark: "mine"},
		map[string]string{"note": "for tests"}

	before, err := s.Observe(t.Context(), spec)
	check(t, err)

	if m := before.Machines["cp-0"]; m.Exists || m.Complete || m.Diagnosis != "" || len(m.Drift) != 9 ||
		len(before.Missing) != 2 {
		t.Errorf("of nothing the observation is %+v", before)
	}

	check(t, s.Ensure(t.Context(), spec))
	seen := s.observe(t, spec, quiet)

	if m := seen.Machines["cp-0"]; m.Pod != "dev-cp-0-0" || m.PodUID == "" || len(m.PodIPs) != 1 || m.Container == "" ||
		m.Node == "" ||
		m.Image != spec.Machines[0].Image {
		t.Errorf("of a pod that runs the observation has %+v", m)
	}

	if seen.Machines["batch/1"].Pod != "dev-batch-1-0" {
		t.Errorf("a machine of a pool is observed as %+v", seen.Machines["batch/1"])
	}

	for name, o := range s.objects(t, spec) {
		if o.GetLabels()["team"] != "blue" || o.GetLabels()[workload.LabelManagedBy] != "talosop" {
			t.Errorf("%s has labels %v", name, o.GetLabels())
		}
	}

	proxy := s.cluster.Proxy(t)
	check(t, openHost(t, proxy.Kubeconfig()).Ensure(t.Context(), spec))

	for _, call := range proxy.Seen(kubetest.Call.Changes) {
		t.Errorf("a second Ensure asked for %s", call)
	}
}

func TestRemove_leavesNothing(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	dev, test := s.spec("dev", 1, 1), s.spec("test", 1, 0)

	check(t, s.Ensure(t.Context(), dev))
	check(t, s.Ensure(t.Context(), test))
	s.observe(t, dev, quiet)
	s.observe(t, test, quiet)

	others := s.objects(t, test)

	if err := s.RemoveShared(t.Context(), dev); err == nil || !strings.Contains(err.Error(), "batch-0") {
		t.Errorf("with machines the removal of what they share ends with %v", err)
	}

	for _, m := range dev.Machines {
		check(t, s.Remove(t.Context(), dev, m.Name))
		check(t, s.Remove(t.Context(), dev, m.Name))
	}

	seen, err := s.Observe(t.Context(), dev)
	check(t, err)

	if seen.Machines["cp-0"].Exists {
		t.Error("a machine that was removed exists")
	}

	check(t, s.RemoveShared(t.Context(), dev))
	check(t, s.RemoveShared(t.Context(), dev))

	if left := s.objects(t, dev); len(left) > 0 {
		t.Errorf("there are still %v", slices.Sorted(maps.Keys(left)))
	}

	for name, o := range s.objects(t, test) {
		if others[name] == nil || others[name].GetUID() != o.GetUID() {
			t.Errorf("%s of the other cluster is another one", name)
		}
	}
}

func TestReplace_usesTheNewTemplate(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	spec := s.spec("dev", 1, 1)
	check(t, s.Ensure(t.Context(), spec))
	before := s.observe(t, spec, quiet)
	claims := s.objects(t, spec)

	for i := range spec.Machines {
		spec.Machines[i].Image = "ghcr.io/siderolabs/talos:v1.13.1"
	}

	check(t, s.Ensure(t.Context(), spec))

	seen, err := s.Observe(t.Context(), spec)
	check(t, err)

	m := seen.Machines["cp-0"]
	if len(m.Outdated) != 1 || !saying(m.Outdated, "v1.13.1") || len(m.Drift) > 0 ||
		m.PodUID != before.Machines["cp-0"].PodUID {
		t.Fatalf("with another image wanted, and ensured, the machine is %+v", m)
	}

	check(t, s.Replace(t.Context(), spec, "cp-0"))

	after := s.observe(t, spec, func(o workload.Observation) bool { return o.Machines["cp-0"].Ready })
	if m := after.Machines["cp-0"]; m.PodUID == before.Machines["cp-0"].PodUID || m.Image != spec.Machines[0].Image ||
		len(m.Outdated) > 0 {
		t.Errorf("after the replacement the machine is %+v", m)
	}

	if m := after.Machines["batch/0"]; m.PodUID != before.Machines["batch/0"].PodUID || len(m.Outdated) == 0 {
		t.Errorf("the other machine is %+v", m)
	}

	check(t, s.Replace(t.Context(), spec, "cp-0"))

	again, err := s.Observe(t.Context(), spec)
	check(t, err)

	if again.Machines["cp-0"].PodUID != after.Machines["cp-0"].PodUID {
		t.Error("a pod that was right was replaced")
	}

	for name, o := range s.objects(t, spec) {
		if strings.HasPrefix(name, "PersistentVolumeClaim") && claims[name].GetUID() != o.GetUID() {
			t.Errorf("%s was recreated", name)
		}
	}

	check(t, s.Restart(t.Context(), spec, "cp-0"))

	restarted := s.observe(t, spec, func(o workload.Observation) bool { return o.Machines["cp-0"].Ready })
	if restarted.Machines["cp-0"].PodUID == after.Machines["cp-0"].PodUID {
		t.Error("a restart left the pod")
	}
}

func uidOf(objects map[string]metav1.Object, name string) types.UID {
	if objects[name] == nil {
		return ""
	}

	return objects[name].GetUID()
}

func encoded(t *testing.T, o any) string {
	t.Helper()

	text, err := json.Marshal(o)
	check(t, err)

	return string(text)
}
