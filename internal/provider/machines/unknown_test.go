package machines_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	machinespkg "github.com/talosop/terraform-provider-talosop/internal/provider/machines"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/record"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// fullControlPlane is a configuration with every argument set.
func fullControlPlane() tftest.Config {
	base := tftest.BaseControlPlane()

	for name, v := range clusterArguments() {
		base[name] = v
	}

	for name, v := range poolArguments("cp-1", "10.0.0.11") {
		base[name] = v
	}

	base["version_contract"] = "v1.13"
	base["cluster_config_patches"] = []any{"machine:\n  sysctls:\n    vm.max_map_count: \"262144\""}
	base["allow_scheduling_on_control_planes"] = true
	base["restore_from"] = restoreArguments()

	return base
}

// fullWorker is a configuration with every argument set.
func fullWorker() tftest.Config {
	base := tftest.BaseWorker()
	handle, _ := base["cluster"].(tftest.Config)

	for name, v := range clusterArguments() {
		handle[name] = v
	}

	handle["mode"], handle["phase"], handle["talos_version"] = "metal", "Ready", "v1.13.0"
	handle["config_patches"] = []any{"machine:\n  sysctls:\n    vm.max_map_count: \"262144\""}

	for name, v := range poolArguments("w-1", "10.0.0.21") {
		base[name] = v
	}

	base["name"], base["max_unavailable"] = "batch", "20%"

	return base
}

// fullCluster is a configuration with every argument set.
func fullCluster() tftest.Config {
	base := fullControlPlane()
	base["restore_from"] = tftest.Config{"file": tftest.Config{"path": "older.db"}, "passphrase_wo": "correct horse"}

	plane, batch := poolArguments("cp-1", "10.0.0.11"), poolArguments("w-2", "10.0.0.22")
	tftest.With(batch, uuidOf("batch/w-2"), "machines", "w-2", "uuid")

	for name := range plane {
		switch name {
		case "install", "machines", "schematic", "platform", "config_patches":
			delete(base, name)
		default:
			delete(plane, name)
			delete(batch, name)
		}
	}

	batch["talos_version"], batch["max_unavailable"] = "v1.13.0", "2"
	base["control_plane"], base["workers"] = plane, tftest.Config{"batch": batch}

	return base
}

func clusterArguments() tftest.Config {
	return tftest.Config{
		"cert_sans": []any{"kube.example.org", "10.0.0.10"}, "pod_cidrs": []any{"10.244.0.0/16", "fd00:10::/56"},
		"service_cidrs": []any{"10.96.0.0/12", "fd00:20::/112"}, "dns_domain": "cluster.local",
		"cni": tftest.Config{
			"name":    "flannel",
			"flannel": tftest.Config{"extra_args": []any{"--iface-can-reach=10.0.0.1"}, "kube_network_policies": true},
		},
		"kube_proxy": true, "discovery": false, "air_gapped": true, "image_cache": true,
		"registries": tftest.Config{
			"mirrors": tftest.Config{"docker.io": tftest.Config{
				"endpoints": []any{tftest.Config{"url": "https://mirror.local", "override_path": true}}, "skip_fallback": true,
			}},
			"auth": tftest.Config{"mirror.local": tftest.Config{"username": "user", "password": "correct horse"}},
			"tls":  tftest.Config{"mirror.local": tftest.Config{"insecure_skip_verify": true}},
		},
	}
}

func poolArguments(name, address string) tftest.Config {
	return tftest.Config{
		"install": tftest.Config{"disk_selector": tftest.Config{"size": ">= 100GB", "type": "ssd"}, "wipe": true},
		"machines": tftest.Config{name: tftest.Config{
			"address": address, "uuid": "4c4c4544-0042-3510-8053-b4c04f435931",
			"fingerprint": "c2hhMjU2IG9mIGEgcHVibGljIGtleSwgMzIgYnl0ZXM=",
			"hostname":    name,
			"install": tftest.Config{
				"disk": "/dev/sdb", "wipe": false, "image": "ghcr.io/siderolabs/installer:v1.13.0",
				"extra_kernel_args": []any{"console=ttyS0"},
			},
			"config_patches": []any{"machine:\n  nodeLabels:\n    rack: a1"},
			"meta":           tftest.Config{"network": "links: [{name: eth0, up: true}]", "0x0c": "rack-1"},
		}},
		"schematic":      "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba",
		"platform":       "metal",
		"config_patches": []any{"machine:\n  nodeLabels:\n    pool: a"},
		"on_destroy":     "reset", "on_incomplete": "warn", "deletion_protection": true,
		"timeouts":   tftest.Config{"create": "10m"},
		"apply_mode": "try", "drain": tftest.Config{"enabled": true, "wait_for_volumes": true, "timeout": "10m", "on_timeout": "force"},
		"upgrade_via": []any{"v1.12.6"}, "allow_downgrade": true, "etcd_snapshot_folder": "./snapshots",
		"kubernetes_upgrade_via": []any{"v1.34.4"}, "drain_before_kubelet_upgrade": true,
	}
}

// exchanges reports whether an unknown value may turn an existing machine into other hardware.
func exchanges(kind string, at *tftypes.AttributePath) bool {
	return kind == "update" && at.LastStep().Equal(tftypes.AttributeName("uuid"))
}

// Every value of a configuration may be unknown in a plan. The plan reports no mistake that the value could still
// correct, and an unknown value must not turn into a known one.
func TestUnknownValues_ofEveryAttribute(t *testing.T) {
	t.Parallel()

	for resource, config := range map[string]tftest.Config{
		"talosop_control_plane": fullControlPlane(), "talosop_worker": fullWorker(), "talosop_cluster": fullCluster(),
		"talosop_machine": fullMachine(),
	} {
		t.Run(resource, func(t *testing.T) {
			t.Parallel()

			// The attributes of pools are those of the two resources that have one each.
			pools := resource == "talosop_cluster" && !testenv.Everything()

			unknownEverywhere(t, resource, config, func(at string) bool {
				return !pools || !strings.Contains(at, `"control_plane").`) && !strings.Contains(at, `"workers").`)
			})
		})
	}
}

// unknownEverywhere makes the values of a configuration unknown, those at the selected paths.
func unknownEverywhere(t *testing.T, resource string, config tftest.Config, try func(path string) bool) {
	t.Helper()

	server := tftest.Server(t)
	full := tftest.ValueOf(t, tftest.TypeOf(t, resource), config)
	prior := settledState(t, resource, config)
	final := map[string]tftypes.Value{"create": planOf(t, resource, nil, config),
		"update": planOf(t, resource, &prior, config)}
	turn := 0

	tried := tftest.EveryUnknown(t, full, func(at *tftypes.AttributePath, v tftypes.Value) {
		if !try(at.String()) {
			return
		}

		validated, err := server.ValidateResourceConfig(context.Background(), &tfprotov6.ValidateResourceConfigRequest{
			TypeName: resource, Config: tftest.Dynamic(t, v),
			ClientCapabilities: &tfprotov6.ValidateResourceConfigClientCapabilities{WriteOnlyAttributesAllowed: true},
		})
		if err != nil {
			t.Fatal(err)
		}

		if len(validated.Diagnostics) > 0 {
			t.Errorf("validate with unknown %s: %s", at, tftest.Show(validated.Diagnostics))
		}

		// On every change each third value is unknown in a plan of an update. TestAttributes_everyPath plans creates.
		turn++

		for _, kind := range []string{"create", "update"} {
			if (kind == "create" || turn%3 != 0) && !testenv.Everything() {
				continue
			}

			state := map[string]*tftypes.Value{"create": nil, "update": &prior}[kind]
			resp := tftest.Plan(t, resource, state, v)
			diagnostics := tftest.Show(resp.Diagnostics)
			if warned := strings.Contains(diagnostics, "is reset and removed if its `uuid` changes"); warned != exchanges(kind, at) ||
				len(resp.Diagnostics) > 0 && !warned {
				t.Errorf("plan %s with unknown %s: %s", kind, at, diagnostics)
			}

			if resp.PlannedState == nil {
				continue
			}

			plan, err := resp.PlannedState.Unmarshal(full.Type())
			if err != nil {
				t.Fatal(err)
			}

			if !tftest.IsWriteOnly(at) {
				tftest.StillUnknown(t, kind, plan, at)
			}

			tftest.KeepsItsWord(t, kind, at, plan, final[kind])
		}
	})

	if tried < 40 {
		t.Errorf("only %d values were tried", tried)
	}
}

// An argument that is unknown may allow what would be refused without it.
func TestUnknownValues_refuseNothing(t *testing.T) {
	t.Parallel()

	older := func() tftest.Config {
		return tftest.With(tftest.With(tftest.BaseControlPlane(), "v1.12.6", "talos_version"), "v1.12", "version_contract")
	}

	moved := func() tftest.Config {
		c := tftest.Without(tftest.BaseCluster(), "control_plane", "machines", "cp-3")

		return tftest.With(c, tftest.Config{"address": "10.0.0.13", "uuid": tftest.Unknown{}}, "workers", "batch",
			"machines", "w-9")
	}

	for name, test := range map[string]struct {
		resource      string
		before, after tftest.Config
	}{
		"allow_downgrade": {
			"talosop_control_plane", tftest.With(tftest.BaseControlPlane(), "v1.12", "version_contract"),
			tftest.With(older(), tftest.Unknown{}, "allow_downgrade"),
		},
		"the hardware of a worker": {"talosop_cluster", tftest.BaseCluster(), moved()},
	} {
		prior := settledState(t, test.resource, test.before)

		if plan := planOf(t, test.resource, &prior, test.after); tftest.AttributeOf(t, plan, "operations").IsKnown() {
			t.Errorf("with %s unknown operations are known", name)
		}
	}
}

// uuidOf is a hardware UUID for a machine; cp-1 and w-1 have that of poolArguments.
func uuidOf(name string) string {
	pool, _, inPool := strings.Cut(name, machineset.PoolSeparator)
	if !inPool {
		pool = ""
	}

	return fmt.Sprintf("4c4c4544-0042-3510-8053-b4c04f4359%x%s", 3+len(pool), name[len(name)-1:])
}

// machinesIn lists the machines of a configuration as observed does.
func machinesIn(config tftest.Config) []string {
	var names []string

	add := func(prefix string, block any) {
		if object, ok := block.(tftest.Config); ok {
			names = append(names, replicasIn(config, prefix, object)...)

			machines, _ := object["machines"].(tftest.Config)
			for name := range machines {
				names = append(names, prefix+name)
			}
		}
	}

	add("", config)
	add("", config["control_plane"])

	pools, _ := config["workers"].(tftest.Config)
	for name, block := range pools {
		add(name+"/", block)
	}

	return names
}

// inPods reports whether a configuration, or its handle, is for containers.
func inPods(config tftest.Config) bool {
	handle, _ := config["cluster"].(tftest.Config)

	return config["mode"] == "container" || handle["mode"] == "container"
}

// replicasIn are the machines in containers of a block.
func replicasIn(config tftest.Config, prefix string, block tftest.Config) []string {
	count, _ := block["replicas"].(int)

	g := &machineset.Group{Role: step.ControlPlane, Prefix: prefix}
	if config["cluster"] != nil {
		g = &machineset.Group{Role: step.Worker, Pool: machinespkg.DefaultPoolName}
		if name, ok := config["name"].(string); ok {
			g.Pool = name
		}
	}

	var names []string
	for n := range count {
		names = append(names, g.Replica(n))
	}

	return names
}

// machineIn is the configuration of a machine.
func machineIn(config tftest.Config, name string) tftest.Config {
	block := config

	if pool, key, inPool := strings.Cut(name, machineset.PoolSeparator); inPool {
		pools, _ := config["workers"].(tftest.Config)
		block, _ = pools[pool].(tftest.Config)
		name = key
	} else if plane, ok := config["control_plane"].(tftest.Config); ok {
		block = plane
	}

	if machines, ok := block["machines"].(tftest.Config); ok {
		machine, _ := machines[name].(tftest.Config)

		return machine
	}

	return config
}

// nodeIn is the node of a machine in a configuration.
func nodeIn(config tftest.Config, name string) any {
	if hostname, ok := machineIn(config, name)["hostname"]; ok {
		return hostname
	}

	return strings.ReplaceAll(name, machineset.PoolSeparator, "-")
}

// seenOf is what is observed of a running machine.
func seenOf(name string, config tftest.Config) record.Machine {
	says := func(value any) string { text, _ := value.(string); return text }

	seen := record.Machine{
		Address: says(machineIn(config, name)["address"]), Stage: "running", Ready: true,
		TalosVersion: says(canonical(config["talos_version"])), Platform: "metal", NodeName: says(nodeIn(config, name)),
		UUID: uuidOf(name), BootID: "1", KubeletVersion: "v1.35.2",
		Running: map[kubenames.Component]string{kubenames.Kubelet: says(kubernetesIn(config))},
	}

	if strings.HasPrefix(name, "cp-") {
		seen.MemberID = "member-of-" + name
	}

	return seen
}

// settledState is the state after an apply of a configuration.
func settledState(t *testing.T, resource string, config tftest.Config) tftypes.Value {
	t.Helper()

	typ := tftest.TypeOf(t, resource)
	resp := tftest.Plan(t, resource, nil, tftest.ValueOf(t, typ, config))

	if len(resp.Diagnostics) > 0 {
		t.Fatalf("plan: %s", tftest.Show(resp.Diagnostics))
	}

	plan, err := resp.PlannedState.Unmarshal(typ)
	if err != nil {
		t.Fatal(err)
	}

	settled, err := tftypes.Transform(plan, func(at *tftypes.AttributePath, v tftypes.Value) (tftypes.Value, error) {
		switch {
		case strings.HasSuffix(at.String(), `AttributeName("phase")`):
			return tftypes.NewValue(tftypes.String, "Ready"), nil
		case at.String() == `AttributeName("operations")`:
			return tftest.ValueOf(t, v.Type(), []any{}), nil // a refresh clears the result of the previous plan
		case at.String() == `AttributeName("restored_from")` && config["restore_from"] != nil && !v.IsKnown():
			return tftypes.NewValue(tftypes.String, restoredIn(t, config)), nil
		case at.String() == `AttributeName("bootstrap_manifests_version")` && !v.IsKnown():
			return tftypes.NewValue(tftypes.String, kubernetesIn(config)), nil
		case !v.IsKnown():
			return tftypes.NewValue(v.Type(), nil), nil
		default:
			return v, nil
		}
	})
	if err != nil {
		t.Fatal(err)
	}

	names := machinesIn(config)
	if name, ok := config["name"].(string); ok && resource == "talosop_machine" {
		names = []string{name}
	}

	machines := record.Machines{}
	for _, name := range names {
		machines[name] = seenOf(name, config)
	}

	return tftest.Remember(t, settled, machines)
}

// kubernetesIn is the version in a configuration, or in its handle.
func kubernetesIn(config tftest.Config) any {
	return canonical(writtenKubernetesIn(config))
}

// canonical is a version as machines report it, of one written with or without its v.
func canonical(version any) any {
	if text, ok := version.(string); ok {
		return machineconfig.CanonicalVersion(text)
	}

	return version
}

func writtenKubernetesIn(config tftest.Config) any {
	if handle, ok := config["cluster"].(tftest.Config); ok {
		return handle["kubernetes_version"]
	}

	return config["kubernetes_version"]
}

// unknownMachine is a machine that is created in the same apply, so that only its key is known.
func unknownMachine() tftest.Config {
	return tftest.Config{"address": tftest.Unknown{}, "uuid": tftest.Unknown{}}
}

// Unknown values do not hide the rest of a plan: what does not depend on them is planned, and what does is planned
// as if they stayed the same.
func TestUnknownValues_tellWhatIsKnown(t *testing.T) {
	t.Parallel()

	const notAllKnown = "[plan_incomplete]"

	newest := func() tftest.Config { return tftest.With(tftest.BaseCluster(), "v1.13.2", "talos_version") }

	for name, test := range map[string]struct {
		after tftest.Config
		// operations of the plan; nil when unknown.
		operations []string
		says       []string
		refused    bool
	}{
		"growth by machines of the same apply": {
			after: tftest.With(tftest.BaseCluster(), unknownMachine(), "workers", "batch", "machines", "w-3"),
			operations: []string{"apply configuration to batch/w-3: installs Talos v1.13.0 on /dev/sda, reboots, joins as " +
				"worker"},
		},
		"shrinking beside it": {
			after: tftest.Without(tftest.With(tftest.BaseCluster(), unknownMachine(), "workers", "batch", "machines", "w-3"),
				"workers", "batch", "machines", "w-2"),
			says: []string{notAllKnown, `workers["batch"].machines["w-3"].address`, "reset worker batch/w-2", "[machines_wiped]"},
		},
		"an upgrade with an endpoint of the same apply": {
			after: tftest.With(newest(), tftest.Unknown{}, "endpoint"),
			says:  []string{notAllKnown, "endpoint", "upgrade Talos on cp-1, cp-2, cp-3, batch/w-1 and batch/w-2: v1.13.0 -> v1.13.2 (drain, wait for volumes, reboot)"},
		},
		"an upgrade with secrets of the same apply": {
			after: tftest.With(newest(), tftest.Unknown{}, "secrets"),
			says:  []string{notAllKnown, "secrets", "upgrade Talos on cp-1"},
		},
		"a machine whose address may change": {
			after: tftest.With(newest(), tftest.Unknown{}, "workers", "batch", "machines", "w-1", "address"),
			says:  []string{notAllKnown, "batch/w-1 and batch/w-2: v1.13.0"},
		},
		"an upgrade with a first patch of the same apply": {
			after: tftest.With(newest(), []any{tftest.Unknown{}}, "workers", "batch", "config_patches"),
			says:  []string{notAllKnown, `workers["batch"].config_patches[0]`, "upgrade Talos on cp-1"},
		},
		"what cannot be, with a new machine": {
			after: tftest.With(tftest.With(tftest.BaseCluster(), unknownMachine(), "workers", "batch", "machines", "w-3"),
				"v1.34.1",
				"kubernetes_version"),
			refused: true,
		},
		"what would be refused": {
			after: tftest.With(tftest.With(tftest.BaseCluster(), tftest.Unknown{}, "endpoint"), "v1.34.1", "kubernetes_version"),
			says:  []string{notAllKnown, "refused: ", "Kubernetes v1.35.2 runs"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			prior := settledState(t, "talosop_cluster", tftest.BaseCluster())
			prior = digested[machinespkg.ClusterModel](t, machinespkg.NewClusterResource(), prior)
			resp := tftest.Plan(t, "talosop_cluster", &prior, tftest.ValueOf(t, tftest.TypeOf(t, "talosop_cluster"), test.after))
			diagnostics := tftest.Show(resp.Diagnostics)

			for _, part := range test.says {
				if !strings.Contains(diagnostics, part) {
					t.Errorf("the plan does not say %q but: %s", part, diagnostics)
				}
			}

			if refusedBy(resp.Diagnostics) != test.refused {
				t.Fatalf("refused: %t: %s", !test.refused, diagnostics)
			}

			if test.refused {
				return
			}

			plan, err := resp.PlannedState.Unmarshal(tftest.TypeOf(t, "talosop_cluster"))
			if err != nil {
				t.Fatal(err)
			}

			operations := tftest.AttributeOf(t, plan, "operations")
			if known := operations.IsKnown(); known != (test.operations != nil) ||
				known && !slices.Equal(tftest.TextsOf(t, operations), test.operations) {
				t.Errorf("operations are %q", tftest.TextsOf(t, operations))
			}

			if known := tftest.AttributeOf(t, plan, "impact").IsKnown(); known != (test.operations != nil) {
				t.Errorf("impact is known: %t", known)
			}

			if blind := strings.Contains(diagnostics, "  - refused: "); tftest.AttributeOf(t, plan, "observed").IsKnown() == blind {
				t.Errorf("what was observed is known: %t", !blind)
			}
		})
	}
}
