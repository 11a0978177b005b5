package machineset

import (
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
)

// WindowAt is the state of the maintenance window at a time, in a run that ends at another one (zero for never). A
// run does not wait for a window that opens after its end.
func (c Changes) WindowAt(now, ends time.Time) cluster.Window {
	open, opens := c.Window.At(now)
	late := opens.IsZero() || !ends.IsZero() && opens.After(ends)

	return cluster.Window{Closed: !open, Opens: opens, Refuses: !open && (c.RefusesOutside || late)}
}

// OutsideWindow describes what happens outside the maintenance window to a plan that takes machines out of service.
// No value of the plan depends on it.
func (p Set) OutsideWindow(now time.Time, f Forecast) finding.List {
	names := f.Impact.outOfService()

	open, opens := p.Changes.Window.At(now)
	if open || len(names) == 0 {
		return nil
	}

	message, place, at := windowAwaited, finding.Path{}, ""
	if p.Changes.RefusesOutside {
		message, place = windowClosed, finding.Root("maintenance_window")
	}

	if !opens.IsZero() {
		at = opens.Format(time.RFC3339)
	}

	return finding.List{message.At(place, finding.Args{"cluster": p.Settings.Name, "machines": names,
		"window": p.Changes.Window, "opens": at})}
}

// outOfService are the machines that are drained, reboot, or are wiped.
func (i Impact) outOfService() []string {
	var names []string
	for _, some := range [][]string{i.Drained, i.Rebooted, i.Wiped, i.PodsReplaced} {
		names = append(names, some...)
	}

	return distinct(names)
}
