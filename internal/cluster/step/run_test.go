package step_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

var (
	before = time.Unix(1, 0)
	now    = time.Unix(2, 0)
)

// known is a machine with everything that a run can know.
func known() step.MachineState {
	return step.MachineState{
		Access: step.Unreachable, BootID: "1", UUID: "uuid", NodeName: "node", TalosVersion: "v1.13.0",
		Run: step.Run{
			Since: before, Fresh: true, FirstBoot: true, Busy: "in progress", InUpgrade: true, WasMember: true, Started: true,
			Resetting: true, KubeletRestarted: true, BeginsEtcd: true, RebootedFrom: "1", Operated: true,
			Upgraded: step.UpgradeMark{BootID: "1", Version: "v1.14.0"}, Pulled: "v1.36.0", BootstrapSent: true,
			StampsBefore: map[string]string{"kube-apiserver": "1"},
		},
	}
}

// What a run knows about a silent machine is carried over, except what ends with a step. Decide here about each new
// field of Run.
func TestNext_carriesOn(t *testing.T) {
	t.Parallel()

	ends := []string{"Busy", "InUpgrade", "BeginsEtcd"}
	bootstraps := "BootstrapSent" // no such machine is fresh

	had := known()
	had.BootstrapSent = false
	has := had.Next(step.MachineState{Access: step.Unreachable}, now)
	was, is := reflect.ValueOf(had.Run), reflect.ValueOf(has.Run)

	for i := range was.NumField() {
		name := was.Type().Field(i).Name

		switch {
		case was.Field(i).IsZero() && name != bootstraps:
			t.Errorf("%s is not set here", name)
		case slices.Contains(ends, name):
			if !is.Field(i).IsZero() {
				t.Errorf("%s is still %v", name, is.Field(i))
			}
		case !reflect.DeepEqual(was.Field(i).Interface(), is.Field(i).Interface()):
			t.Errorf("%s: %v, not %v", name, is.Field(i), was.Field(i))
		}
	}

	if has.UUID != "uuid" || has.NodeName != "node" {
		t.Errorf("a silent machine is %q on node %q", has.UUID, has.NodeName)
	}

	if again := known().Next(step.MachineState{Access: step.Unreachable}, now); !again.BootstrapSent || again.Fresh {
		t.Errorf("after a bootstrap was sent: sent %t, fresh %t", again.BootstrapSent, again.Fresh)
	}
}

// What an observation shows replaces what a run knew.
func TestNext_ends(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		fresh step.MachineState
		is    func(step.MachineState) bool
	}{
		"another access counts from now": {step.MachineState{Access: step.Foreign},
			func(s step.MachineState) bool { return s.Since.Equal(now) }},
		"another boot has another kubelet": {step.MachineState{Access: step.Member, BootID: "2"},
			func(s step.MachineState) bool { return !s.KubeletRestarted && s.StampsBefore == nil }},
		"another boot follows an upgrade": {step.MachineState{Access: step.Member, BootID: "2"},
			func(s step.MachineState) bool { return s.Upgraded.Booted && s.RebootedFrom == "1" }},
		"a member again was not reset": {step.MachineState{Access: step.Member},
			func(s step.MachineState) bool { return !s.Resetting }},
		"etcd that runs is not fresh": {step.MachineState{Access: step.Member, EtcdService: step.ServiceRunning},
			func(s step.MachineState) bool { return !s.Fresh && s.FirstBoot }},
		"a waiting etcd ends the first boot": {step.MachineState{Access: step.Member, EtcdService: step.ServicePreparing},
			func(s step.MachineState) bool { return !s.FirstBoot && !s.Fresh }},
		"maintenance ends the first boot": {step.MachineState{Access: step.Maintenance},
			func(s step.MachineState) bool { return !s.FirstBoot && s.Resetting }},
		"a stopped container keeps its version": {step.MachineState{Access: step.Unreachable, Stopped: true},
			func(s step.MachineState) bool { return s.TalosVersion == "v1.13.0" }},
		"a machine that answers has its own uuid": {step.MachineState{Access: step.Member, UUID: "other"},
			func(s step.MachineState) bool { return s.UUID == "other" }},
	} {
		if got := known().Next(c.fresh, now); !c.is(got) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A machine may have its new keys although the answer of the call was lost. Its pods change a moment later.
func TestEnd_ofALostAnswer(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		op    step.ApplyConfig
		keeps bool
	}{
		{step.ApplyConfig{Access: step.Member, Keys: rotation.ParseKeys("kubernetes=b")}, true},
		{step.ApplyConfig{Access: step.Member, Keys: rotation.ParseKeys("kubernetes=a talos=b")}, false},
		{step.ApplyConfig{Access: step.Member, Keys: rotation.ParseKeys("kubernetes=b"), Reboot: "machine.env"}, false},
		{step.ApplyConfig{Access: step.Member, Keys: rotation.ParseKeys("kubernetes=b"), Staged: "machine.env"}, false},
		{step.ApplyConfig{Access: step.Maintenance, Keys: rotation.ParseKeys("kubernetes=b")}, false},
	} {
		s := step.MachineState{Access: c.op.Access, Keys: rotation.ParseKeys("kubernetes=a"),
			StaticPods: map[string]string{"kube-apiserver": "1"}}
		s.Begin(c.op)
		s.End(c.op, errors.New("timed out"), now)

		if keeps := s.StampsBefore["kube-apiserver"] == "1"; keeps != c.keeps {
			t.Errorf("%+v: %v", c.op, s.StampsBefore)
		}
	}
}

// A failed step leaves the record of its beginning.
func TestEnd_ofAFailure(t *testing.T) {
	t.Parallel()

	op := step.Upgrade{Machine: "cp-1", To: "v1.15.0"}
	s := known()
	s.Begin(op)

	if s.Upgraded.Version != "" || s.Busy == "" {
		t.Errorf("while it runs: %+v", s.Run)
	}

	s.End(op, errors.ErrUnsupported, now)

	if s.Busy != "" || s.Upgraded.Version != "" {
		t.Errorf("after a failure: %+v", s.Run)
	}

	s.End(op, nil, now)

	if s.Upgraded.Version != "v1.15.0" || s.Access != step.Unreachable || !s.Since.Equal(now) {
		t.Errorf("after a success: %+v", s)
	}
}
