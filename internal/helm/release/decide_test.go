package release_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
)

const (
	wish  = "aaaa"
	other = "bbbb"
)

var (
	now   = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	birth = now.Add(-48 * time.Hour)
)

// history reads such as "deployed:aaaa failed pending-install:bbbb": statuses with the inputs of ours;
// + in front begins a new installation, ! means that it was deleted, ~ that it is young, - that
// talosop is removing it, < has what it was before that after it, and "gap" leaves a number out.
func history(text string) release.Observation {
	have, first := release.Observation{}, birth

	for i, word := range strings.Fields(text) {
		if word == "gap" {
			continue
		}

		at := birth.Add(time.Duration(i) * time.Hour)
		r := release.Revision{Number: i + 1, ChartName: "web", ChartVersion: "1.0.0", LastDeployed: at, Changed: at}

		status := strings.TrimLeft(word, "+!~-")
		flags := strings.TrimSuffix(word, status)
		if strings.Contains(flags, "+") || i == 0 {
			first = at
		}

		if strings.Contains(flags, "!") {
			r.Deleted = at
		}

		if strings.Contains(flags, "~") {
			r.Changed = now.Add(-time.Minute)
		}

		r.Removing = strings.Contains(flags, "-")
		r.FirstDeployed = first
		r.Status, r.Inputs, _ = strings.Cut(status, ":")
		r.Status, r.Former, _ = strings.Cut(r.Status, "<")
		have.History = append(have.History, r)
	}

	return have
}

func TestDecide_histories(t *testing.T) {
	t.Parallel()

	for _, tc := range []struct {
		history string
		// what becomes of it in an update, a create and a create that adopts: the step, the revision
		// where it matters, and of refusals the reason.
		update, create, adopt string
	}{
		{"", "install", "install", "install"},

		{"deployed:aaaa", "nothing", "nothing", "nothing"},
		{"deployed:bbbb", "upgrade 1", "exists", "upgrade 1"},
		{"deployed", "upgrade 1", "exists", "upgrade 1"},
		{"superseded:bbbb deployed:aaaa", "nothing", "nothing", "nothing"},
		{"superseded:aaaa deployed:bbbb", "upgrade 2", "exists", "upgrade 2"},
		{"failed:bbbb +deployed:aaaa", "nothing", "nothing", "nothing"},
		{"superseded gap gap deployed:aaaa", "nothing", "nothing", "nothing"},
		{"deployed superseded deployed", "upgrade 3", "exists", "upgrade 3"},

		// A first installation that failed.
		{"failed:aaaa", "install over 1", "install over 1", "install over 1"},
		{"failed:bbbb", "install over 1", "install over 1", "install over 1"},
		{"failed", "install over 1", "exists", "install over 1"},
		{"failed:bbbb +failed:bbbb", "install over 2", "install over 2", "install over 2"},
		{"failed +failed:bbbb", "install over 2", "install over 2", "install over 2"},
		{"failed:aaaa +failed", "install over 2", "exists", "install over 2"},

		// A failed upgrade.
		{"deployed:bbbb failed:aaaa", "upgrade 1", "upgrade 1", "upgrade 1"},
		{"deployed:aaaa failed:bbbb", "upgrade 1", "exists", "upgrade 1"},
		{"deployed failed", "upgrade 1", "exists", "upgrade 1"},
		{"deployed failed:bbbb failed:bbbb gap failed:bbbb", "upgrade 1", "exists", "upgrade 1"},
		{"superseded:bbbb deployed:bbbb failed failed", "upgrade 2", "exists", "upgrade 2"},
		// The history does not go back to the installation: it was upgraded from something.
		{"gap failed:bbbb failed:bbbb", "upgrade 3", "exists", "upgrade 3"},

		// Killed.
		{"~pending-install:aaaa", "mark failed 1", "mark failed 1", "mark failed 1"},
		{"~pending-install:bbbb", "mark failed 1", "mark failed 1", "mark failed 1"},
		{"deployed:bbbb ~pending-upgrade:aaaa", "mark failed 2", "mark failed 2", "mark failed 2"},
		{"deployed:aaaa ~pending-upgrade:bbbb", "mark failed 2", "exists", "mark failed 2"},
		{"deployed ~pending-rollback:bbbb", "mark failed 2", "exists", "mark failed 2"},
		// Between the two records at the end of an upgrade, and after its recovery.
		{"superseded:bbbb ~pending-upgrade:aaaa", "mark failed 2", "mark failed 2", "mark failed 2"},
		{"superseded:bbbb failed:aaaa", "upgrade 2", "upgrade 2", "upgrade 2"},
		{"superseded", "upgrade 1", "exists", "upgrade 1"},
		{"superseded:aaaa superseded:aaaa", "upgrade 2", "upgrade 2", "upgrade 2"},

		// Of another client.
		{"~pending-install", "busy", "busy", "busy"},
		{"deployed:aaaa ~pending-upgrade", "busy", "busy", "busy"},
		{"deployed:aaaa ~pending-rollback", "busy", "busy", "busy"},
		{"pending-install", "mark failed 1", "exists", "mark failed 1"},
		{"deployed:aaaa pending-upgrade", "mark failed 2", "exists", "mark failed 2"},

		// Removed.
		{"!uninstalled:bbbb", "install over 1", "install over 1", "install over 1"},
		{"!uninstalled", "install over 1", "install over 1", "install over 1"},
		{"deployed !uninstalled", "install over 2", "install over 2", "install over 2"},
		{"!failed<deployed:bbbb", "install over 1", "install over 1", "install over 1"},

		// Whose removal did not finish.
		{"!-~uninstalling:bbbb", "mark failed 1", "mark failed 1", "mark failed 1"},
		{"!~uninstalling:aaaa", "busy", "busy", "busy"},
		{"!uninstalling", "mark failed 1", "mark failed 1", "mark failed 1"},
		{"failed<deployed:bbbb", "upgrade 1", "upgrade 1", "upgrade 1"},
		{"failed<deployed", "upgrade 1", "upgrade 1", "upgrade 1"},
		{"superseded failed<deployed", "upgrade 2", "upgrade 2", "upgrade 2"},
		{"superseded failed<pending-upgrade", "upgrade 2", "upgrade 2", "upgrade 2"},
		{"deployed failed<failed", "upgrade 1", "upgrade 1", "upgrade 1"},
		{"failed<failed:bbbb", "install over 1", "install over 1", "install over 1"},
		{"failed<pending-install", "install over 1", "install over 1", "install over 1"},
		{"failed<deployed failed:bbbb", "upgrade 2", "exists", "upgrade 2"},
		// Killed while it was installed over.
		{"!superseded:bbbb", "mark failed 1", "mark failed 1", "mark failed 1"},
		{"!failed:bbbb", "install over 1", "install over 1", "install over 1"},
		{"!superseded +~pending-install:aaaa", "mark failed 2", "mark failed 2", "mark failed 2"},
		{"!superseded +failed:bbbb", "install over 2", "install over 2", "install over 2"},
		{"deployed !failed", "install over 2", "install over 2", "install over 2"},
		{"!superseded +deployed:aaaa failed", "upgrade 2", "exists", "upgrade 2"},

		// A status that no client writes.
		{"unknown", "mark failed 1", "exists", "mark failed 1"},
		{"deployed unknown:aaaa", "upgrade 1", "upgrade 1", "upgrade 1"},
		{"deployed:aaaa unreadable", "unreadable", "unreadable", "unreadable"},
		{"unreadable deployed:aaaa", "nothing", "nothing", "nothing"},
	} {
		t.Run(tc.history, func(t *testing.T) {
			t.Parallel()

			for _, as := range []struct {
				name, want string
				intent     release.Intent
			}{
				{"update", tc.update, release.Intent{}},
				{"create", tc.create, release.Intent{Create: true}},
				{"adopt", tc.adopt, release.Intent{Create: true, Adopt: true}},
			} {
				got := release.Decide(wanted(as.intent), history(tc.history), now)
				if tell(got) != as.want {
					t.Errorf("%s: %+v, want %q", as.name, got, as.want)
				}
			}
		})
	}
}

func wanted(intent release.Intent) release.Wanted {
	return release.Wanted{
		Name: release.Name{Namespace: "prod", Name: "web"}, Inputs: wish, Intent: intent, Held: true,
		Timeout: 5 * time.Minute,
	}
}

var reasons = map[error]string{release.ErrExists: "exists", release.ErrBusy: "busy",
	release.ErrUnreadable: "unreadable"}

func tell(d release.Decision) string {
	switch d.Step {
	case release.Refuse:
		return reasons[d.Reason]
	case release.Nothing, release.Install:
		return string(d.Step)
	default:
		return fmt.Sprintf("%s %d", d.Step, d.Revision)
	}
}

func TestDecide_repair(t *testing.T) {
	t.Parallel()

	if got := release.Decide(wanted(release.Intent{Repair: true}), history("deployed:aaaa"),
		now); tell(got) != "upgrade 1" {
		t.Errorf("a release whose objects differ is to be upgraded, not: %+v", got)
	}
}

// Without the Lease, it is unknown whether the run that left a release pending is alive.
func TestDecide_withoutLease(t *testing.T) {
	t.Parallel()

	want := wanted(release.Intent{})
	want.Held = false

	for _, text := range []string{"~pending-install:aaaa", "deployed:bbbb ~pending-upgrade:aaaa", "!-~uninstalling:aaaa"} {
		if got := release.Decide(want, history(text), now); tell(got) != "busy" {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

// A long timeout is a long time in which a release may be pending.
func TestDecide_waitsForTimeout(t *testing.T) {
	t.Parallel()

	want, have := wanted(release.Intent{}), history("deployed pending-upgrade")
	want.Timeout = time.Hour

	for age, step := range map[time.Duration]string{59 * time.Minute: "busy", 61 * time.Minute: "mark failed 2"} {
		have.History[1].Changed = now.Add(-age)

		if got := release.Decide(want, have, now); tell(got) != step {
			t.Errorf("after %s: %+v, want %s", age, got, step)
		}
	}
}

func TestDecide_refusalsSayWhatToDo(t *testing.T) {
	t.Parallel()

	for _, tc := range []struct {
		history string
		reason  error
		texts   []string
	}{
		{"deployed", release.ErrExists,
			[]string{"revision 1 of prod/web is deployed", "web 1.0.0", "import ID prod/web", "adopt = true"}},
		{"deployed ~pending-upgrade", release.ErrBusy,
			[]string{"revision 2 of prod/web is pending-upgrade", "abandoned in 9m0s"}},
		{"unreadable", release.ErrUnreadable, []string{"Secret prod/sh.helm.release.v1.web.v1"}},
	} {
		err := release.Decide(wanted(release.Intent{Create: true}), history(tc.history), now).Error()
		if !errors.Is(err, tc.reason) {
			t.Errorf("%s: %v is not %v", tc.history, err, tc.reason)

			continue
		}

		for _, text := range tc.texts {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %q does not say %q", tc.history, err, text)
			}
		}
	}
}
