package provider

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
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/hosttest"
)

// growth is a resource that grows, in processes of the provider that are killed. The CLI stores the attributes of
// before and no private state then (lossOfPrivate).
type growth struct {
	driven       *driven
	small, large configuration // small is nil for a resource that does not exist before
	// planes and workers are all machines of the cluster once it has grown.
	planes, workers []*sim.Machine
	// simulator is that of the machines.
	simulator *sim.Simulator
	// doomed is the driven resource in a process that ends at the n-th call, and how many calls there were.
	doomed func(t *testing.T, at int64) (d *driven, ctx context.Context, calls *atomic.Int64)
	// found finds the machines when they are not known before, such as pods.
	found func() (planes, workers []*sim.Machine)
}

// run grows in a process that ends at a call, and says whether it came to that.
func (g *growth) run(t *testing.T, at int64) (killed bool, calls int64) {
	t.Helper()

	before := *g.driven
	d, ctx, count := g.doomed(t, at)
	planned := d.plan(t, g.large).must(t)

	count.Store(0)
	d.applyPlanned(ctx, t, g.large, planned)
	g.simulator.SetOnCall(nil)

	if killed = errors.Is(context.Cause(ctx), errKilled); killed {
		g.driven.state, g.driven.private = before.state, nil
	} else {
		g.driven.state, g.driven.private = d.state, d.private
	}

	return killed, count.Load()
}

// applyOnce refreshes, plans and applies as a CLI does after the kill, and compares the phase with what is true.
func (g *growth) applyOnce(t *testing.T, when string) {
	t.Helper()

	if w, ok := g.driven.Server.(walked); ok {
		g.driven.Server = w.next(t)
	}

	if !g.driven.state.IsNull() {
		g.driven.refresh(t).must(t)
	}

	planned := g.driven.plan(t, g.large).must(t)
	idle := planned.Value.Equal(g.driven.state)

	var done outcome
	if !idle {
		done = g.driven.applyPlanned(t.Context(), t, g.large, planned)
	}

	phase, lacks := text(t, g.driven.state, "phase"), g.lacks(t)

	t.Logf("%s: phase %s; plan: %s", when, phase, strings.ReplaceAll(operationsIn(t, planned), "\n", "; "))

	if phase == "Ready" && len(lacks) > 0 {
		t.Errorf("%s: the apply ends as Ready, and %s; the plan was:\n%s\n%s", when, strings.Join(lacks, ", "),
			operationsIn(t, planned), show(done.diagnostics))
	}
}

// lacks is what the machines lack by the truth of the simulator.
func (g *growth) lacks(t *testing.T) []string {
	t.Helper()

	planes, workers := g.planes, g.workers
	if g.found != nil {
		planes, workers = g.found()
	}

	var lacks []string

	for _, m := range slices.Concat(planes, workers) {
		ready, why := m.Ready()

		// Static pods start again when what they are made of changes, also on a machine that was ready before.
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

// survives kills the growth at one call after the other, and applies once after each. most bounds how many of the calls
// are tried where not all of them are.
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
		g.driven.ready(t, g.large)

		if lacks := g.lacks(t); len(lacks) > 0 {
			t.Errorf("after a second apply: %s", strings.Join(lacks, ", "))
		}

		g.shrink(t)
	}
}

// shrink brings back what was before the growth.
func (g *growth) shrink(t *testing.T) {
	t.Helper()

	if g.small == nil {
		g.driven.apply(t, nil).must(t)

		return
	}

	g.driven.refresh(t).must(t)
	g.driven.ready(t, g.small)
}

// killedOn lets processes on a site of metal end at a call: none is served from then on.
func (g *growth) killedOn(s *site) {
	g.simulator = s.Simulator
	g.doomed = func(t *testing.T, at int64) (*driven, context.Context, *atomic.Int64) {
		t.Helper()

		ctx, kill := context.WithCancelCause(t.Context())
		t.Cleanup(func() { kill(nil) })

		calls := &atomic.Int64{}

		d := *g.driven
		d.Server = serve(t, quickProviderData(), configuration{})

		if !d.state.IsNull() {
			d.refresh(t).must(t)
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

// An apply after a kill ends as Ready only where everything is, whatever its plan said.
func TestReady_afterAKilledGrowthOnMetal(t *testing.T) {
	t.Parallel()

	most := int64(3)
	if testenv.Everything() {
		most = 0
	}

	for name, grow := range map[string]func(t *testing.T, s *site) *growth{
		"talosop_cluster": func(t *testing.T, s *site) *growth {
			t.Helper()

			large := s.clusterOf()
			large["secrets"] = newBundle(t)
			small := maps.Clone(large)
			small["control_plane"] = configuration{"install": configuration{"disk": "/dev/sda"},
				"machines": siteMachines(s.controlPlane[:1])}
			small["workers"] = configuration{"all": configuration{"install": configuration{"disk": "/dev/sda"},
				"max_unavailable": "50%", "machines": siteMachines(s.workers[:1])}}

			return &growth{driven: driveOn(t, quickProviderData(), "talosop_cluster"), small: small, large: large,
				planes: s.controlPlane, workers: s.workers}
		},
		"talosop_control_plane": func(t *testing.T, s *site) *growth {
			t.Helper()

			secrets := newBundle(t)

			return &growth{driven: driveOn(t, quickProviderData(), "talosop_control_plane"),
				small: s.planeConfig(secrets, s.controlPlane[:1]...), large: s.planeConfig(secrets, s.controlPlane...),
				planes: s.controlPlane}
		},
		"talosop_worker": func(t *testing.T, s *site) *growth {
			t.Helper()

			plane := driveOn(t, quickProviderData(), "talosop_control_plane")
			plane.ready(t, s.planeConfig(newBundle(t), s.controlPlane[:1]...))

			pool := func(machines ...*sim.Machine) configuration {
				return configuration{"cluster": plain(t, attributeOf(t, plane.state, "cluster")), "name": "batch",
					"talos_version": "v1.13.0", "install": configuration{"disk": "/dev/sda"}, "machines": siteMachines(machines),
					"deletion_protection": false}
			}

			return &growth{driven: driveOn(t, quickProviderData(), "talosop_worker"), small: pool(s.workers[0]),
				large: pool(s.workers...), planes: s.controlPlane[:1], workers: s.workers}
		},
		"talosop_machine": func(t *testing.T, s *site) *growth {
			t.Helper()

			secrets := newBundle(t)
			driveOn(t, quickProviderData(), "talosop_control_plane").ready(t, s.planeConfig(secrets, s.controlPlane[0]))

			return &growth{driven: driveOn(t, quickProviderData(), "talosop_machine"),
				large: s.oneMachineConfig(secrets, "controlplane", s.controlPlane[1]), planes: s.controlPlane[:2]}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := newSiteWith(t, sim.Options{Delays: slowBoots()}, 3, 2)
			g := grow(t, s)
			g.killedOn(s)

			if g.small != nil {
				g.driven.ready(t, g.small)
			}

			g.survives(t, most)
		})
	}
}

// siteMachines lists machines of a site as a configuration does.
func siteMachines(machines []*sim.Machine) configuration {
	out := configuration{}
	for _, m := range machines {
		out[m.Name()] = configuration{"address": m.Address().String()}
	}

	return out
}

// slowBoots are delays in which a look right after a kill sees machines that still start.
func slowBoots() *timing.Delays {
	delays := timing.TestDelays()
	delays.Boot, delays.EtcdJoin, delays.NodeReady = 300*time.Millisecond, 400*time.Millisecond, 300*time.Millisecond

	return &delays
}

// slowPods are delays in which pods still start once a run that was killed has ended.
func slowPods() *timing.Delays {
	delays := slowBoots()
	delays.Boot = 3 * time.Second

	return delays
}

// killedOnHost lets processes end at a call to the host or to a machine in a pod.
func (g *growth) killedOnHost(s *hostSite) {
	g.simulator = s.Sim()
	g.doomed = func(t *testing.T, at int64) (*driven, context.Context, *atomic.Int64) {
		t.Helper()

		ctx, kill := context.WithCancelCause(t.Context())
		t.Cleanup(func() { kill(nil) })

		var calls atomic.Int64

		life := &mortal{kill: kill}
		mortals := *s
		mortals.wrap = func(h containers.Host) containers.Host {
			life.Host = h

			return life
		}

		d := *g.driven
		d.Server = mortals.serve(t)

		if !d.state.IsNull() {
			d.refresh(t).must(t)
		}

		s.Sim().SetOnCall(func(fault.Call) error {
			if n := calls.Add(1); at > 0 && n >= at && !life.dead() {
				_ = life.die() // the error is what the caller sees
			}

			if life.dead() {
				return status.Error(codes.Unavailable, "the process that calls is gone")
			}

			return nil
		})

		return &d, ctx, &calls
	}
}

// The same in pods: a refresh finds the new ones as machines that state does not know yet, of which the next plan wants
// each. What they still have to do is an operation of it.
func TestReady_afterAKilledGrowthInPods(t *testing.T) {
	t.Parallel()

	most := int64(4)
	if testenv.Everything() {
		most = 60
	}

	for name, grow := range map[string]func(t *testing.T, s *hostSite) *growth{
		"talosop_cluster": func(t *testing.T, s *hostSite) *growth {
			t.Helper()

			secrets := newBundle(t)

			return &growth{driven: s.drive(t, "talosop_cluster"), small: s.cluster("dev", secrets, 1, 1),
				large: s.cluster("dev", secrets, 3, 2),
				found: s.podsOfCluster([]string{"dev-cp-0-0", "dev-cp-1-0", "dev-cp-2-0"}, "dev-batch-0-0", "dev-batch-1-0")}
		},
		"talosop_control_plane": func(t *testing.T, s *hostSite) *growth {
			t.Helper()

			config := s.container("dev", newBundle(t))

			return &growth{driven: s.drive(t, "talosop_control_plane"), small: with(maps.Clone(config), 1, "replicas"),
				large: with(config, 3, "replicas"), found: s.podsOfCluster([]string{"dev-cp-0-0", "dev-cp-1-0", "dev-cp-2-0"})}
		},
		"talosop_worker": func(t *testing.T, s *hostSite) *growth {
			t.Helper()

			plane := s.drive(t, "talosop_control_plane")
			plane.ready(t, with(s.container("dev", newBundle(t)), 1, "replicas"))

			worker := configuration{"cluster": plain(t, attributeOf(t, plane.state, "cluster")), "name": "batch",
				"talos_version": "v1.13.0", "deletion_protection": false}

			return &growth{driven: s.drive(t, "talosop_worker"), small: with(maps.Clone(worker), 1, "replicas"),
				large: with(worker, 3, "replicas"),
				found: s.podsOfCluster([]string{"dev-cp-0-0"}, "dev-batch-0-0", "dev-batch-1-0", "dev-batch-2-0")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := siteOn(t, hosttest.New(t, hosttest.Options{Delays: slowPods()}))
			g := grow(t, s)
			g.killedOnHost(s)
			g.driven.ready(t, g.small)
			g.survives(t, most)
			g.driven.apply(t, nil).must(t)
		})
	}
}

// podsOfCluster finds the machines in pods; one that is not there is no machine.
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

// The plan after a kill names the machines that still start, both passes of it alike.
func TestReady_planWaitsForPodsThatStart(t *testing.T) {
	t.Parallel()

	boots := &timing.Gate{}
	delays := timing.TestDelays()
	delays.Boots = boots
	s := siteOn(t, hosttest.New(t, hosttest.Options{Delays: &delays}))
	secrets := newBundle(t)
	small, large := s.cluster("dev", secrets, 1, 1), s.cluster("dev", secrets, 3, 2)
	d := s.drive(t, "talosop_cluster")

	d.ready(t, small)
	boots.Shut()
	t.Cleanup(boots.Open)

	before := d.state

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
	d.applyIn(ctx, t, large)
	s.Sim().SetOnCall(nil)

	if !errors.Is(context.Cause(ctx), errKilled) {
		t.Fatal("the growth was not killed")
	}

	d.state, d.private = before, nil
	d.Server = s.serve(t)
	d.refresh(t).must(t)

	planned := d.plan(t, large).must(t)
	said := operationsIn(t, planned)

	for _, name := range []string{"cp-1", "cp-2", "batch/1"} {
		if !strings.Contains(said, name) {
			t.Errorf("the plan says nothing of %s:\n%s", name, said)
		}
	}

	if !strings.Contains(said, "wait for ") || text(t, planned.Value, "phase") != "unknown" {
		t.Errorf("in phase %s the plan does not wait:\n%s", text(t, planned.Value, "phase"), said)
	}

	again := d.plan(t, large).must(t)
	if !again.Value.Equal(planned.Value) {
		t.Error("the second planning pass differs")
	}

	boots.Open()
	d.ready(t, large)

	g := &growth{simulator: s.Sim(),
		found: s.podsOfCluster([]string{"dev-cp-0-0", "dev-cp-1-0", "dev-cp-2-0"}, "dev-batch-0-0", "dev-batch-1-0")}
	if lacks := g.lacks(t); len(lacks) > 0 {
		t.Errorf("after that apply: %s", strings.Join(lacks, ", "))
	}

	d.expectEmpty(t, "after that", large)
}
