package cluster

import (
	"fmt"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// holdOutside holds the disruptive steps of a decision until the window opens. A run that does not wait is refused,
// once everything else is done and every other machine works.
func (d *Decision) holdOutside(want Spec, have Snapshot) {
	if !have.Window.Closed {
		return
	}

	var due, now []step.Step

	waits := map[string]bool{}

	for _, step := range d.Steps {
		if disrupts(step, have) {
			due, waits[step.On()] = append(due, step), true
		} else {
			now = append(now, step)
		}
	}

	if len(due) == 0 {
		return
	}

	d.Steps = now
	opens := have.Window.next()

	if have.Window.Refuses && len(now) == 0 && atRest(want, have, waits) {
		d.refuse(due[0].On(), fmt.Sprintf("%q waits for the maintenance window, which %s", due[0], opens),
			"All work that needs no window is done. Apply again when the window is open")

		return
	}

	if len(now) == 0 {
		d.Yields, d.Opens = true, have.Window.Opens
	}

	for _, step := range due {
		d.hold(step.On(), "%q waits for the maintenance window, which %s", step, opens)
	}
}

// next says when a window opens.
func (w Window) next() string {
	if w.Opens.IsZero() {
		return "never opens"
	}

	return "opens at " + w.Opens.Format(time.RFC3339)
}

// atRest reports whether every machine works, except those that wait.
func atRest(want Spec, have Snapshot, waits map[string]bool) bool {
	for _, m := range want.Known() {
		if have.Machines[m.Name].Busy != "" {
			return false
		}
	}

	for name := range Unready(want, have) {
		if !waits[name] {
			return false
		}
	}

	return true
}
