package step

import (
	"fmt"
	"time"
)

// ReplaceVolumes gives a container new volumes instead of permanently lost ones, so that it returns without data and
// joins again. Destructive.
type ReplaceVolumes struct {
	plain

	Machine string
	Role    Role
	// Cause says what happened to the old ones.
	Cause string
}

// On names the machine.
func (s ReplaceVolumes) On() string { return s.Machine }

func (s ReplaceVolumes) String() string {
	return fmt.Sprintf("replace volumes of %s %s (its data is lost%s)", s.Role, s.Machine, colon(s.Cause))
}

// Disrupts is always true.
func (s ReplaceVolumes) Disrupts() bool { return true }

// Impact is that of a machine that starts without data.
func (s ReplaceVolumes) Impact() Impact { return Impact{Wipes: true, ReplacesPod: true} }

func colon(text string) string {
	if text == "" {
		return ""
	}

	return ": " + text
}

func (s ReplaceVolumes) ends(m *MachineState, at time.Time) {
	m.unsee("its volumes were just replaced", at)
}

func (ReplaceVolumes) forecast(m Model) { m.Wipe(false) }

func (ReplaceVolumes) shows(f *Shown) { f.Joins = true }

// OnLost is true.
func (ReplaceVolumes) OnLost() bool { return true }
