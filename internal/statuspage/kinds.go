package statuspage

// Kind is the kind of a problem. Each has a color, a symbol and a name of its own.
type Kind string

// The kinds, the most important first: a machine has the symbol of its first one.
const (
	Working    Kind = "working"
	Silent     Kind = "silent"
	Broken     Kind = "broken"
	NotKnown   Kind = "unknown"
	Waiting    Kind = "waiting"
	Cordoned   Kind = "cordoned"
	Drifted    Kind = "drifted"
	Other      Kind = "other"
	noProblems Kind = "ready"
)

// kind is a row of the legend.
type kind struct {
	Kind
	// Label names it in the legend, and for screen readers.
	Label string
}

// kinds are all of them, in the order of importance.
var kinds = []kind{
	{Working, "Changes now"}, {Silent, "Does not respond"}, {Broken, "Not healthy"}, {NotKnown, "Not known"},
	{Waiting, "Waits"}, {Cordoned, "Cordoned"}, {Drifted, "Differs from the last apply"},
	{Other, "Another version than the cluster"}, {noProblems, "Ready"},
}

// kind is the most important kind of a machine's problems.
func (m Machine) kind() kind {
	for _, k := range kinds {
		for _, p := range m.Problems {
			if p.Kind == k.Kind {
				return k
			}
		}
	}

	return kinds[len(kinds)-1]
}

// unhealthy reports whether a machine has a problem that affects the cluster.
func (m Machine) unhealthy() bool {
	switch m.kind().Kind {
	case Broken, Silent, NotKnown, Cordoned:
		return true
	case Working, Waiting, Drifted, Other, noProblems:
	}

	return false
}
