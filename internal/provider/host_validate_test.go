package provider

import (
	"maps"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// fullHost is `host` of a resource with every argument set that goes with the others.
func fullHost() configuration {
	return configuration{
		"kubeconfig_path": "~/.kube/config", "context": "kind", "namespace": "talos", "create_namespace": true,
		"dns_domain": "cluster.local",
		"access":     "node-port", "image": "ghcr.io/siderolabs/talos", "image_pull_secrets": []any{"registry"},
		"labels": configuration{"team": "a"}, "annotations": configuration{"example.org/owner": "a b"},
		"service": configuration{"type": "LoadBalancer", "annotations": configuration{"example.org/pool": "public"},
			"load_balancer_class": "example.org/lb", "talos_api": true},
		"pod": fullPod(),
	}
}

func fullPod() configuration {
	return configuration{
		"resources": configuration{"requests": configuration{"cpu": "250m", "memory": "1Gi"},
			"limits": configuration{"memory": "4Gi"}},
		"storage":       configuration{"class": "fast", "ephemeral": false, "state": "1Gi", "var": "20Gi", "other": "100Mi"},
		"node_selector": configuration{"disk": "ssd"}, "priority_class": "high",
		"annotations": configuration{"example.org/pod": "a"},
		"tolerations": []any{configuration{"key": "dedicated", "operator": "Equal", "value": "talos", "effect": "NoExecute",
			"toleration_seconds": 300}},
	}
}

// fullContainers is a cluster in containers with every argument set that is about them.
func fullContainers() configuration {
	base := baseContainers()
	base["host"] = fullHost()
	base["control_plane"] = configuration{"replicas": 1, "pod": fullPod(),
		"replica_config_patches": configuration{"0": []any{"machine:\n  nodeLabels:\n    rack: a1"}}}
	base["workers"] = configuration{
		"batch": configuration{"replicas": 1, "pod": fullPod(), "max_unavailable": "50%",
			"config_patches": []any{"machine:\n  nodeLabels:\n    pool: a"}}}

	return base
}

// fullContainerWorkers are workers in containers with every argument set that is about them.
func fullContainerWorkers() configuration {
	base := baseContainerWorkers()
	handle, _ := base["cluster"].(configuration)
	own, host := fullHost(), fullHost()

	for _, name := range []string{"namespace", "create_namespace", "dns_domain", "service"} {
		delete(own, name)
	}

	for _, name := range []string{"create_namespace", "service", "pod"} {
		delete(host, name)
	}

	handle["host"], base["host"], base["replicas"] = host, own, 1
	maps.Copy(base, configuration{"name": "batch", "pod": fullPod(),
		"replica_config_patches": configuration{"0": []any{"machine:\n  nodeLabels:\n    rack: a1"}}})

	return base
}

func TestContainer_validConfiguration(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		resource string
		config   configuration
	}{
		"cluster":        {"talosop_cluster", baseContainers()},
		"whole cluster":  {"talosop_cluster", fullContainers()},
		"control plane":  {"talosop_control_plane", baseContainerPlane()},
		"workers":        {"talosop_worker", baseContainerWorkers()},
		"all of workers": {"talosop_worker", fullContainerWorkers()},
		"no workers":     {"talosop_worker", with(baseContainerWorkers(), 0, "replicas")},
		"content": {"talosop_control_plane",
			with(without(baseContainerPlane(), "host", "kubeconfig_path"), hostKubeconfigFile, "host", "kubeconfig_wo")},
		"of a provider's host": {"talosop_control_plane", without(baseContainerPlane(), "host", "kubeconfig_path")},
	} {
		if got := validate(t, test.resource, test.config); len(got) > 0 {
			t.Errorf("%s: %s", name, show(got))
		}
	}
}

const hostKubeconfigFile = `apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://10.0.0.1:6443"}}]
users: [{name: u, user: {token: very-secret}}]`

// A mistake in what is said of containers is reported at its attribute, with what was found, what is allowed and what
// to do.
func TestContainer_invalidConfiguration(t *testing.T) {
	t.Parallel()

	const host, pod = `AttributeName("host")`, `AttributeName("host").AttributeName("pod")`

	for name, test := range map[string]struct {
		change  func(configuration) configuration
		At      string
		says    []string
		warning bool
	}{
		"no host": {func(c configuration) configuration { return without(c, "host") }, host,
			[]string{"pods of a host cluster", "namespace"}, false},
		"no replicas": {
			func(c configuration) configuration { return without(c, "replicas") }, `AttributeName("replicas")`,
			[]string{"Found none"}, false,
		},
		"no control plane": {func(c configuration) configuration { return with(c, 0, "replicas") },
			`AttributeName("replicas")`, []string{"Found 0", "1, 3 or 5"}, false},
		"an even number": {
			func(c configuration) configuration { return with(c, 2, "replicas") }, `AttributeName("replicas")`,
			[]string{"2 control-plane machines", "majority"}, true,
		},
		"machines": {
			func(c configuration) configuration { return with(c, "10.0.0.11", "machines", "cp-1", "address") },
			`AttributeName("machines")`, []string{"physical and virtual machines", "replicas"}, false,
		},
		"install": {func(c configuration) configuration { return with(c, "/dev/sda", "install", "disk") },
			`AttributeName("install")`, []string{"nothing is installed"}, false},
		"schematic": {func(c configuration) configuration { return with(c, "abc", "schematic") },
			`AttributeName("schematic")`, []string{"nothing is installed"}, false},
		"platform": {func(c configuration) configuration { return with(c, "aws", "platform") }, `AttributeName("platform")`,
			[]string{"nothing is installed"}, false},
		"patches beyond the machines": {
			func(c configuration) configuration {
				return with(c, []any{"machine: {}"}, "replica_config_patches", "3")
			},
			`AttributeName("replica_config_patches").ElementKeyString("3")`,
			[]string{"machine 3", "3 machines", "raise replicas"}, false,
		},
		"patches by name": {
			func(c configuration) configuration {
				return with(c, []any{"machine: {}"}, "replica_config_patches", "cp-0")
			},
			`AttributeName("replica_config_patches").ElementKeyString("cp-0")`, []string{`"cp-0"`, "numbers"}, false,
		},
		"a patch that is none": {
			func(c configuration) configuration {
				return with(c, []any{"machine:\n  type: worker"}, "replica_config_patches", "1")
			},
			`AttributeName("replica_config_patches").ElementKeyString("1").ElementKeyInt(0)`, []string{"machine.type"}, false,
		},
		"name": {func(c configuration) configuration { return with(c, "Dev_1", "name") }, `AttributeName("name")`,
			[]string{`"Dev_1"`, "lower-case letters"}, false},
		"a long name": {
			func(c configuration) configuration {
				return with(c, "a23456789-b23456789-c23456789-d23456789-e23456789", "name")
			},
			`AttributeName("name")`, []string{"-cp-2", "52 characters"}, false,
		},
		"namespace": {func(c configuration) configuration { return with(c, "a.b", "host", "namespace") },
			host + `.AttributeName("namespace")`, []string{`"a.b"`}, false},
		"two ways to the host": {
			func(c configuration) configuration { return with(c, true, "host", "in_cluster") },
			host + `.AttributeName("in_cluster")`, []string{"kubeconfig_path", "one way"}, false,
		},
		"no kubeconfig": {
			func(c configuration) configuration {
				return with(without(c, "host", "kubeconfig_path"), "very-secret", "host", "kubeconfig_wo")
			}, host + `.AttributeName("kubeconfig_wo")`, []string{"reaches the host cluster"}, false,
		},
		"access": {func(c configuration) configuration { return with(c, "tunnel", "host", "access") },
			host + `.AttributeName("access")`, []string{"tunnel"}, false},
		"a tag": {func(c configuration) configuration { return with(c, "a.local:5000/talos:v1", "host", "image") },
			host + `.AttributeName("image")`, []string{"talos_version"}, false},
		"a label": {func(c configuration) configuration { return with(c, "a b", "host", "labels", "team") },
			host + `.AttributeName("labels").ElementKeyString("team")`, []string{`"a b"`}, false},
		"a label of talosop": {
			func(c configuration) configuration { return with(c, "a", "host", "labels", "talosop.dev/mark") },
			host + `.AttributeName("labels").ElementKeyString("talosop.dev/mark")`, []string{"finds its objects by it"}, false,
		},
		"a class without a load balancer": {
			func(c configuration) configuration {
				return with(c, "a.org/b", "host", "service", "load_balancer_class")
			},
			host + `.AttributeName("service").AttributeName("load_balancer_class")`, []string{"LoadBalancer"}, false,
		},
		"ports of Talos for the inside": {
			func(c configuration) configuration {
				return with(with(with(c, nil, "host", "service", "type"), nil, "host", "service", "load_balancer_class"),
					true, "host", "service", "talos_api")
			},
			host + `.AttributeName("service").AttributeName("talos_api")`, []string{"NodePort"}, false,
		},
		"a quantity": {
			func(c configuration) configuration {
				return with(c, "1 GB", "host", "pod", "resources", "requests", "memory")
			},
			pod + `.AttributeName("resources").AttributeName("requests").ElementKeyString("memory")`,
			[]string{`"1 GB" in host.pod.resources.requests["memory"]`, "quantity"}, false,
		},
		"a size": {
			func(c configuration) configuration { return with(c, "0", "pod", "storage", "var") },
			`AttributeName("pod").AttributeName("storage").AttributeName("var")`, []string{`"0"`, "above zero"}, false,
		},
		"a toleration": {
			func(c configuration) configuration {
				return with(c, []any{configuration{"operator": "Exists", "value": "a"}}, "host", "pod", "tolerations")
			},
			pod + `.AttributeName("tolerations").ElementKeyInt(0).AttributeName("value")`, []string{"Exists"}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := validate(t, "talosop_control_plane", test.change(baseContainerPlane()))
			expectMistake(t, got, test.At, test.says, test.warning)

			if strings.Contains(show(got), "very-secret") {
				t.Errorf("a diagnostic quotes a kubeconfig: %s", show(got))
			}
		})
	}
}

// One mistake is one error: nothing is said of what follows from it, and nothing of names that nobody wrote.
func TestContainer_oneErrorForEachMistake(t *testing.T) {
	t.Parallel()

	const long = "a-name-of-a-cluster-that-is-so-long-that-it-does-not-fit-as-one"

	plane := func(change func(configuration) configuration) configuration { return change(baseContainerPlane()) }

	for name, test := range map[string]struct {
		resource string
		config   configuration
		says     string
	}{
		"a mode that is none": {"talosop_control_plane", with(baseContainerPlane(), "pod", "mode"), `Found "pod"`},
		"a mode that is none of workers": {"talosop_worker", with(baseContainerWorkers(), "pod", "cluster", "mode"),
			`Found "pod"`},
		"a mode that is none of all": {"talosop_cluster", with(baseContainers(), "pod", "mode"), `Found "pod"`},
		"no host": {"talosop_control_plane",
			plane(func(c configuration) configuration { return without(c, "host") }), "set host"},
		"no host of all": {"talosop_cluster", without(baseContainers(), "host"), "Set host"},
		"no host of workers": {"talosop_worker", without(baseContainerWorkers(), "cluster", "host"),
			"in the handle"},
		"a name":      {"talosop_cluster", with(baseContainers(), "Dev_1", "name"), `"Dev_1"`},
		"a long name": {"talosop_cluster", with(baseContainers(), long, "name"), "52 characters"},
		"a pool": {"talosop_cluster", with(baseContainers(), 1, "workers", "My_Pool", "replicas"),
			`"My_Pool"`},
		"a pool called cp": {"talosop_cluster", with(baseContainers(), 1, "workers", "cp", "replicas"),
			"The name cp is taken"},
		"a name of workers": {"talosop_worker", with(baseContainerWorkers(), "My Pool", "name"), `"My Pool"`},
		"a name in a handle": {"talosop_worker", with(baseContainerWorkers(), "Dev_1", "cluster", "name"),
			`"Dev_1"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := validate(t, test.resource, test.config)
			if len(got) != 1 || !strings.Contains(strings.ToLower(got[0].Detail), strings.ToLower(test.says)) {
				t.Errorf("it says: %s", show(got))
			}
		})
	}
}

// Nothing says where the host cluster is: the plan says so, and not the apply. What is not known yet may say it.
func TestContainer_withoutAHostCluster(t *testing.T) {
	t.Parallel()

	nowhere := func() configuration { return without(baseContainers(), "host", "kubeconfig_path") }

	for name, test := range map[string]struct {
		config configuration
		before bool
		fails  bool
	}{
		"a create":                {nowhere(), false, true},
		"a change":                {with(nowhere(), 3, "workers", "batch", "replicas"), true, true},
		"a context alone":         {with(nowhere(), "kind", "host", "context"), false, true},
		"a kubeconfig":            {with(nowhere(), hostKubeconfigFile, "host", "kubeconfig_wo"), false, false},
		"an unknown kubeconfig":   {with(nowhere(), unknownValue{}, "host", "kubeconfig_wo"), false, false},
		"an unknown path":         {with(nowhere(), unknownValue{}, "host", "kubeconfig_path"), false, false},
		"an unknown in_cluster":   {with(nowhere(), unknownValue{}, "host", "in_cluster"), false, false},
		"from within the cluster": {with(nowhere(), true, "host", "in_cluster"), false, false},
		"a host that is unknown":  {with(nowhere(), unknownValue{}, "host"), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var prior *tftypes.Value

			if test.before {
				state := settledState(t, "talosop_cluster", baseContainers())
				prior = &state
			}

			resp := planned(t, "talosop_cluster", prior, valueOf(t, typeOf(t, "talosop_cluster"), test.config))
			if !test.fails {
				if refusedBy(resp.Diagnostics) {
					t.Errorf("the plan is refused: %s", show(resp.Diagnostics))
				}

				return
			}

			expectMistake(t, resp.Diagnostics, `AttributeName("host")`,
				[]string{"Nothing says how the host cluster is reached", "host of the provider"}, false)
		})
	}
}

// What is for containers is refused on metal, and the other way round where a handle says what machines run on.
func TestContainer_argumentsOfTheOtherMode(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		resource string
		config   configuration
		At       string
		says     []string
	}{
		"replicas on metal": {"talosop_control_plane", with(baseControlPlane(), 3, "replicas"),
			`AttributeName("replicas")`, []string{"machines in containers"}},
		"host on metal": {"talosop_control_plane", with(baseControlPlane(), "talos", "host", "namespace"),
			`AttributeName("host")`, []string{"machines in containers"}},
		"pod on metal": {"talosop_worker", with(baseWorker(), "high", "pod", "priority_class"),
			`AttributeName("pod")`, []string{"machines in containers"}},
		"no endpoint on metal": {"talosop_control_plane", without(baseControlPlane(), "endpoint"),
			`AttributeName("endpoint")`, []string{"Found none", "https://10.0.0.10:6443"}},
		"no machines on metal": {"talosop_control_plane", without(baseControlPlane(), "machines"),
			`AttributeName("machines")`, []string{"no machine"}},
		"workers called cp": {"talosop_worker", with(baseContainerWorkers(), "cp", "name"), `AttributeName("name")`,
			[]string{"the name cp is taken by the control planes"}},
		"pool called cp": {"talosop_cluster", with(baseContainers(), 1, "workers", "cp", "replicas"),
			`AttributeName("workers").ElementKeyString("cp")`, []string{"the name cp is taken by the control planes"}},
		"pool in capitals": {"talosop_cluster", with(baseContainers(), 1, "workers", "GPU", "replicas"),
			`AttributeName("workers").ElementKeyString("GPU")`, []string{`"GPU"`}},
		"a handle without host": {"talosop_worker", without(baseContainerWorkers(), "cluster", "host"),
			`AttributeName("cluster").AttributeName("host")`, []string{"Found none", "namespace"}},
		"a machine": {"talosop_machine",
			with(with(baseMachine(), "container", "cluster", "mode"), configuration{"namespace": "talos"}, "cluster", "host"),
			`AttributeName("cluster").AttributeName("mode")`, []string{"replicas of talosop_control_plane or talosop_worker"}},
		"machines of containers": {"talosop_worker", with(baseContainerWorkers(), "10.0.0.1", "machines", "w-1", "address"),
			`AttributeName("machines")`, []string{"replicas"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expectMistake(t, validate(t, test.resource, test.config), test.At, test.says, false)
		})
	}
}

// Every value that is about containers may be unknown while planning.
func TestContainer_unknownValues(t *testing.T) {
	t.Parallel()

	for resource, config := range map[string]configuration{"talosop_cluster": fullContainers(),
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

// What a cluster in containers exports is known at plan time: where its machines and its API are follows from their
// names.
func TestContainer_handleIsKnownAtPlanTime(t *testing.T) {
	t.Parallel()

	plan := planOf(t, "talosop_cluster", nil,
		with(with(baseContainers(), unknownValue{}, "secrets"), "example.org", "host", "dns_domain"))
	handle := attributeOf(t, plan, "cluster")

	for name, value := range map[string]tftypes.Value{"endpoint": attributeOf(t, plan, "endpoint"),
		"cluster.endpoint": attributeOf(t, handle, "endpoint")} {
		if !value.Equal(tftypes.NewValue(tftypes.String, "https://dev.talos.svc.example.org:6443")) {
			t.Errorf("%s is %s", name, value)
		}
	}

	if got := textsOf(t, attributeOf(t, handle, "talos_endpoints")); len(got) != 3 ||
		got[2] != "dev-cp-2.talos.svc.example.org" {
		t.Errorf("talos_endpoints are %q", got)
	}

	host := attributeOf(t, handle, "host")
	if got := attributeOf(t, host, "namespace"); !got.Equal(tftypes.NewValue(tftypes.String, "talos")) {
		t.Errorf("the handle has the namespace %s", got)
	}
}

// What machines on the host are called by replaces the cluster, and its workers with it.
func TestContainer_replacements(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		resource      string
		before, after configuration
		replaces      bool
	}{
		"namespace": {"talosop_cluster", baseContainers(), with(baseContainers(), "other", "host", "namespace"), true},
		"DNS domain": {"talosop_cluster", baseContainers(), with(baseContainers(), "example.org", "host", "dns_domain"),
			true},
		"spelt out": {"talosop_cluster", baseContainers(),
			with(baseContainers(), "cluster.local", "host", "dns_domain"), false},
		"spelt otherwise": {"talosop_cluster", baseContainers(),
			with(baseContainers(), "Cluster.Local", "host", "dns_domain"), false},
		"networks": {"talosop_cluster", baseContainers(), with(baseContainers(), []any{"10.244.0.0/16"}, "pod_cidrs"),
			true},
		"default networks": {"talosop_cluster", baseContainers(), with(baseContainers(), []any{"10.245.0.0/16"}, "pod_cidrs"),
			false},
		"of the handle": {"talosop_worker", baseContainerWorkers(),
			with(baseContainerWorkers(), "other", "cluster", "host", "namespace"), true},
		"the connection": {"talosop_worker", baseContainerWorkers(),
			with(baseContainerWorkers(), "/other", "cluster", "host", "kubeconfig_path"), false},
	} {
		prior := settledState(t, test.resource, test.before)

		resp := planned(t, test.resource, &prior, valueOf(t, typeOf(t, test.resource), test.after))
		if got := len(resp.RequiresReplace) > 0; got != test.replaces {
			t.Errorf("%s: the resource is replaced: %t (%s)", name, got, show(resp.Diagnostics))
		}
	}
}
