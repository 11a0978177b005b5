package machineconfig

import "testing"

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
		place, err := ParsePlace(test.place)
		if err != nil {
			t.Fatal(err)
		}

		if got := place.RebootField(); got != test.want {
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

	if reboot, fields, err := NeedsReboot([]byte(before), []byte(after)); err != nil || reboot {
		t.Fatalf("Talos reboots for %v (%v)", fields, err)
	}

	changes, err := Diff([]byte(before), []byte(after))
	if err != nil || len(changes) != 8 {
		t.Fatalf("%d changes, want 8 (%v): %v", len(changes), err, changes)
	}

	for _, change := range changes {
		stored, err := ParsePlace(change.Place.String())
		if err != nil || !stored.Equal(change.Place) {
			t.Errorf("%s is read back as %s (%v)", change.Place, stored, err)
		}

		if field := change.RebootField(); field != "" {
			t.Errorf("%s reboots for %s", change.Place, field)
		}
	}
}
