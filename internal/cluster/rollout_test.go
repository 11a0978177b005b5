package cluster_test

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

var trials = flag.Int("trials", sample(3000), "the number of trials of TestPlan_rollsOutOnRandomClusters")

// sample is how many random clusters a change is tried on: a third of those before a release.
func sample(all int) int {
	if testenv.Everything() {
		return all
	}

	return all / 3
}

var oneSeed = flag.Int64("seed", -1, "run this trial of TestPlan_rollsOutOnRandomClusters only, and print it")

// TestPlan_rollsOutOnRandomClusters runs plans of random clusters and changes on a model of the machines, where steps
// fail, machines never return, and runs are killed. Every trial ends at the desired state, in a refusal or in holds
// that the model confirms. No step breaks the invariants in section 3 of the design.
func TestPlan_rollsOutOnRandomClusters(t *testing.T) {
	if *oneSeed >= 0 {
		run := newTrial(uint64(*oneSeed))
		end := run.run()
		t.Logf("%s\nended: %s", run, end)

		if len(run.broken) > 0 {
			t.Fatal(strings.Join(run.broken, "\n"))
		}

		return
	}

	ends := map[string]int{}
	failed := 0

	for seed := range uint64(*trials) {
		run := newTrial(seed)
		end := run.run()
		ends[end]++

		if run.kube.back && end == "done" {
			ends["taken back"]++
		}

		run.countEtcd(ends, end)

		if run.keptAtAll {
			ends["kept, and "+end]++
		}

		if run.behindAtAll {
			ends["left behind, and "+end]++
		}

		if run.unmanaged != nil {
			ends["unmanaged, and "+end]++
		}

		if len(run.want.ChangeOnly) > 0 && !slices.Contains([]string{"", run.old.TalosVersion},
			run.want.ChangeOnly[0].TalosVersion) {
			ends["upgraded unmanaged, and "+end]++
		}

		if len(run.want.ChangeOnly) > 0 && run.want.ChangeOnly[0].ConfigDigest != "" {
			ends["configured unmanaged, and "+end]++
		}

		if run.soaks > 0 {
			ends["soaked, and "+end]++
		}

		if run.waited {
			ends["waited, and "+end]++
		}

		if len(run.broken) > 0 {
			t.Errorf("seed %d (go test -run TestPlan_rollsOutOnRandomClusters -seed %d):\n%s\n%s", seed, seed,
				strings.Join(run.broken, "\n"), run)

			if failed++; failed == 3 {
				return
			}
		}
	}

	t.Logf("ends: %v", ends)

	// A property that never makes progress proves nothing.
	if ends["done"] < *trials/3 || ends["held"] < *trials/20 || ends["refused"] < *trials/100 ||
		ends["stuck"] < *trials/300 || ends["taken back"] < *trials/300 || ends["etcd went back"] < *trials/100 ||
		ends["etcd turned back"] < *trials/300 || ends["kept, and done"] < *trials/30 ||
		ends["left behind, and done"] < *trials/500 ||
		ends["waited, and done"] < *trials/50 || ends["unmanaged, and done"] < *trials/30 ||
		ends["unmanaged, and refused"] < *trials/300 || ends["upgraded unmanaged, and done"] < *trials/100 ||
		ends["configured unmanaged, and done"] < *trials/100 || ends["soaked, and done"] < *trials/50 {
		t.Errorf("the trials are one-sided: %v", ends)
	}
}

func (t *trial) String() string {
	var b strings.Builder

	fmt.Fprintf(&b, "bootstrapped=%v joins=%v cni=%v pools=%v\n", t.want.Bootstrapped, t.want.Joins, !t.noCNI,
		t.want.Pools)

	for _, m := range t.want.Known() {
		fmt.Fprintf(&b, "  %s %s at %s uuid=%q node=%q member=%q pool=%q %s %s via=%v\n", m.Role, m.Name, m.Address, m.UUID,
			m.NodeName, m.MemberID, m.Pool, m.TalosVersion, m.Schematic, m.Via)
	}

	fmt.Fprintf(&b, "kubernetes=%+v change=%+v drain=%v\n", t.want.Kubernetes, t.kube, t.policy.DrainForKubelet)

	const most = 120

	trace := t.trace
	if *oneSeed < 0 && len(trace) > most {
		trace = trace[len(trace)-most:]
	}

	for _, line := range trace {
		fmt.Fprintf(&b, "%s\n", line)
	}

	return b.String()
}

// run is the loop of lifecycle, on the model. It returns how it ended.
func (t *trial) run() string {
	for _, b := range t.boxes {
		t.say("%s at %s: %s %s %s %s member=%q sick=%v broken=%v stuck=%v cure=%q", b.name, b.addr, b.life, b.version,
			b.schematic, b.digest, b.member, b.sick, b.etcdBroken, b.stuck, b.repair)
		t.say("  %v faulty=%v", b.kube.images, b.kube.faulty)
	}

	const runs = 4

	end := ""

	for range runs {
		end = t.apply()

		switch {
		case len(t.broken) > 0 || end == "done":
			return end
		case end != "refused" && t.mayTakeBack():
			t.takeBack()
		case end != "refused" && t.mayStayOnTalos():
			t.staysOnTalos()
		case end != "killed" && end != "failed":
			return end
		}

		t.say("run %s, applying again", end)
	}

	return end
}

// apply is one run without knowledge of earlier ones.
func (t *trial) apply() (end string) {
	watch := t.beginRun()
	operations := map[string]*operation{}
	quiet := 0
	limit := 500 + 200*len(t.want.Known())

	defer func() {
		if end != "killed" && watch.manifests != "" && t.want.Kubernetes.Manifests != "" {
			t.want.Kubernetes.Manifests = watch.manifests // as lifecycle records it
		}
	}()

	for range limit {
		have := watch.observe()
		have.Window, have.Elsewhere = t.atWindow(), t.elsewhere()
		d := cluster.Plan(t.want, have, t.policy)
		t.keeps(d)
		t.leavesBehind(d)
		t.inWindow(d, have)

		if len(d.Kept) > 0 {
			t.keptAtAll = true
		}

		t.behindAtAll = t.behindAtAll || len(d.Behind) > 0

		switch {
		case len(t.broken) > 0:
			return "broken"
		case len(d.Refusals) > 0:
			t.refused(d)

			return "refused"
		case d.Done() && len(operations) == 0:
			for _, missing := range t.unreached() {
				t.fail("done, but %s", missing)
			}

			t.nothingLeft(watch.manifests)

			return "done"
		case t.random.Float64() < t.kills:
			return "killed"
		}

		if t.wellFormed(d); len(d.Steps) == 0 && len(operations) == 0 && quiet > 12 && !have.Window.Closed {
			t.held(d)

			return "held"
		}

		begun := t.begin(d, watch, operations)
		failed, ended := t.goOn(watch, operations)
		moved := t.tick()
		t.comeAndGo()

		if quiet > 2 {
			moved = t.othersGoOn() || moved
		}

		t.oneAtATime()

		t.recovered(func(b *box) bool {
			for _, op := range operations {
				if t.meant[op.machine.Name] == b {
					return false
				}
			}

			return true
		})

		if failed {
			return "failed"
		}

		if t.stuck() {
			return "stuck"
		}

		// Where nothing progresses, only time can help.
		if quiet++; begun || ended || moved || len(operations) > 0 {
			quiet = 0
		}

		t.now = t.now.Add(20 * time.Second)
		if quiet > 3 {
			t.now = t.now.Add(5 * time.Minute)
		}
	}

	t.fail("no end after %d rounds", limit)

	return "endless"
}

// beginRun forgets what the run before did and observed.
func (t *trial) beginRun() *observer {
	t.succeeded, t.pulled, t.vain = map[string]bool{}, map[string]string{}, map[step.UpgradeComponent]int{}

	t.replaces()

	t.quietSince = time.Time{}
	t.judge.run++ // a machine that does not return counts for the run that disrupted it

	for _, b := range t.boxes {
		b.hop = ""
	}

	t.recovered(func(*box) bool { return true })
	t.noteWhoWorks()

	watch := newObserver(t.site, t.want)
	watch.destroys = t.destroys

	return watch
}

// nothingLeft checks that the next run finds nothing to do.
func (t *trial) nothingLeft(manifests string) {
	t.replaces()

	want := t.want
	want.Removed, want.Kubernetes.Changed = nil, nil

	if manifests != "" {
		want.Kubernetes.Manifests = manifests
	}

	watch := newObserver(t.site, want)
	watch.observe()

	have := watch.observe()
	have.Elsewhere = t.elsewhere()

	if d := cluster.Plan(want, have, t.policy); !d.Done() {
		t.fail("done, and then there is:\n%s", render(d))
	}
}

// stuck is true once several waits for a component failed. The machine must have a reason for that.
func (t *trial) stuck() bool {
	for step, times := range t.vain {
		if times < 3 {
			continue
		}

		if b := t.meant[step.Machine]; t.api() && !b.sick && b.life == running && !t.beyondHelp(t.machine(step.Machine), b) ||
			t.whole {
			t.fail("%q in vain, and nothing is wrong with that", step)
		}

		return true
	}

	return false
}

func (t *trial) wellFormed(d cluster.Decision) {
	for _, broken := range generalInvariants(d) {
		t.fail("%s", broken)
	}
}

// begin starts the steps on idle machines.
func (t *trial) begin(d cluster.Decision, watch *observer, operations map[string]*operation) (begun bool) {
	for _, step := range d.Steps {
		name := step.On()
		if operations[name] != nil {
			t.fail("%q on a machine that is busy", step)

			continue
		}

		t.say("step %s", step)
		t.check(step)

		how := fine
		if t.random.Float64() < t.faults {
			how = t.failure(1)
			t.say("  which goes wrong (%d)", how)
		}

		operations[name] = t.operate(watch.machine(name), step, how)
		watch.began(step)

		begun = true
	}

	return begun
}

// goOn carries out one phase of each operation.
func (t *trial) goOn(watch *observer, operations map[string]*operation) (failed, ended bool) {
	for _, name := range slices.Sorted(maps.Keys(operations)) {
		op := operations[name]
		err := op.phases[0]()
		op.phases = op.phases[1:]

		if err == nil && len(op.phases) > 0 {
			continue
		}

		delete(operations, name)
		t.ended(watch, op.step, err)

		ended = true
		failed = failed || err == errFatal
	}

	return failed, ended
}

// ended records the end of a step.
func (t *trial) ended(watch *observer, ended step.Step, err error) {
	watch.ended(ended, err)
	t.say("ended %s: %v", ended, err)

	t.done = append(t.done, ended)

	if why := purpose(ended); why != "" && err == nil {
		t.succeeded[why] = true
	}

	if pull, ok := ended.(step.PullImages); ok && err == nil {
		t.pulled[ended.On()] = pull.Version
	}

	if up, ok := ended.(step.UpgradeComponent); ok && err == errInVain {
		up.From, up.With, up.Evacuation = "", step.UpgradeComponent{}.With, step.Evacuation{}
		t.vain[up]++
	}
}
