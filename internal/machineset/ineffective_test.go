package machineset

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// A deletion in a cluster patch for which no machine has a document is one warning, at the patch.
func TestValidateConfigurations_ineffectiveDeletion(t *testing.T) {
	t.Parallel()

	p := listing(map[string]string{"w-1": "10.0.0.1", "w-2": "10.0.0.2"})
	p.Settings = machineconfig.Cluster{Name: "prod", Endpoint: "https://10.0.0.9:6443", KubernetesVersion: "v1.35.2",
		Contract: "v1.14", Patches: []string{"machine: {sysctls: {a: b}}",
			"apiVersion: v1alpha1\nkind: KubeSchedulerConfig\n$patch: delete\n"}}

	for name, m := range p.Machines {
		m.Config = machineconfig.Machine{Role: machineconfig.Worker, Mode: machineconfig.Metal,
			Install: machineconfig.Install{Disk: "/dev/sda", Image: "example.org/installer:v1.14.0"}}
		p.Machines[name] = m
	}

	found := validateConfigurations(p)
	want := "found $patch: delete for the document KubeSchedulerConfig, which does not exist"

	if len(found) != 1 || found[0].Severity != finding.Warning || found[0].At.String() != "cluster_config_patches[1]" ||
		found[0].Detail != finding.Sentences(want, "It has no effect there", "check kind and name if the document should exist") {
		t.Errorf("got %+v", found)
	}
}
