package provider

import (
	"slices"
	"strings"
)

// hostDrift is how the objects of a machine on its host cluster differ from what is wanted, by what an apply does about it.
type hostDrift struct {
	// repairs are put right before the first step.
	repairs []string
	// volumesLost machines get new volumes in a step.
	volumesLost bool
	// replace is why a step replaces the pod, empty when none does.
	replace string
	// stays is what no apply puts right.
	stays []string
}

// lines are what state records of it, which has text alone.
func (d hostDrift) lines() []string {
	told := slices.Clone(d.repairs)

	if d.volumesLost {
		told = append(told, driftLost)
	}

	if d.replace != "" {
		told = append(told, d.replace)
	}

	var lines []string

	for _, line := range told {
		lines = append(lines, driftHost+line)
	}

	for _, line := range d.stays {
		lines = append(lines, driftStays+line)
	}

	return lines
}

// recordedHostDrift reads what lines wrote, among other drift of a machine; nothing else reads it. replaced is whether its pod is to be
// replaced, of which the reason comes last.
func recordedHostDrift(drift []string, replaced bool) hostDrift {
	var d hostDrift

	for _, line := range drift {
		if stays, ok := strings.CutPrefix(line, driftStays); ok {
			d.stays = append(d.stays, stays)
		} else if told, ok := strings.CutPrefix(line, driftHost); ok {
			d.repairs = append(d.repairs, told)
		}
	}

	if last := len(d.repairs) - 1; replaced && last >= 0 {
		d.replace, d.repairs = d.repairs[last], d.repairs[:last]
	}

	told := len(d.repairs)
	d.repairs = slices.DeleteFunc(d.repairs, func(line string) bool { return line == driftLost })
	d.volumesLost = len(d.repairs) < told

	return d
}

// isHostDrift says whether a line of drift is of the host cluster.
func isHostDrift(line string) bool {
	return strings.HasPrefix(line, driftHost) || strings.HasPrefix(line, driftStays)
}
