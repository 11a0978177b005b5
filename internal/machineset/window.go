package machineset

import (
	"fmt"
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

	at := "It never opens"
	if !opens.IsZero() {
		at = "It opens at " + opens.Format(time.RFC3339)
	}

	window := fmt.Sprintf("The maintenance window (%s) is closed. %s", p.Changes.Window, at)

	if p.Changes.RefusesOutside {
		return finding.List{finding.Refused(finding.Root("maintenance_window"), "The maintenance window is closed",
			"the plan takes out of service: "+finding.Describe(names), window,
			"Plan again when it is open, or set outside = \"wait\" to have the apply wait for it")}
	}

	return finding.List{finding.Warn("The maintenance window is closed", finding.Sentences(window,
		"Until then an apply does what disrupts nothing, and waits with what takes out of service: "+finding.Describe(names),
		"When its timeout (see timeouts) is over before that, it ends with an error as soon as nothing else is left"))}
}

// outOfService are the machines that are drained, reboot, or are wiped.
func (i Impact) outOfService() []string {
	var names []string
	for _, some := range [][]string{i.Drained, i.Rebooted, i.Wiped, i.PodsReplaced} {
		names = append(names, some...)
	}

	return distinct(names)
}
