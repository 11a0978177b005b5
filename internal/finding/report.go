package finding

import (
	"strings"
)

// Report is the detail of a diagnostic about work on machines.
type Report struct {
	// Attempted is the operation that was attempted.
	Attempted string
	// Cause is the result, one line for each cause.
	Cause []string
	// Now is the current state.
	Now []string
	// Next says whether applying again is safe, and what to do.
	Next string
}

func (r Report) String() string {
	var b strings.Builder

	section := func(title string, lines ...string) {
		if len(lines) == 0 || lines[0] == "" {
			return
		}

		if b.Len() > 0 {
			b.WriteString("\n\n")
		}

		b.WriteString(title)

		if len(lines) == 1 {
			b.WriteString(" " + lines[0])

			return
		}

		for _, line := range lines {
			b.WriteString("\n  - " + line)
		}
	}

	section("Attempted:", r.Attempted)
	section("Cause:", r.Cause...)
	section("State now:", r.Now...)
	section("Next:", r.Next)

	return b.String()
}
