package cluster_test

import (
	"cmp"
	"flag"
	"fmt"
	"hash/maphash"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// exploration is a search through all states, in breadth, so that a counterexample is a shortest one.
type exploration struct {
	first func() *world
	most  int // states
	seed  maphash.Seed
	// known are the states by their keys, and reached those by their keys before the decision: equal ones are equal after
	// it.
	known, reached map[uint64]int32
	// parent and by are how each state was reached first. from and to are all moves.
	parent   []int32
	by       []move
	from, to []int32
	// ends are how many states ended how.
	ends  map[string]int
	final []bool
	whole bool // every state was visited
}

// explore visits the states that follow from the first one, and returns a counterexample; nil for none.
func explore(first func() *world, most int) (*exploration, *story) {
	x := &exploration{first: first, most: most, seed: maphash.MakeSeed(), known: map[uint64]int32{},
		reached: map[uint64]int32{}, ends: map[string]int{}}

	begin := first().begun()
	x.known[begin.key(x.seed)] = x.found(-1, move{})

	// The states that were not visited yet, in their order.
	queue := []*world{begin}

	for at := int32(0); len(queue) > 0 && len(x.parent) < x.most; at++ {
		w := queue[0]
		queue[0], queue = nil, queue[1:]
		worlds, by := w.next()

		if len(w.broken) > 0 {
			return x, x.story(at, w.broken)
		}

		if w.end != "" {
			x.ends[w.end]++
			x.final[at] = true
		}

		for i, next := range worlds {
			fresh := x.reach(next, at, by[i])

			if len(next.broken) > 0 {
				return x, x.story(at, next.broken, by[i])
			}

			if fresh {
				queue = append(queue, next)
			}
		}
	}

	x.whole = len(queue) == 0

	for i := range queue { // not visited, and not judged
		x.final[len(x.final)-1-i] = true
	}

	if at := x.livelock(); at >= 0 {
		return x, x.story(at, []string{"no end can be reached from here"})
	}

	return x, nil
}

// found adds a state.
func (x *exploration) found(from int32, by move) int32 {
	x.parent, x.by, x.final = append(x.parent, from), append(x.by, by), append(x.final, false)

	return int32(len(x.parent) - 1)
}

// reach lets the planner decide in a state, and reports whether it was not known before.
func (x *exploration) reach(w *world, from int32, by move) bool {
	before := w.key(x.seed)
	at, old := x.reached[before]

	if !old && len(w.broken) == 0 {
		w.decide()

		key := w.key(x.seed)
		if at, old = x.known[key]; !old {
			at = x.found(from, by)
			x.known[key] = at
		}

		x.reached[before] = at
		x.from, x.to = append(x.from, from), append(x.to, at)

		return !old
	}

	x.from, x.to = append(x.from, from), append(x.to, at)

	return false
}

// livelock is a state from which no end can be reached; negative for none.
func (x *exploration) livelock() int32 {
	// The moves by the state to which they lead.
	begin := make([]int, len(x.parent)+1)
	for _, to := range x.to {
		begin[to+1]++
	}

	for i := range x.parent {
		begin[i+1] += begin[i]
	}

	sources, next := make([]int32, len(x.to)), slices.Clone(begin)
	for i, to := range x.to {
		sources[next[to]] = x.from[i]
		next[to]++
	}

	reaches := slices.Clone(x.final)

	var queue []int32

	for at, final := range x.final {
		if final {
			queue = append(queue, int32(at))
		}
	}

	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]

		for _, from := range sources[begin[at]:begin[at+1]] {
			if !reaches[from] {
				reaches[from] = true
				queue = append(queue, from)
			}
		}
	}

	return int32(slices.Index(reaches, false))
}

// moves are those that lead to a state.
func (x *exploration) moves(at int32) (moves []move) {
	for ; x.parent[at] >= 0; at = x.parent[at] {
		moves = append(moves, x.by[at])
	}

	slices.Reverse(moves)

	return moves
}

var (
	exploredShape = flag.String("explore", "",
		"explore clusters of this shape only: control planes, workers and faults, such as 3-2-2")
	exploredStates = flag.Int("states", 0, "explore this many states of each change")
)

// TestPlan_exploresEveryState visits the states of small clusters under every change: each order in which steps and
// machines go on, with up to two faults. No step breaks an invariant of the design, every end is one that the model
// confirms, and an end can be reached from every state. The states that are visited are shared by all changes.
func TestPlan_exploresEveryState(t *testing.T) {
	least, shapes := 100_000, [][3]int{{1, 1, 2}, {3, 1, 1}}
	if testenv.Everything() {
		least, shapes = 10_000_000, [][3]int{{1, 2, 2}, {2, 1, 2}, {3, 0, 2}, {3, 2, 2}}
	}

	if *exploredShape != "" {
		var shape [3]int
		if _, err := fmt.Sscanf(*exploredShape, "%d-%d-%d", &shape[0], &shape[1], &shape[2]); err != nil {
			t.Fatal(err)
		}

		shapes = [][3]int{shape}
	}

	states, left := 0, len(explored)*len(shapes)
	all := *exploredStates == 0 && *exploredShape == ""

	// What a small exploration leaves goes to the ones after it, and in the end to the largest one.
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(explored)), func(name string) bool { return name == "create" })

	for _, name := range append(names, "create") {
		for _, shape := range shapes {
			most := cmp.Or(*exploredStates, (least-states)/left+1)
			left--

			all = t.Run(fmt.Sprintf("%s/%d-%d", name, shape[0], shape[1]), func(t *testing.T) {
				first := func() *world { return explored[name](shape[0], shape[1], shape[2]) }
				states += exploreChange(t, name, first, most)
			}) && all
		}
	}

	t.Logf("%d states", states)

	if all && !filtered() && states < least {
		t.Errorf("only %d states, and not %d", states, least)
	}
}

// filtered is true where -run chooses among the explorations.
func filtered() bool { return strings.Contains(flag.Lookup("test.run").Value.String(), "/") }

// exploreChange explores a change, and returns how many states it has.
func exploreChange(t *testing.T, name string, first func() *world, most int) int {
	t.Helper()

	begin := time.Now()
	x, counterexample := explore(first, most)

	t.Logf("%d states (all: %t), %d moves, ends %v, %s", len(x.parent), x.whole, len(x.to), x.ends,
		time.Since(begin).Round(time.Millisecond))

	if counterexample != nil {
		file := filepath.Join(t.ArtifactDir(), strings.ReplaceAll(name, " ", "_")+".txtar")
		if err := os.WriteFile(file, txtar.Format(&counterexample.Archive), 0o600); err != nil {
			t.Error(err)
		}

		t.Fatalf("%s\nThe scenario is in %s (go test -artifacts keeps it):\n%s", counterexample.Comment, file,
			txtar.Format(&counterexample.Archive))
	}

	if x.whole && x.ends["done"] == 0 && len(first().members) != 2 { // two control planes never disrupt one
		t.Error("no state is done, so that nothing is proven")
	}

	return len(x.parent)
}
