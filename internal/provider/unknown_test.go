package provider

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
	"github.com/talosop/terraform-provider-talosop/internal/record"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// fullControlPlane is a configuration with every argument set.
func fullControlPlane() configuration {
	base := baseControlPlane()

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
func fullWorker() configuration {
	base := baseWorker()
	handle, _ := base["cluster"].(configuration)

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
func fullCluster() configuration {
	base := fullControlPlane()
	base["restore_from"] = configuration{"file": configuration{"path": "older.db"}, "passphrase_wo": "correct horse"}

	plane, batch := poolArguments("cp-1", "10.0.0.11"), poolArguments("w-2", "10.0.0.22")
	with(batch, uuidOf("batch/w-2"), "machines", "w-2", "uuid")

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
	base["control_plane"], base["workers"] = plane, configuration{"batch": batch}

	return base
}

func clusterArguments() configuration {
	return configuration{
		"cert_sans": []any{"kube.example.org", "10.0.0.10"}, "pod_cidrs": []any{"10.244.0.0/16", "fd00:10::/56"},
		"service_cidrs": []any{"10.96.0.0/12", "fd00:20::/112"}, "dns_domain": "cluster.local",
		"cni": configuration{
			"name":    "flannel",
			"flannel": configuration{"extra_args": []any{"--iface-can-reach=10.0.0.1"}, "kube_network_policies": true},
		},
		"kube_proxy": true, "discovery": false, "air_gapped": true, "image_cache": true,
		"registries": configuration{
			"mirrors": configuration{"docker.io": configuration{
				"endpoints": []any{configuration{"url": "https://mirror.local", "override_path": true}}, "skip_fallback": true,
			}},
			"auth": configuration{"mirror.local": configuration{"username": "user", "password": "correct horse"}},
			"tls":  configuration{"mirror.local": configuration{"insecure_skip_verify": true}},
		},
	}
}

func poolArguments(name, address string) configuration {
	return configuration{
		"install": configuration{"disk_selector": configuration{"size": ">= 100GB", "type": "ssd"}, "wipe": true},
		"machines": configuration{name: configuration{
			"address": address, "uuid": "4c4c4544-0042-3510-8053-b4c04f435931",
			"fingerprint": "c2hhMjU2IG9mIGEgcHVibGljIGtleSwgMzIgYnl0ZXM=",
			"hostname":    name,
			"install": configuration{
				"disk": "/dev/sdb", "wipe": false, "image": "ghcr.io/siderolabs/installer:v1.13.0",
				"extra_kernel_args": []any{"console=ttyS0"},
			},
			"config_patches": []any{"machine:\n  nodeLabels:\n    rack: a1"},
			"meta":           configuration{"network": "links: [{name: eth0, up: true}]", "0x0c": "rack-1"},
		}},
		"schematic":      "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba",
		"platform":       "metal",
		"config_patches": []any{"machine:\n  nodeLabels:\n    pool: a"},
		"on_destroy":     "reset", "on_incomplete": "warn", "deletion_protection": true,
		"timeouts":   configuration{"create": "10m"},
		"apply_mode": "try", "drain": configuration{"enabled": true, "timeout": "10m", "on_timeout": "force"},
		"upgrade_via": []any{"v1.12.6"}, "allow_downgrade": true, "etcd_snapshot_folder": "./snapshots",
		"kubernetes_upgrade_via": []any{"v1.34.4"}, "drain_before_kubelet_upgrade": true,
	}
}

// exchanges is whether a machine that exists may turn out to be other hardware with an unknown value.
func exchanges(kind string, at *tftypes.AttributePath) bool {
	return kind == "update" && at.LastStep().Equal(tftypes.AttributeName("uuid"))
}

// everyUnknown calls try with a configuration for each value in it, in which that
// value is unknown.
func everyUnknown(t *testing.T, full tftypes.Value, try func(at *tftypes.AttributePath, v tftypes.Value)) int {
	t.Helper()

	var paths []*tftypes.AttributePath

	err := tftypes.Walk(full, func(at *tftypes.AttributePath, v tftypes.Value) (bool, error) {
		// Elements of nested maps and lists that are unknown as a whole are left out:
		// terraform-plugin-framework 1.19 then misses the required attributes in them.
		if len(at.Steps()) > 0 && !v.IsNull() && !(isElement(at) && v.Type().Is(tftypes.Object{})) {
			paths = append(paths, at)
		}

		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}

	for _, path := range paths {
		changed, err := tftypes.Transform(full, func(at *tftypes.AttributePath, v tftypes.Value) (tftypes.Value, error) {
			if at.Equal(path) {
				return tftypes.NewValue(v.Type(), tftypes.UnknownValue), nil
			}

			return v, nil
		})
		if err != nil {
			t.Fatal(err)
		}

		try(path, changed)
	}

	return len(paths)
}

func isElement(at *tftypes.AttributePath) bool {
	_, isAttribute := at.LastStep().(tftypes.AttributeName)

	return !isAttribute
}

// Every value of a configuration may be unknown while planning: nothing may be
// reported that the value could still put right, and a value that is unknown must
// not turn into one that is known.
func TestUnknownValues_ofEveryAttribute(t *testing.T) {
	t.Parallel()

	for resource, config := range map[string]configuration{
		"talosop_control_plane": fullControlPlane(), "talosop_worker": fullWorker(), "talosop_cluster": fullCluster(),
		"talosop_machine": fullMachine(),
	} {
		t.Run(resource, func(t *testing.T) {
			t.Parallel()

			// The attributes of pools are those of the two resources that each have one.
			pools := resource == "talosop_cluster" && !testenv.Everything()

			unknownEverywhere(t, resource, config, func(at string) bool {
				return !pools || !strings.Contains(at, `"control_plane").`) && !strings.Contains(at, `"workers").`)
			})
		})
	}
}

// unknownEverywhere tries the values of a configuration as ones that are not known, those whose paths are to be tried.
func unknownEverywhere(t *testing.T, resource string, config configuration, try func(path string) bool) {
	t.Helper()

	server := providerServer(t)
	full := valueOf(t, typeOf(t, resource), config)
	prior := settledState(t, resource, config)
	final := map[string]tftypes.Value{"create": planOf(t, resource, nil, config),
		"update": planOf(t, resource, &prior, config)}
	turn := 0

	tried := everyUnknown(t, full, func(at *tftypes.AttributePath, v tftypes.Value) {
		if !try(at.String()) {
			return
		}

		validated, err := server.ValidateResourceConfig(context.Background(), &tfprotov6.ValidateResourceConfigRequest{
			TypeName: resource, Config: dynamic(t, v),
			ClientCapabilities: &tfprotov6.ValidateResourceConfigClientCapabilities{WriteOnlyAttributesAllowed: true},
		})
		if err != nil {
			t.Fatal(err)
		}

		if len(validated.Diagnostics) > 0 {
			t.Errorf("validate with unknown %s: %s", at, show(validated.Diagnostics))
		}

		// On every change each value is unknown in a plan of a create or of an update, or in neither, in turn.
		turn++

		for i, kind := range []string{"create", "update"} {
			if i != turn%3 && !testenv.Everything() {
				continue
			}

			state := map[string]*tftypes.Value{"create": nil, "update": &prior}[kind]
			resp := planned(t, resource, state, v)
			said := show(resp.Diagnostics)
			if warned := strings.Contains(said, "is reset and leaves if its uuid"); warned != exchanges(kind, at) ||
				len(resp.Diagnostics) > 0 && !warned {
				t.Errorf("plan %s with unknown %s: %s", kind, at, said)
			}

			if resp.PlannedState == nil {
				continue
			}

			plan, err := resp.PlannedState.Unmarshal(full.Type())
			if err != nil {
				t.Fatal(err)
			}

			if !isWriteOnly(at) {
				stillUnknown(t, kind, plan, at)
			}

			keepsItsWord(t, kind, at, plan, final[kind])
		}
	})

	if tried < 40 {
		t.Errorf("only %d values were tried", tried)
	}
}

// An argument that is not known yet may allow what would be refused without it.
func TestUnknownValues_refuseNothing(t *testing.T) {
	t.Parallel()

	older := func() configuration {
		return with(with(baseControlPlane(), "v1.12.6", "talos_version"), "v1.12", "version_contract")
	}

	moved := func() configuration {
		c := without(baseCluster(), "control_plane", "machines", "cp-3")

		return with(c, configuration{"address": "10.0.0.13", "uuid": unknownValue{}}, "workers", "batch", "machines", "w-9")
	}

	for name, test := range map[string]struct {
		resource      string
		before, after configuration
	}{
		"allow_downgrade": {
			"talosop_control_plane", with(baseControlPlane(), "v1.12", "version_contract"),
			with(older(), unknownValue{}, "allow_downgrade"),
		},
		"the hardware of a worker": {"talosop_cluster", baseCluster(), moved()},
	} {
		prior := settledState(t, test.resource, test.before)

		if plan := planOf(t, test.resource, &prior, test.after); attributeOf(t, plan, "operations").IsKnown() {
			t.Errorf("with %s unknown operations are known", name)
		}
	}
}

// stillUnknown checks that a plan keeps what is unknown in the configuration.
func stillUnknown(t *testing.T, kind string, plan tftypes.Value, at *tftypes.AttributePath) {
	t.Helper()

	got, _, err := tftypes.WalkAttributePath(plan, at)
	if err != nil {
		return // an element of something that became unknown as a whole
	}

	if v, ok := got.(tftypes.Value); ok && v.IsFullyKnown() {
		t.Errorf("plan %s makes %s known", kind, at)
	}
}

// keepsItsWord checks that what a plan says while a value is unknown is what the
// plan at apply time says, when it is known. The CLIs refuse anything else.
func keepsItsWord(t *testing.T, kind string, unknown *tftypes.AttributePath, early, final tftypes.Value) {
	t.Helper()

	err := tftypes.Walk(early, func(at *tftypes.AttributePath, v tftypes.Value) (bool, error) {
		if !v.IsKnown() || !v.IsFullyKnown() {
			return v.IsKnown(), nil
		}

		got, _, err := tftypes.WalkAttributePath(final, at)
		if then, ok := got.(tftypes.Value); err != nil || !ok || !then.Equal(v) {
			t.Errorf("plan %s with unknown %s says %s = %s, and at apply %s (%v)", kind, unknown, at, v, got, err)
		}

		return false, nil
	})
	if err != nil {
		t.Fatal(err)
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
func machinesIn(config configuration) []string {
	var names []string

	add := func(prefix string, block any) {
		if object, ok := block.(configuration); ok {
			names = append(names, replicasIn(config, prefix, object)...)

			machines, _ := object["machines"].(configuration)
			for name := range machines {
				names = append(names, prefix+name)
			}
		}
	}

	add("", config)
	add("", config["control_plane"])

	pools, _ := config["workers"].(configuration)
	for name, block := range pools {
		add(name+"/", block)
	}

	return names
}

// inPods is whether a configuration, or its handle, is about containers.
func inPods(config configuration) bool {
	handle, _ := config["cluster"].(configuration)

	return config["mode"] == "container" || handle["mode"] == "container"
}

// replicasIn are the machines in containers of a block.
func replicasIn(config configuration, prefix string, block configuration) []string {
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

// machineIn is what a configuration says of a machine.
func machineIn(config configuration, name string) configuration {
	block := config

	if pool, key, inPool := strings.Cut(name, machineset.PoolSeparator); inPool {
		pools, _ := config["workers"].(configuration)
		block, _ = pools[pool].(configuration)
		name = key
	} else if plane, ok := config["control_plane"].(configuration); ok {
		block = plane
	}

	if machines, ok := block["machines"].(configuration); ok {
		machine, _ := machines[name].(configuration)

		return machine
	}

	return config
}

// nodeIn is the node of a machine in a configuration.
func nodeIn(config configuration, name string) any {
	if hostname, ok := machineIn(config, name)["hostname"]; ok {
		return hostname
	}

	return strings.ReplaceAll(name, machineset.PoolSeparator, "-")
}

// seenOf is what is known of a machine that runs.
func seenOf(name string, config configuration) record.Machine {
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

// settledState is the state after a configuration was applied.
func settledState(t *testing.T, resource string, config configuration) tftypes.Value {
	t.Helper()

	typ := typeOf(t, resource)
	resp := planned(t, resource, nil, valueOf(t, typ, config))

	if len(resp.Diagnostics) > 0 {
		t.Fatalf("plan: %s", show(resp.Diagnostics))
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
			return valueOf(t, v.Type(), []any{}), nil // what the plan before said, a refresh has forgotten
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

	return remember(t, settled, machines)
}

// kubernetesIn is the version in a configuration, or in its handle.
func kubernetesIn(config configuration) any {
	return canonical(writtenKubernetesIn(config))
}

// canonical is a version as machines tell it, of one that is written with or without its v.
func canonical(version any) any {
	if text, ok := version.(string); ok {
		return machineconfig.CanonicalVersion(text)
	}

	return version
}

func writtenKubernetesIn(config configuration) any {
	if handle, ok := config["cluster"].(configuration); ok {
		return handle["kubernetes_version"]
	}

	return config["kubernetes_version"]
}

// unknownMachine is a machine that is made in the same apply, so that only its key is known.
func unknownMachine() configuration {
	return configuration{"address": unknownValue{}, "uuid": unknownValue{}}
}

// What is unknown does not blind a plan: what does not depend on it is told, and what does is told as it would be if
// the values stayed what they are.
func TestUnknownValues_tellWhatIsKnown(t *testing.T) {
	t.Parallel()

	const told = "Not everything that this plan does is known yet"

	newest := func() configuration { return with(baseCluster(), "v1.13.2", "talos_version") }

	for name, test := range map[string]struct {
		after configuration
		// operations of the plan; nil when they are not known.
		operations []string
		says       []string
		refused    bool
	}{
		"growth by machines of the same apply": {
			after: with(baseCluster(), unknownMachine(), "workers", "batch", "machines", "w-3"),
			operations: []string{"apply configuration to batch/w-3: installs Talos v1.13.0 on /dev/sda, reboots, joins as " +
				"worker"},
		},
		"shrinking beside it": {
			after: without(with(baseCluster(), unknownMachine(), "workers", "batch", "machines", "w-3"),
				"workers", "batch", "machines", "w-2"),
			says: []string{told, `workers["batch"].machines["w-3"].address`, "reset worker batch/w-2", "Machines will be wiped"},
		},
		"an upgrade with an endpoint of the same apply": {
			after: with(newest(), unknownValue{}, "endpoint"),
			says: []string{told, "endpoint", "upgrade Talos on cp-1: v1.13.0 -> v1.13.2 (drain, reboot)",
				"Machines will reboot"},
		},
		"an upgrade with secrets of the same apply": {
			after: with(newest(), unknownValue{}, "secrets"),
			says:  []string{told, "secrets", "upgrade Talos on cp-1", "Machines will reboot"},
		},
		"a machine whose address may change": {
			after: with(newest(), unknownValue{}, "workers", "batch", "machines", "w-1", "address"),
			says:  []string{told, "upgrade Talos on batch/w-2", "Machines will reboot"},
		},
		"an upgrade with a first patch of the same apply": {
			after: with(newest(), []any{unknownValue{}}, "workers", "batch", "config_patches"),
			says:  []string{told, `workers["batch"].config_patches[0]`, "upgrade Talos on cp-1", "Machines will reboot"},
		},
		"what cannot be, with a new machine": {
			after: with(with(baseCluster(), unknownMachine(), "workers", "batch", "machines", "w-3"), "v1.34.1",
				"kubernetes_version"),
			refused: true,
		},
		"what would be refused": {
			after: with(with(baseCluster(), unknownValue{}, "endpoint"), "v1.34.1", "kubernetes_version"),
			says:  []string{told, "is refused: ", "Kubernetes v1.35.2 runs"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			prior := settledState(t, "talosop_cluster", baseCluster())
			prior = digested[machinespkg.ClusterModel](t, machinespkg.NewClusterResource(), prior)
			resp := planned(t, "talosop_cluster", &prior, valueOf(t, typeOf(t, "talosop_cluster"), test.after))
			said := show(resp.Diagnostics)

			for _, part := range test.says {
				if !strings.Contains(said, part) {
					t.Errorf("the plan does not say %q but: %s", part, said)
				}
			}

			if refusedBy(resp.Diagnostics) != test.refused {
				t.Fatalf("refused: %t: %s", !test.refused, said)
			}

			if test.refused {
				return
			}

			plan, err := resp.PlannedState.Unmarshal(typeOf(t, "talosop_cluster"))
			if err != nil {
				t.Fatal(err)
			}

			operations := attributeOf(t, plan, "operations")
			if known := operations.IsKnown(); known != (test.operations != nil) ||
				known && !slices.Equal(textsOf(t, operations), test.operations) {
				t.Errorf("operations are %q", textsOf(t, operations))
			}

			if known := attributeOf(t, plan, "impact").IsKnown(); known != (test.operations != nil) {
				t.Errorf("impact is known: %t", known)
			}

			if blind := strings.Contains(said, "is refused: "); attributeOf(t, plan, "observed").IsKnown() == blind {
				t.Errorf("what was observed is known: %t", !blind)
			}
		})
	}
}
