package machines_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// fullHost is `host` of a resource with every compatible argument set.
func fullHost() tftest.Config {
	return tftest.Config{
		"kubeconfig_path": "~/.kube/config", "context": "kind", "namespace": "talos", "create_namespace": true,
		"dns_domain": "cluster.local",
		"access":     "node-port", "image": "ghcr.io/siderolabs/talos", "image_pull_secrets": []any{"registry"},
		"labels": tftest.Config{"team": "a"}, "annotations": tftest.Config{"example.org/owner": "a b"},
		"service": tftest.Config{"type": "LoadBalancer", "annotations": tftest.Config{"example.org/pool": "public"},
			"load_balancer_class": "example.org/lb", "talos_api": true},
		"pod": fullPod(),
	}
}

func fullPod() tftest.Config {
	return tftest.Config{
		"resources": tftest.Config{"requests": tftest.Config{"cpu": "250m", "memory": "1Gi"},
			"limits": tftest.Config{"memory": "4Gi"}},
		"storage":       tftest.Config{"class": "fast", "ephemeral": false, "state": "1Gi", "var": "20Gi", "other": "100Mi"},
		"node_selector": tftest.Config{"disk": "ssd"}, "priority_class": "high",
		"annotations": tftest.Config{"example.org/pod": "a"},
		"tolerations": []any{tftest.Config{"key": "dedicated", "operator": "Equal", "value": "talos", "effect": "NoExecute",
			"toleration_seconds": 300}},
	}
}

// fullContainers is a cluster in containers with every argument for them set.
func fullContainers() tftest.Config {
	base := baseContainers()
	base["host"] = fullHost()
	base["control_plane"] = tftest.Config{"replicas": 1, "pod": fullPod(),
		"replica_config_patches": tftest.Config{"0": []any{"machine:\n  nodeLabels:\n    rack: a1"}}}
	base["workers"] = tftest.Config{
		"batch": tftest.Config{"replicas": 1, "pod": fullPod(), "max_unavailable": "50%",
			"config_patches": []any{"machine:\n  nodeLabels:\n    pool: a"}}}

	return base
}

// fullContainerWorkers are workers in containers with every argument for them set.
func fullContainerWorkers() tftest.Config {
	base := baseContainerWorkers()
	handle, _ := base["cluster"].(tftest.Config)
	own, host := fullHost(), fullHost()

	for _, name := range []string{"namespace", "create_namespace", "dns_domain", "service"} {
		delete(own, name)
	}

	for _, name := range []string{"create_namespace", "service", "pod"} {
		delete(host, name)
	}

	handle["host"], base["host"], base["replicas"] = host, own, 1
	maps.Copy(base, tftest.Config{"name": "batch", "pod": fullPod(),
		"replica_config_patches": tftest.Config{"0": []any{"machine:\n  nodeLabels:\n    rack: a1"}}})

	return base
}

func TestContainer_validConfiguration(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		resource string
		config   tftest.Config
	}{
		"cluster":        {"talosop_cluster", baseContainers()},
		"whole cluster":  {"talosop_cluster", fullContainers()},
		"control plane":  {"talosop_control_plane", baseContainerPlane()},
		"workers":        {"talosop_worker", baseContainerWorkers()},
		"all of workers": {"talosop_worker", fullContainerWorkers()},
		"no workers":     {"talosop_worker", tftest.With(baseContainerWorkers(), 0, "replicas")},
		"content": {"talosop_control_plane",
			tftest.With(tftest.Without(baseContainerPlane(), "host", "kubeconfig_path"), hostKubeconfigFile, "host",
				"kubeconfig_wo")},
		"of a provider's host": {"talosop_control_plane", tftest.Without(baseContainerPlane(), "host", "kubeconfig_path")},
	} {
		if got := tftest.Validate(t, test.resource, test.config); len(got) > 0 {
			t.Errorf("%s: %s", name, tftest.Show(got))
		}
	}
}

const hostKubeconfigFile = `apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://10.0.0.1:6443"}}]
users: [{name: u, user: {token: very-secret}}]`

// A mistake in container settings is reported at its attribute, with the value, the allowed values and the next
// step.
func TestContainer_invalidConfiguration(t *testing.T) {
	t.Parallel()

	const host, pod = `AttributeName("host")`, `AttributeName("host").AttributeName("pod")`

	for name, test := range map[string]struct {
		change  func(tftest.Config) tftest.Config
		At      string
		says    []string
		warning bool
	}{
		"no host": {func(c tftest.Config) tftest.Config { return tftest.Without(c, "host") }, host,
			[]string{"[host_missing]"}, false},
		"no replicas": {
			func(c tftest.Config) tftest.Config { return tftest.Without(c, "replicas") }, `AttributeName("replicas")`,
			[]string{"[replicas_missing]"}, false,
		},
		"no control plane": {func(c tftest.Config) tftest.Config { return tftest.With(c, 0, "replicas") },
			`AttributeName("replicas")`, []string{"[replicas_zero]"}, false},
		"an even number": {
			func(c tftest.Config) tftest.Config { return tftest.With(c, 2, "replicas") }, `AttributeName("replicas")`,
			[]string{"[control_planes_even]"}, true,
		},
		"machines": {
			func(c tftest.Config) tftest.Config { return tftest.With(c, "10.0.0.11", "machines", "cp-1", "address") },
			`AttributeName("machines")`, []string{"[arguments_of_metal]", "machines"}, false,
		},
		"install": {func(c tftest.Config) tftest.Config { return tftest.With(c, "/dev/sda", "install", "disk") },
			`AttributeName("install")`, []string{"[arguments_of_metal]", "install"}, false},
		"schematic": {func(c tftest.Config) tftest.Config { return tftest.With(c, "abc", "schematic") },
			`AttributeName("schematic")`, []string{"[arguments_of_metal]", "schematic"}, false},
		"platform": {func(c tftest.Config) tftest.Config { return tftest.With(c, "aws", "platform") }, `AttributeName("platform")`,
			[]string{"[arguments_of_metal]", "platform"}, false},
		"install and schematic": {
			func(c tftest.Config) tftest.Config {
				return tftest.With(tftest.With(c, "/dev/sda", "install", "disk"), "abc", "schematic")
			}, "", []string{"[arguments_of_metal]", "install and schematic"}, false,
		},
		"patches beyond the machines": {
			func(c tftest.Config) tftest.Config {
				return tftest.With(c, []any{"machine: {}"}, "replica_config_patches", "3")
			},
			`AttributeName("replica_config_patches").ElementKeyString("3")`,
			[]string{"[replica_number_too_large]", "machine 3"}, false,
		},
		"patches by name": {
			func(c tftest.Config) tftest.Config {
				return tftest.With(c, []any{"machine: {}"}, "replica_config_patches", "cp-0")
			},
			`AttributeName("replica_config_patches").ElementKeyString("cp-0")`, []string{"[invalid_replica_number]", `"cp-0"`}, false,
		},
		"a patch that is none": {
			func(c tftest.Config) tftest.Config {
				return tftest.With(c, []any{"machine:\n  type: worker"}, "replica_config_patches", "1")
			},
			`AttributeName("replica_config_patches").ElementKeyString("1").ElementKeyInt(0)`, []string{"machine.type"}, false,
		},
		"name": {func(c tftest.Config) tftest.Config { return tftest.With(c, "Dev_1", "name") }, `AttributeName("name")`,
			[]string{"[invalid_host_object_name]", `"Dev_1"`}, false},
		"a long name": {
			func(c tftest.Config) tftest.Config {
				return tftest.With(c, "a23456789-b23456789-c23456789-d23456789-e23456789", "name")
			},
			`AttributeName("name")`, []string{"[host_object_name_too_long]", "-cp-2", "52 characters"}, false,
		},
		"namespace": {func(c tftest.Config) tftest.Config { return tftest.With(c, "a.b", "host", "namespace") },
			host + `.AttributeName("namespace")`, []string{"[invalid_namespace]", `"a.b"`}, false},
		"two ways to the host": {
			func(c tftest.Config) tftest.Config { return tftest.With(c, true, "host", "in_cluster") },
			host + `.AttributeName("in_cluster")`, []string{"[several_host_connections]", "kubeconfig_path"}, false,
		},
		"no kubeconfig": {
			func(c tftest.Config) tftest.Config {
				return tftest.With(tftest.Without(c, "host", "kubeconfig_path"), "very-secret", "host", "kubeconfig_wo")
			}, host + `.AttributeName("kubeconfig_wo")`, []string{"[invalid_host_kubeconfig]"}, false,
		},
		"access": {func(c tftest.Config) tftest.Config { return tftest.With(c, "tunnel", "host", "access") },
			host + `.AttributeName("access")`, []string{"tunnel"}, false},
		"a tag": {func(c tftest.Config) tftest.Config { return tftest.With(c, "a.local:5000/talos:v1", "host", "image") },
			host + `.AttributeName("image")`, []string{"[host_image_with_tag]"}, false},
		"a label": {func(c tftest.Config) tftest.Config { return tftest.With(c, "a b", "host", "labels", "team") },
			host + `.AttributeName("labels").ElementKeyString("team")`, []string{"[invalid_label_value]", `"a b"`}, false},
		"a label of talosop": {
			func(c tftest.Config) tftest.Config { return tftest.With(c, "a", "host", "labels", "talosop.dev/mark") },
			host + `.AttributeName("labels").ElementKeyString("talosop.dev/mark")`, []string{"[reserved_label_name]"}, false,
		},
		"a class without a load balancer": {
			func(c tftest.Config) tftest.Config {
				return tftest.With(c, "a.org/b", "host", "service", "load_balancer_class")
			},
			host + `.AttributeName("service").AttributeName("load_balancer_class")`, []string{"[load_balancer_class_unused]"}, false,
		},
		"ports of Talos for the inside": {
			func(c tftest.Config) tftest.Config {
				return tftest.With(tftest.With(tftest.With(c, nil, "host", "service", "type"), nil, "host", "service",
					"load_balancer_class"),
					true, "host", "service", "talos_api")
			},
			host + `.AttributeName("service").AttributeName("talos_api")`, []string{"[talos_api_of_cluster_ip]"}, false,
		},
		"a quantity": {
			func(c tftest.Config) tftest.Config {
				return tftest.With(c, "1 GB", "host", "pod", "resources", "requests", "memory")
			},
			pod + `.AttributeName("resources").AttributeName("requests").ElementKeyString("memory")`,
			[]string{"[invalid_quantity]", `host.pod.resources.requests["memory"]`, `"1 GB"`}, false,
		},
		"a size": {
			func(c tftest.Config) tftest.Config { return tftest.With(c, "0", "pod", "storage", "var") },
			`AttributeName("pod").AttributeName("storage").AttributeName("var")`, []string{"[invalid_quantity]", `"0"`}, false,
		},
		"a toleration": {
			func(c tftest.Config) tftest.Config {
				return tftest.With(c, []any{tftest.Config{"operator": "Exists", "value": "a"}}, "host", "pod", "tolerations")
			},
			pod + `.AttributeName("tolerations").ElementKeyInt(0).AttributeName("value")`, []string{"[toleration_value_with_exists]"}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := tftest.Validate(t, "talosop_control_plane", test.change(baseContainerPlane()))
			tftest.ExpectMistake(t, got, test.At, test.says, test.warning)

			if strings.Contains(tftest.Show(got), "very-secret") {
				t.Errorf("a diagnostic quotes a kubeconfig: %s", tftest.Show(got))
			}
		})
	}
}

// One mistake is one error, without errors about its consequences or about names that the user did not write.
func TestContainer_oneErrorForEachMistake(t *testing.T) {
	t.Parallel()

	const long = "a-name-of-a-cluster-that-is-so-long-that-it-does-not-fit-as-one"

	plane := func(change func(tftest.Config) tftest.Config) tftest.Config { return change(baseContainerPlane()) }

	for name, test := range map[string]struct {
		resource string
		config   tftest.Config
		says     string
	}{
		"a mode that is none": {"talosop_control_plane", tftest.With(baseContainerPlane(), "pod", "mode"), `Found "pod"`},
		"a mode that is none of workers": {"talosop_worker", tftest.With(baseContainerWorkers(), "pod", "cluster", "mode"),
			`Found "pod"`},
		"a mode that is none of all": {"talosop_cluster", tftest.With(baseContainers(), "pod", "mode"), `Found "pod"`},
		"no host": {"talosop_control_plane",
			plane(func(c tftest.Config) tftest.Config { return tftest.Without(c, "host") }), "pods"},
		"no host of all": {"talosop_cluster", tftest.Without(baseContainers(), "host"), "pods"},
		"no host of workers": {"talosop_worker", tftest.Without(baseContainerWorkers(), "cluster", "host"),
			"in the handle"},
		"a name":      {"talosop_cluster", tftest.With(baseContainers(), "Dev_1", "name"), `"Dev_1"`},
		"a long name": {"talosop_cluster", tftest.With(baseContainers(), long, "name"), "52 characters"},
		"a pool": {"talosop_cluster", tftest.With(baseContainers(), 1, "workers", "My_Pool", "replicas"),
			`"My_Pool"`},
		"a pool called cp": {"talosop_cluster", tftest.With(baseContainers(), 1, "workers", "cp", "replicas"),
			`pool name "cp"`},
		"a name of workers": {"talosop_worker", tftest.With(baseContainerWorkers(), "My Pool", "name"), `"My Pool"`},
		"a name in a handle": {"talosop_worker", tftest.With(baseContainerWorkers(), "Dev_1", "cluster", "name"),
			`"Dev_1"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := tftest.Validate(t, test.resource, test.config)
			if len(got) != 1 || !strings.Contains(strings.ToLower(got[0].Detail), strings.ToLower(test.says)) {
				t.Errorf("it says: %s", tftest.Show(got))
			}
		})
	}
}

// Without a host cluster in the configuration, the plan fails, not the apply. An unknown value may still set it.
func TestContainer_withoutAHostCluster(t *testing.T) {
	t.Parallel()

	nowhere := func() tftest.Config { return tftest.Without(baseContainers(), "host", "kubeconfig_path") }

	for name, test := range map[string]struct {
		config tftest.Config
		before bool
		fails  bool
	}{
		"a create":                {nowhere(), false, true},
		"a change":                {tftest.With(nowhere(), 3, "workers", "batch", "replicas"), true, true},
		"a context alone":         {tftest.With(nowhere(), "kind", "host", "context"), false, true},
		"a kubeconfig":            {tftest.With(nowhere(), hostKubeconfigFile, "host", "kubeconfig_wo"), false, false},
		"an unknown kubeconfig":   {tftest.With(nowhere(), tftest.Unknown{}, "host", "kubeconfig_wo"), false, false},
		"an unknown path":         {tftest.With(nowhere(), tftest.Unknown{}, "host", "kubeconfig_path"), false, false},
		"an unknown in_cluster":   {tftest.With(nowhere(), tftest.Unknown{}, "host", "in_cluster"), false, false},
		"from within the cluster": {tftest.With(nowhere(), true, "host", "in_cluster"), false, false},
		"a host that is unknown":  {tftest.With(nowhere(), tftest.Unknown{}, "host"), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var prior *tftypes.Value

			if test.before {
				state := settledState(t, "talosop_cluster", baseContainers())
				prior = &state
			}

			resp := tftest.Plan(t, "talosop_cluster", prior, tftest.ValueOf(t, tftest.TypeOf(t, "talosop_cluster"), test.config))
			if !test.fails {
				if refusedBy(resp.Diagnostics) {
					t.Errorf("the plan is refused: %s", tftest.Show(resp.Diagnostics))
				}

				return
			}

			tftest.ExpectMistake(t, resp.Diagnostics, `AttributeName("host")`,
				[]string{"[no_host_connection]"}, false)
		})
	}
}

// Container settings are refused on metal, and metal settings in containers when a handle sets the mode.
func TestContainer_argumentsOfTheOtherMode(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		resource string
		config   tftest.Config
		At       string
		says     []string
	}{
		"replicas on metal": {"talosop_control_plane", tftest.With(tftest.BaseControlPlane(), 3, "replicas"),
			`AttributeName("replicas")`, []string{"[arguments_of_containers]"}},
		"host on metal": {"talosop_control_plane", tftest.With(tftest.BaseControlPlane(), "talos", "host", "namespace"),
			`AttributeName("host")`, []string{"[arguments_of_containers]"}},
		"pod on metal": {"talosop_worker", tftest.With(tftest.BaseWorker(), "high", "pod", "priority_class"),
			`AttributeName("pod")`, []string{"[arguments_of_containers]"}},
		"no endpoint on metal": {"talosop_control_plane", tftest.Without(tftest.BaseControlPlane(), "endpoint"),
			`AttributeName("endpoint")`, []string{"[endpoint_missing]"}},
		"no machines on metal": {"talosop_control_plane", tftest.Without(tftest.BaseControlPlane(), "machines"),
			`AttributeName("machines")`, []string{"[machines_missing]"}},
		"workers called cp": {"talosop_worker", tftest.With(baseContainerWorkers(), "cp", "name"), `AttributeName("name")`,
			[]string{"[reserved_pool_name]", `"cp"`}},
		"pool called cp": {"talosop_cluster", tftest.With(baseContainers(), 1, "workers", "cp", "replicas"),
			`AttributeName("workers").ElementKeyString("cp")`, []string{"[reserved_pool_name]", `"cp"`}},
		"pool in capitals": {"talosop_cluster", tftest.With(baseContainers(), 1, "workers", "GPU", "replicas"),
			`AttributeName("workers").ElementKeyString("GPU")`, []string{"[invalid_host_object_name]", `"GPU"`}},
		"a handle without host": {"talosop_worker", tftest.Without(baseContainerWorkers(), "cluster", "host"),
			`AttributeName("cluster").AttributeName("host")`, []string{"[host_missing_in_handle]"}},
		"a machine": {"talosop_machine",
			tftest.With(tftest.With(tftest.BaseMachine(), "container", "cluster", "mode"), tftest.Config{"namespace": "talos"},
				"cluster", "host"),
			`AttributeName("cluster").AttributeName("mode")`, []string{"[single_machine_in_containers]"}},
		"machines of containers": {"talosop_worker", tftest.With(baseContainerWorkers(), "10.0.0.1", "machines", "w-1",
			"address"),
			`AttributeName("machines")`, []string{"[arguments_of_metal]"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tftest.ExpectMistake(t, tftest.Validate(t, test.resource, test.config), test.At, test.says, false)
		})
	}
}

// Every container setting may be unknown in a plan.
func TestContainer_unknownValues(t *testing.T) {
	t.Parallel()

	for resource, config := range map[string]tftest.Config{"talosop_cluster": fullContainers(),
		"talosop_worker": fullContainerWorkers()} {
		t.Run(resource, func(t *testing.T) {
			t.Parallel()
			unknownEverywhere(t, resource, config, func(path string) bool {
				return strings.Contains(path, `"host"`) || strings.Contains(path, "replica") ||
					strings.Contains(path, `AttributeName("mode")`) || strings.HasSuffix(path, `AttributeName("pod")`)
			})
		})
	}
}

// The exports of a cluster in containers are known at plan time: the addresses of its machines and its API follow
// from their names.
func TestContainer_handleIsKnownAtPlanTime(t *testing.T) {
	t.Parallel()

	plan := planOf(t, "talosop_cluster", nil,
		tftest.With(tftest.With(baseContainers(), tftest.Unknown{}, "secrets"), "example.org", "host", "dns_domain"))
	handle := tftest.AttributeOf(t, plan, "cluster")

	for name, value := range map[string]tftypes.Value{"endpoint": tftest.AttributeOf(t, plan, "endpoint"),
		"cluster.endpoint": tftest.AttributeOf(t, handle, "endpoint")} {
		if !value.Equal(tftypes.NewValue(tftypes.String, "https://dev.talos.svc.example.org:6443")) {
			t.Errorf("%s is %s", name, value)
		}
	}

	if got := tftest.TextsOf(t, tftest.AttributeOf(t, handle, "talos_endpoints")); len(got) != 3 ||
		got[2] != "dev-cp-2.talos.svc.example.org" {
		t.Errorf("talos_endpoints are %q", got)
	}

	host := tftest.AttributeOf(t, handle, "host")
	if got := tftest.AttributeOf(t, host, "namespace"); !got.Equal(tftypes.NewValue(tftypes.String, "talos")) {
		t.Errorf("the handle has the namespace %s", got)
	}
}

// A change of the names of machines on the host replaces the cluster, and its workers with it.
func TestContainer_replacements(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		resource      string
		before, after tftest.Config
		replaces      bool
	}{
		"namespace": {"talosop_cluster", baseContainers(), tftest.With(baseContainers(), "other", "host", "namespace"), true},
		"DNS domain": {"talosop_cluster", baseContainers(), tftest.With(baseContainers(), "example.org", "host",
			"dns_domain"),
			true},
		"spelt out": {"talosop_cluster", baseContainers(),
			tftest.With(baseContainers(), "cluster.local", "host", "dns_domain"), false},
		"spelt otherwise": {"talosop_cluster", baseContainers(),
			tftest.With(baseContainers(), "Cluster.Local", "host", "dns_domain"), false},
		"networks": {"talosop_cluster", baseContainers(), tftest.With(baseContainers(), []any{"10.244.0.0/16"}, "pod_cidrs"),
			true},
		"default networks": {"talosop_cluster", baseContainers(), tftest.With(baseContainers(), []any{"10.245.0.0/16"},
			"pod_cidrs"),
			false},
		"of the handle": {"talosop_worker", baseContainerWorkers(),
			tftest.With(baseContainerWorkers(), "other", "cluster", "host", "namespace"), true},
		"the connection": {"talosop_worker", baseContainerWorkers(),
			tftest.With(baseContainerWorkers(), "/other", "cluster", "host", "kubeconfig_path"), false},
	} {
		prior := settledState(t, test.resource, test.before)

		resp := tftest.Plan(t, test.resource, &prior, tftest.ValueOf(t, tftest.TypeOf(t, test.resource), test.after))
		if got := len(resp.RequiresReplace) > 0; got != test.replaces {
			t.Errorf("%s: the resource is replaced: %t (%s)", name, got, tftest.Show(resp.Diagnostics))
		}
	}
}
