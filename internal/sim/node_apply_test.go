package sim_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// nodeSettings are labels, annotations and taints of the main document.
type nodeSettings struct{ labels, annotations, taints string }

// configure sends a machine of a role its configuration with other settings of its node.
func (c *testCluster) configure(m *sim.Machine, kind machinetype.Type, s nodeSettings, insecurely bool) {
	c.t.Helper()

	text := "machine:\n  nodeLabels: {" + s.labels + "}\n  nodeAnnotations: {" + s.annotations + "}\n  nodeTaints: {" +
		s.taints + "}\n"

	patch, err := configpatcher.LoadPatch([]byte(text))
	check(c.t, err)

	patched, err := configpatcher.Apply(configpatcher.WithBytes(c.config(kind)), []configpatcher.Patch{patch})
	check(c.t, err)

	config, err := patched.Bytes()
	check(c.t, err)

	admin := insecure(c.t, m)
	if !insecurely {
		admin = c.secure(m)
	}

	_, err = admin.ApplyConfiguration(c.t.Context(), &machine.ApplyConfigurationRequest{
		Data: config, Mode: machine.ApplyConfigurationRequest_AUTO,
	})
	check(c.t, err)
}

// stripped is what of a node's labels, annotations and taints does not come with every node.
func stripped(node *corev1.Node) (labels, annotations, taints map[string]string) {
	labels, annotations, taints = maps.Clone(node.Labels), map[string]string{}, map[string]string{}

	for _, key := range []string{corev1.LabelHostname, corev1.LabelOSStable, corev1.LabelArchStable} {
		delete(labels, key)
	}

	for key, value := range node.Annotations {
		if !strings.HasPrefix(key, "talos.dev/") {
			annotations[key] = value
		}
	}

	for _, t := range node.Spec.Taints {
		taints[t.Key] = t.Value + ":" + string(t.Effect)
	}

	return labels, annotations, taints
}

// A control plane gives its node every label. A worker has the credentials of its kubelet alone: with one label or taint
// that NodeRestriction refuses, nothing that the configuration says comes to its node.
func TestNode_takesWhatItsCredentialsMayWrite(t *testing.T) {
	t.Parallel()

	role, free := `node-role.kubernetes.io/storage: ""`, "rack: b2, node.kubernetes.io/pool: a, topology.kubernetes.io/zone: z"
	all := map[string]string{"rack": "b2", "node.kubernetes.io/pool": "a", "topology.kubernetes.io/zone": "z"}
	none := map[string]string{}

	for name, test := range map[string]struct {
		version                     string
		worker                      nodeSettings
		labels, annotations, taints map[string]string
	}{
		"free labels": {"v1.13.6", nodeSettings{labels: free, annotations: "by: me"},
			all, map[string]string{"by": "me"}, none},
		"a role":        {"v1.13.6", nodeSettings{labels: free + ", " + role, annotations: "by: me"}, none, none, none},
		"a restriction": {"v1.14.1", nodeSettings{labels: "x.node-restriction.kubernetes.io/a: b, rack: b2"}, none, none, none},
		"a taint up to 1.13": {"v1.13.6", nodeSettings{labels: free, taints: "gpu: only:NoSchedule"},
			none, none, none},
		"a taint since 1.14": {"v1.14.1", nodeSettings{labels: free, taints: "gpu: only:NoSchedule"},
			all, none, map[string]string{"gpu": "only:NoSchedule"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			simulator := sim.ForTest(t, sim.Options{TalosVersion: test.version})
			plane, worker := addMachines(t, simulator, "cp", 1)[0], addMachines(t, simulator, "w", 1)[0]
			c := newTestCluster(t, simulator)

			c.configure(plane, machinetype.TypeControlPlane, nodeSettings{labels: role}, true)
			c.configure(worker, machinetype.TypeWorker, test.worker, true)
			c.bootstrap(plane)
			check(t, plane.AwaitReady(within(t, time.Minute)))
			check(t, worker.AwaitReady(within(t, time.Minute)))

			nodes := c.kubernetes(plane).CoreV1().Nodes()

			eventually(t, "the labels of the control plane", func(ctx context.Context) error {
				node, err := nodes.Get(ctx, plane.Hostname(), metav1.GetOptions{})
				if err != nil {
					return err
				}

				labels, _, _ := stripped(node)
				if _, ok := labels["node-role.kubernetes.io/storage"]; !ok {
					return fmt.Errorf("labels %v", labels)
				}

				return nil
			})

			eventually(t, "the worker", func(ctx context.Context) error {
				node, err := nodes.Get(ctx, worker.Hostname(), metav1.GetOptions{})
				if err != nil {
					return err
				}

				labels, annotations, taints := stripped(node)
				if !maps.Equal(labels, test.labels) || !maps.Equal(annotations, test.annotations) ||
					!maps.Equal(taints, test.taints) {
					return fmt.Errorf("labels %v, annotations %v, taints %v", labels, annotations, taints)
				}

				return nil
			})

			// What NodeRestriction refused comes as soon as it is not among the settings any more.
			c.configure(worker, machinetype.TypeWorker, nodeSettings{labels: "rack: c3"}, false)

			eventually(t, "the next labels", func(ctx context.Context) error {
				node, err := nodes.Get(ctx, worker.Hostname(), metav1.GetOptions{})
				if err != nil {
					return err
				}

				labels, annotations, _ := stripped(node)
				if !maps.Equal(labels, map[string]string{"rack": "c3"}) && len(test.taints) == 0 || len(annotations) > 0 {
					return fmt.Errorf("labels %v, annotations %v", labels, annotations)
				}

				return nil
			})
		})
	}
}
