package machineset

import (
	"maps"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
)

// The part of a forecast that depends on values that only the apply knows: it shows what happens if they stay as
// state has them.

// Located is a set in which new machines with unknown addresses count as reachable, in a plan that also creates them.
func (p Set) Located() Set {
	p.Unknown = p.Unknown.Without(UnknownMachines)

	return p
}

// Assuming completes a forecast with unknown values by the forecast of an assumption and its findings. exact is true
// when only the addresses of new machines are unknown. These change nothing unless other machines leave, because a
// new machine may be one of those.
//
// The set is the one with the unknown values.
func (p Set) Assuming(
	f, likely Forecast, found finding.List, unknown []string, exact bool,
) (Forecast, finding.List) {
	if exact && !likely.Leaves {
		return likely, found
	}

	f.Machines = p.anythingMayChange(likely.Machines)
	may := p.mayBeExchanged(likely.Machines)

	warnings := slices.DeleteFunc(slices.Clone(found), func(f finding.Finding) bool { return f.Severity == finding.Error })
	if warning := p.warnOfUnknown(likely, found.Errors(), unknown, may); warning != nil {
		warnings.Append(*warning)
	}

	return f, warnings
}

// warnOfUnknown is the warning about what a plan does as far as that is known; nil for nothing.
func (p Set) warnOfUnknown(f Forecast, refusals finding.List, unknown, may []string) *finding.Finding {
	lines := append(slices.Clone(f.Operations), may...)
	for _, refusal := range refusals {
		lines = append(lines, "refused: "+refusal.Summary+": "+refusal.Detail)
	}

	if f.Idle && len(may) == 0 || len(lines) == 0 {
		return nil
	}

	warning := planIncomplete.With(finding.Args{"cluster": p.Settings.Name, "machines": p.Names(),
		"unknown": unknown, "operations": lines})

	return &warning
}

// mayBeExchanged names the machines that may turn out to be other hardware than the recorded one, which is then
// reset.
func (p Set) mayBeExchanged(machines map[string]MachineForecast) []string {
	var lines []string

	for _, name := range slices.Sorted(maps.Keys(machines)) {
		if p.Machines[name].AnyHardware && !machines[name].NoRecord && !machines[name].Joins {
			lines = append(lines, name+" is reset and removed if its `uuid` changes")
		}
	}

	return lines
}

// anythingMayChange marks as unknown what settings decide about machines that stay. If that is unknown too, nothing
// of their record stays: another UUID is other hardware, a pod may be recreated, and etcd may be restored. A new
// machine that is completely unknown is not part of the assumption.
func (p Set) anythingMayChange(machines map[string]MachineForecast) map[string]MachineForecast {
	out := maps.Clone(machines)

	for name := range p.Machines {
		if _, foreseen := out[name]; out != nil && !foreseen {
			out[name] = MachineForecast{NoRecord: true}
		}
	}

	for name, f := range out {
		if p.Machines[name].AnyHardware || p.Platform().made || p.Unknown.Has(UnknownSnapshot) {
			out[name] = MachineForecast{NoRecord: true}

			continue
		}

		f.Texts = maps.Clone(f.Texts)
		f.Open = append(slices.Clone(f.Open), step.FieldTalosVersion, step.FieldAddress)
		f.Open = append(f.Open, ofJoins...)

		for _, field := range f.Open {
			delete(f.Texts, field)
		}

		out[name] = f
	}

	return out
}
