package operate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/operate"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/operation"
	"github.com/talosop/terraform-provider-talosop/internal/wipe"
)

// running is a working cluster of three control planes and some workers.
func running(workers int) (cluster.Spec, cluster.Snapshot) {
	want := cluster.Spec{Name: "prod", Endpoint: "https://10.0.0.10:6443", NodesBecomeReady: true}
	want.Joins = true

	recorded := map[string]step.MachineState{}

	add := func(name, address string, role step.Role) {
		want.Machines = append(want.Machines, cluster.MachineAt(name, role, address))
		recorded[name] = step.MachineState{Access: step.Member, Role: role, Stage: step.StageRunning, Ready: true}
	}

	for i := range 3 {
		add(fmt.Sprintf("cp-%d", i+1), fmt.Sprintf("10.0.0.1%d", i+1), step.ControlPlane)
	}

	for i := range workers {
		add(fmt.Sprintf("w-%d", i+1), fmt.Sprintf("10.0.0.2%d", i+1), step.Worker)
	}

	want.Bootstrapped = true

	return want, cluster.Assume(want, recorded)
}

func all(want cluster.Spec) []string {
	var names []string
	for _, m := range want.Machines {
		names = append(names, m.Name)
	}

	return names
}

func change(have cluster.Snapshot, name string, to func(*step.MachineState)) {
	s := have.Machines[name]
	to(&s)
	have.Machines[name] = s
}

var reboot = operation.Operation{Kind: operation.Reboot}

// decide is the decision for all machines, as lines.
func decide(t *testing.T, want cluster.Spec, have cluster.Snapshot, o operation.Operation) (steps []string, held string) {
	t.Helper()

	d := operate.Plan(want, have, cluster.DefaultPolicy(), operate.Order{Operation: o, Machines: all(want)})
	for _, s := range d.Steps {
		steps = append(steps, s.String())
	}

	return steps, fmt.Sprint(d.Holds, d.Refusals)
}

func TestPlan_oneControlPlaneAtATime(t *testing.T) {
	t.Parallel()

	want, have := running(2)

	if steps, held := decide(t, want, have, reboot); !slices.Equal(steps, []string{"reboot cp-1 (drain, wait for volumes)"}) {
		t.Errorf("%v, %s", steps, held)
	}

	change(have, "cp-1", func(s *step.MachineState) { s.Busy = "in progress: reboot" })

	if steps, held := decide(t, want, have, reboot); len(steps) > 0 || !strings.Contains(held, "cp-1: in progress") {
		t.Errorf("beside one that reboots: %v, %s", steps, held)
	}

	change(have, "cp-1", func(s *step.MachineState) {
		s.Busy, s.Operated, s.RebootedFrom, s.Access = "", true, "boot-1", step.Unreachable
	})

	if steps, held := decide(t, want, have, reboot); len(steps) > 0 || !strings.Contains(held, "cp-1") {
		t.Errorf("before one is back: %v, %s", steps, held)
	}

	change(have, "cp-1", func(s *step.MachineState) { s.Access, s.BootID = step.Member, "boot-2" })

	if steps, held := decide(t, want, have, reboot); !slices.Equal(steps, []string{"reboot cp-2 (drain, wait for volumes)"}) {
		t.Errorf("after that: %v, %s", steps, held)
	}
}

// A control plane outside the order counts too.
func TestPlan_waitsForOthersOfEtcd(t *testing.T) {
	t.Parallel()

	want, have := running(1)
	change(have, "cp-3", func(s *step.MachineState) { s.Access = step.Unreachable })

	for _, machines := range [][]string{{"cp-1"}, {"w-1"}} {
		d := operate.Plan(want, have, cluster.DefaultPolicy(), operate.Order{Operation: reboot, Machines: machines})
		if len(d.Steps) > 0 || !strings.Contains(fmt.Sprint(d.Holds), "cp-3") {
			t.Errorf("%s: %v, %v", machines, d.Steps, d.Holds)
		}
	}
}

func TestPlan_workersWithinTheirBudget(t *testing.T) {
	t.Parallel()

	want, have := running(4)
	want.Pools = map[string]cluster.Budget{"": {Count: 2}}

	for i := range 3 {
		change(have, fmt.Sprintf("cp-%d", i+1), func(s *step.MachineState) { s.Operated = true })
	}

	for _, next := range []string{"w-1", "w-2"} {
		if steps, held := decide(t, want, have, reboot); !slices.Equal(steps, []string{"reboot " + next + " (drain, wait for volumes)"}) {
			t.Errorf("%v, %s", steps, held)
		}

		change(have, next, func(s *step.MachineState) { s.Busy = "in progress" })
	}

	if steps, held := decide(t, want, have, reboot); len(steps) > 0 || !strings.Contains(held, "2 of the workers may be") {
		t.Errorf("a third one: %v, %s", steps, held)
	}
}

func TestPlan_endsWhenAllIsDone(t *testing.T) {
	t.Parallel()

	want, have := running(1)
	for _, name := range all(want) {
		change(have, name, func(s *step.MachineState) { s.Operated = true })
	}

	if steps, held := decide(t, want, have, reboot); len(steps) > 0 || held != "[] []" {
		t.Errorf("%v, %s", steps, held)
	}
}

func TestPlan_refusesWhatCannotBe(t *testing.T) {
	t.Parallel()

	want, have := running(1)
	defragment := operation.Operation{Kind: operation.Defragment}
	if steps, held := decide(t, want, have, defragment); len(steps) > 0 || !strings.Contains(held, "w-1: it is a worker") {
		t.Errorf("%v, %s", steps, held)
	}

	d := operate.Plan(want, have, cluster.DefaultPolicy(), operate.Order{Operation: defragment, Machines: []string{"cp-1"}})
	if len(d.Refusals) > 0 || len(d.Steps) != 1 {
		t.Errorf("without the worker: %v, %v", d.Steps, d.Refusals)
	}

	change(have, "cp-2", func(s *step.MachineState) { s.Access = step.Maintenance })

	if steps, held := decide(t, want, have, reboot); len(steps) > 0 || !strings.Contains(held,
		"cp-2: it does not respond as a machine of this cluster") {
		t.Errorf("%v, %s", steps, held)
	}
}

var wiped = operation.Operation{Kind: operation.Reset, Wipe: wipe.Select([]string{wipe.Ephemeral}, nil)}

// A control plane leaves etcd before its data is wiped. One whose etcd does not run, such as with a broken EPHEMERAL,
// is removed from etcd by another one.
func TestPlan_wipesNoMemberOfEtcd(t *testing.T) {
	t.Parallel()

	want, have := running(0)

	if steps, held := decide(t, want, have, wiped); held != "[] []" || !slices.Equal(steps,
		[]string{"remove control plane cp-1 from etcd (drains it, waits for volumes)"}) {
		t.Errorf("a healthy one: %v, %s", steps, held)
	}

	member, _ := have.MemberOf(want.Machines[0])

	change(have, "cp-1", func(s *step.MachineState) {
		s.Stage, s.Ready, s.MemberID, s.EtcdService = step.StageBooting, false, "", ""
	})

	if steps, held := decide(t, want, have, wiped); len(steps) != 1 ||
		!strings.HasPrefix(steps[0], "remove etcd member "+member.ID+" of cp-1 through cp-") {
		t.Errorf("a broken one: %v, %s", steps, held)
	}

	change(have, "cp-1", func(s *step.MachineState) { s.MemberID, s.EtcdService = member.ID, step.ServiceFailed })

	if steps, held := decide(t, want, have, wiped); len(steps) != 1 ||
		!strings.HasPrefix(steps[0], "remove etcd member "+member.ID+" of cp-1 through cp-") {
		t.Errorf("one whose etcd failed: %v, %s", steps, held)
	}

	have.Etcd.Members = slices.DeleteFunc(have.Etcd.Members, func(m etcdstate.Member) bool { return m.ID == member.ID })

	change(have, "cp-1", func(s *step.MachineState) { s.MemberID = "" })

	if steps, held := decide(t, want, have, wiped); len(steps) != 1 ||
		!strings.HasPrefix(steps[0], "wipe EPHEMERAL of cp-1 and reboot it") {
		t.Errorf("one that is out: %v, %s", steps, held)
	}
}

// No member leaves while another control plane does not work, or while etcd is silent. The last one never leaves.
func TestPlan_wipesOnlyWithQuorum(t *testing.T) {
	t.Parallel()

	want, have := running(1)
	change(have, "cp-3", func(s *step.MachineState) { s.Access = step.Unreachable })

	if steps, held := decide(t, want, have, wiped); len(steps) > 0 || !strings.Contains(held, "stays in etcd for now: cp-3") {
		t.Errorf("beside a lost one: %v, %s", steps, held)
	}

	have.Etcd.Known = false

	if steps, held := decide(t, want, have, wiped); len(steps) > 0 || !strings.Contains(held, "after etcd responds") {
		t.Errorf("without etcd: %v, %s", steps, held)
	}

	want, have = running(0)
	want.Machines, have.Etcd.Members = want.Machines[:1], have.Etcd.Members[:1]

	for _, known := range []bool{true, false} {
		have.Etcd.Known = known

		if steps, held := decide(t, want, have, wiped); len(steps) > 0 || !strings.Contains(held, "it is the last etcd member") {
			t.Errorf("the last one, etcd known %t: %v, %s", known, steps, held)
		}
	}

	disks := operation.Operation{Kind: operation.Reset, Wipe: wipe.Select(nil, []string{"/dev/sdb"})}
	have.Etcd.Known = true

	if steps, held := decide(t, want, have, disks); len(steps) != 1 {
		t.Errorf("a disk of the last one: %v, %s", steps, held)
	}
}

// The data of a cluster with other control planes, or with other members of etcd, survives.
func TestPlan_lastMemberAmongOthers(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		change  func(*cluster.Spec, *cluster.Snapshot)
		refused bool
	}{
		"alone, and etcd is silent": {func(_ *cluster.Spec, have *cluster.Snapshot) {
			have.Etcd.Known, have.Etcd.Members = false, nil
		}, true},
		"alone in etcd, beside a control plane that has not joined": {func(want *cluster.Spec, _ *cluster.Snapshot) {
			want.OtherControlPlanes = []cluster.Machine{cluster.MachineAt("cp-9", step.ControlPlane, "10.0.0.19")}
		}, true},
		"one of three, and etcd is silent": {func(want *cluster.Spec, have *cluster.Snapshot) {
			have.Etcd.Known, have.Etcd.Members = false, nil
			want.Machines = append(want.Machines, cluster.MachineAt("cp-8", step.ControlPlane, "10.0.0.18"))
			want.OtherControlPlanes = []cluster.Machine{cluster.MachineAt("cp-9", step.ControlPlane, "10.0.0.19")}
		}, false},
	} {
		want, have := running(0)
		want.Machines, have.Etcd.Members = want.Machines[:1], have.Etcd.Members[:1]
		test.change(&want, &have)

		steps, held := decide(t, want, have, wiped)
		if refused := strings.Contains(held, "cp-1: it is the last etcd member"); len(steps) > 0 || refused != test.refused {
			t.Errorf("%s: %v, %s", name, steps, held)
		}
	}
}

func TestPlan_leaderOfEtcdLast(t *testing.T) {
	t.Parallel()

	for i, want := range [][]string{{"cp-2", "cp-3", "cp-1"}, {"cp-1", "cp-3", "cp-2"}, {"cp-1", "cp-2", "cp-3"}} {
		spec, have := running(1)
		leader, _ := have.MemberOf(spec.Machines[i])
		have.Etcd.Views = map[string]etcdstate.View{}

		for _, m := range have.Etcd.Members {
			have.Etcd.Views[m.ID] = etcdstate.View{Member: m.ID, Leader: leader.ID}
		}

		var order []string

		for range 4 {
			d := operate.Plan(spec, have, cluster.DefaultPolicy(), operate.Order{Operation: reboot, Machines: all(spec)})
			if len(d.Steps) != 1 {
				t.Fatalf("after %v: %v, %v, %v", order, d.Steps, d.Holds, d.Refusals)
			}

			order = append(order, d.Steps[0].On())
			change(have, d.Steps[0].On(), func(s *step.MachineState) { s.Operated = true })
		}

		if !slices.Equal(order, append(want, "w-1")) {
			t.Errorf("cp-%d leads: %v", i+1, order)
		}
	}
}

func TestPlan_wipeThatFailedEndsTheOrder(t *testing.T) {
	t.Parallel()

	want, have := running(1)
	change(have, "cp-1", func(s *step.MachineState) { s.Operated = true })
	change(have, "cp-2", func(s *step.MachineState) { s.Unwiped = "EPHEMERAL" })

	// One that was not wiped yet is wiped.
	if steps, held := decide(t, want, have, reboot); len(steps) != 1 {
		t.Errorf("before its turn: %v, %s", steps, held)
	}

	change(have, "cp-2", func(s *step.MachineState) { s.Operated = true })

	steps, held := decide(t, want, have, reboot)
	if len(steps) > 0 || !strings.Contains(held, "cp-2: the wipe of EPHEMERAL failed") {
		t.Errorf("%v, %s", steps, held)
	}
}

// A machine that does not respond holds the order, and no step is planned for it.
func TestPlan_machineDoesNotRespond(t *testing.T) {
	t.Parallel()

	want, have := running(0)
	change(have, "cp-1", func(s *step.MachineState) { s.Access, s.Cause = step.Unreachable, "connection refused" })

	if steps, held := decide(t, want, have, reboot); len(steps) > 0 || held != "[cp-1: does not respond (connection refused)] []" {
		t.Errorf("%v, %s", steps, held)
	}
}

// A run that was interrupted left a node cordoned, whose machine works again.
func TestPlan_uncordonsFirst(t *testing.T) {
	t.Parallel()

	want, have := running(1)

	for i, node := range have.Kubernetes.Nodes {
		have.Kubernetes.Nodes[i].Cordoned = node.Name == "w-1"
		have.Kubernetes.Nodes[i].Unschedulable = node.Name == "w-1"
	}

	steps, held := decide(t, want, have, reboot)
	if len(steps) == 0 || steps[0] != "uncordon node w-1" {
		t.Errorf("%v, %s", steps, held)
	}
}
