package provider

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// A mistake in a setting is at the attribute of the level that has it, and so is what Kubernetes refuses a worker.
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
		config       configuration
		severity     tfprotov6.DiagnosticSeverity
	}{
		"label of the cluster": {"talosop_cluster", `AttributeName("labels").ElementKeyString("a b")`,
			with(baseCluster(), "c", "labels", "a b"), tfprotov6.DiagnosticSeverityError},
		"taint of the control plane": {"talosop_cluster", planes + `.AttributeName("taints").ElementKeyString("gpu")`,
			with(baseCluster(), "Never", "control_plane", "taints", "gpu"), tfprotov6.DiagnosticSeverityError},
		"annotation of a pool": {"talosop_cluster", batch + `.AttributeName("annotations").ElementKeyString("a/b/c")`,
			with(baseCluster(), "d", "workers", "batch", "annotations", "a/b/c"), tfprotov6.DiagnosticSeverityError},
		"null of a machine": {"talosop_cluster", machine + `.AttributeName("labels").ElementKeyString("rack")`,
			with(baseCluster(), nil, "workers", "batch", "machines", "w-1", "labels", "rack"),
			tfprotov6.DiagnosticSeverityError},
		"role of a machine": {"talosop_cluster", machine + `.AttributeName("labels")`,
			with(baseCluster(), "", "workers", "batch", "machines", "w-1", "labels", "node-role.kubernetes.io/storage"),
			tfprotov6.DiagnosticSeverityWarning},
		"role of a pool": {"talosop_worker", `AttributeName("labels")`,
			with(baseWorker(), "", "labels", "node-role.kubernetes.io/storage"), tfprotov6.DiagnosticSeverityWarning},
		"role in a handle": {"talosop_worker", handle + `.AttributeName("labels")`,
			with(baseWorker(), "", "cluster", "labels", "node-role.kubernetes.io/storage"),
			tfprotov6.DiagnosticSeverityWarning},
		"sysctl of the cluster": {"talosop_cluster", `AttributeName("sysctls").ElementKeyString("vm")`,
			with(baseCluster(), "1", "sysctls", "vm"), tfprotov6.DiagnosticSeverityError},
		"issuer of the control plane": {"talosop_control_plane", `AttributeName("oidc").AttributeName("issuer_url")`,
			with(baseControlPlane(), configuration{"issuer_url": "http://id.test", "client_id": "kube"}, "oidc"),
			tfprotov6.DiagnosticSeverityError},
		"virtual IP in a handle": {"talosop_machine", handle + `.AttributeName("vip").AttributeName("address")`,
			with(baseMachine(), configuration{"address": "10.0.0.300", "link": "eth0"}, "cluster", "vip"),
			tfprotov6.DiagnosticSeverityError},
		"virtual IP of a worker": {"talosop_cluster", machine + `.AttributeName("vip")`,
			with(baseCluster(), configuration{"address": "10.0.0.100", "link": "eth0"}, "workers", "batch", "machines", "w-1",
				"vip"), tfprotov6.DiagnosticSeverityError},
		"label of one machine": {"talosop_machine", `AttributeName("labels").ElementKeyString("a b")`,
			with(baseMachine(), "c", "labels", "a b"), tfprotov6.DiagnosticSeverityError},
	} {
		got := validate(t, test.resource, test.config)
		if len(got) != 1 || got[0].Attribute.String() != test.at || got[0].Severity != test.severity {
			t.Errorf("%s: %s", name, show(got))
		}
	}
}

// Settings that are not known yet, or left out of a handle, are no mistake.
func TestSettings_unknown(t *testing.T) {
	t.Parallel()

	for name, config := range map[string]configuration{
		"map":     with(baseCluster(), unknownValue{}, "labels"),
		"value":   with(baseCluster(), unknownValue{}, "workers", "batch", "taints", "gpu"),
		"machine": with(baseCluster(), unknownValue{}, "workers", "batch", "machines", "w-1", "annotations"),
	} {
		if got := validate(t, "talosop_cluster", config); len(got) > 0 {
			t.Errorf("%s: %s", name, show(got))
		}

		prior := settledState(t, "talosop_cluster", baseCluster())
		if got := attributeOf(t, planOf(t, "talosop_cluster", &prior, config), "operations"); got.IsKnown() {
			t.Errorf("%s: operations are %s", name, got)
		}
	}
}

// noExtensions is the schematic of the Image Factory without any.
const noExtensions = "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"

// levelled is a cluster with settings on all levels.
func (s *site) levelled(talos string) configuration {
	return configuration{
		"mode": "metal", "name": "test", "endpoint": s.endpoint, "talos_version": talos, "kubernetes_version": "v1.36.2",
		"vip":    configuration{"address": "10.5.0.100", "link": "eth0"},
		"oidc":   configuration{"issuer_url": "https://id.test", "client_id": "kube", "groups_claim": "groups"},
		"labels": configuration{"site": "a"}, "annotations": configuration{"example.com/owner": "team a"},
		"control_plane": configuration{
			"install": configuration{"disk": "/dev/sda"}, "schematic": noExtensions, "labels": configuration{"plane": "yes"},
			"taints":   configuration{"example.com/plane": "PreferNoSchedule"},
			"machines": configuration{"cp-1": configuration{"address": s.controlPlane[0].Address().String()}},
		},
		"workers": configuration{"batch": configuration{
			"install": configuration{"disk": "/dev/sda"}, "schematic": noExtensions, "labels": configuration{"rack": "b2"},
			"machines": configuration{
				"w-1": configuration{"address": s.workers[0].Address().String(),
					"labels": configuration{"disk": "ssd"}, "sysctls": configuration{"vm.max_map_count": "262144"}},
				"w-2": configuration{"address": s.workers[1].Address().String()},
			},
		}},
	}
}

// Settings of all levels are imported where they were, and what is changed by hand is drift by path, which the next
// apply puts right.
func TestSettings_importAndDrift(t *testing.T) {
	t.Parallel()

	for talos, place := range map[string]string{
		"v1.13.0": `machine.nodeLabels.rack`, "v1.14.1": `KubeNodeConfig labels.rack`,
	} {
		t.Run(talos, func(t *testing.T) {
			t.Parallel()

			s := newSiteWith(t, sim.Options{TalosVersion: talos}, 1, 2)
			config, bundle := s.levelled(talos), bundleOnce()

			given := maps.Clone(config)
			given["secrets"] = bundle

			drive(t, "talosop_cluster", nil).apply(t, given).must(t)
			s.unmarkNodes(t, bundle)

			d := drive(t, "talosop_cluster",
				configuration{"clusters": configuration{"test": configuration{"secrets": bundle}}})
			d.imports(t, encoded(t, map[string]any{"cluster": "test", "control_plane": addresses(s.controlPlane),
				"workers": map[string]any{"batch": addresses(s.workers)}})).must(t)
			d.expectEmpty(t, "after an import", config)

			s.byHand(t, parsedBundle(t, bundle), s.workers[1],
				func(text string) string { return strings.Replace(text, "rack: b2", "rack: b3", 1) })
			d.refresh(t).must(t)

			operations := textsOf(t, fieldsOf(t, d.plan(t, config).must(t).Value)["operations"])
			if !slices.ContainsFunc(operations, func(operation string) bool {
				return strings.Contains(operation, "batch/w-2") && strings.Contains(operation, place)
			}) {
				t.Errorf("the plan does %q", operations)
			}

			d.apply(t, config).must(t)

			if text := string(s.workers[1].Config()); !strings.Contains(text, "rack: b2") {
				t.Errorf("w-2 still has\n%s", text)
			}
		})
	}
}
