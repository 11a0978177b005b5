package machines_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/hosttest"
)

// A silent node of the host may come back with its data. A removed one has lost its volumes, and its machines start
// again without them, unless etcd needs what is lost.
func TestContainer_losesItsNode(t *testing.T) {
	testenv.BeforeRelease(t, "TestObserve_lostNodes", "TestObserve_lostVolumes", "TestPods_oneWhoseVolumesAreLost")
	t.Parallel()

	s := siteOn(t, hosttest.New(t, hosttest.Options{Nodes: 6}))

	s.losesTwo(t)
	s.losesAll(t)
}

// local is a configuration with volumes on the nodes, and with pods so large that the scheduler puts each on a
// separate node, whatever its role.
func local(config tftest.Config) tftest.Config {
	config = tftest.With(config, tftest.Config{"requests": tftest.Config{"cpu": "8"}}, "host", "pod", "resources")

	return tftest.With(config, tftest.Config{"class": hosttest.LocalClass}, "host", "pod", "storage")
}

// losesTwo removes the nodes of a control plane of three and of a worker.
func (s *hostSite) losesTwo(t *testing.T) {
	t.Helper()

	m := momentsOf(t, s)
	d, secrets := s.drive(t, "talosop_cluster"), tftest.NewBundle(t)
	config := local(s.cluster("dev", secrets, 3, 1))

	d.Ready(t, config)

	volumes, members, lost := s.claimUIDs(t), s.nodesInside(t, secrets, "dev-cp-0-0"),
		s.nodesOf(t, "dev-cp-1-0", "dev-batch-0-0")

	tftest.Must(t, s.LoseNode(t.Context(), lost[0]))

	if diagnostics := tftest.Show(d.Refresh(t).Must(t).Diagnostics); !strings.Contains(diagnostics,
		"its node "+lost[0]+" is not ready since") {
		t.Errorf("with a silent node the refresh says: %s", diagnostics)
	}

	if operations := operationsIn(t, d.Plan(t, config).Must(t)); strings.Contains(operations, "replace volumes") {
		t.Errorf("with a silent node the plan says:\n%s", operations)
	}

	for _, node := range lost {
		tftest.Must(t, s.DeleteNode(t.Context(), node))
	}

	if diagnostics := tftest.Show(d.Refresh(t).Must(t).Diagnostics); !strings.Contains(diagnostics, "[volumes_lost]") ||
		tftest.Text(t, d.State, "phase") != "Degraded" {
		t.Errorf("with lost nodes the refresh says: %s", diagnostics)
	}

	// From here on every refresh compares configurations, including those with the addresses of peers.
	d.Refresh(t).Must(t)

	for _, name := range []string{"cp-0", "cp-2"} {
		var drift []tftypes.Value
		tftest.Must(t, tftest.AttributeOf(t, tftest.FieldsOf(t, tftest.AttributeOf(t, d.State, "observed"))[name],
			"drift").As(&drift))

		if len(drift) != 0 {
			t.Errorf("%s lost nothing and differs: %v", name, drift)
		}
	}

	operations := operationsIn(t, d.Plan(t, config).Must(t))
	for _, machine := range []string{"control plane cp-1", "worker batch/0"} {
		if !strings.Contains(operations, "replace volumes of "+machine+" (its data is lost") {
			t.Errorf("the plan does not say what becomes of %s:\n%s", machine, operations)
		}
	}

	m.listen(func(moment string) {
		for _, pod := range []string{"dev-cp-0-0", "dev-cp-2-0"} {
			if ready, why := s.Machine(s.namespace, pod).Ready(); !ready && strings.HasPrefix(moment, "host ") {
				t.Errorf("%s: while %s is not ready: %v", moment, pod, why)
			}
		}
	})
	d.Ready(t, config)
	d.ExpectEmpty(t, "after the nodes were lost", config)

	if got := m.with("host Wipe "); !slices.Equal(got, []string{"cp-1", "batch/0"}) {
		t.Errorf("volumes were replaced of %v", got)
	}

	m.listen(nil)
	s.expectEtcd(t, "dev", 3)

	for name, uid := range s.claimUIDs(t) {
		if another := strings.HasSuffix(name, "-cp-1") ||
			strings.HasSuffix(name, "-batch-0"); another == (volumes[name] == uid) {
			t.Errorf("volume %s is another one: %t", name, !another)
		}
	}

	for name, uid := range s.nodesInside(t, secrets, "dev-cp-1-0") {
		if another := name == "dev-cp-1" || name == "dev-batch-0"; !another && members[name] != uid {
			t.Errorf("what etcd had of node %s is gone", name)
		}
	}

	s.destroy(t, d, "dev")
}

// losesAll removes the node of the only control plane.
func (s *hostSite) losesAll(t *testing.T) {
	t.Helper()

	d := s.drive(t, "talosop_control_plane")
	config := local(s.container("alone", tftest.NewBundle(t)))
	config["replicas"] = 1

	d.Ready(t, config)

	volumes := s.claimUIDs(t)

	tftest.Must(t, s.DeleteNode(t.Context(), s.nodesOf(t, "alone-cp-0-0")[0]))

	if diagnostics := tftest.Show(d.RefreshedPlan(t, config).Diagnostics); !strings.Contains(diagnostics, "[refused_already]") {
		t.Errorf("the plan says: %s", diagnostics)
	}

	done := d.Apply(t, config)
	for _, words := range []string{"the data of 1 of 1 control planes is lost",
		"is on a node that no longer exists", "restore_from"} {
		if !done.Failed() || !strings.Contains(tftest.Show(done.Diagnostics), words) {
			t.Errorf("the apply does not say %q: %s", words, tftest.Show(done.Diagnostics))
		}
	}

	for name, uid := range s.claimUIDs(t) {
		if volumes[name] != uid {
			t.Errorf("volume %s is another one", name)
		}
	}

	s.destroy(t, d, "alone")
}

// nodesOf are the nodes of the host that run pods, each on a separate one.
func (s *hostSite) nodesOf(t *testing.T, pods ...string) []string {
	t.Helper()

	var nodes []string

	for _, name := range pods {
		node := s.Pod(t, name).Spec.NodeName

		list, err := s.API().CoreV1().Pods(s.namespace).List(t.Context(),
			metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
		tftest.Must(t, err)

		if len(list.Items) != 1 {
			t.Fatalf("%d pods are on node %s", len(list.Items), node)
		}

		nodes = append(nodes, node)
	}

	return nodes
}

// nodesInside distinguish the nodes that a cluster has stored from their replacements, as the machine in a pod
// serves them.
func (s *hostSite) nodesInside(t *testing.T, secrets, pod string) map[string]types.UID {
	t.Helper()

	list, err := s.inside(t, secrets, pod).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	tftest.Must(t, err)

	uids := map[string]types.UID{}
	for _, node := range list.Items {
		uids[node.Name] = node.UID
	}

	return uids
}
