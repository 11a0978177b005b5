package machines

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
)

// validate checks everything that is known and needs no machine. It reports all mistakes at once.
func (p writtenSet) validate() finding.List {
	var diags finding.List

	if p.senseless() {
		return nil // the attribute itself reports it; nothing else can be checked without it
	}

	diags.Append(p.validateMode()...)

	set := p.Set
	if p.Platform().NamesNode && (p.Host.Missing || p.validateNames().HasError()) {
		set = p.Unplaced(!p.InHandle)
	}

	for _, g := range p.written {
		if p.Platform().Listed {
			diags.Append(g.ValidateImage()...)
			diags.Append(g.validateCount()...)
			diags.Append(g.validateAddresses()...)
		}
	}

	diags.Append(set.Validate()...)

	if p.snapshotGiven {
		diags.Append(p.snapshot.Validate()...)
	}

	return append(diags, p.ValidateSecrets()...)
}

// validateCount checks how many machines there are.
func (g *writtenGroup) validateCount() finding.List {
	var diags finding.List

	if g.machines.Machines.IsUnknown() {
		return nil
	}

	count := len(g.machines.Machines.Elements())

	switch {
	case count == 0 && g.Role == step.Worker && !g.machines.Machines.IsNull():
		return nil // a pool may get machines later
	case count == 0:
		diags.Append(finding.Invalid(g.At.AtName("machines"), "machines", "found no machine", "allowed is one or more",
			fmt.Sprintf("add the %s machines, each under a name of your choice", g.Role)))
	case g.Role == step.ControlPlane && count%2 == 0:
		diags.Append(evenNumber(g.At.AtName("machines"), count))
	}

	return diags
}

// validateAddresses checks that machines have addresses, as far as they are known: a machine may be unknown as a
// whole.
func (g *writtenGroup) validateAddresses() finding.List {
	var diags finding.List

	machines := g.machines.Machines.Elements()

	for _, key := range slices.Sorted(maps.Keys(machines)) {
		machine, known := machines[key].(types.Object)
		if known && !machine.IsUnknown() && machine.Attributes()["address"].IsNull() {
			diags.Append(finding.Invalid(g.At.AtName("machines").AtMapKey(key).AtName("address"), "address", "found none",
				"allowed is the IP address or the host name of the Talos API of the machine", "give it one"))
		}
	}

	return diags
}

// evenNumber warns of an even number of control planes.
func evenNumber(at finding.Path, count int) finding.Finding {
	return finding.Questionable(at, "number of control planes", fmt.Sprintf("found %d control-plane machines", count),
		fmt.Sprintf("An even number survives no more failures than %d would: etcd needs a majority", count-1),
		"Use 1, 3 or 5")
}
