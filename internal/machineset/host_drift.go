package machineset

import "github.com/talosop/terraform-provider-talosop/internal/record"

// HostDrift is how the objects of a machine on its host cluster differ from what is wanted, by what an apply does
// about it.
type HostDrift struct {
	// Repairs are repaired before the first step.
	Repairs []string
	// VolumesLost is true for a machine that gets new volumes in a step.
	VolumesLost bool
	// Replace is why a step replaces the pod; empty when none does.
	Replace string
	// Stays is what no apply repairs.
	Stays []string
}

// Drift is its form in recorded state.
func (d HostDrift) Drift() record.Drift {
	var drift record.Drift

	for _, repair := range d.Repairs {
		drift = append(drift, record.Difference{Kind: record.HostDiffers, Found: repair})
	}

	if d.VolumesLost {
		drift = append(drift, record.Difference{Kind: record.HostVolumesLost})
	}

	if d.Replace != "" {
		drift = append(drift, record.Difference{Kind: record.HostReplaces, Found: d.Replace})
	}

	for _, stays := range d.Stays {
		drift = append(drift, record.Difference{Kind: record.HostStays, Found: stays})
	}

	return drift
}
