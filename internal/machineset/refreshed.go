package machineset

import (
	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
)

// Refreshed is what a refresh observed that contradicts settings. The plan warns of it, because the plan may change
// these settings, and the refresh knows only those of the state.
type Refreshed struct {
	// verifies reports whether the firmware of a machine verifies what it starts, by name.
	verifies map[string]bool
	// endpoint is that of the state, and silent the warning about it if it does not answer.
	endpoint string
	silent   finding.List
}

// RefreshedOf is what an observation shows of the machines in state.
func RefreshedOf(p Set, want cluster.Spec, have cluster.Snapshot) Refreshed {
	r := Refreshed{verifies: map[string]bool{}, endpoint: p.Settings.Endpoint, silent: WarnOfEndpoint(want, have)}

	for _, m := range want.Machines {
		if verifies := have.Machines[m.Name].SecureBoot; verifies != nil {
			r.verifies[m.Name] = *verifies
		}
	}

	return r
}

// Contradictions warns about settings of a plan that contradict the observation.
func (r Refreshed) Contradictions(planned Set) finding.List {
	var diags finding.List

	if !planned.Unknown.Has(UnknownConfiguration) {
		diags = planned.otherFirmware(r.verifies)
	}

	if planned.Settings.Endpoint == r.endpoint {
		diags.Append(r.silent...)
	}

	return diags
}
