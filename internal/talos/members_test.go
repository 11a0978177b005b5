package talos_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"google.golang.org/grpc/codes"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// controlPlanes is a cluster of that many control planes that are ready and vote.
func controlPlanes(t *testing.T, simulator *sim.Simulator, n int) ([]*sim.Machine, []*talos.Machine) {
	t.Helper()

	o := newOwner(t, simulator)
	f := o.fleet(t, nil)
	machines, apis := make([]*sim.Machine, n), make([]*talos.Machine, n)

	for i := range n {
		machines[i] = add(t, simulator, sim.MachineOptions{Hostname: fmt.Sprintf("cp-%d", i+1)})
		apis[i] = f.Machine(wanted(machines[i]))
		must(t, apis[i].ApplyConfig(t.Context(), o.config(t, machinetype.TypeControlPlane), step.Maintenance,
			machines[i].UUID()))
	}

	observed(t, apis[0], "waited for its bootstrap", waitsForBootstrap)
	must(t, apis[0].Bootstrap(t.Context()))

	for _, api := range apis {
		observed(t, api, "joined and voted", func(s step.MachineState) bool {
			members, err := api.EtcdMembers(t.Context())

			return settled(s) && err == nil && len(members) == n &&
				!slices.ContainsFunc(members, func(e etcdstate.Member) bool { return e.Learner })
		})
	}

	simulator.ForgetCalls()

	return machines, apis
}

// threePlanes are the control planes of a cluster.
type threePlanes struct {
	sim      *sim.Simulator
	machines []*sim.Machine
	apis     []*talos.Machine
	// lose makes a machine lose its answer to the call that is tested, if that is tested.
	lose func(*sim.Machine)
}

// answeredOrNot runs a test of a call twice: with all answers, and with the first one lost.
func answeredOrNot(t *testing.T, method string, test func(*testing.T, threePlanes)) {
	t.Helper()

	for name, lose := range map[string]func(*sim.Machine){
		"an answer":     func(*sim.Machine) {},
		"a lost answer": func(m *sim.Machine) { m.SetFault(fault.Fault{Method: method, DropResponse: true}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			simulator := site(t, sim.Options{})
			machines, apis := controlPlanes(t, simulator, 3)

			test(t, threePlanes{sim: simulator, machines: machines, apis: apis, lose: lose})
		})
	}
}

func viewOf(t *testing.T, api *talos.Machine) etcdstate.View {
	t.Helper()

	view, err := api.EtcdView(t.Context())
	must(t, err)

	return view
}

func TestEtcdView_ofAllAgree(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	machines, apis := controlPlanes(t, simulator, 3)

	var own []string

	first := viewOf(t, apis[0])
	if n := len(simulator.Calls()); n != 3 {
		t.Errorf("%d calls, want 3", n)
	}

	for _, api := range apis {
		view := viewOf(t, api)
		own = append(own, view.Member)

		if view.Leader == "" || view.Leader != first.Leader || !slices.Equal(view.Members, first.Members) ||
			len(view.Alarms)+len(view.Errors) > 0 {
			t.Errorf("view %+v, the first one %+v", view, first)
		}
	}

	slices.Sort(own)

	if !slices.Equal(own, first.Members) || !slices.Contains(own, first.Leader) {
		t.Errorf("members %v, those that were asked %v", first.Members, own)
	}

	// Without quorum there is no leader and no list of members; the view says so.
	machines[1].PowerOff()
	machines[2].PowerOff()

	view := viewOf(t, apis[0])
	if view.Leader != "" || view.Member != first.Member || len(view.Errors) == 0 || len(view.Members) != 0 {
		t.Errorf("without quorum: %+v", view)
	}

	if _, err := apis[1].EtcdView(t.Context()); !errors.Is(err, talos.ErrUnreachable) {
		t.Errorf("of a machine that is off: %v", err)
	}
}

func TestForfeitLeadership_withLostAnswers(t *testing.T) {
	t.Parallel()

	answeredOrNot(t, "EtcdForfeitLeadership", func(t *testing.T, c threePlanes) {
		leads := slices.IndexFunc(c.apis, func(api *talos.Machine) bool {
			view := viewOf(t, api)

			return view.Member == view.Leader
		})

		c.lose(c.machines[leads])
		must(t, c.apis[leads].ForfeitLeadership(t.Context()))

		after := viewOf(t, c.apis[leads])
		if after.Leader == "" || after.Leader == after.Member {
			t.Errorf("view %+v", after)
		}

		// Again, by one that does not lead.
		must(t, c.apis[leads].ForfeitLeadership(t.Context()))

		if again := viewOf(t, c.apis[leads]); again.Leader != after.Leader {
			t.Errorf("leader %s, want %s", again.Leader, after.Leader)
		}
	})
}

// Talos hands over to the first other member, which etcd waits for without end when it does not run.
func TestForfeitLeadership_toADeadMember(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	machines, apis := controlPlanes(t, simulator, 3)

	var (
		leader *talos.Machine
		dead   *sim.Machine
		first  uint64
	)

	for i, api := range apis {
		view := viewOf(t, api)

		id, err := strconv.ParseUint(view.Member, 16, 64)
		must(t, err)

		switch {
		case view.Member == view.Leader:
			leader = api
		case dead == nil || id < first:
			dead, first = machines[i], id
		}
	}

	dead.PowerOff()

	began := time.Now()

	err := leader.ForfeitLeadership(t.Context())
	if err == nil || wait.IsPermanent(err) || !strings.Contains(err.Error(), "does not become leader") {
		t.Errorf("with a dead first member: %v", err)
	}

	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}

	if view := viewOf(t, leader); view.Leader != view.Member {
		t.Errorf("%s leads, and not %s", view.Leader, view.Member)
	}
}

// The deadline travels with the request: a machine whose clock is ahead ends the call before this side does.
func TestForfeitLeadership_endedByTheMachine(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	machines, apis := controlPlanes(t, simulator, 3)

	for i, api := range apis {
		if view := viewOf(t, api); view.Leader != view.Member {
			continue
		}

		machines[i].SetFault(fault.Fault{
			Method: "EtcdForfeitLeadership", Code: codes.DeadlineExceeded, Message: "context deadline exceeded",
		})

		err := api.ForfeitLeadership(t.Context())
		if err == nil || wait.IsPermanent(err) || !strings.Contains(err.Error(), "does not become leader") {
			t.Errorf("ended by the machine: %v", err)
		}

		return
	}

	t.Error("no member leads")
}

func TestEtcd_singleMemberKeepsWhatItIs(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	machines, apis := controlPlanes(t, simulator, 1)

	must(t, apis[0].ForfeitLeadership(t.Context()))

	if err := apis[0].LeaveEtcd(t.Context(), machines[0].UUID()); !errors.Is(err, talos.ErrQuorum) ||
		wait.IsPermanent(err) {
		t.Errorf("leave: %v", err)
	}

	own := viewOf(t, apis[0])
	if err := apis[0].RemoveMember(t.Context(), own.Member); !errors.Is(err, talos.ErrQuorum) || wait.IsPermanent(err) {
		t.Errorf("remove: %v", err)
	}

	if after := viewOf(t, apis[0]); !slices.Equal(after.Members, own.Members) || after.Leader != own.Member {
		t.Errorf("view %+v, before %+v", after, own)
	}
}

func TestLeaveEtcd_withLostAnswers(t *testing.T) {
	t.Parallel()

	answeredOrNot(t, "EtcdLeaveCluster", func(t *testing.T, c threePlanes) {
		left := viewOf(t, c.apis[2]).Member

		c.lose(c.machines[2])

		for range 2 {
			must(t, c.apis[2].LeaveEtcd(t.Context(), c.machines[2].UUID()))
		}

		view := viewOf(t, c.apis[0])
		if len(view.Members) != 2 || slices.Contains(view.Members, left) {
			t.Errorf("members %v, %s has left", view.Members, left)
		}

		if n := len(c.sim.CallsTo("EtcdLeaveCluster")); n != 1 {
			t.Errorf("%d calls, want 1", n)
		}
	})
}

func TestRemoveMember_withLostAnswers(t *testing.T) {
	t.Parallel()

	answeredOrNot(t, "EtcdRemoveMemberByID", func(t *testing.T, c threePlanes) {
		dead := viewOf(t, c.apis[2]).Member
		c.machines[2].PowerOff()

		c.lose(c.machines[0])

		for range 2 {
			must(t, c.apis[0].RemoveMember(t.Context(), dead))
		}

		if view := viewOf(t, c.apis[1]); len(view.Members) != 2 || slices.Contains(view.Members, dead) {
			t.Errorf("members %v, %s was removed", view.Members, dead)
		}
	})
}

func TestRemoveMember_errors(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	machines, apis := controlPlanes(t, simulator, 2)
	dead := viewOf(t, apis[1]).Member

	if err := apis[0].RemoveMember(t.Context(), "cp-2"); !errors.Is(err, talos.ErrRejected) || !wait.IsPermanent(err) {
		t.Errorf("a name: %v", err)
	}

	machines[0].SetFault(fault.Fault{Method: "EtcdRemoveMemberByID", Cut: true})

	err := newOwner(t, simulator).fleet(t, shortly).Machine(wanted(machines[0])).RemoveMember(t.Context(), dead)
	if !errors.Is(err, talos.ErrUnreachable) || wait.IsPermanent(err) ||
		!strings.Contains(err.Error(), "still in the member list") {
		t.Errorf("a lost request: %v", err)
	}

	machines[1].PowerOff()

	if err := apis[0].RemoveMember(t.Context(), dead); !errors.Is(err, talos.ErrQuorum) || wait.IsPermanent(err) {
		t.Errorf("without quorum: %v", err)
	}
}

func TestEtcd_workersHaveNone(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	f := o.fleet(t, nil)
	_, first := member(t, simulator, o, f, machinetype.TypeControlPlane)
	observed(t, first, "waited for its bootstrap", waitsForBootstrap)
	must(t, first.Bootstrap(t.Context()))

	_, worker := member(t, simulator, o, f, machinetype.TypeWorker)
	observed(t, worker, "became ready", settled)

	ctx := t.Context()
	_, unseen := worker.EtcdView(ctx)

	for what, err := range map[string]error{
		"view": unseen, "forfeit": worker.ForfeitLeadership(ctx), "leave": worker.LeaveEtcd(ctx, ""),
		"remove": worker.RemoveMember(ctx, "2ac1b0d0b83cb2a4"),
	} {
		if !errors.Is(err, talos.ErrUnsupported) || wait.IsPermanent(err) != (what != "view") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
