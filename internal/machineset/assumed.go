package machineset

import (
	"maps"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
)

// What a plan says while some of its values are known only during the apply: what it would do if they stayed as state
// has them.

// Located is a set whose machines are taken to answer where nobody knows yet: those that are new, in a plan that makes
// them.
func (p Set) Located() Set {
	p.Unknown = p.Unknown.Without(UnknownMachines)

	return p
}

// Assuming completes a forecast of values that are not known yet with the one of an assumption, and its findings. exact
// is true when they are only about where new machines answer, which changes nothing unless others leave: a new machine
// may turn out to be one of those.
//
// The set is the one with the values that are not known.
func (p Set) Assuming(
	f, likely Forecast, found finding.List, unknown []string, exact bool,
) (Forecast, finding.List) {
	if exact && !likely.Leaves {
		return likely, found
	}

	f.Machines = p.anythingMayChange(likely.Machines)
	may := p.mayBeExchanged(likely.Machines)

	told := slices.DeleteFunc(slices.Clone(found), func(one finding.Finding) bool { return one.Severity == finding.Error })
	if warning := likely.told(found.Errors(), unknown, may); warning != nil {
		told.Append(*warning)
	}

	return f, told
}

// told is the warning that says what a plan does as far as that is known; nil for nothing.
func (f Forecast) told(refusals finding.List, unknown, may []string) *finding.Finding {
	lines := append(slices.Clone(f.Operations), may...)
	for _, refusal := range refusals {
		lines = append(lines, "is refused: "+refusal.Summary+": "+refusal.Detail)
	}

	if f.Idle && len(may) == 0 || len(lines) == 0 {
		return nil
	}

	warning := finding.Warn("Not everything that this plan does is known yet", finding.Report{
		Cause: unknown, Now: lines,
		Next: "That is what an apply does if these values stay what they are, without those that are new; it plans again " +
			"when it knows them. To see the rest first, apply what they come from with -target.",
	}.String())

	return &warning
}

// mayBeExchanged says which machines may turn out to be other hardware than the one that has their name now, which is
// reset then.
func (p Set) mayBeExchanged(machines map[string]MachineForecast) []string {
	var lines []string

	for _, name := range slices.Sorted(maps.Keys(machines)) {
		if p.Machines[name].AnyHardware && !machines[name].Anew && !machines[name].Joins {
			lines = append(lines, name+" is reset and leaves if its uuid turns out to be another one")
		}
	}

	return lines
}

// anythingMayChange opens what settings decide of machines that stay what they are. Where that is open, too, nothing of
// their record stays: another UUID is other hardware, a pod may be made anew, and etcd may begin with a snapshot. A
// machine that is new, and unknown as a whole, is no part of the assumption.
func (p Set) anythingMayChange(machines map[string]MachineForecast) map[string]MachineForecast {
	out := maps.Clone(machines)

	for name := range p.Machines {
		if _, foreseen := out[name]; out != nil && !foreseen {
			out[name] = MachineForecast{Anew: true}
		}
	}

	for name, f := range out {
		if p.Machines[name].AnyHardware || p.Platform().made || p.Unknown.Has(UnknownSnapshot) {
			out[name] = MachineForecast{Anew: true}

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
