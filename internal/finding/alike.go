package finding

import "iter"

// Alike groups machines about which the same is reported. The zero value is empty.
type Alike[K comparable] struct {
	order    []K
	machines map[K][]string
}

// Add records a report about a machine.
func (a *Alike[K]) Add(what K, machine string) {
	if a.machines == nil {
		a.machines = map[K][]string{}
	}

	if a.machines[what] == nil {
		a.order = append(a.order, what)
	}

	a.machines[what] = append(a.machines[what], machine)
}

// All gives the reports in the order in which they were first added, each with its machines in the order in which
// they were added.
func (a *Alike[K]) All() iter.Seq2[K, []string] {
	return func(yield func(K, []string) bool) {
		for _, what := range a.order {
			if !yield(what, a.machines[what]) {
				return
			}
		}
	}
}
