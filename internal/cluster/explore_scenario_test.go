package cluster_test

import "fmt"

// scenarioOf is the observation of a state.
func scenarioOf(w *world) string {
	return fmt.Sprintf("%+v\n", w.watch.states)
}
