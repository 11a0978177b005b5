package machines_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// A mistake in a setting is reported at the attribute of its level, and so is what Kubernetes refuses for a worker.
func TestSettings_mistakesAtTheirLevel(t *testing.T) {
	t.Parallel()

	const (
		planes  = `AttributeName("control_plane")`
		batch   = `AttributeName("workers").ElementKeyString("batch")`
		machine = batch + `.AttributeName("machines").ElementKeyString("w-1")`
		handle  = `AttributeName("cluster")`
	)

	for name, test := range map[string]struct {
		resource, at string
		config       tftest.Config
		severity     tfprotov6.DiagnosticSeverity
	}{
		"label of the cluster": {"talosop_cluster", `AttributeName("labels").ElementKeyString("a b")`,
			tftest.With(tftest.BaseCluster(), "c", "labels", "a b"), tfprotov6.DiagnosticSeverityError},
		"taint of the control plane": {"talosop_cluster", planes + `.AttributeName("taints").ElementKeyString("gpu")`,
			tftest.With(tftest.BaseCluster(), "Never", "control_plane", "taints", "gpu"), tfprotov6.DiagnosticSeverityError},
		"annotation of a pool": {"talosop_cluster", batch + `.AttributeName("annotations").ElementKeyString("a/b/c")`,
			tftest.With(tftest.BaseCluster(), "d", "workers", "batch", "annotations", "a/b/c"),
			tfprotov6.DiagnosticSeverityError},
		"null of a machine": {"talosop_cluster", machine + `.AttributeName("labels").ElementKeyString("rack")`,
			tftest.With(tftest.BaseCluster(), nil, "workers", "batch", "machines", "w-1", "labels", "rack"),
			tfprotov6.DiagnosticSeverityError},
		"role of a machine": {"talosop_cluster", machine + `.AttributeName("labels")`,
			tftest.With(tftest.BaseCluster(), "", "workers", "batch", "machines", "w-1", "labels",
				"node-role.kubernetes.io/storage"),
			tfprotov6.DiagnosticSeverityWarning},
		"role of a pool": {"talosop_worker", `AttributeName("labels")`,
			tftest.With(tftest.BaseWorker(), "", "labels", "node-role.kubernetes.io/storage"),
			tfprotov6.DiagnosticSeverityWarning},
		"role in a handle": {"talosop_worker", handle + `.AttributeName("labels")`,
			tftest.With(tftest.BaseWorker(), "", "cluster", "labels", "node-role.kubernetes.io/storage"),
			tfprotov6.DiagnosticSeverityWarning},
		"sysctl of the cluster": {"talosop_cluster", `AttributeName("sysctls").ElementKeyString("vm")`,
			tftest.With(tftest.BaseCluster(), "1", "sysctls", "vm"), tfprotov6.DiagnosticSeverityError},
		"issuer of the control plane": {"talosop_control_plane", `AttributeName("oidc").AttributeName("issuer_url")`,
			tftest.With(tftest.BaseControlPlane(), tftest.Config{"issuer_url": "http://id.test", "client_id": "kube"}, "oidc"),
			tfprotov6.DiagnosticSeverityError},
		"virtual IP in a handle": {"talosop_machine", handle + `.AttributeName("vip").AttributeName("address")`,
			tftest.With(tftest.BaseMachine(), tftest.Config{"address": "10.0.0.300", "link": "eth0"}, "cluster", "vip"),
			tfprotov6.DiagnosticSeverityError},
		"virtual IP of a worker": {"talosop_cluster", machine + `.AttributeName("vip")`,
			tftest.With(tftest.BaseCluster(), tftest.Config{"address": "10.0.0.100", "link": "eth0"}, "workers", "batch",
				"machines", "w-1",
				"vip"), tfprotov6.DiagnosticSeverityError},
		"label of one machine": {"talosop_machine", `AttributeName("labels").ElementKeyString("a b")`,
			tftest.With(tftest.BaseMachine(), "c", "labels", "a b"), tfprotov6.DiagnosticSeverityError},
	} {
		got := tftest.Validate(t, test.resource, test.config)
		if len(got) != 1 || got[0].Attribute.String() != test.at || got[0].Severity != test.severity {
			t.Errorf("%s: %s", name, tftest.Show(got))
		}
	}
}

// Settings that are unknown, or absent in a handle, are no mistake.
func TestSettings_unknown(t *testing.T) {
	t.Parallel()

	for name, config := range map[string]tftest.Config{
		"map":     tftest.With(tftest.BaseCluster(), tftest.Unknown{}, "labels"),
		"value":   tftest.With(tftest.BaseCluster(), tftest.Unknown{}, "workers", "batch", "taints", "gpu"),
		"machine": tftest.With(tftest.BaseCluster(), tftest.Unknown{}, "workers", "batch", "machines", "w-1", "annotations"),
	} {
		if got := tftest.Validate(t, "talosop_cluster", config); len(got) > 0 {
			t.Errorf("%s: %s", name, tftest.Show(got))
		}

		prior := settledState(t, "talosop_cluster", tftest.BaseCluster())
		if got := tftest.AttributeOf(t, planOf(t, "talosop_cluster", &prior, config), "operations"); got.IsKnown() {
			t.Errorf("%s: operations are %s", name, got)
		}
	}
}

// noExtensions is the schematic of the Image Factory without any.
const noExtensions = "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"

// onAllLevels is a cluster with settings on all levels.
func onAllLevels(s *sitetest.Site, talos string) tftest.Config {
	return tftest.Config{
		"mode": "metal", "name": "test", "endpoint": s.URL, "talos_version": talos, "kubernetes_version": "v1.36.2",
		"vip":    tftest.Config{"address": "10.5.0.100", "link": "eth0"},
		"oidc":   tftest.Config{"issuer_url": "https://id.test", "client_id": "kube", "groups_claim": "groups"},
		"labels": tftest.Config{"site": "a"}, "annotations": tftest.Config{"example.com/owner": "team a"},
		"control_plane": tftest.Config{
			"install": tftest.Config{"disk": "/dev/sda"}, "schematic": noExtensions, "labels": tftest.Config{"plane": "yes"},
			"taints":   tftest.Config{"example.com/plane": "PreferNoSchedule"},
			"machines": tftest.Config{"cp-1": tftest.Config{"address": s.ControlPlane[0].Address().String()}},
		},
		"workers": tftest.Config{"batch": tftest.Config{
			"install": tftest.Config{"disk": "/dev/sda"}, "schematic": noExtensions, "labels": tftest.Config{"rack": "b2"},
			"machines": tftest.Config{
				"w-1": tftest.Config{"address": s.Workers[0].Address().String(),
					"labels": tftest.Config{"disk": "ssd"}, "sysctls": tftest.Config{"vm.max_map_count": "262144"}},
				"w-2": tftest.Config{"address": s.Workers[1].Address().String()},
			},
		}},
	}
}

// Settings of all levels are imported at their level. A change by hand is drift by path, which the next apply
// repairs.
func TestSettings_importAndDrift(t *testing.T) {
	t.Parallel()

	for talos, place := range map[string]string{
		"v1.13.0": `machine.nodeLabels.rack`, "v1.14.1": `KubeNodeConfig labels.rack`,
	} {
		t.Run(talos, func(t *testing.T) {
			t.Parallel()

			s := sitetest.NewWith(t, sim.Options{TalosVersion: talos}, 1, 2)
			config, bundle := onAllLevels(s, talos), tftest.Bundle()

			given := maps.Clone(config)
			given["secrets"] = bundle

			tftest.Drive(t, "talosop_cluster", nil).Apply(t, given).Must(t)
			s.UnmarkNodes(t, bundle)

			d := tftest.Drive(t, "talosop_cluster",
				tftest.Config{"clusters": tftest.Config{"test": tftest.Config{"secrets": bundle}}})
			d.Import(t, tftest.JSON(t, map[string]any{"cluster": "test", "control_plane": sitetest.Addresses(s.ControlPlane),
				"workers": map[string]any{"batch": sitetest.Addresses(s.Workers)}})).Must(t)
			d.ExpectEmpty(t, "after an import", config)

			byHand(t, s, tftest.ParsedBundle(t, bundle), s.Workers[1],
				func(text string) string { return strings.Replace(text, "rack: b2", "rack: b3", 1) })
			d.Refresh(t).Must(t)

			operations := tftest.TextsOf(t, tftest.FieldsOf(t, d.Plan(t, config).Must(t).Value)["operations"])
			if !slices.ContainsFunc(operations, func(operation string) bool {
				return strings.Contains(operation, "batch/w-2") && strings.Contains(operation, place)
			}) {
				t.Errorf("the plan does %q", operations)
			}

			d.Apply(t, config).Must(t)

			if text := string(s.Workers[1].Config()); !strings.Contains(text, "rack: b2") {
				t.Errorf("w-2 still has\n%s", text)
			}
		})
	}
}
