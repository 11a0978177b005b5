package finding

import (
	"slices"
	"strings"
)

// Shared joins the errors about invalid values that machines have in common: the same message about the same attribute
// of several machines is one error, which names all of them.
func (l List) Shared() List {
	type mistake struct{ code, attribute, fix string }

	kindOf := func(f Finding) mistake { return mistake{f.Code, f.At.withoutKeys(), f.Fix} }
	same := map[mistake]List{}

	for _, f := range l {
		same[kindOf(f)] = append(same[kindOf(f)], f)
	}

	var shared List

	for _, f := range l {
		kind := kindOf(f)

		switch all := same[kind]; {
		case f.Found == "":
			shared.Append(f)
		case len(all) > 0:
			shared.Append(all.joined())
			delete(same, kind)
		}
	}

	return shared
}

// joined is one error about all attributes of a list, with a line for each.
func (l List) joined() Finding {
	var (
		at    []Path
		lines []string
	)

	for _, f := range l {
		at = append(at, f.At)
		if line := f.At.String() + ": " + f.Found; !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}

	one := l[0]
	if len(lines) == 1 {
		return one
	}

	one.At = Common(at)
	one.Summary = invalidSummary + one.At.String()
	one.Found = strings.TrimPrefix(bullets(Shortened(lines)), "\n")
	one.Detail = paragraphs([]string{one.Found, one.Fix})

	return one
}
