package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/metakey"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
)

// wantMeta wants values on every machine: one value of its own, and a network where network is set.
func (s *site) wantMeta(value string, network bool) {
	for i, m := range s.want.Machines {
		s.want.Machines[i].Meta = map[uint8]string{0x0c: value + " of " + m.Name}

		if network {
			s.want.Machines[i].Meta[metakey.Network] = fmt.Sprintf("addresses: [{address: %s/24}]", m.Address)
		}
	}
}

func (s *site) hasMeta() {
	s.t.Helper()

	for _, m := range s.want.Machines {
		held := s.sim.Machine(m.Name).Meta()

		for key, value := range m.Meta {
			if held[key] != value {
				s.t.Errorf("META 0x%02x of %s is %q, want %q", key, m.Name, held[key], value)
			}
		}
	}
}

func TestMeta_isWrittenAndRepaired(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 2, sim.Options{})
	s.wantMeta("first", false)
	s.create()
	s.hasMeta()

	// A wanted value is repaired; any other is left alone.
	s.sim.Machine("cp-2").SetMeta(0x0c, "another client's")
	s.sim.Machine("w-1").DeleteMeta(0x0c)
	s.sim.Machine("w-1").SetMeta(0x0d, "theirs")
	s.sim.ForgetCalls()

	result, err := s.runner().Converge(bounded(t), s.want)
	if err != nil {
		t.Fatal(err)
	}

	s.hasMeta()

	if got := s.sim.Machine("w-1").Meta()[0x0d]; got != "theirs" {
		t.Errorf("the value of another key is %q", got)
	}

	want := []step.Step{step.WriteMeta{Machine: "cp-2", Keys: "0x0c"},
		step.WriteMeta{Machine: "w-1", Keys: "0x0c"}}
	if got := result.Done; len(got) != 2 || !slices.Contains(got, want[0]) || !slices.Contains(got, want[1]) {
		t.Errorf("did %v, want %v", got, want)
	}

	for _, c := range s.sim.Calls() {
		if c.Mutates() && c.Method != "MetaWrite" {
			t.Errorf("the repair called %s", c)
		}
	}
}

// TestMeta_networksChangeOneByOne: no network is written while another machine's write, or its effect, is in
// progress.
func TestMeta_networksChangeOneByOne(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 1, sim.Options{})
	s.create()
	s.wantMeta("value", true)
	s.sim.ForgetCalls()

	if _, err := s.runner().Converge(bounded(t), s.want); err != nil {
		t.Fatal(err)
	}

	s.hasMeta()

	var machines []string

	for _, c := range s.sim.CallsTo("MetaWrite") {
		machines = append(machines, c.Machine)
	}

	if got := slices.Compact(machines); len(got) != 4 {
		t.Errorf("META was written in the order %v, want machine after machine", machines)
	}
}

// TestMeta_wrongNetworkCostsOneMachine: the other machines keep a working network.
func TestMeta_wrongNetworkCostsOneMachine(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 0, sim.Options{})
	s.create()
	s.wantMeta("value", true)
	s.timeouts.Settle = 200 * time.Millisecond
	s.sim.ForgetCalls()

	ctx, cancel := context.WithCancel(bounded(t))
	defer cancel()

	s.sim.SetOnCall(func(c fault.Call) error {
		if c.Method == "MetaWrite" {
			go s.sim.Machine(c.Machine).PowerOff()
		}

		return nil
	})

	runner := s.runner()
	runner.Events = func(e lifecycle.Event) {
		if e.State == lifecycle.Waiting && e.Machine == "cp-2" && strings.Contains(e.Reason, "network change") &&
			strings.Contains(e.Reason, "cp-1 does not respond") {
			cancel()
		}
	}

	if _, err := runner.Converge(ctx, s.want); !errors.Is(err, context.Canceled) {
		t.Errorf("the run with a lost machine ended with %v, want one that waits until it is stopped", err)
	}

	for _, name := range []string{"cp-2", "cp-3"} {
		if got := s.sim.Machine(name).Meta(); len(got) > 0 {
			t.Errorf("META of %s was written: %v", name, got)
		}
	}
}

// TestMeta_survivesFailuresAtEveryWrite fails each write once, and loses its answer once.
func TestMeta_survivesFailuresAtEveryWrite(t *testing.T) {
	t.Parallel()

	for _, injected := range []fault.Fault{{Code: codes.Unavailable, Message: "injected"}, {Cut: true}, {DropResponse: true}} {
		t.Run("", func(t *testing.T) {
			t.Parallel()

			s := newSite(t, 2, 1, sim.Options{})
			s.wantMeta("value", false)

			var writes atomic.Int64

			s.sim.SetOnCall(func(c fault.Call) error {
				if c.Method != "MetaWrite" || writes.Add(1)%2 == 0 {
					return nil
				}

				if injected.Code != codes.OK {
					return status.Error(injected.Code, injected.Message)
				}

				s.sim.Machine(c.Machine).SetFault(injected)

				return nil
			})
			s.create()
			s.hasMeta()

			if _, err := s.runner().Teardown(bounded(t), s.want); err != nil {
				t.Fatalf("teardown: %v", err)
			}

			s.isBlank()

			// META outlives the cluster.
			for _, m := range s.sim.Machines() {
				if held := m.Meta(); !maps.Equal(held, map[uint8]string{0x0c: "value of " + m.Name()}) {
					t.Errorf("META of %s after the teardown: %v", m.Name(), held)
				}
			}
		})
	}
}
