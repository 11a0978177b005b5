package machineset

import (
	"slices"
	"strings"
)

// HostDrift is how the objects of a machine on its host cluster differ from what is wanted, by what an apply does about
// it.
type HostDrift struct {
	// Repairs are put right before the first step.
	Repairs []string
	// VolumesLost machines get new volumes in a step.
	VolumesLost bool
	// Replace is why a step replaces the pod, empty when none does.
	Replace string
	// Stays is what no apply puts right.
	Stays []string
}

// Lines are what state records of it, which has text alone.
func (d HostDrift) Lines() []string {
	told := slices.Clone(d.Repairs)

	if d.VolumesLost {
		told = append(told, driftLost)
	}

	if d.Replace != "" {
		told = append(told, d.Replace)
	}

	var lines []string

	for _, line := range told {
		lines = append(lines, DriftHost+line)
	}

	for _, line := range d.Stays {
		lines = append(lines, driftStays+line)
	}

	return lines
}

// RecordedHostDrift reads what lines wrote, among other drift of a machine; nothing else reads it. replaced is whether
// its pod is to be replaced, of which the reason comes last.
func RecordedHostDrift(drift []string, replaced bool) HostDrift {
	var d HostDrift

	for _, line := range drift {
		if stays, ok := strings.CutPrefix(line, driftStays); ok {
			d.Stays = append(d.Stays, stays)
		} else if told, ok := strings.CutPrefix(line, DriftHost); ok {
			d.Repairs = append(d.Repairs, told)
		}
	}

	if last := len(d.Repairs) - 1; replaced && last >= 0 {
		d.Replace, d.Repairs = d.Repairs[last], d.Repairs[:last]
	}

	told := len(d.Repairs)
	d.Repairs = slices.DeleteFunc(d.Repairs, func(line string) bool { return line == driftLost })
	d.VolumesLost = len(d.Repairs) < told

	return d
}

// IsHostDrift says whether a line of drift is of the host cluster.
func IsHostDrift(line string) bool {
	return strings.HasPrefix(line, DriftHost) || strings.HasPrefix(line, driftStays)
}
