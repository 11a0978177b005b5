package machines_test

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

	"github.com/talosop/terraform-provider-talosop/internal/containers"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/hosttest"
)

// growth is a resource that grows, in processes of the provider that are killed. The CLI then stores the former
// attributes and no private state (lossOfPrivate).
type growth struct {
	driven       *tftest.Driven
	small, large tftest.Config // small is nil for a resource that does not exist before
	// planes and workers are all machines of the cluster after its growth.
	planes, workers []*sim.Machine
	// simulator is that of the machines.
	simulator *sim.Simulator
	// doomed is the driven resource in a process that ends at the n-th call, with a counter of its calls.
	doomed func(t *testing.T, at int64) (d *tftest.Driven, ctx context.Context, calls *atomic.Int64)
	// found finds machines that are not known in advance, such as pods.
	found func() (planes, workers []*sim.Machine)
}

// run grows in a process that ends at a call, and reports whether it reached that call.
func (g *growth) run(t *testing.T, at int64) (killed bool, calls int64) {
	t.Helper()

	before := *g.driven
	d, ctx, count := g.doomed(t, at)
	planned := d.Plan(t, g.large).Must(t)

	count.Store(0)
	d.ApplyPlanned(ctx, t, g.large, planned)
	g.simulator.SetOnCall(nil)

	if killed = errors.Is(context.Cause(ctx), errKilled); killed {
		g.driven.State, g.driven.Private = before.State, nil
	} else {
		g.driven.State, g.driven.Private = d.State, d.Private
	}

	return killed, count.Load()
}

// applyOnce refreshes, plans and applies as a CLI does after the kill, and compares the phase with the simulator.
func (g *growth) applyOnce(t *testing.T, when string) {
	t.Helper()

	if w, ok := g.driven.Server.(tftest.Walk); ok {
		g.driven.Server = w.Next(t)
	}

	if !g.driven.State.IsNull() {
		g.driven.Refresh(t).Must(t)
	}

	planned := g.driven.Plan(t, g.large).Must(t)
	idle := planned.Value.Equal(g.driven.State)

	var done tftest.Outcome
	if !idle {
		done = g.driven.ApplyPlanned(t.Context(), t, g.large, planned)
	}

	phase, lacks := tftest.Text(t, g.driven.State, "phase"), g.lacks(t)

	t.Logf("%s: phase %s; plan: %s", when, phase, strings.ReplaceAll(operationsIn(t, planned), "\n", "; "))

	if phase == "Ready" && len(lacks) > 0 {
		t.Errorf("%s: the apply ends as Ready, and %s; the plan was:\n%s\n%s", when, strings.Join(lacks, ", "),
			operationsIn(t, planned), tftest.Show(done.Diagnostics))
	}
}

// lacks is what the machines lack according to the simulator.
func (g *growth) lacks(t *testing.T) []string {
	t.Helper()

	planes, workers := g.planes, g.workers
	if g.found != nil {
		planes, workers = g.found()
	}

	var lacks []string

	for _, m := range slices.Concat(planes, workers) {
		ready, why := m.Ready()

		// Static pods restart when their sources change, even on a machine that was ready before.
		why = slices.DeleteFunc(why, func(unmet string) bool { return strings.HasPrefix(unmet, "staticPods: ") })

		if !ready && (len(why) > 0 || m.Stage() != sim.StageRunning) {
			lacks = append(lacks, fmt.Sprintf("%s is not ready (%s)", m.Name(), strings.Join(why, ", ")))
		}
	}

	members, err := g.simulator.EtcdMembers(t.Context())
	if err != nil || len(members) != len(planes) || strings.Contains(strings.Join(members, " "), "learner") {
		lacks = append(lacks, fmt.Sprintf("etcd has the members %v (%v) and not %d", members, err, len(planes)))
	}

	return lacks
}

// survives kills the growth at one call after the other, and applies once after each. most limits the calls to try
// when not all of them run.
func (g *growth) survives(t *testing.T, most int64) {
	t.Helper()

	_, total := g.run(t, 0)
	g.applyOnce(t, "undisturbed")
	g.shrink(t)

	step := int64(1)
	if most > 0 {
		step = max(1, total/most)
	}

	for at := step; ; at += step {
		killed, _ := g.run(t, at)
		if !killed {
			t.Logf("the growth ends after about %d calls, every %d. was tried", total, step)

			return
		}

		g.applyOnce(t, fmt.Sprintf("killed at call %d of about %d", at, total))
		g.driven.Ready(t, g.large)

		if lacks := g.lacks(t); len(lacks) > 0 {
			t.Errorf("after a second apply: %s", strings.Join(lacks, ", "))
		}

		g.shrink(t)
	}
}

// shrink restores the configuration before the growth.
func (g *growth) shrink(t *testing.T) {
	t.Helper()

	if g.small == nil {
		g.driven.Apply(t, nil).Must(t)

		return
	}

	g.driven.Refresh(t).Must(t)
	g.driven.Ready(t, g.small)
}

// killedOn makes processes on a site of metal end at a call: later calls get no answer.
func (g *growth) killedOn(s *sitetest.Site) {
	g.simulator = s.Simulator
	g.doomed = func(t *testing.T, at int64) (*tftest.Driven, context.Context, *atomic.Int64) {
		t.Helper()

		ctx, kill := context.WithCancelCause(t.Context())
		t.Cleanup(func() { kill(nil) })

		calls := &atomic.Int64{}

		d := *g.driven
		d.Server = tftest.ServeWith(t, tftest.QuickProviderData(), tftest.Config{})

		if !d.State.IsNull() {
			d.Refresh(t).Must(t)
		}

		s.SetOnCall(func(fault.Call) error {
			if n := calls.Add(1); at > 0 && n >= at {
				kill(errKilled)

				return status.Error(codes.Unavailable, "the process that calls is gone")
			}

			return nil
		})

		return &d, ctx, calls
	}
}

// An apply after a kill ends as Ready only when everything is, whatever its plan said.
func TestReady_afterAKilledGrowthOnMetal(t *testing.T) {
	t.Parallel()

	most := int64(3)
	if testenv.Everything() {
		most = 0
	}

	for name, grow := range map[string]func(t *testing.T, s *sitetest.Site) *growth{
		"talosop_cluster": func(t *testing.T, s *sitetest.Site) *growth {
			t.Helper()

			large := clusterOf(s)
			large["secrets"] = tftest.NewBundle(t)
			small := maps.Clone(large)
			small["control_plane"] = tftest.Config{"install": tftest.Config{"disk": "/dev/sda"},
				"machines": siteMachines(s.ControlPlane[:1])}
			small["workers"] = tftest.Config{"all": tftest.Config{"install": tftest.Config{"disk": "/dev/sda"},
				"max_unavailable": "50%", "machines": siteMachines(s.Workers[:1])}}

			return &growth{driven: tftest.DriveWith(t, tftest.QuickProviderData(), "talosop_cluster"), small: small, large: large,
				planes: s.ControlPlane, workers: s.Workers}
		},
		"talosop_control_plane": func(t *testing.T, s *sitetest.Site) *growth {
			t.Helper()

			secrets := tftest.NewBundle(t)

			return &growth{driven: tftest.DriveWith(t, tftest.QuickProviderData(), "talosop_control_plane"),
				small: planeConfig(s, secrets, s.ControlPlane[:1]...), large: planeConfig(s, secrets, s.ControlPlane...),
				planes: s.ControlPlane}
		},
		"talosop_worker": func(t *testing.T, s *sitetest.Site) *growth {
			t.Helper()

			plane := tftest.DriveWith(t, tftest.QuickProviderData(), "talosop_control_plane")
			plane.Ready(t, planeConfig(s, tftest.NewBundle(t), s.ControlPlane[:1]...))

			pool := func(machines ...*sim.Machine) tftest.Config {
				return tftest.Config{"cluster": tftest.Plain(t, tftest.AttributeOf(t, plane.State, "cluster")), "name": "batch",
					"talos_version": "v1.13.0", "install": tftest.Config{"disk": "/dev/sda"}, "machines": siteMachines(machines),
					"deletion_protection": false}
			}

			return &growth{driven: tftest.DriveWith(t, tftest.QuickProviderData(), "talosop_worker"), small: pool(s.Workers[0]),
				large: pool(s.Workers...), planes: s.ControlPlane[:1], workers: s.Workers}
		},
		"talosop_machine": func(t *testing.T, s *sitetest.Site) *growth {
			t.Helper()

			secrets := tftest.NewBundle(t)
			tftest.DriveWith(t, tftest.QuickProviderData(), "talosop_control_plane").Ready(t, planeConfig(s, secrets, s.ControlPlane[0]))

			return &growth{driven: tftest.DriveWith(t, tftest.QuickProviderData(), "talosop_machine"),
				large: oneMachineConfig(s, secrets, "controlplane", s.ControlPlane[1]), planes: s.ControlPlane[:2]}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := sitetest.NewWith(t, sim.Options{Delays: slowBoots()}, 3, 2)
			g := grow(t, s)
			g.killedOn(s)

			if g.small != nil {
				g.driven.Ready(t, g.small)
			}

			g.survives(t, most)
		})
	}
}

// siteMachines lists machines of a site as a configuration does.
func siteMachines(machines []*sim.Machine) tftest.Config {
	out := tftest.Config{}
	for _, m := range machines {
		out[m.Name()] = tftest.Config{"address": m.Address().String()}
	}

	return out
}

// slowBoots are delays that let an observation right after a kill see machines that still start.
func slowBoots() *timing.Delays {
	delays := timing.TestDelays()
	delays.Boot, delays.EtcdJoin, delays.NodeReady = 300*time.Millisecond, 400*time.Millisecond, 300*time.Millisecond

	return &delays
}

// slowPods are delays that let pods still start after the end of a killed run.
func slowPods() *timing.Delays {
	delays := slowBoots()
	delays.Boot = 3 * time.Second

	return delays
}

// killedOnHost makes processes end at a call to the host or to a machine in a pod.
func (g *growth) killedOnHost(s *hostSite) {
	g.simulator = s.Sim()
	g.doomed = func(t *testing.T, at int64) (*tftest.Driven, context.Context, *atomic.Int64) {
		t.Helper()

		ctx, kill := context.WithCancelCause(t.Context())
		t.Cleanup(func() { kill(nil) })

		var calls atomic.Int64

		host := &killedHost{kill: kill}
		wrapped := *s
		wrapped.wrap = func(h containers.Host) containers.Host {
			host.Host = h

			return host
		}

		d := *g.driven
		d.Server = wrapped.serve(t)

		if !d.State.IsNull() {
			d.Refresh(t).Must(t)
		}

		s.Sim().SetOnCall(func(fault.Call) error {
			if n := calls.Add(1); at > 0 && n >= at && !host.dead() {
				_ = host.die() // the error is what the caller sees
			}

			if host.dead() {
				return status.Error(codes.Unavailable, "the process that calls is gone")
			}

			return nil
		})

		return &d, ctx, &calls
	}
}

// The same in pods: a refresh finds the new ones as machines that state does not know yet, and the next plan wants
// each of them. Their remaining work is an operation of that plan. On every change only the resource with both roles
// grows.
func TestReady_afterAKilledGrowthInPods(t *testing.T) {
	t.Parallel()

	most := int64(4)
	if testenv.Everything() {
		most = 60
	}

	for name, grow := range map[string]func(t *testing.T, s *hostSite) *growth{
		"talosop_cluster": func(t *testing.T, s *hostSite) *growth {
			t.Helper()

			secrets := tftest.NewBundle(t)

			return &growth{driven: s.drive(t, "talosop_cluster"), small: s.cluster("dev", secrets, 1, 1),
				large: s.cluster("dev", secrets, 3, 2),
				found: s.podsOfCluster([]string{"dev-cp-0-0", "dev-cp-1-0", "dev-cp-2-0"}, "dev-batch-0-0", "dev-batch-1-0")}
		},
		"talosop_control_plane": func(t *testing.T, s *hostSite) *growth {
			t.Helper()

			config := s.container("dev", tftest.NewBundle(t))

			return &growth{driven: s.drive(t, "talosop_control_plane"), small: tftest.With(maps.Clone(config), 1, "replicas"),
				large: tftest.With(config, 3, "replicas"), found: s.podsOfCluster([]string{"dev-cp-0-0", "dev-cp-1-0",
					"dev-cp-2-0"})}
		},
		"talosop_worker": func(t *testing.T, s *hostSite) *growth {
			t.Helper()

			plane := s.drive(t, "talosop_control_plane")
			plane.Ready(t, tftest.With(s.container("dev", tftest.NewBundle(t)), 1, "replicas"))

			worker := tftest.Config{"cluster": tftest.Plain(t, tftest.AttributeOf(t, plane.State, "cluster")), "name": "batch",
				"talos_version": "v1.13.0", "deletion_protection": false}

			return &growth{driven: s.drive(t, "talosop_worker"), small: tftest.With(maps.Clone(worker), 1, "replicas"),
				large: tftest.With(worker, 3, "replicas"),
				found: s.podsOfCluster([]string{"dev-cp-0-0"}, "dev-batch-0-0", "dev-batch-1-0", "dev-batch-2-0")}
		},
	} {
		if name != "talosop_cluster" && !testenv.Everything() {
			continue
		}

		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := siteOn(t, hosttest.New(t, hosttest.Options{Delays: slowPods()}))
			g := grow(t, s)
			g.killedOnHost(s)
			g.driven.Ready(t, g.small)
			g.survives(t, most)
			g.driven.Apply(t, nil).Must(t)
		})
	}
}

// podsOfCluster finds the machines in pods; a missing pod is no machine.
func (s *hostSite) podsOfCluster(planes []string, workers ...string) func() (p, w []*sim.Machine) {
	machines := func(pods []string) (found []*sim.Machine) {
		for _, pod := range pods {
			if m := s.Machine(s.namespace, pod); m != nil {
				found = append(found, m)
			}
		}

		return found
	}

	return func() (p, w []*sim.Machine) { return machines(planes), machines(workers) }
}

// The plan after a kill names the machines that still start, the same in both passes.
func TestReady_planWaitsForPodsThatStart(t *testing.T) {
	t.Parallel()

	boots := &timing.Gate{}
	delays := timing.TestDelays()
	delays.Boots = boots
	s := siteOn(t, hosttest.New(t, hosttest.Options{Delays: &delays}))
	secrets := tftest.NewBundle(t)
	small, large := s.cluster("dev", secrets, 1, 1), s.cluster("dev", secrets, 3, 2)
	d := s.drive(t, "talosop_cluster")

	d.Ready(t, small)
	boots.Shut()
	t.Cleanup(boots.Open)

	before := d.State

	ctx, kill := context.WithCancelCause(t.Context())
	defer kill(nil)

	var configured atomic.Int64

	s.Sim().SetOnCall(func(call fault.Call) error {
		if call.Method == "ApplyConfiguration" {
			configured.Add(1)
		} else if configured.Load() >= 3 {
			kill(errKilled)

			return status.Error(codes.Unavailable, "the process that calls is gone")
		}

		return nil
	})
	d.ApplyIn(ctx, t, large)
	s.Sim().SetOnCall(nil)

	if !errors.Is(context.Cause(ctx), errKilled) {
		t.Fatal("the growth was not killed")
	}

	d.State, d.Private = before, nil
	d.Server = s.serve(t)
	d.Refresh(t).Must(t)

	planned := d.Plan(t, large).Must(t)
	operations := operationsIn(t, planned)

	for _, name := range []string{"cp-1", "cp-2", "batch/1"} {
		if !strings.Contains(operations, name) {
			t.Errorf("the plan says nothing of %s:\n%s", name, operations)
		}
	}

	if !strings.Contains(operations, "wait for ") || tftest.Text(t, planned.Value, "phase") != "unknown" {
		t.Errorf("in phase %s the plan does not wait:\n%s", tftest.Text(t, planned.Value, "phase"), operations)
	}

	again := d.Plan(t, large).Must(t)
	if !again.Value.Equal(planned.Value) {
		t.Error("the second planning pass differs")
	}

	boots.Open()
	d.Ready(t, large)

	g := &growth{simulator: s.Sim(),
		found: s.podsOfCluster([]string{"dev-cp-0-0", "dev-cp-1-0", "dev-cp-2-0"}, "dev-batch-0-0", "dev-batch-1-0")}
	if lacks := g.lacks(t); len(lacks) > 0 {
		t.Errorf("after that apply: %s", strings.Join(lacks, ", "))
	}

	d.ExpectEmpty(t, "after that", large)
}
