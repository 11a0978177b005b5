package release

import "fmt"

// adoptable is whether a release that exists may be changed: it is only an update, adoption was asked for, the release
// was removed, or an earlier run with the same inputs made or began it.
func adoptable(want Wanted, have Observation) bool {
	last, _ := have.Last()

	switch {
	case !want.Intent.Create, want.Intent.Adopt:
		return true
	case !last.Deleted.IsZero(), last.Former != "":
		// No release owns it: its release was removed, or was about to be.
		return true
	case last.Inputs == "":
		return false
	case last.Inputs == want.Inputs:
		// An earlier run of this very wish, which was killed before it could say so.
		return true
	default:
		// A first installation that never came to be, and was corrected since.
		return !everDeployed(have)
	}
}

// refuseAdoption names the release that exists, and the two ways to take it over.
func refuseAdoption(want Wanted, r Revision) Decision {
	return Decision{
		Step: Refuse, Revision: r.Number, Status: r.Status, Reason: ErrExists,
		Text: fmt.Sprintf("revision %d of %s is %s, with the chart %s %s. "+
			"Import it (import ID %s), or set adopt = true to manage it with this configuration",
			r.Number, want.Name, r.Status, r.ChartName, r.ChartVersion, want.Name),
	}
}
