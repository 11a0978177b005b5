package lifecycle_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
)

const talos113 = "v1.13.6"

// goBack makes the older Talos the wanted one.
func (s *site) goBack(version string) {
	s.t.Helper()
	s.upgrade(version)

	for i := range s.want.Machines {
		s.want.Machines[i].AllowDowngrade = true
	}
}

// etcdCalls are the calls about an etcd downgrade, in order, with the machines that were upgraded.
func etcdCalls(s *site) []string {
	var calls []string

	for _, call := range s.sim.Calls() {
		switch call.Method {
		case "EtcdDowngradeEnable", "EtcdDowngradeCancel", "Upgrade":
			calls = append(calls, call.Method)
		}
	}

	return calls
}

// Control planes are downgraded from 1.14 to 1.13: first etcd, while all members work, then one machine after the
// other.
func TestDowngrade_takesEtcdBackFirst(t *testing.T) {
	t.Parallel()

	s := on114(t, 3, 1)
	s.guard(1)
	s.goBack(talos113)

	forecast, last := cluster.Forecast(s.want, s.assumed(), s.policy)
	if !last.Done() {
		t.Fatalf("the forecast ends in %v", last)
	}

	s.sim.ForgetCalls()

	result := s.converge()
	s.runsEverywhere(talos113)
	s.schedulable()

	if got, want := texts(result.Done), texts(forecast); !slices.Equal(got, want) {
		t.Errorf("done:\n%s\nforecast:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	want := []string{"EtcdDowngradeEnable", "Upgrade", "Upgrade", "Upgrade", "Upgrade"}
	if got := etcdCalls(s); !slices.Equal(got, want) {
		t.Errorf("calls %v, want %v", got, want)
	}

	if again := s.converge(); len(again.Done) > 0 {
		t.Errorf("a second run did %v", again.Done)
	}

	// And upgraded again.
	s.upgrade(talos114)
	s.converge()
	s.runsEverywhere(talos114)
}

// The next run finishes or cancels the downgrade of a run that ended at any point.
func TestDowngrade_goesOnOrTurnsBackWhereverARunEnds(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		after string // the last step of the run
		to    string // the target of the next run
		want  []string
	}{
		"requested, goes on":    {"downgrade the etcd data", talos113, []string{"Upgrade", "Upgrade", "Upgrade"}},
		"requested, turns back": {"downgrade the etcd data", talos114, []string{"EtcdDowngradeCancel"}},
		"one is back, goes on":  {"upgrade Talos", talos113, []string{"Upgrade", "Upgrade"}},
		"one is back, up again": {"upgrade Talos", talos114, []string{"EtcdDowngradeCancel", "Upgrade"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := on114(t, 3, 0)
			s.guard(1)
			s.goBack(talos113)

			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()

			runner := s.runner()
			runner.Events = func(e lifecycle.Event) {
				if e.State == lifecycle.StepFinished && strings.HasPrefix(e.Step.String(), test.after) {
					cancel()
				}
			}

			if _, err := runner.Converge(ctx, s.want); err == nil {
				t.Fatal("the run was not interrupted")
			}

			// A refresh reports the downgrade before the first machine follows, and until the last one did.
			if got := s.runner().Refresh(bounded(t), s.want).Etcd.GoesBack; got != "3.6" {
				t.Errorf("a read sees etcd go back to %q", got)
			}

			s.sim.ForgetCalls()
			s.goBack(test.to)
			s.converge()
			s.runsEverywhere(test.to)

			if got := etcdCalls(s); !slices.Equal(got, test.want) {
				t.Errorf("calls %v, want %v", got, test.want)
			}
		})
	}
}

// A canceled downgrade is not canceled again because of earlier reports of the other control planes.
func TestDowngrade_isCanceledOnce(t *testing.T) {
	t.Parallel()

	s := on114(t, 3, 0)
	s.guard(1)
	s.goBack(talos113)

	if _, err := s.convergeUntil(func(e lifecycle.Event) bool {
		return e.State == lifecycle.StepFinished && strings.HasPrefix(e.Step.String(), "downgrade the etcd data")
	}); err == nil {
		t.Fatal("the run was not interrupted")
	}

	s.sim.ForgetCalls()
	s.goBack(talos114)

	runner := s.runner()
	runner.Interval = 5 * time.Second

	if _, err := runner.Converge(bounded(t), s.want); err != nil {
		t.Fatal(err)
	}

	if got, want := etcdCalls(s), []string{"EtcdDowngradeCancel"}; !slices.Equal(got, want) {
		t.Errorf("calls %v, want %v", got, want)
	}
}

// While a member does not work, the downgrade of etcd is not enabled, and no machine is downgraded before etcd.
func TestDowngrade_waitsForAllOfEtcd(t *testing.T) {
	t.Parallel()

	s := on114(t, 3, 0)
	s.goBack(talos113)
	s.sim.Machine("cp-2").PowerOff()
	s.sim.ForgetCalls()

	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()

	_, err := s.runner().Converge(ctx, s.want)
	if err == nil || !strings.Contains(err.Error(), "cp-1: goes back to v1.13.6 once etcd does") ||
		!strings.Contains(err.Error(), "(cp-2 ") {
		t.Errorf("error %v", err)
	}

	if got := etcdCalls(s); len(got) > 0 {
		t.Errorf("calls %v", got)
	}
}
