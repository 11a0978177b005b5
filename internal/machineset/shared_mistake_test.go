package machineset

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// An error in a cluster patch is one error, at the patch, that names the machines. An error in a machine patch is at
// that machine.
func TestValidateConfigurations_sharedMistake(t *testing.T) {
	t.Parallel()

	p := listing(map[string]string{"w-1": "10.0.0.1", "w-2": "10.0.0.2", "w-3": "10.0.0.3"})
	p.Settings = machineconfig.Cluster{Name: "prod", Endpoint: "https://10.0.0.9:6443", KubernetesVersion: "v1.35.2",
		Contract: "v1.13", Patches: []string{"machine: {install: {disk: /dev/sda}}"}}

	for name, m := range p.Machines {
		m.Config = machineconfig.Machine{Role: machineconfig.Worker, Mode: machineconfig.Metal}
		p.Machines[name] = m
	}

	own := p.Machines["w-3"]
	own.Config.Patches = []string{"machine: {sysctls: {a: b}}", "machine: {type: controlplane}"}
	p.Machines["w-3"] = own

	found := validateConfigurations(p)
	if len(found) != 1 || found[0].Summary != `Invalid `+p.machinePath("w-3").String()+`.config_patches[1]` {
		t.Errorf("a patch of a machine: %+v", found)
	}

	p.Settings.Patches = []string{"machine: {type: controlplane}"}

	found = validateConfigurations(p)
	want := finding.Sentences("found a patch that makes the configuration invalid (machine.type controlplane for a machine "+
		"of role worker), for w-1, w-2 and w-3", "allowed: what Talos accepts for a worker machine", "correct or remove this patch")

	if len(found) != 1 || found[0].At.String() != "cluster_config_patches[0]" ||
		found[0].Summary != "Invalid cluster_config_patches[0]" || found[0].Detail != want {
		t.Errorf("a patch of the cluster: %+v", found)
	}
}
