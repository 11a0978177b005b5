package machines

import (
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
		diags.Append(machinesMissing.At(g.At.AtName("machines"), finding.Args{"role": g.Role}))
	case g.Role == step.ControlPlane && count%2 == 0:
		diags.Append(warnOfEvenNumber(g.At.AtName("machines"), count))
	}

	return diags
}

// validateAddresses checks that machines have addresses, as far as they are known: a machine may be unknown as a
// whole.
func (g *writtenGroup) validateAddresses() finding.List {
	var (
		without   []string
		addresses []finding.Path
	)

	machines := g.machines.Machines.Elements()

	for _, key := range slices.Sorted(maps.Keys(machines)) {
		machine, known := machines[key].(types.Object)
		if known && !machine.IsUnknown() && machine.Attributes()["address"].IsNull() {
			without = append(without, g.Prefix+key)
			addresses = append(addresses, g.At.AtName("machines").AtMapKey(key).AtName("address"))
		}
	}

	if len(without) == 0 {
		return nil
	}

	return finding.List{addressMissing.At(finding.Common(addresses), finding.Args{"machines": without})}
}

// warnOfEvenNumber warns of an even number of control planes.
func warnOfEvenNumber(at finding.Path, count int) finding.Finding {
	return evenNumber.At(at, finding.Args{"count": count, "fewer": count - 1})
}
