package lifecycle_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/operate"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/operation"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// operates does an operation on machines; on all of them where none is named.
func (s *site) operates(o operation.Operation, machines ...string) (lifecycle.Result, error) {
	s.t.Helper()

	if len(machines) == 0 {
		for _, m := range s.want.Machines {
			machines = append(machines, m.Name)
		}
	}

	s.sim.ForgetCalls()

	return s.runner().Operate(bounded(s.t), s.want, operate.Order{Operation: o, Machines: machines})
}

// Every machine reboots once, control planes one at a time before workers, and all nodes are uncordoned.
func TestOperate_rebootsOneAtATime(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 2, sim.Options{})
	s.create()
	s.guard(1)

	boots := map[string]int{}
	for _, m := range s.want.Machines {
		boots[m.Name] = s.sim.Machine(m.Name).Boots()
	}

	if _, err := s.operates(operation.Operation{Kind: operation.Reboot}); err != nil {
		t.Fatal(err)
	}

	for name, before := range boots {
		if after := s.sim.Machine(name).Boots(); after != before+1 {
			t.Errorf("%s booted %d times, want once", name, after-before)
		}
	}

	if order := s.rebooted(); len(order) != 5 || slices.ContainsFunc(order[:3], isWorker) {
		t.Errorf("rebooted in the order %v", order)
	}

	s.schedulable()
}

func isWorker(name string) bool { return strings.HasPrefix(name, "w-") }

// While an etcd member is down, no other control plane is rebooted, and no node stays cordoned.
func TestOperate_keepsTheQuorum(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 1, sim.Options{})
	s.create()
	s.sim.Machine("cp-2").PowerOff()

	ctx, cancel := context.WithCancel(bounded(t))
	runner := s.runner()
	runner.Events = func(e lifecycle.Event) {
		if e.State == lifecycle.Waiting && strings.Contains(e.Reason, "cp-2") {
			cancel()
		}
	}

	s.sim.ForgetCalls()

	_, err := runner.Operate(ctx, s.want, operate.Order{
		Operation: operation.Operation{Kind: operation.Reboot}, Machines: []string{"cp-1", "w-1"},
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}

	if rebooted := s.rebooted(); len(rebooted) > 0 {
		t.Errorf("rebooted %v", rebooted)
	}

	s.schedulable()
}

// A rollback restores the Talos before the last upgrade.
func TestOperate_rollsBack(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 1, sim.Options{})
	s.create()
	s.upgrade("v1.13.2")
	s.converge()

	if _, err := s.operates(operation.Operation{Kind: operation.Rollback}, "w-1"); err != nil {
		t.Fatal(err)
	}

	if version := s.sim.Machine("w-1").TalosVersion(); version != "v1.13.0" {
		t.Errorf("w-1 runs %s", version)
	}

	s.schedulable()
}

// Members are defragmented one after the other, the leader last. A worker has no member.
func TestOperate_defragmentsTheLeaderLast(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 1, sim.Options{})
	s.create()

	have, leader := s.runner().Examine(bounded(t), s.want), ""
	for _, m := range s.want.Machines {
		if have.Leads(m) {
			leader = m.Name
		}
	}

	if _, err := s.operates(operation.Operation{Kind: operation.Defragment}, "cp-1", "cp-2", "cp-3"); err != nil {
		t.Fatal(err)
	}

	if order := s.order("EtcdDefragment"); len(order) != 3 || order[2] != leader {
		t.Errorf("defragmented in the order %v, with the leader %s", order, leader)
	}

	var refused *lifecycle.RefusedError
	if _, err := s.operates(operation.Operation{Kind: operation.Defragment}, "w-1"); !errors.As(err, &refused) {
		t.Errorf("a worker: %v", err)
	}
}

// Talos restarts the kubelet, and refuses to restart essential services.
func TestOperate_restartsAService(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 0, sim.Options{})
	s.create()

	if _, err := s.operates(operation.Operation{Kind: operation.RestartService, Service: "kubelet"}); err != nil {
		t.Fatal(err)
	}

	if restarted := s.order("ServiceRestart"); !slices.Equal(restarted, []string{"cp-1"}) {
		t.Errorf("restarted on %v", restarted)
	}

	_, err := s.operates(operation.Operation{Kind: operation.RestartService, Service: "etcd"})
	if err == nil || !strings.Contains(err.Error(), "doesn't support restart operation via API") {
		t.Error(err)
	}
}

// A rollback that took effect after the run stopped waiting is not sent again, because a second one undoes it.
func TestOperate_rollsBackOnce(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 1, sim.Options{})
	s.create()
	s.upgrade("v1.13.2")
	s.converge()

	s.timeouts.Settle = time.Nanosecond

	if _, err := s.operates(operation.Operation{Kind: operation.Rollback}, "w-1"); err != nil {
		t.Fatal(err)
	}

	if sent := s.order("Rollback"); len(sent) != 1 {
		t.Errorf("sent %d times", len(sent))
	}

	if version := s.sim.Machine("w-1").TalosVersion(); version != "v1.13.0" {
		t.Errorf("w-1 runs %s", version)
	}

	s.schedulable()
}
