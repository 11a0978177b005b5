package machines_test

import (
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

func TestValidate_validConfigurations(t *testing.T) {
	t.Parallel()

	for resource, config := range map[string]tftest.Config{
		"talosop_control_plane": tftest.BaseControlPlane(), "talosop_worker": tftest.BaseWorker(), "talosop_secrets": {},
		"talosop_cluster": tftest.BaseCluster(),
	} {
		if got := tftest.Validate(t, resource, config); len(got) > 0 {
			t.Errorf("%s: %s", resource, tftest.Show(got))
		}
	}
}

// A mistake is reported at its attribute, with the value, the allowed values and the next step.
func TestValidate_invalidControlPlanes(t *testing.T) {
	t.Parallel()

	const machines = `AttributeName("machines")`

	for name, test := range map[string]struct {
		config  tftest.Config
		At      string
		says    []string
		warning bool
	}{
		"mode container on machines of metal": {
			config: tftest.With(tftest.BaseControlPlane(), "container", "mode"),
			At:     `AttributeName("host")`, says: []string{"[host_missing]"},
		},
		"mode misspelt": {
			config: tftest.With(tftest.BaseControlPlane(), "cloud", "mode"),
			At:     `AttributeName("mode")`, says: []string{`"cloud"`, `"metal"`},
		},
		"duplicate address": {
			config: tftest.With(tftest.BaseControlPlane(), "10.0.0.11", "machines", "cp-2", "address"),
			At:     machines + `.ElementKeyString("cp-2").AttributeName("address")`,
			says:   []string{"cp-2", "belongs to cp-1", "each machine once"},
		},
		"duplicate address in other spelling": {
			config: tftest.With(tftest.With(tftest.BaseControlPlane(), "fd00::11", "machines", "cp-1", "address"),
				"fd00:0:0::0011", "machines",
				"cp-2", "address"),
			At:   machines + `.ElementKeyString("cp-2").AttributeName("address")`,
			says: []string{"belongs to cp-1"},
		},
		"machine listed twice by uuid": {
			config: tftest.With(tftest.With(tftest.BaseControlPlane(), "4C4C4544-0042-3510-8053-B4C04F435931", "machines",
				"cp-1", "uuid"),
				"4c4c4544-0042-3510-8053-b4c04f435931", "machines", "cp-3", "uuid"),
			At:   machines + `.ElementKeyString("cp-3").AttributeName("uuid")`,
			says: []string{"[duplicate_machine]", "cp-1"},
		},
		"address with a port that is none": {
			config: tftest.With(tftest.BaseControlPlane(), "10.0.0.11:99999", "machines", "cp-1", "address"),
			At:     machines + `.ElementKeyString("cp-1").AttributeName("address")`,
			says:   []string{"10.0.0.11:99999", "a port from 1 to 65535"},
		},
		"address with brackets": {
			config: tftest.With(tftest.BaseControlPlane(), "[fd00::1]", "machines", "cp-1", "address"),
			At:     machines + `.ElementKeyString("cp-1").AttributeName("address")`, says: []string{"brackets"},
		},
		"an address missing": {
			config: tftest.With(tftest.BaseControlPlane(), nil, "machines", "cp-2", "address"),
			At:     machines + `.ElementKeyString("cp-2").AttributeName("address")`,
			says:   []string{"[address_missing]", "cp-2"},
		},
		"two addresses missing": {
			config: tftest.With(tftest.With(tftest.BaseControlPlane(), nil, "machines", "cp-2", "address"), nil,
				"machines", "cp-3", "address"),
			At: machines, says: []string{"[address_missing]", "cp-2 and cp-3"},
		},
		"zero control planes": {
			config: tftest.With(tftest.BaseControlPlane(), tftest.Config{}, "machines"),
			At:     machines, says: []string{"[machines_missing]", "control plane"},
		},
		"even number": {
			config: tftest.With(tftest.BaseControlPlane(), tftest.Config{
				"cp-1": tftest.Config{"address": "10.0.0.11"}, "cp-2": tftest.Config{"address": "10.0.0.12"},
			}, "machines"),
			At: machines, says: []string{"[control_planes_even]", "2 control-plane machines"}, warning: true,
		},
		"Talos version of two numbers": {
			config: tftest.With(tftest.BaseControlPlane(), "1.13", "talos_version"),
			At:     `AttributeName("talos_version")`, says: []string{`"v1.13"`, "Write all three numbers"},
		},
		"Talos version too old": {
			config: tftest.With(tftest.BaseControlPlane(), "v1.9.5", "talos_version"),
			At:     `AttributeName("talos_version")`, says: []string{`"v1.9.5"`, "v1.10.0 to v1.14.x"},
		},
		"Talos version too new": {
			config: tftest.With(tftest.BaseControlPlane(), "v1.15.0", "talos_version"),
			At:     `AttributeName("talos_version")`,
			says:   []string{`"v1.15.0"`, "v1.10 to v1.14", "allow_untested = true", "newer release of this provider"},
		},
		"Talos version that is too new and allowed": {
			config: tftest.With(tftest.With(tftest.BaseControlPlane(), "v1.15.0", "talos_version"), true, "allow_untested"),
			At:     `AttributeName("talos_version")`,
			says:   []string{"v1.15.0", "knows Talos up to v1.14", "[talos_untested]"}, warning: true,
		},
		"Kubernetes version of two numbers": {
			config: tftest.With(tftest.BaseControlPlane(), "1.35", "kubernetes_version"),
			At:     `AttributeName("kubernetes_version")`, says: []string{`"v1.35"`, "Write all three numbers"},
		},
		"Kubernetes not supported by Talos": {
			config: tftest.With(tftest.BaseControlPlane(), "v1.30.0", "kubernetes_version"),
			At:     `AttributeName("kubernetes_version")`, says: []string{`"v1.30.0"`, "v1.31 to v1.36 with Talos v1.13.0"},
		},
		"contract newer than Talos": {
			config: tftest.With(tftest.With(tftest.BaseControlPlane(), "v1.12.0", "talos_version"), "v1.13", "version_contract"),
			At:     `AttributeName("version_contract")`, says: []string{`"v1.13"`, "at most v1.12"},
		},
		"endpoint without scheme": {
			config: tftest.With(tftest.BaseControlPlane(), "10.0.0.10:6443", "endpoint"),
			At:     `AttributeName("endpoint")`, says: []string{`"10.0.0.10:6443"`, "https://"},
		},
		"pod network malformed": {
			config: tftest.With(tftest.BaseControlPlane(), []any{"10.244.0.0"}, "pod_cidrs"),
			At:     `AttributeName("pod_cidrs").ElementKeyInt(0)`, says: []string{`"10.244.0.0"`},
		},
		"networks overlap": {
			config: tftest.With(tftest.With(tftest.BaseControlPlane(), []any{"10.96.0.0/16"}, "pod_cidrs"),
				[]any{"10.96.0.0/12"}, "service_cidrs"),
			At: `AttributeName("service_cidrs").ElementKeyInt(0)`, says: []string{`"10.96.0.0/12"`, "overlap"},
		},
		"DNS domain": {
			config: tftest.With(tftest.BaseControlPlane(), "Cluster Local", "dns_domain"),
			At:     `AttributeName("dns_domain")`, says: []string{"Cluster Local"},
		},
		"custom CNI without URLs": {
			config: tftest.With(tftest.BaseControlPlane(), tftest.Config{"name": "custom"}, "cni"),
			At:     `AttributeName("cni").AttributeName("urls")`, says: []string{"no URLs", "at least one URL"},
		},
		"patch that is not YAML": {
			config: tftest.With(tftest.BaseControlPlane(), []any{"machine: {"}, "config_patches"),
			At:     `AttributeName("config_patches").ElementKeyInt(0)`, says: []string{"invalid YAML"},
		},
		"patch that is no patch": {
			config: tftest.With(tftest.BaseControlPlane(), []any{"machine: {}", "just words"}, "cluster_config_patches"),
			At:     `AttributeName("cluster_config_patches").ElementKeyInt(1)`, says: []string{"Allowed"},
		},
		"JSON 6902 on several documents": {
			config: tftest.With(tftest.BaseControlPlane(), []any{`[{"op":"add","path":"/machine/sysctls","value":{"a":"b"}}]`}, "machines",
				"cp-2", "config_patches"),
			At:   machines + `.ElementKeyString("cp-2").AttributeName("config_patches").ElementKeyInt(0)`,
			says: []string{"JSON 6902"},
		},
		"patch with an unknown field": {
			config: tftest.With(tftest.BaseControlPlane(), []any{"machine:\n  kubelett: {}"}, "config_patches"),
			At:     `AttributeName("config_patches").ElementKeyInt(0)`, says: []string{"kubelett"},
		},
		"META key of Talos": {
			config: tftest.With(tftest.BaseControlPlane(), "x", "machines", "cp-1", "meta", "0x09"),
			At:     machines + `.ElementKeyString("cp-1").AttributeName("meta").ElementKeyString("0x09")`,
			says:   []string{"belong to Talos", "user_1"},
		},
		"no disk": {
			config: tftest.With(tftest.BaseControlPlane(), nil, "install"),
			At:     `AttributeName("install").AttributeName("disk")`, says: []string{"no disk", "install.disk_selector"},
		},
		"no disk on one machine": {
			config: tftest.With(tftest.With(tftest.With(tftest.With(tftest.BaseControlPlane(), nil, "install"), "/dev/sda",
				"machines", "cp-1", "install", "disk"),
				"/dev/sda", "machines", "cp-2", "install", "disk"), true, "machines", "cp-3", "install", "wipe"),
			At:   machines + `.ElementKeyString("cp-3").AttributeName("install").AttributeName("disk")`,
			says: []string{"no disk"},
		},
		"schematic by content": {
			config: tftest.With(tftest.BaseControlPlane(), "customization: [siderolabs/qemu-guest-agent]", "schematic"),
			At:     `AttributeName("schematic")`, says: []string{"Found not a schematic", "the content of a schematic"},
		},
		"schematic": {
			config: tftest.With(tftest.BaseControlPlane(), "abc", "schematic"),
			At:     `AttributeName("schematic")`, says: []string{`"abc"`, "64 lowercase hexadecimal digits"},
		},
		"image of another version": {
			config: tftest.With(tftest.BaseControlPlane(), "ghcr.io/siderolabs/installer:v1.12.6", "machines", "cp-1",
				"install", "image"),
			At:   machines + `.ElementKeyString("cp-1").AttributeName("install").AttributeName("image")`,
			says: []string{`"v1.12.6"`, "talos_version, v1.13.0", "Change both together"},
		},
		"unknown apply mode": {
			config: tftest.With(tftest.BaseControlPlane(), "staged", "apply_mode"),
			At:     `AttributeName("apply_mode")`, says: []string{"staged", "try"},
		},
		"drain without a unit": {
			config: tftest.With(tftest.BaseControlPlane(), "300", "drain", "timeout"),
			At:     `AttributeName("drain").AttributeName("timeout")`, says: []string{`"300"`, "10m"},
		},
		"drain without time": {
			config: tftest.With(tftest.BaseControlPlane(), "0s", "drain", "timeout"),
			At:     `AttributeName("drain").AttributeName("timeout")`, says: []string{`"0s"`},
		},
		"two Kubernetes releases of one minor version": {
			config: tftest.With(tftest.BaseControlPlane(), []any{"v1.34.1", "v1.34.4"}, "kubernetes_upgrade_via"),
			At:     `AttributeName("kubernetes_upgrade_via").ElementKeyInt(1)`, says: []string{"[two_releases_of_a_minor]", "v1.34.4 and v1.34.1"},
		},
		"no Kubernetes release to pass": {
			config: tftest.With(tftest.BaseControlPlane(), []any{"1.34"}, "kubernetes_upgrade_via"),
			At:     `AttributeName("kubernetes_upgrade_via").ElementKeyInt(0)`, says: []string{`"1.34"`, "Write all three numbers"},
		},
		"two releases of one minor version": {
			config: tftest.With(tftest.BaseControlPlane(), []any{"v1.12.4", "v1.11.2", "v1.12.6"}, "upgrade_via"),
			At:     `AttributeName("upgrade_via").ElementKeyInt(2)`, says: []string{"[two_releases_of_a_minor]", "v1.12.6 and v1.12.4"},
		},
		"no release": {
			config: tftest.With(tftest.BaseControlPlane(), []any{"1.12"}, "upgrade_via"),
			At:     `AttributeName("upgrade_via").ElementKeyInt(0)`, says: []string{`"1.12"`},
		},
		"secrets": {
			config: tftest.With(tftest.BaseControlPlane(), "certs: {}", "secrets"),
			At:     `AttributeName("secrets")`, says: []string{"talosctl gen secrets", "talosop_secrets"},
		},
		"registry endpoint": {
			config: tftest.With(tftest.BaseControlPlane(), tftest.Config{"mirrors": tftest.Config{"docker.io": tftest.Config{
				"endpoints": []any{tftest.Config{"url": "mirror.local"}},
			}}}, "registries"),
			At: `AttributeName("registries").AttributeName("mirrors").ElementKeyString("docker.io").AttributeName("endpoints")` +
				`.ElementKeyInt(0).AttributeName("url")`,
			says: []string{"http or https URL"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tftest.ExpectMistake(t, tftest.Validate(t, "talosop_control_plane", test.config), test.At, test.says, test.warning)
		})
	}
}

func TestValidate_invalidWorkers(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		config tftest.Config
		At     string
		says   []string
	}{
		"worker at the address of a control plane": {
			config: tftest.With(tftest.BaseWorker(), "10.0.0.11", "machines", "w-1", "address"),
			At:     `AttributeName("machines").ElementKeyString("w-1").AttributeName("address")`,
			says:   []string{"a control plane of the cluster"},
		},
		"contract newer than Talos": {
			config: tftest.With(tftest.BaseWorker(), "v1.12.4", "talos_version"),
			At:     `AttributeName("cluster").AttributeName("version_contract")`, says: []string{"at most v1.12"},
		},
		"patch of the cluster in the handle": {
			config: tftest.With(tftest.BaseWorker(), []any{"- nonsense"}, "cluster", "config_patches"),
			At:     `AttributeName("cluster").AttributeName("config_patches").ElementKeyInt(0)`, says: []string{"Found"},
		},
		"no worker may be away": {
			config: tftest.With(tftest.BaseWorker(), "0", "max_unavailable"),
			At:     `AttributeName("max_unavailable")`, says: []string{`"0"`, "at least 1"},
		},
		"window that counts": {
			config: tftest.With(tftest.BaseWorker(), tftest.Config{"cron": "@every 6h", "duration": "1h"}, "maintenance_window"),
			At:     `AttributeName("maintenance_window").AttributeName("cron")`, says: []string{`"@every 6h"`, "no time of day"},
		},
		"window without a length": {
			config: tftest.With(tftest.BaseWorker(), tftest.Config{"cron": "@daily", "duration": "0s"}, "maintenance_window"),
			At:     `AttributeName("maintenance_window").AttributeName("duration")`, says: []string{`"0s"`, "seven days"},
		},
		"window of no time zone": {
			config: tftest.With(tftest.BaseWorker(), tftest.Config{"cron": "@daily", "duration": "1h", "time_zone": "Mars"},
				"maintenance_window"),
			At: `AttributeName("maintenance_window").AttributeName("time_zone")`, says: []string{`"Mars"`, "IANA"},
		},
		"more than all workers": {
			config: tftest.With(tftest.BaseWorker(), "120%", "max_unavailable"),
			At:     `AttributeName("max_unavailable")`, says: []string{`"120%"`, `"100%"`},
		},
		"handle without versions": {
			config: tftest.With(tftest.BaseWorker(), nil, "cluster", "kubernetes_version"),
			At:     `AttributeName("cluster").AttributeName("kubernetes_version")`, says: []string{"Found"},
		},
		"secrets in the handle": {
			config: tftest.With(tftest.BaseWorker(), "hello", "cluster", "secrets"),
			At:     `AttributeName("cluster").AttributeName("secrets")`, says: []string{"talosctl gen secrets"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tftest.ExpectMistake(t, tftest.Validate(t, "talosop_worker", test.config), test.At, test.says, false)
		})
	}
}

// In a whole cluster a mistake is reported in its block, and machines are compared across blocks.
func TestValidate_invalidWholeClusters(t *testing.T) {
	t.Parallel()

	const (
		plane = `AttributeName("control_plane")`
		batch = `AttributeName("workers").ElementKeyString("batch")`
	)

	for name, test := range map[string]struct {
		config  tftest.Config
		At      string
		says    []string
		warning bool
	}{
		"zero control planes": {
			config: tftest.With(tftest.BaseCluster(), tftest.Config{}, "control_plane", "machines"),
			At:     plane + `.AttributeName("machines")`, says: []string{"[machines_missing]", "control plane"},
		},
		"even number": {
			config: tftest.With(tftest.BaseCluster(), tftest.Config{
				"cp-1": tftest.Config{"address": "10.0.0.11"}, "cp-2": tftest.Config{"address": "10.0.0.12"},
			}, "control_plane", "machines"),
			At: plane + `.AttributeName("machines")`, says: []string{"[control_planes_even]"}, warning: true,
		},
		"no list of workers in a pool": {
			config: tftest.Without(tftest.BaseCluster(), "workers", "batch", "machines"),
			At:     batch + `.AttributeName("machines")`, says: []string{"[machines_missing]", "worker"},
		},
		"no control plane": {
			config: tftest.With(tftest.BaseCluster(), tftest.Config{}, "control_plane", "machines"),
			At:     `AttributeName("control_plane").AttributeName("machines")`, says: []string{"[machines_missing]", "control plane"},
		},
		"a name that is no host name": {
			config: tftest.With(tftest.BaseCluster(), "10.0.0.99", "workers", "batch", "machines", "Rack_9", "address"),
			At:     batch + `.AttributeName("machines").ElementKeyString("Rack_9")`,
			says:   []string{`"batch-Rack_9"`, "[invalid_hostname]"},
		},
		"addresses in a network of the cluster": {
			config: tftest.With(tftest.With(tftest.BaseCluster(), "10.244.0.2", "workers", "batch", "machines", "w-2", "address"),
				"10.96.0.3", "workers", "batch", "machines", "w-3", "address"),
			At: batch + `.AttributeName("machines")`,
			says: []string{"[address_in_network]", `machines["w-2"].address: Found 10.244.0.2, which is in the pod`,
				`machines["w-3"].address: Found 10.96.0.3, which is in the service`},
		},
		"a host name twice": {
			config: tftest.With(tftest.BaseCluster(), "batch-w-1", "control_plane", "machines", "cp-2", "hostname"),
			At:     `AttributeName("control_plane").AttributeName("machines").ElementKeyString("cp-2").AttributeName("hostname")`,
			says:   []string{`"batch-w-1"`, "batch/w-1", "a unique name for each machine"},
		},
		"worker at the address of a control plane": {
			config: tftest.With(tftest.BaseCluster(), "10.0.0.12", "workers", "batch", "machines", "w-2", "address"),
			At:     batch + `.AttributeName("machines").ElementKeyString("w-2").AttributeName("address")`,
			says:   []string{"belongs to cp-2", "each machine once"},
		},
		"worker of two pools": {
			config: tftest.With(tftest.BaseCluster(), "10.0.0.21", "workers", "gpu", "machines", "w-1", "address"),
			At:     `AttributeName("workers").ElementKeyString("gpu").AttributeName("machines").ElementKeyString("w-1").AttributeName("address")`,
			says:   []string{"belongs to batch/w-1"},
		},
		"name of a pool": {
			config: tftest.With(tftest.BaseCluster(), tftest.Config{"machines": tftest.Config{"w-1": tftest.Config{"address": "10.0.0.41"}}},
				"workers", "a/b"),
			At: `AttributeName("workers").ElementKeyString("a/b")`, says: []string{"the name of a pool"},
		},
		"name of a machine": {
			config: tftest.With(tftest.BaseCluster(), "10.0.0.14", "control_plane", "machines", "batch/w-1", "address"),
			At:     plane + `.AttributeName("machines").ElementKeyString("batch/w-1")`, says: []string{"a machine name"},
		},
		"Talos version of the cluster": {
			config: tftest.With(tftest.BaseCluster(), "latest", "talos_version"),
			At:     `AttributeName("talos_version")`, says: []string{`"latest"`, "Write all three numbers"},
		},
		"Talos version of a pool": {
			config: tftest.With(tftest.BaseCluster(), "v1.9.5", "workers", "batch", "talos_version"),
			At:     batch + `.AttributeName("talos_version")`, says: []string{`"v1.9.5"`, "v1.10.0 to v1.14.x"},
		},
		"Talos version of a pool older than the contract": {
			config: tftest.With(tftest.BaseCluster(), "v1.12.4", "workers", "batch", "talos_version"),
			At:     `AttributeName("version_contract")`, says: []string{`"v1.13"`, "at most v1.12"},
		},
		"no disk in a pool": {
			config: tftest.With(tftest.BaseCluster(), nil, "workers", "batch", "install"),
			At:     batch + `.AttributeName("install").AttributeName("disk")`, says: []string{"no disk"},
		},
		"patch of the control plane": {
			config: tftest.With(tftest.BaseCluster(), []any{"machine:\n  kubelett: {}"}, "control_plane", "config_patches"),
			At:     plane + `.AttributeName("config_patches").ElementKeyInt(0)`, says: []string{"kubelett"},
		},
		"patch of a pool": {
			config: tftest.With(tftest.BaseCluster(), []any{"machine: {"}, "workers", "batch", "config_patches"),
			At:     batch + `.AttributeName("config_patches").ElementKeyInt(0)`, says: []string{"invalid YAML"},
		},
		"patch of a machine": {
			config: tftest.With(tftest.BaseCluster(), []any{"just words"}, "workers", "batch", "machines", "w-1",
				"config_patches"),
			At:   batch + `.AttributeName("machines").ElementKeyString("w-1").AttributeName("config_patches").ElementKeyInt(0)`,
			says: []string{"Allowed"},
		},
		"patch of the cluster": {
			config: tftest.With(tftest.BaseCluster(), []any{"just words"}, "cluster_config_patches"),
			At:     `AttributeName("cluster_config_patches").ElementKeyInt(0)`, says: []string{"Allowed"},
		},
		"schematic by content with an unknown field": {
			config: tftest.With(tftest.BaseCluster(), "customization:\n  extensions: [hunter2]\n", "workers", "batch",
				"schematic"),
			At: batch + `.AttributeName("schematic")`, says: []string{`unknown field "extensions"`, "(line 2)"},
		},
		"schematic of a pool": {
			config: tftest.With(tftest.BaseCluster(), "abc", "workers", "batch", "schematic"),
			At:     batch + `.AttributeName("schematic")`, says: []string{`"abc"`, "64 lowercase hexadecimal digits"},
		},
		"META of a worker": {
			config: tftest.With(tftest.BaseCluster(), "x", "workers", "batch", "machines", "w-1", "meta", "0x09"),
			At:     batch + `.AttributeName("machines").ElementKeyString("w-1").AttributeName("meta").ElementKeyString("0x09")`,
			says:   []string{"belong to Talos"},
		},
		"endpoint without scheme": {
			config: tftest.With(tftest.BaseCluster(), "10.0.0.10:6443", "endpoint"),
			At:     `AttributeName("endpoint")`, says: []string{"https://"},
		},
		"secrets": {
			config: tftest.With(tftest.BaseCluster(), "certs: {}", "secrets"),
			At:     `AttributeName("secrets")`, says: []string{"talosop_secrets"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tftest.ExpectMistake(t, tftest.Validate(t, "talosop_cluster", test.config), test.At, test.says, test.warning)
		})
	}
}

// A configuration without a contract may be that of a cluster that was created with an older Talos and keeps its
// contract. Patches that only the older contract allows are therefore no mistake of the configuration. They are a
// mistake of the plan that recreates the cluster, and of a configuration that sets the newer contract.
func TestValidate_patchesOfAnOlderContract(t *testing.T) {
	t.Parallel()

	const legacy = "cluster: {controllerManager: {extraArgs: {v: \"2\"}}}"

	upgraded := func(resource string) tftest.Config {
		if resource == "talosop_control_plane" {
			return tftest.With(tftest.With(tftest.BaseControlPlane(), []any{legacy}, "config_patches"), "v1.14.1",
				"talos_version")
		}

		config := tftest.With(tftest.BaseCluster(), []any{legacy}, "control_plane", "config_patches")

		return tftest.With(tftest.With(config, "v1.14.1", "talos_version"), "v1.14.1", "workers", "gpu", "talos_version")
	}

	for resource, at := range map[string]string{
		"talosop_control_plane": `AttributeName("config_patches").ElementKeyInt(0)`,
		"talosop_cluster":       `AttributeName("control_plane").AttributeName("config_patches").ElementKeyInt(0)`,
	} {
		if found := tftest.Validate(t, resource, upgraded(resource)); len(found) > 0 {
			t.Errorf("%s: %s", resource, tftest.Show(found))
		}

		newer := tftest.With(upgraded(resource), "v1.14", "version_contract")
		tftest.ExpectMistake(t, tftest.Validate(t, resource, newer), at, []string{"KubeControllerManagerConfig"}, false)

		if found := tftest.Validate(t, resource, tftest.With(upgraded(resource), "nowhere", "endpoint")); len(found) != 1 {
			t.Errorf("%s with another mistake: %s", resource, tftest.Show(found))
		}

		before := tftest.With(upgraded(resource), "v1.13.0", "talos_version")
		if resource == "talosop_cluster" {
			before = tftest.With(before, "v1.13.0", "workers", "gpu", "talos_version")
		}

		made := planOf(t, resource, nil, before)
		if found := tftest.Plan(t, resource, &made, tftest.ValueOf(t, tftest.TypeOf(t, resource),
			upgraded(resource))).Diagnostics; strings.
			Contains(tftest.Show(found), "KubeControllerManagerConfig") {
			t.Errorf("%s is upgraded: %s", resource, tftest.Show(found))
		}

		if found := tftest.Plan(t, resource, nil, tftest.ValueOf(t, tftest.TypeOf(t, resource),
			upgraded(resource))).Diagnostics; len(found) == 0 ||
			!strings.Contains(tftest.Show(found), "KubeControllerManagerConfig") {
			t.Errorf("%s is recreated: %s", resource, tftest.Show(found))
		}
	}
}
