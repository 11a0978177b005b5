package machineset

import (
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

func TestContradictions_secureBoot(t *testing.T) {
	t.Parallel()

	const schematic = "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"

	own := func(image string) Machine {
		return Machine{Group: &Group{Role: step.Worker}, OwnImage: true,
			Config: machineconfig.Machine{Install: machineconfig.Install{Image: image}}}
	}

	for name, test := range map[string]struct {
		machine Machine
		off, on string
	}{
		"wanted":          {machine: Machine{Group: &Group{Role: step.Worker, SecureBoot: true}}, off: "secure_boot_off"},
		"not wanted":      {machine: Machine{Group: &Group{Role: step.Worker}}, on: "secure_boot_on"},
		"a signed image":  {machine: own("factory.talos.dev/metal-installer-secureboot/" + schematic + ":v1.13.0"), off: "secure_boot_off"},
		"a plain image":   {machine: own("factory.talos.dev/metal-installer/" + schematic + ":v1.13.0"), on: "secure_boot_on"},
		"an image of one": {machine: own("registry.test/mine:v1.13.0")},
	} {
		p := Set{Machines: map[string]Machine{"w-1": test.machine}}
		want := cluster.Spec{Machines: []cluster.Machine{{Name: "w-1"}}}

		for _, verifies := range []*bool{nil, new(false), new(true)} {
			says := ""

			switch {
			case verifies == nil:
			case *verifies:
				says = test.on
			default:
				says = test.off
			}

			diags := RefreshedOf(p, want, cluster.Snapshot{Machines: map[string]step.MachineState{
				"w-1": {Access: step.Member, SecureBoot: verifies}}}).Contradictions(p)
			if diags.HasError() || (len(diags) > 0) != (says != "") || says != "" &&
				(diags[0].Code != says || !strings.Contains(diags[0].Detail, "w-1")) {
				t.Errorf("%s, %v: %v, want %q", name, verifies, diags, says)
			}
		}
	}
}
