package cluster_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// TestForecast_afterAKillIsWhatHappens kills a run at any moment. It forecasts the next one from a refresh and an
// earlier record, as a plan does, and then runs it. Unsettled machines are waited for, and the steps after that match
// the forecast.
func TestForecast_afterAKillIsWhatHappens(t *testing.T) {
	clusters := sample(800)
	enough := clusters / 10

	compared, waited := 0, 0

	for seed := range uint64(clusters) {
		run := newTrial(seed)
		run.refuses = false // the plan would have been refused too
		// declared dead after a time, which a forecast does not have
		dead := func(m cluster.Machine) bool { return run.meant[m.Name].life == off }

		unlisted := run.want.Joins && len(run.want.OtherControlPlanes) == 0

		if !run.whole || run.want.RestoreFrom != "" || unlisted || slices.ContainsFunc(run.want.Removed, dead) || run.waitsForOthers() {
			continue
		}

		recorded := run.refreshed(nil)
		run.kills = 0.15

		if run.apply() != "killed" {
			continue
		}

		// A refresh keeps the record of a silent machine.
		for slices.ContainsFunc(run.boxes, func(b *box) bool { return b.life == away }) {
			run.tick()
		}

		run.kills, run.done = 0, nil
		recorded = run.refreshed(recorded)
		run.recordNames(recorded)
		run.replaces()

		run.want.Unmanaged = cluster.Unmanaged(run.want, newObserver(run.site, run.want).observe())
		run.unmanaged = nil // later actions of an autoscaler cannot be forecast

		assumed := cluster.Assume(run.want, recorded)
		assumed.Etcd.GoesBack = run.etcd.target // a refresh records that as drift

		steps, last := cluster.Forecast(run.want, assumed, run.policy)

		if end := run.apply(); end != "done" {
			t.Fatalf("seed %d: ended %s\n%s", seed, end, run)
		}

		compared++

		if len(last.Holds) > 0 {
			waited++
		}

		if forecast, done := kindsOf(steps), kindsOf(run.done); !slices.Equal(forecast, done) {
			t.Fatalf("seed %d: forecast\n%s\ndone\n%s\nrecorded %+v\n%s\n%s", seed, strings.Join(forecast, "\n"),
				strings.Join(done, "\n"), recorded, render(last), run)
		}
	}

	t.Logf("%d compared, %d of them had to wait", compared, waited)

	if compared < enough {
		t.Errorf("%d of %d clusters were compared, want at least %d", compared, clusters, enough)
	}
}

// refreshed is the recorded state after a refresh: machines that do not answer keep their record.
func (t *trial) refreshed(before map[string]step.MachineState) map[string]step.MachineState {
	watch := newObserver(t.site, t.want)
	watch.observe()

	record := maps.Clone(before)
	if record == nil {
		record = map[string]step.MachineState{}
	}

	for _, m := range slices.Concat(t.want.Machines, t.want.Removed, t.want.ChangeOnly) {
		s := watch.observe().Machines[m.Name]

		left := slices.ContainsFunc(t.nodes, func(n *kubeNode) bool { return n.name == m.NodeName })
		if s.Access != step.Member && left {
			s.NodeName = m.NodeName // of what is left of it
		}

		switch s.Access {
		case step.Member, step.Maintenance:
			record[m.Name] = step.MachineState{
				Access: s.Access, Role: m.Role, Stage: s.Stage, Ready: s.Ready, UUID: s.UUID, BootID: s.BootID,
				TalosVersion: s.TalosVersion, Schematic: s.Schematic, Platform: s.Platform, NodeName: s.NodeName,
				ConfigDigest: s.ConfigDigest, StagedDigest: s.StagedDigest, Images: s.Images, Meta: s.Meta, RebootFor: s.RebootFor,
			}

			recorded := record[m.Name]
			if n := t.nodeOf(t.meant[m.Name]); n != nil {
				recorded.Soaks = n.soak.Due
			}

			if s.EtcdService == step.ServiceFinished { // which is drift
				recorded.EtcdService = s.EtcdService
			}

			record[m.Name] = recorded
		case step.Gone:
			record[m.Name] = step.MachineState{Access: step.Gone, NodeName: s.NodeName}

			if !slices.ContainsFunc(t.want.Removed, func(r cluster.Machine) bool { return r.Name == m.Name }) {
				record[m.Name] = step.MachineState{Access: step.Maintenance, Stage: step.StageMaintenance}
			}
		default:
		}
	}

	return record
}

// recordNames adds the recorded names to the spec's machines, and what is left of those that leave.
func (t *trial) recordNames(recorded map[string]step.MachineState) {
	for i, m := range t.want.Machines {
		if s := recorded[m.Name]; s.Access == step.Member {
			t.want.Machines[i].UUID, t.want.Machines[i].NodeName, t.want.Machines[i].Joined = s.UUID, s.NodeName, true
			t.want.Machines[i].InService = t.want.IsCanary(m)
		}
	}

	for name, s := range recorded {
		if s.Role == step.ControlPlane && s.Access == step.Member && len(t.members) == 0 {
			s.EtcdService = step.ServicePreparing
			recorded[name] = s
		}
	}

	t.want.Bootstrapped = t.want.Bootstrapped || len(t.members) > 0

	for i, m := range t.want.Removed {
		if !slices.ContainsFunc(t.nodes, func(n *kubeNode) bool { return n.name == m.NodeName }) {
			t.want.Removed[i].NodeName = ""
		}

		if recorded[m.Name].Access == step.Member ||
			!slices.ContainsFunc(t.members, func(e *etcdMember) bool { return e.id == m.MemberID }) {
			t.want.Removed[i].MemberID = ""
		}
	}
}

// kindsOf are steps by kind and machine. It skips steps that disrupt nothing and depend on what no record has: a node
// that a killed run left cordoned is uncordoned, and manifests may already be synced.
func kindsOf(steps []step.Step) []string {
	var kinds []string

	for _, op := range steps {
		switch op.(type) {
		case step.Uncordon, step.PullImages, step.SyncManifests:
		default:
			if !waitsOnly(op) {
				kinds = append(kinds, fmt.Sprintf("%T on %s", op, op.On()))
			}
		}
	}

	slices.Sort(kinds)

	return kinds
}
