package finding

import "strings"

// Report is the detail of a diagnostic about work on machines.
type Report struct {
	// Cause is why the work stopped, one line for each cause. A first line that ends with a colon introduces the others.
	Cause []string
	// Attempted is the operation that was attempted, where the summary does not say it.
	Attempted string
	// Now is the current state.
	Now []string
	// Next is what to do.
	Next string
}

const bullet = "\n  - "

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

		if len(lines) == 1 || strings.HasSuffix(lines[0], ":") {
			b.WriteString(" " + lines[0])
			lines = lines[1:]
		}

		for _, line := range lines {
			b.WriteString(bullet + line)
		}
	}

	section("Cause:", r.Cause...)
	section("Attempted:", r.Attempted)
	section("State now:", r.Now...)
	section("Next:", r.Next)

	return b.String()
}
