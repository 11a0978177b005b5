package machineconfig

import (
	"slices"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fieldpath"
)

func TestRebootField_ofEveryKindOfPlace(t *testing.T) {
	for _, test := range []struct{ place, want string }{
		{"v1alpha1 machine.files[0].content", "machine.files"},
		{"v1alpha1 machine.nodeLabels.rack", ""},
		{"v1alpha1 machine.features.rbac", "machine.features.rbac"},
		{"v1alpha1 machine.features.hostDNS.enabled", ""},
		{"v1alpha1 cluster.apiServer.certSANs[3]", ""},
		{"v1alpha1 persist", "persist"},
		{"v1alpha1 machine", "machine"},
		{"v1alpha1 machine.features", "machine.features"},
		{"HostnameConfig hostname", ""},
		{"v1alpha1", ""},

		// Keys with dots.
		{`v1alpha1 machine.sysctls["net.ipv4.tcp_keepalive_time"]`, ""},
		{"v1alpha1 machine.sysctls.vm", ""},
		{`v1alpha1 machine.sysfs["devices.system.cpu.cpu0.cpufreq.scaling_governor"]`, ""},
		{`v1alpha1 machine.nodeLabels["example.com/rack"]`, ""},
		{`v1alpha1 machine.nodeAnnotations["example.com/owner"]`, ""},
		{`v1alpha1 machine.registries.mirrors["registry.example.com"].endpoints[0]`, ""},
		{`v1alpha1 machine.registries.config["registry.example.com:5000"].auth.username`, ""},
		{`v1alpha1 machine.env["a.b"]`, "machine.env"},
		{`v1alpha1 machine["files.x"]`, `machine["files.x"]`},
	} {
		place, err := fieldpath.ParsePlace(test.place)
		if err != nil {
			t.Fatal(err)
		}

		if got := RebootField(place, "v1.13.0"); got != test.want {
			t.Errorf("%s: %q, want %q", test.place, got, test.want)
		}
	}
}

// What a refresh stores of a difference decides the same as the difference itself, and as Talos would.
func TestRebootField_ofDiffWithDottedKeys(t *testing.T) {
	before, err := with(t, "v1.13")
	if err != nil {
		t.Fatal(err)
	}

	after, err := with(t, "v1.13", `
machine:
  sysctls: {net.ipv4.tcp_keepalive_time: "600", quiet: "1"}
  sysfs: {devices.system.cpu.cpu0.cpufreq.scaling_governor: performance}
  nodeLabels: {example.com/rack: r1, rack: r1}
  nodeAnnotations: {example.com/owner: me}
  registries:
    mirrors: {registry.example.com: {endpoints: ["https://mirror.example.com"]}}
    config: {"registry.example.com:5000": {auth: {username: me}}}
`)
	if err != nil {
		t.Fatal(err)
	}

	if reboot, fields, err := NeedsReboot([]byte(before), []byte(after), "v1.13.0"); err != nil || reboot {
		t.Fatalf("Talos reboots for %v (%v)", fields, err)
	}

	changes, err := Diff([]byte(before), []byte(after))
	if err != nil || len(changes) != 8 {
		t.Fatalf("%d changes, want 8 (%v): %v", len(changes), err, changes)
	}

	for _, change := range changes {
		stored, err := fieldpath.ParsePlace(change.Place.String())
		if err != nil || !stored.Equal(change.Place) {
			t.Errorf("%s is read back as %s (%v)", change.Place, stored, err)
		}

		if field := RebootField(change.Place, "v1.13.0"); field != "" {
			t.Errorf("%s reboots for %s", change.Place, field)
		}
	}
}

// Talos 1.14 takes every change and does not say what waits for a boot, so that it is decided here.
func TestNeedsReboot_ofTalosThatNeverReboots(t *testing.T) {
	volume := func(name, size string) string {
		return "apiVersion: v1alpha1\nkind: VolumeConfig\nname: " + name + "\nprovisioning: {maxSize: " + size + "}\n"
	}

	for _, test := range []struct {
		name, patch string
		want        []string
	}{
		{"nothing", "", nil},
		{"followed by controllers", "machine: {env: {a: b}, udev: {rules: [x]}, sysctls: {a: b}, certSANs: [x]}", nil},
		{"the cluster", "cluster: {allowSchedulingOnControlPlanes: true, apiServer: {extraArgs: {a: b}}}", nil},
		{"files", "machine: {files: [{path: /var/x, op: create, content: x, permissions: 0o600}], env: {a: b}}",
			[]string{"machine.files"}},
		{"disks", "machine: {disks: [{device: /dev/sdb, partitions: [{mountpoint: /var/mnt/x}]}]}",
			[]string{"machine.disks"}},
		{"quotas", "machine: {features: {diskQuotaSupport: false}}", []string{"machine.features.diskQuotaSupport"}},
		{"encryption", "machine: {systemDiskEncryption: {ephemeral: {provider: luks2, keys: [{slot: 0, nodeID: {}}]}}}",
			[]string{"machine.systemDiskEncryption"}},
		{"a volume of the system", volume("EPHEMERAL", "10GiB"), []string{"VolumeConfig/EPHEMERAL"}},
		{"a volume that is mounted when it is there", volume("IMAGE-CACHE", "10GiB"), nil},
		{"isolation of workloads", "apiVersion: v1alpha1\nkind: SecurityProfileConfig\nworkloadIsolation: true\n",
			[]string{"SecurityProfileConfig"}},
		{"etcd's arguments", "cluster: {etcd: {extraArgs: {a: b}}}", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			before, after := unchecked(t), unchecked(t, test.patch)

			for _, pair := range [][2]string{{before, after}, {after, before}} {
				reboot, fields, err := NeedsReboot([]byte(pair[0]), []byte(pair[1]), "v1.14.1")
				if err != nil {
					t.Fatal(err)
				}

				if !slices.Equal(test.want, fields) || reboot != (len(test.want) > 0) {
					t.Errorf("reboot %t for %v, want %v", reboot, fields, test.want)
				}
			}

			// The stored difference of a refresh leads to the same decision.
			changes, err := Diff([]byte(before), []byte(after))
			if err != nil {
				t.Fatal(err)
			}

			var fields []string

			for _, change := range changes {
				stored, err := fieldpath.ParsePlace(change.Place.String())
				if err != nil {
					t.Fatal(err)
				}

				if field := RebootField(stored, "v1.14.1"); field != "" && !slices.Contains(fields, field) {
					fields = append(fields, field)
				}
			}

			if !slices.Equal(test.want, fields) {
				t.Errorf("by places %v, want %v (%v)", fields, test.want, changes)
			}
		})
	}

	_, fields, err := NeedsReboot([]byte("machine: {type: worker}"),
		[]byte("machine: {type: worker}\ncluster: {etcd: {}}"), "v1.14.1")
	if err != nil || !slices.Equal(fields, []string{"cluster.etcd"}) {
		t.Errorf("a machine that gets an etcd: %v, %v", fields, err)
	}

	// A form that is not known: Talos 1.13 says itself what takes a reboot.
	known, newer := []byte("machine: {type: worker}"), []byte("machine: {type: worker, future: 1}")

	if _, fields, err = NeedsReboot(newer, known, "v1.14.1"); err != nil || !slices.Equal(fields, []string{"v1alpha1"}) {
		t.Errorf("%v, %v", fields, err)
	}
}

// unchecked is a configuration of a control plane with patches that Talos need not accept together.
func unchecked(t *testing.T, patches ...string) string {
	t.Helper()

	generator, err := NewGenerator(testCluster("v1.13"), testBundle(t))
	if err != nil {
		t.Fatal(err)
	}

	m := testMachine(ControlPlane).within(generator.cluster)
	m.Patches = patches

	documents, err := generator.patched(m)
	if err != nil {
		t.Fatal(err)
	}

	encoded, err := documents.encode()
	if err != nil {
		t.Fatal(err)
	}

	return string(encoded)
}

// A container keeps running with documents that Talos does not read there.
func TestInContainers(t *testing.T) {
	fields := []string{"machine.files", "VolumeConfig/EPHEMERAL", "VolumeConfig/STATE", "SecurityProfileConfig", "v1alpha1"}

	if left := InContainers(fields); !slices.Equal(left, []string{"machine.files", "v1alpha1"}) {
		t.Errorf("%v are left", left)
	}
}
