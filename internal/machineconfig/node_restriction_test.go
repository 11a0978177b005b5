package machineconfig

import (
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/setting"
)

// What Kubernetes refuses the kubelet of a worker is a warning at the patch that says it, in either form.
func TestGenerate_warnsOfNodeRestriction(t *testing.T) {
	t.Parallel()

	const (
		role     = "machine: {nodeLabels: {node-role.kubernetes.io/storage: \"\", rack: b2}}\n"
		allowed  = "machine: {nodeLabels: {rack: b2, node.kubernetes.io/pool: a, topology.kubernetes.io/zone: z}}\n"
		taint    = "machine: {nodeTaints: {gpu: \"only:NoSchedule\"}}\n"
		document = "apiVersion: v1alpha1\nkind: KubeNodeConfig\nlabels: {x.node-restriction.kubernetes.io/a: b}\n"
		taints   = "apiVersion: v1alpha1\nkind: KubeNodeConfig\ntaints: {gpu: \"only:NoSchedule\"}\n"
	)

	for name, test := range map[string]struct {
		contract, talos string
		role            Role
		patch           string
		refused         string
	}{
		"a role":                   {"v1.13", "v1.13.6", Worker, role, "node-role.kubernetes.io/storage"},
		"free labels":              {"v1.13", "v1.13.6", Worker, allowed, ""},
		"a role of control planes": {"v1.13", "v1.13.6", ControlPlane, role, ""},
		"a taint up to 1.13":       {"v1.13", "v1.13.6", Worker, taint, "gpu"},
		"a taint from 1.14 on":     {"v1.13", "v1.14.1", Worker, taint, ""},
		"a document":               {"v1.14", "v1.14.1", Worker, document, "x.node-restriction.kubernetes.io/a"},
		"a taint in a document":    {"v1.14", "v1.14.1", Worker, taints, ""},
	} {
		c, m := testCluster(test.contract), testMachine(test.role)
		m.TalosVersion, m.PoolPatches, m.Patches = test.talos, []string{test.patch}, []string{"machine: {sysctls: {a: b}}\n"}

		if test.contract == "v1.14" {
			m.Patches = nil
		}

		config, err := Generate(c, m, testBundle(t))
		if err != nil {
			t.Errorf("%s: %v", name, err)

			continue
		}

		if test.refused == "" {
			if len(config.Ineffective) > 0 {
				t.Errorf("%s: %v", name, config.Ineffective[0])
			}

			continue
		}

		if len(config.Ineffective) != 1 || config.Ineffective[0].Field != "pool.patches[0]" ||
			!strings.HasPrefix(config.Ineffective[0].Found, test.refused+" among") {
			t.Errorf("%s: %v", name, config.Ineffective)
		}
	}
}

// What settings say is a warning at the attribute, that of the most specific level, and what a patch says at the patch.
func TestGenerate_warnsOfNodeRestrictionInSettings(t *testing.T) {
	t.Parallel()

	for _, contract := range []string{"v1.13", "v1.14"} {
		c, m := testCluster(contract), testMachine(Worker)
		m.TalosVersion = "v1.13.6"
		c.Settings.Set(setting.Labels, map[string]string{"rack": "b2", "node-role.kubernetes.io/all": ""})
		m.PoolSettings.Set(setting.Taints, map[string]string{"gpu": "NoSchedule"})
		m.Settings.Set(setting.Labels, map[string]string{"node-role.kubernetes.io/storage": ""})

		m.Patches = []string{"machine: {nodeLabels: {node-role.kubernetes.io/patched: \"\"}}\n"}
		if contract == "v1.14" {
			m.TalosVersion = "v1.14.1"
			m.Patches = []string{"apiVersion: v1alpha1\nkind: KubeNodeConfig\nlabels: {node-role.kubernetes.io/patched: \"\"}\n"}
		}

		var got []string
		for _, field := range generated(t, c, m).Ineffective {
			found, _, _ := strings.Cut(field.Found, " among")
			got = append(got, field.Field+" "+found)
		}

		want := []string{"machine.labels node-role.kubernetes.io/storage", "pool.taints gpu",
			"labels node-role.kubernetes.io/all", "machine.patches[0] node-role.kubernetes.io/patched"}
		if contract == "v1.14" {
			want = slices.Delete(want, 1, 2) // Talos 1.14 registers the node with its taints
		}

		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", contract, got, want)
		}
	}
}
