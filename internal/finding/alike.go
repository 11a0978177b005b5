package finding

import "iter"

// Alike keeps machines together of which the same is said. The zero value is empty.
type Alike[K comparable] struct {
	order    []K
	machines map[K][]string
}

// Add notes what is said of a machine.
func (a *Alike[K]) Add(what K, machine string) {
	if a.machines == nil {
		a.machines = map[K][]string{}
	}

	if a.machines[what] == nil {
		a.order = append(a.order, what)
	}

	a.machines[what] = append(a.machines[what], machine)
}

// All gives what is said, in the order in which it was said first, and the machines in the order in which they were
// added.
func (a *Alike[K]) All() iter.Seq2[K, []string] {
	return func(yield func(K, []string) bool) {
		for _, what := range a.order {
			if !yield(what, a.machines[what]) {
				return
			}
		}
	}
}
