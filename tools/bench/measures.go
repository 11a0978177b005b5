package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// slow are delays like those of real machines, shortened so that one create takes
// about a minute.
func slow() timing.Delays {
	return timing.Delays{
		Install: 12 * time.Second, Reboot: 8 * time.Second, Boot: 6 * time.Second,
		EtcdStart: 4 * time.Second, EtcdJoin: time.Second, EtcdPromote: 4 * time.Second,
		APIServer: 6 * time.Second, NodeRegister: 2 * time.Second, NodeReady: 4 * time.Second,
		NodeLost: time.Second, Reset: time.Second, Shutdown: time.Second,
	}
}

// create measures an apply of 3 control planes and 5 workers, from the start of the CLI to its end, against the
// critical path of the machines' delays.
func create(tb testing.TB, _ int) []figure {
	tb.Helper()

	delays := slow()
	s := newSite(tb, 3, 5, delays)

	apply := s.workspace.MustRun("apply", "-auto-approve")
	path := delays.CriticalPath(3)
	workers := delays.Install + delays.Shutdown + delays.Reboot + delays.Boot + delays.NodeRegister + delays.NodeReady

	return []figure{
		{"create of 3 control planes, then 5 workers", apply.Took.Round(100 * time.Millisecond).String(), ""},
		{"… critical path of the delays (control plane, workers)", fmt.Sprintf("%s + %s", path, workers), ""},
		{"… ratio", fmt.Sprintf("%.2f", float64(apply.Took)/float64(path+workers)), "at most 1.02"},
	}
}

const (
	rolled = 50 // workers
	share  = 20 // percent of them that may be out of service
	newer  = "v1.13.2"
)

// roll measures the upgrade of 50 workers, a fifth of which may be out of service, from the start of the CLI to
// its end, against the required waves.
func roll(tb testing.TB, _ int) []figure {
	tb.Helper()

	delays := slow()
	delays.Pull, delays.Upgrade = 2*time.Second, 6*time.Second

	s := newSite(tb, 1, rolled, delays)
	s.workspace.MustRun("apply", "-auto-approve")

	s.upgradeWorkers(newer, fmt.Sprintf("%d%%", share))

	most := s.mostAway()
	apply := s.workspace.MustRun("apply", "-auto-approve")
	away := most()

	budget := rolled * share / 100
	// The kubelet of a machine takes as long to find its node after each boot as to register it after the first.
	wave := delays.Pull + delays.Upgrade + delays.Shutdown + delays.Reboot + delays.Boot +
		delays.NodeRegister + delays.NodeReady
	ideal := time.Duration((rolled+budget-1)/budget) * wave

	return []figure{
		{fmt.Sprintf("upgrade of %d workers, max_unavailable %d%%", rolled, share),
			apply.Took.Round(100 * time.Millisecond).String(), ""},
		{"… the waves of the delays", fmt.Sprintf("%d × %s", ideal/wave, wave), ""},
		{"… ratio", fmt.Sprintf("%.2f", float64(apply.Took)/float64(ideal)), "at most 1.08"},
		{"… most workers out of service at once", strconv.Itoa(away), fmt.Sprintf("at most %d", budget)},
	}
}

// noop measures a plan that changes nothing, and the same with one dead worker.
func noop(tb testing.TB, n int) []figure {
	tb.Helper()

	s := newSite(tb, 3, n-3, timing.TestDelays())
	s.workspace.MustRun("apply", "-auto-approve")

	s.sim.ForgetCalls()

	stop := watch(s.workspace.Dir)
	alive := planOf(tb, s, 0)
	took := stop()
	average, most := callsPerMachine(s.sim.Calls(), n)

	dead := silence(tb, s.sim.Machine("worker-1"))
	withDead := planOf(tb, s, 0, 2) // it waits for the machine once its node is not ready

	if err := dead.Close(); err != nil {
		tb.Fatal(err)
	}

	label := fmt.Sprintf("no-op plan of %d machines", n)

	return []figure{
		{label, alive.Round(10 * time.Millisecond).String(), ""},
		{"… calls a machine: average, most", fmt.Sprintf("%.2f, %d", average, most), "at most 5"},
		{"… peak memory of the provider", fmt.Sprintf("%d MiB", took.mib), "under 400 MiB"},
		{"… added by one dead machine", (withDead - alive).Round(10 * time.Millisecond).String(), "at most 10s"},
	}
}

// silence makes a machine of the worst kind of dead one: its address takes
// connections and never says a word, so that only a time limit ends the wait.
func silence(tb testing.TB, m *sim.Machine) net.Listener {
	tb.Helper()
	m.PowerOff()

	var (
		mute net.Listener
		err  error
	)

	// The port is free as soon as the machine is off.
	if err := wait.Until(tb.Context(), 10*time.Millisecond, func(ctx context.Context) error {
		mute, err = (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(m.Address().String(), "50000"))

		return err
	}); err != nil {
		tb.Fatal(err)
	}

	return mute
}

// planOf times a plan, which ends with one of the exit codes: 0 for an empty one, 2 for changes.
func planOf(tb testing.TB, s *site, exits ...int) time.Duration {
	tb.Helper()

	plan := s.workspace.Run("plan", "-detailed-exitcode")
	if !slices.Contains(exits, plan.Exit) {
		tb.Fatalf("the plan ends with exit status %d, want one of %v\n%s", plan.Exit, exits, plan.Output())
	}

	return plan.Took
}

func callsPerMachine(calls []fault.Call, machines int) (average float64, most int) {
	each := map[string]int{}
	for _, c := range calls {
		each[c.Machine]++
		most = max(most, each[c.Machine])
	}

	return float64(len(calls)) / float64(machines), most
}
