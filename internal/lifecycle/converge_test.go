package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/sim/images"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/secretstest"
)

// sharedBundle is generated once, because key generation takes most of the time of a small test.
var sharedBundle = sync.OnceValues(secretstest.Generate)

func TestCreate_endsInAUsableCluster(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 5, sim.Options{})
	s.create()

	if got := s.order("Bootstrap"); !slices.Equal(got, []string{"cp-1"}) {
		t.Errorf("bootstrapped %v, want cp-1", got)
	}

	configured := s.order("ApplyConfiguration")
	slices.Sort(configured)

	if want := []string{"cp-1", "cp-2", "cp-3", "w-1", "w-2", "w-3", "w-4", "w-5"}; !slices.Equal(configured, want) {
		t.Errorf("configured %v, want each machine once", configured)
	}

	changes := s.changes()
	if bootstrap := slices.Index(changes, "Bootstrap cp-1"); bootstrap < 0 ||
		!slices.Contains(changes[:bootstrap], "ApplyConfiguration cp-2") ||
		!slices.Contains(changes[:bootstrap], "ApplyConfiguration cp-3") {
		t.Errorf("the machines were changed in the order %v; the bootstrap comes once every control plane has its "+
			"configuration", changes)
	}

	if members, err := s.sim.EtcdMembers(t.Context()); err != nil || len(members) != 3 {
		t.Errorf("etcd members %v (%v), want 3", members, err)
	}

	s.sim.ForgetCalls()

	again, err := s.runner().Converge(bounded(t), s.want)
	if err != nil || len(again.Done) > 0 {
		t.Errorf("a second run did %v (error %v), want nothing", again.Done, err)
	}

	for _, c := range s.sim.Calls() {
		if c.Mutates() {
			t.Errorf("a second run called %s", c)
		}
	}
}

// An observer of a run learns the steps that did not start yet, in order, until none is left.
func TestCreate_saysWhatIsNext(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 0, sim.Options{})
	runner := s.runner()

	var rounds []string

	ended := false
	runner.Observed = func(_ cluster.Spec, _ cluster.Snapshot, next func(most int) []step.Step) {
		if ended = next == nil; ended {
			return
		}

		var kinds []string
		for _, s := range next(10) {
			kinds = append(kinds, strings.TrimPrefix(fmt.Sprintf("%T", s), "step."))
		}

		rounds = append(rounds, strings.Join(kinds, " "))
	}

	if _, err := runner.Converge(bounded(t), s.want); err != nil {
		t.Fatal(err)
	}

	if !strings.HasPrefix(rounds[0], "ApplyConfig Bootstrap") || !ended {
		t.Errorf("next in each round: %q; the end was reported: %v", rounds, ended)
	}
}

func TestCreate_ofOneMachine(t *testing.T) {
	t.Parallel()
	newSite(t, 1, 0, sim.Options{}).create()
}

func TestTeardown_order(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 2, sim.Options{})
	s.create()

	if _, err := s.runner().Teardown(bounded(t), s.want); err != nil {
		t.Fatalf("teardown: %v", err)
	}

	s.isBlank()

	reset := s.order("Reset")
	if len(reset) != 5 || reset[4] != "cp-1" || !slices.Contains(reset[:2], "w-1") || !slices.Contains(reset[:2], "w-2") {
		t.Errorf("reset in the order %v, want workers first and cp-1 last", reset)
	}
}

func TestTeardown_ofAPoolRemovesItsNodes(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 2, sim.Options{})
	s.create()

	pool := s.want
	pool.Machines = slices.DeleteFunc(slices.Clone(pool.Machines),
		func(m cluster.Machine) bool { return m.Role == step.ControlPlane })

	result, err := s.runner().Teardown(bounded(t), pool)
	if err != nil {
		t.Fatalf("teardown: %v", err)
	}

	for _, n := range result.Snapshot.Kubernetes.Nodes {
		for _, m := range pool.Machines {
			if slices.Contains(n.Addresses, m.Address) {
				t.Errorf("node %s of %s is still there", n.Name, m.Name)
			}
		}
	}

	if n := len(result.Snapshot.Kubernetes.Nodes); n != 1 {
		t.Errorf("%d nodes are left, want the control plane's", n)
	}
}

func TestTeardown_finishesTheSurvivors(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 1, sim.Options{})
	s.create()
	s.sim.Machine("cp-2").PowerOff()

	s.policy.DeadAfter = deadAfter

	_, err := s.runner().Teardown(bounded(t), s.want)

	var incomplete *lifecycle.IncompleteError
	if !errors.As(err, &incomplete) || !errors.Is(err, lifecycle.ErrLeftBehind) {
		t.Fatalf("error %v, want ErrLeftBehind", err)
	}

	if len(incomplete.Holds) != 1 || incomplete.Holds[0].Machine != "cp-2" {
		t.Errorf("left behind %v, want cp-2", incomplete.Holds)
	}

	for _, name := range []string{"cp-1", "cp-3", "w-1"} {
		if stage := s.sim.Machine(name).Stage(); stage != sim.StageMaintenance {
			t.Errorf("%s is %s, want maintenance", name, stage)
		}
	}

	s.sim.Machine("cp-2").PowerOn()

	if _, err := s.runner().Teardown(bounded(t), s.want); err != nil {
		t.Fatalf("second teardown: %v", err)
	}

	s.isBlank()
}

// TestTeardown_goesOnWithoutAMachineThatDoesNotComeBack: the machine accepts its reset and stays away. The others are
// finished, the node of a worker is deleted, and the absence is a report and not an error.
func TestTeardown_goesOnWithoutAMachineThatDoesNotComeBack(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 1, sim.Options{})
	s.create()

	s.policy.ResetTimeout = deadAfter

	for _, name := range []string{"cp-2", "w-1"} {
		s.sim.Machine(name).HangNextReboot()
	}

	result, err := s.runner().Teardown(bounded(t), s.want)
	if err != nil || len(result.Left) > 0 {
		t.Fatalf("error %v, left behind %v; want neither", err, result.Left)
	}

	if len(result.Away) != 2 || result.Away[0].Machine != "cp-2" || result.Away[1].Machine != "w-1" ||
		!strings.Contains(result.Away[0].Reason, "was reset and did not come back within 8s") {
		t.Errorf("away are %v, want cp-2 and w-1", result.Away)
	}

	if reset := s.order("Reset"); len(reset) != 4 || reset[0] != "w-1" || reset[3] != "cp-1" {
		t.Errorf("reset in the order %v, want w-1 first and cp-1 last", reset)
	}

	if nodes := s.runner().Kubernetes.Observe(bounded(t)); nodes.Reachable {
		t.Error("Kubernetes answers after the last control plane was reset")
	}
}

func TestIdentity_refusesAMachineOfAnotherCluster(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 1, sim.Options{})
	s.create()
	s.sim.ForgetCalls()

	other, err := secretstest.Generate()
	if err != nil {
		t.Fatal(err)
	}

	s.bundle = other

	result, err := s.runner().Converge(bounded(t), s.want)

	var refused *lifecycle.RefusedError
	if !errors.As(err, &refused) || len(refused.Refusals) != 2 {
		t.Fatalf("error %v, want two refusals", err)
	}

	if result.Touched {
		t.Error("the run says that it touched a machine")
	}

	if calls := s.sim.Calls(); len(calls) > 0 {
		t.Errorf("machines of another cluster were called: %v", calls)
	}
}

// An image that no registry has is the cause in the error of the run, not what followed from it.
func TestConverge_missingImage(t *testing.T) {
	t.Parallel()

	for name, image := range map[string]string{
		"installer": "ghcr.io/siderolabs/installer:v1.13.0", "etcd": "registry.k8s.io/etcd:v3.6.12",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := newSite(t, 1, 0, sim.Options{})
			s.want.Machines[0].Installer = "ghcr.io/siderolabs/installer:v1.13.0"

			if err := s.sim.SetImage(image, images.Image{Missing: true}); err != nil {
				t.Fatal(err)
			}

			_, err := s.runner().Converge(bounded(t), s.want)
			if err == nil {
				t.Fatal("a machine joined without its image")
			}

			if at := strings.Index(err.Error(), image); at < 0 || strings.Contains(err.Error()[:at], "succeeded") ||
				strings.Contains(err.Error(), "was a member") {
				t.Errorf("the run ends with %v", err)
			}
		})
	}
}

func TestIdentity_refusesOtherHardware(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 0, sim.Options{})
	s.want.Machines[0].UUID = "11111111-2222-3333-4444-555555555555"

	_, err := s.runner().Converge(bounded(t), s.want)
	if err == nil || !strings.Contains(err.Error(), "expected 11111111-2222-3333-4444-555555555555") {
		t.Fatalf("error %v, want one that names the expected hardware", err)
	}

	if n := len(s.sim.CallsTo("ApplyConfiguration")); n > 0 {
		t.Errorf("%d configurations were sent to it", n)
	}
}

// TestCreate_finishesOthersWithoutAMachineThatNeverBoots: the message names the machine, and all others become a
// cluster.
func TestCreate_finishesOthersWithoutAMachineThatNeverBoots(t *testing.T) {
	t.Parallel()

	for _, dead := range []string{"cp-3", "w-2"} {
		t.Run(dead, func(t *testing.T) {
			t.Parallel()

			s := newSite(t, 3, 2, sim.Options{})

			var once sync.Once

			s.sim.SetOnCall(func(c fault.Call) error {
				if c.Machine == dead && c.Method == "ApplyConfiguration" {
					once.Do(func() { go s.sim.Machine(dead).PowerOff() })
				}

				return nil
			})

			watcher := s.runner()

			_, err := s.convergeUntil(func(e lifecycle.Event) bool {
				return e.State == lifecycle.Waiting && e.Machine == dead && s.onlyMissing(dead, watcher.Observe(bounded(t), s.want))
			})

			var incomplete *lifecycle.IncompleteError
			if !errors.As(err, &incomplete) || !errors.Is(err, errNoTimeLeft) {
				t.Fatalf("error %v, want an incomplete run that ran out of time", err)
			}

			if !slices.ContainsFunc(incomplete.Holds, func(h step.Hold) bool { return h.Machine == dead }) {
				t.Errorf("holds %v do not name %s", incomplete.Holds, dead)
			}

			// The last observation of the run may predate the end of its wait.
			for name, reason := range cluster.Unready(s.want, watcher.Observe(bounded(t), s.want)) {
				if name != dead {
					t.Errorf("%s %s", name, reason)
				}
			}
		})
	}
}

// onlyMissing reports whether all machines but one work.
func (s *site) onlyMissing(dead string, have cluster.Snapshot) bool {
	for _, m := range s.want.Machines {
		if m.Name != dead && cluster.NotReady(s.want, have, m) != "" {
			return false
		}
	}

	return true
}

// TestCreate_slowMachineDelaysNoOther: etcd begins while a configured machine does not answer, and that machine
// joins once it does.
func TestCreate_slowMachineDelaysNoOther(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 1, sim.Options{})
	s.timeouts = talos.Timeouts{Call: time.Minute, Observe: time.Minute}
	begun := make(chan struct{})

	s.sim.SetOnCall(func(c fault.Call) error {
		switch {
		case c.Method == "Bootstrap":
			close(begun)
		case c.Machine == "cp-3" && c.Personality == fault.Configured:
			select {
			case <-begun:
			case <-t.Context().Done():
			}
		}

		return nil
	})
	s.create()

	if refused := slices.ContainsFunc(s.sim.CallsTo("Get"), func(c fault.Call) bool {
		return c.Machine == "cp-3" && c.Code == codes.DeadlineExceeded
	}); refused {
		t.Error("the machine was given up before etcd began: the others had waited for it")
	}
}

func TestCreate_unavailableForAWhile(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 1, sim.Options{})
	s.sim.Machine("cp-1").SetFault(
		fault.Fault{Method: "ApplyConfiguration", Count: 3, Code: codes.Unavailable, Message: "overloaded"})
	s.sim.Machine("w-1").SetFault(fault.Fault{For: 300 * time.Millisecond, Code: codes.Unavailable, Message: "overloaded"})
	s.create()
}

func TestConfiguration_rejectedEndsTheRun(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 0, sim.Options{})
	s.configs["cp-1"] = []byte("machine: {type: banana}\n")

	_, err := s.runner().Converge(bounded(t), s.want)
	if err == nil || !strings.Contains(err.Error(), "apply configuration to cp-1") ||
		!strings.Contains(err.Error(), "banana") {
		t.Fatalf("error %v, want Talos's own reason", err)
	}
}

func TestRunner_interruptReturnsAtOnceWithWhatIsKnown(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 0, sim.Options{})

	ctx, interrupt := context.WithCancel(bounded(t))
	s.sim.SetOnCall(func(c fault.Call) error {
		if c.Method == "Bootstrap" {
			interrupt()
		}

		return nil
	})

	result, err := s.runner().Converge(ctx, s.want)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want a canceled context", err)
	}

	if !result.Touched || result.Snapshot.Machines["cp-1"].Access != step.Member {
		t.Errorf("the record of the interrupted run is %+v", result.Snapshot.Machines["cp-1"])
	}

	s.sim.SetOnCall(nil)
	s.create()
}

// runnerThatReports is a runner that sets waiting when it waits for a reason.
func (s *site) runnerThatReports(waiting *atomic.Bool, reason string) *lifecycle.Runner {
	s.t.Helper()

	runner := s.runner()
	runner.Events = func(e lifecycle.Event) {
		if e.State == lifecycle.Waiting && strings.Contains(e.Reason, reason) {
			waiting.Store(true)
		}
	}

	return runner
}

// TestRunner_interruptIsNoCause: the error names the last report of etcd, and not the request that the interrupt cut
// off.
func TestRunner_interruptIsNoCause(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 0, sim.Options{})
	s.create()

	ctx, interrupt := context.WithCancel(bounded(t))

	var waiting atomic.Bool

	s.sim.SetOnCall(func(c fault.Call) error {
		if c.Method != "EtcdMemberList" {
			return nil
		}

		if waiting.Load() {
			interrupt() // during a request
		}

		return status.Error(codes.Unavailable, "etcdserver: no leader")
	})

	_, err := s.runnerThatReports(&waiting, "no leader").Converge(ctx, s.want)
	if err == nil || !strings.Contains(err.Error(), "etcd does not respond yet") ||
		!strings.Contains(err.Error(), "no leader") {
		t.Errorf("error %v, want what etcd said last", err)
	}
}

// TestRunner_interruptedViewIsNoCause: the error names the member that is not healthy, and not one whose answer the
// interrupt cut off.
func TestRunner_interruptedViewIsNoCause(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 0, sim.Options{})
	s.create()
	s.upgrade("v1.13.1")

	ctx, interrupt := context.WithCancel(bounded(t))

	var waiting atomic.Bool

	s.sim.SetOnCall(func(c fault.Call) error {
		if c.Method != "EtcdStatus" || c.Machine != "cp-3" && !waiting.Load() {
			return nil
		}

		if c.Machine == "cp-1" {
			interrupt() // during a request
		}

		return status.Error(codes.Unavailable, "no answer")
	})

	silent := s.node("cp-3") + " does not report its status"

	_, err := s.runnerThatReports(&waiting, silent).Converge(ctx, s.want)
	if err == nil || !strings.Contains(err.Error(), silent) {
		t.Errorf("error %v, want that %s", err, silent)
	}
}

// lateContext is a context with an expired deadline whose timer has not fired yet.
type lateContext struct {
	context.Context

	late func() bool
}

func (c lateContext) Deadline() (time.Time, bool) {
	if c.late() {
		return time.Now().Add(-time.Second), true
	}

	return c.Context.Deadline()
}

// TestRunner_deadlineIsNoCause: connections end at the deadline of a run, slightly before its context does. That
// proves nothing about the machines.
func TestRunner_deadlineIsNoCause(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 0, sim.Options{})
	s.create()
	s.sim.SetOnCall(func(c fault.Call) error {
		if c.Method == "EtcdMemberList" {
			return status.Error(codes.Unavailable, "etcdserver: no leader")
		}

		return nil
	})

	ctx, end := context.WithCancel(bounded(t))

	var (
		waiting atomic.Bool
		asks    atomic.Int64
	)

	late := lateContext{ctx, func() bool {
		const enough = 100 // for a few observations
		if waiting.Load() && asks.Add(1) > enough {
			end()
		}

		return waiting.Load()
	}}

	_, err := s.runnerThatReports(&waiting, "no leader").Converge(late, s.want)
	if err == nil || strings.Contains(err.Error(), "no answer from") || !strings.Contains(err.Error(), "no leader") {
		t.Errorf("error %v, want what the machine said last", err)
	}
}

// TestRunner_interruptedStepKeepsItsCause: a step failed before an interrupt cut it off, and the error reports that
// failure.
func TestRunner_interruptedStepKeepsItsCause(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 0, sim.Options{})
	ctx, interrupt := context.WithCancel(bounded(t))

	var asked atomic.Int64

	s.sim.SetOnCall(func(c fault.Call) error {
		switch {
		case c.Method != "ApplyConfiguration":
			return nil
		case asked.Add(1) > 1:
			interrupt() // during a step
		}

		return status.Error(codes.Unavailable, "the disk is busy")
	})

	_, err := s.runner().Converge(ctx, s.want)
	if err == nil || !strings.Contains(err.Error(), "the disk is busy") {
		t.Errorf("error %v, want what the machine said", err)
	}
}

func TestConfiguration_changesOneControlPlaneAtATime(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 1, sim.Options{})
	s.create()
	s.sim.ForgetCalls()

	for i, m := range s.want.Machines {
		config := s.render(m.Role, "cluster: {apiServer: {certSANs: [192.0.2.1]}}\n")
		s.configs[m.Name], s.want.Machines[i].ConfigDigest = config.Bytes, config.Digest
	}

	var running atomic.Int64

	s.sim.SetOnCall(func(c fault.Call) error {
		if c.Method == "ApplyConfiguration" && strings.HasPrefix(c.Machine, "cp-") && running.Add(1) > 1 {
			t.Errorf("%s is changed while another control plane is", c.Machine)
		}

		if c.Method == "EtcdMemberList" {
			running.Store(0) // another observation of the cluster
		}

		return nil
	})

	result, err := s.runner().Converge(bounded(t), s.want)
	if err != nil || len(result.Done) != 4 {
		t.Errorf("done %v, error %v; want four configurations", result.Done, err)
	}
}
