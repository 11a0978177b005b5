package release

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// minimumBusy is the shortest time for which a release is left alone after another client began to change it.
const minimumBusy = 10 * time.Minute

// Wanted is what [Decide] needs to know of the wanted release.
type Wanted struct {
	Name Name
	// Inputs identifies the wanted inputs ([Inputs]).
	Inputs string
	Intent Intent
	// Held is whether the release's Lease is held: then no other run of talosop is alive.
	Held bool
	// Timeout of the operations on the release.
	Timeout time.Duration
}

// Step is one step of work on a release.
type Step string

// The steps. Each is one call of one of Helm's actions, or one write of a record.
const (
	// Nothing means that no step is needed.
	Nothing Step = "nothing"
	// Install a release that has no history.
	Install Step = "install"
	// InstallOver what is left of one that was removed, or that never came to be: what exists of
	// it is taken over, the hooks of an installation run.
	InstallOver Step = "install over"
	// Upgrade from a revision.
	Upgrade Step = "upgrade"
	// MarkFailed marks a revision failed whose process is gone. Helm itself never does that.
	MarkFailed Step = "mark failed"
	// Refuse to touch the release.
	Refuse Step = "refuse"
)

// Decision is the next step, and why. It is comparable.
type Decision struct {
	Step Step
	// Revision at the start of an upgrade, below an installation, to be ended or in the way, and its status.
	Revision int
	Status   string
	// Reason is one of the errors of this package, with Refuse.
	Reason error
	// Text is the reason, and with Refuse what to do.
	Text string
}

// Error is the text of a refusal.
func (d Decision) Error() error {
	if d.Step != Refuse {
		return nil
	}

	return fmt.Errorf("%w: %s", d.Reason, d.Text)
}

// Decide returns the next step for a release. The release is observed again after each step.
//
// Helm can carry out every step. It upgrades from a history whose newest revision is not pending, if any is
// deployed or the newest one is failed or superseded (Helm 3.21, action/upgrade.go, prepareUpgrade). It installs
// over a history whose newest revision is uninstalled or failed (action/install.go, availableName). Any other
// history first needs a step that ends its newest revision.
func Decide(want Wanted, have Observation, now time.Time) Decision {
	last, exists := have.Last()

	switch {
	case !exists:
		return Decision{Step: Install}
	case last.Status == Unreadable:
		return unreadable(want, last)
	case inProgress(last) && !abandoned(want, last, now):
		return busy(want, last, now)
	case !adoptable(want, have):
		return refuseAdoption(want, last)
	}

	d := Decision{Revision: last.Number, Status: last.Status}

	switch last.Status {
	case Deployed:
		d.Step = Upgrade

		if last.Inputs == want.Inputs && !want.Intent.Repair {
			d.Step = Nothing
		}
	case PendingInstall, PendingUpgrade, PendingRollback:
		d.Step, d.Text = MarkFailed, "an interrupted run left the status "+last.Status
	case Uninstalling:
		// The run continues with the rest of it: its data may matter most.
		d.Step, d.Text = MarkFailed, "the uninstall was interrupted"
	case Uninstalled:
		d.Step, d.Text = InstallOver, "it was uninstalled"
	default:
		return decideAfterEnd(have, d)
	}

	return d
}

// decideAfterEnd decides on a release whose newest revision is failed, superseded or unknown.
func decideAfterEnd(have Observation, d Decision) Decision {
	last, _ := have.Last()
	from, deployed := have.Deployed()

	switch {
	case !last.Deleted.IsZero() && last.Status != Failed:
		// Helm's install over an uninstalled release makes that one superseded, and was killed
		// before it wrote its own record (action/install.go, replaceRelease).
		d.Step, d.Text = MarkFailed, "an installation after an uninstall was interrupted"
	case deployed && last.Deleted.IsZero():
		d.Step, d.Revision, d.Status = Upgrade, from.Number, from.Status
	case last.Status == Superseded, last.Status == Failed && everDeployed(have):
		// Killed between the two records that end an upgrade: what was deployed is superseded, and
		// its successor still pending (action/upgrade.go, releasingUpgrade).
		d.Step = Upgrade
	case last.Status == Failed:
		d.Step, d.Text = InstallOver, "it was never deployed"
	default:
		d.Step, d.Text = MarkFailed, fmt.Sprintf("Helm has no status %q", last.Status)
	}

	return d
}

// inProgress reports whether a client works on a revision, or was killed while it did.
func inProgress(r Revision) bool {
	return strings.HasPrefix(r.Status, "pending-") || r.Status == Uninstalling
}

// abandoned reports whether the process behind a pending revision is gone. It is a run of talosop when this run
// holds the Lease, or another client whose time has expired.
func abandoned(want Wanted, r Revision, now time.Time) bool {
	ours := r.Inputs != ""
	if r.Status == Uninstalling {
		// The mark shows who made a revision, not who removes it.
		ours = r.Removing
	}

	return ours && want.Held || now.Sub(r.Changed) > max(want.Timeout, minimumBusy)
}

// everDeployed reports whether a release was deployed since it was last installed: nothing before that
// tells anything of what exists. The revision of an installation is known by its times, which are
// the same (Helm 3.21, action/install.go, createRelease; upgrades and rollbacks take the first
// time over). A history that does not go back that far is that of a release that was upgraded.
func everDeployed(have Observation) bool {
	for _, r := range slices.Backward(have.History) {
		if wasDeployed(r) {
			return true
		}

		if begins(r) {
			return false
		}
	}

	return true
}

// wasDeployed reports whether a revision was rolled out once and not removed since. A revision that another client
// is removing counts, because it was usually deployed.
func wasDeployed(r Revision) bool {
	status := r.Status

	switch {
	case status == Uninstalling:
		status = cmp.Or(r.Former, Deployed)
	case !r.Deleted.IsZero():
		return status == Deployed
	case status == Failed && r.Former != "":
		status = r.Former
	}

	return status == Deployed || status == Superseded
}

// begins reports whether earlier revisions say nothing about a revision.
func begins(r Revision) bool {
	removed := !r.Deleted.IsZero() && r.Status != Uninstalling

	return removed || !r.FirstDeployed.IsZero() && r.FirstDeployed.Equal(r.LastDeployed)
}

func busy(want Wanted, r Revision, now time.Time) Decision {
	left := max(want.Timeout, minimumBusy) - now.Sub(r.Changed)

	return Decision{
		Step: Refuse, Revision: r.Number, Status: r.Status, Reason: ErrBusy,
		Text: fmt.Sprintf("revision %d of %s is %s. Wait for the client that works on it, then apply again; "+
			"if no client does, it counts as abandoned in %s", r.Number, want.Name, r.Status, left.Round(time.Minute)),
	}
}

func unreadable(want Wanted, r Revision) Decision {
	return Decision{
		Step: Refuse, Revision: r.Number, Status: r.Status, Reason: ErrUnreadable,
		Text: fmt.Sprintf("Secret %s/%s cannot be decoded. Restore it, or delete it to continue from the previous revision",
			want.Name.Namespace, recordName(want.Name.Name, r.Number)),
	}
}
