package machines_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// importObject imports a resource, as the command of the CLIs does, and reads it at once.
func (w *lifeWalk) importObject(ctx context.Context, b lifeBlock, id string) {
	resp, err := w.server.ImportResourceState(ctx, &tfprotov6.ImportResourceStateRequest{TypeName: b.Kind, ID: id})
	if err != nil || !w.note(b.Address, resp.Diagnostics, nil) {
		w.note(b.Address, nil, err)

		return
	}

	for _, imported := range resp.ImportedResources {
		key := lifeKey{Address: b.Address}
		w.store(key, &lifeObject{
			Kind: b.Kind, Value: tftest.Decoded(w.t, tftest.TypeOf(w.t, b.Kind), imported.State), Private: imported.Private,
			Needs: b.Needs,
		})
		w.refresh(ctx, key)
	}
}

// lifeSeed selects the sequences to run: one, such as 7, or several, such as 1-500.
const lifeSeed = "TALOSOP_TEST_LIFE_SEED"

// lifeSeeds are the seeds of the sequences: all of them in test-all, otherwise a few.
func lifeSeeds(t *testing.T) []uint64 {
	t.Helper()

	given := cmp.Or(os.Getenv(lifeSeed), "1-2")
	if testenv.Everything() && os.Getenv(lifeSeed) == "" {
		given = "1-500"
	}

	first, last, several := strings.Cut(given, "-")
	if !several {
		last = first
	}

	from, err := strconv.ParseUint(first, 10, 64)
	tftest.Must(t, err)

	to, err := strconv.ParseUint(last, 10, 64)
	tftest.Must(t, err)

	var seeds []uint64
	for seed := from; seed <= to; seed++ {
		seeds = append(seeds, seed)
	}

	return seeds
}

// lifeTotals are the results of all sequences.
type lifeTotals struct {
	mu                    sync.Mutex
	sequences, operations int
	refusals              map[string]int
}

func (s *lifeTotals) add(w *lifeWorld) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.sequences++
	s.operations += w.operations

	for title, n := range w.refusals {
		s.refusals[title] += n
	}
}

// Invariants of any sequence of Terraform operations, even interrupted or killed ones. A healthy cluster that is
// wanted keeps its etcd. Only machines of removed objects are reset. The secrets of a living cluster are in a state
// or in a file. In the end the plan is empty, or refused with advice.
func TestLife_randomSequences(t *testing.T) {
	t.Parallel()

	const chains = 6

	totals := &lifeTotals{refusals: map[string]int{}}
	begun := time.Now()

	t.Cleanup(func() {
		t.Logf("%d sequences, %d operations in %s", totals.sequences, totals.operations, time.Since(begun).Round(time.Second))

		for _, title := range slices.Sorted(maps.Keys(totals.refusals)) {
			t.Logf("%5d %s", totals.refusals[title], title)
		}
	})

	seeds := make([][]uint64, chains)
	for i, seed := range lifeSeeds(t) {
		seeds[i%chains] = append(seeds[i%chains], seed)
	}

	for i, chain := range seeds {
		t.Run(fmt.Sprint("chain ", i), func(t *testing.T) {
			t.Parallel()

			s := &lifeSite{Site: sitetest.New(t, 4, 3), folder: t.TempDir()}

			var bundle string

			for _, seed := range chain {
				w := &lifeWorld{
					lifeSite: s, t: t, random: rand.New(rand.NewPCG(seed, 0)), //nolint:gosec // not for secrets
					order:  rand.New(rand.NewPCG(seed, 1)), //nolint:gosec // as above
					states: [2]lifeState{{}, {}}, files: map[string]string{}, marks: map[string]string{}, refusals: map[string]int{},
				}
				bundle = w.sequence(bundle)
				totals.add(w)

				if len(w.Violations) > 0 {
					t.Errorf("sequence %s=%d:\n%s", lifeSeed, seed, w.describe())
				} else {
					t.Logf("sequence %s=%d:\n%s", lifeSeed, seed, w.describe())
				}
			}
		})
	}
}

// sequence runs one sequence on the cluster of the given secrets, if there is one, and returns the secrets that are
// left.
func (w *lifeWorld) sequence(bundle string) string {
	w.readsFirst = w.sometimes(50)
	w.log("orphans are read first: %v", w.readsFirst)

	w.configs[0] = w.start()
	w.begin(bundle)

	for range 2 + w.random.IntN(4) {
		if len(w.Violations) > 0 {
			break
		}

		w.run(w.operation())
	}

	if len(w.Violations) == 0 {
		w.end()
	}

	if len(w.Violations) == 0 {
		return w.living()
	}

	return ""
}

// begin prepares the machines: the previous cluster is taken over, or all machines are blank.
func (w *lifeWorld) begin(bundle string) {
	w.expel(clusterIDOf(bundle))
	w.ControlPlane, w.Workers = inPlace(w.ControlPlane, lifePlane), inPlace(w.Workers, lifeWorker)
	w.identity, w.members = w.etcd(w.t.Context())

	if w.identity == "" || !w.runsWith(clusterIDOf(bundle)) {
		w.blank()

		bundle = ""
	}

	if bundle != "" {
		for _, b := range w.blocks(w.configs[0])[:1] {
			walk := newLifeWalk(w.t, nil)
			walk.importObject(w.t.Context(), b, w.saved(w.t, bundle))
			w.states[0] = walk.state
		}

		w.marks = w.owners(w.t.Context(), w.t, bundle)
	}

	if !w.run(lifeOperation{Name: "begin", Config: w.configs[0]}) {
		w.violated("the sequence did not begin")
	}
}

// expel wipes machines that an earlier cluster left behind because a state forgot them, and those that an unfinished
// apply configured and that never came up.
func (w *lifeWorld) expel(id string) {
	for _, m := range w.Machines() {
		left := id == "" || !strings.Contains(string(m.Config()), id) || m.Stage() != sim.StageRunning

		if m.Configured() && left {
			m.Wipe()
			m.PowerOn()
			tftest.Must(w.t, m.AwaitStage(w.t.Context(), sim.StageMaintenance))
		}
	}
}

// inPlace puts the spare machine, which is the last one, at the position of its node name, if the machine there is
// in no cluster.
func inPlace(machines []*sim.Machine, role string) []*sim.Machine {
	spare := len(machines) - 1

	for i, m := range machines {
		if machines[spare].Configured() && machines[spare].Hostname() == fmt.Sprintf("%s-%d", role, i+1) && !m.Configured() {
			machines[i], machines[spare] = machines[spare], m
		}
	}

	return machines
}

// blank makes new machines.
func (w *lifeWorld) blank() {
	w.log("blank machines")

	for _, m := range w.Machines() {
		if m.Configured() || m.Stage() != sim.StageMaintenance {
			m.Wipe()
			m.PowerOn()
		}
	}

	for _, m := range w.Machines() {
		tftest.Must(w.t, m.AwaitStage(w.t.Context(), sim.StageMaintenance))
	}

	w.identity, w.members = "", nil
}

// end applies until nothing is left to do, or a plan is refused. A state that lost the cluster to a takeover ends
// first, and leaves the cluster unchanged.
func (w *lifeWorld) end() {
	last := 0
	if len(w.states[1]) > 0 && (len(w.states[0]) == 0 || w.sometimes(50)) {
		last = 1
	}

	w.settle(last)

	if other := 1 - last; len(w.states[other]) > 0 && len(w.Violations) == 0 {
		w.run(lifeOperation{
			Name: "destroy of the other state", State: other, Config: w.configs[other], Options: lifeOptions{Destroy: true},
		})

		w.states[other] = lifeState{}
		w.settle(last)
	}
}

// settle applies the configuration of a state until its plan is empty, or refused.
func (w *lifeWorld) settle(i int) {
	// A rotation takes three applies, and one more for each machine in a separate resource.
	for range 10 {
		op := lifeOperation{Name: "settle", State: i, Config: w.consents(w.configs[i]), Commands: untainted}
		if w.states[i][lifeKey{Address: lifeSecrets}] == nil && len(op.Config.Planes) > 0 && w.identity != "" {
			op = w.importSecrets(op)
		}

		done := w.run(op)
		if !done && (w.refused || !w.turning(i)) || len(w.Violations) > 0 {
			return
		}

		if w.idle {
			return
		}
	}

	w.violated("the plan does not become empty")
}
