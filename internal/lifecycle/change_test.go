package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/etcd"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/sim/images"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubectl"
)

const (
	newerTalos = "v1.13.2"
	newerImage = "ghcr.io/siderolabs/installer:" + newerTalos
	// needsReboot is a patch that Talos 1.13 applies only with a reboot.
	needsReboot = "machine: {env: {CHANGED: \"yes\"}}"
	// appliedLive is a patch that it applies at once.
	appliedLive = "machine: {sysctls: {vm.swappiness: \"1\"}}"
)

// upgrade wants another Talos on every machine.
func (s *site) upgrade(version string) {
	for i := range s.want.Machines {
		s.want.Machines[i].TalosVersion = version
		s.want.Machines[i].Installer = "ghcr.io/siderolabs/installer:" + version
	}
}

// reconfigure wants every machine to have a patch in its configuration.
func (s *site) reconfigure(patch string) {
	for i, m := range s.want.Machines {
		config := s.render(m.Role, patch)
		s.configs[m.Name], s.want.Machines[i].ConfigDigest = config.Bytes, config.Digest
	}
}

// remove takes machines off the list, as a user does, and out of the recorded state.
func (s *site) remove(names ...string) {
	s.want.Machines = slices.DeleteFunc(s.want.Machines, func(m cluster.Machine) bool {
		if !slices.Contains(names, m.Name) {
			return false
		}

		s.want.Removed = append(s.want.Removed, m)

		return true
	})
}

// converge runs until the cluster is as wanted, and forgets what was removed.
func (s *site) converge() lifecycle.Result {
	s.t.Helper()
	defer s.expectStruck()

	result, err := s.runner().Converge(bounded(s.t), s.want)
	if err != nil {
		s.t.Fatalf("converge: %v", err)
	}

	s.want.Removed = nil
	s.isReady(result.Snapshot)
	s.record(result.Snapshot)

	return result
}

// disruptive are the calls that take a machine out of service, or out of etcd.
var disruptive = []string{"Reboot", "Reset", "Upgrade", "EtcdLeaveCluster"}

// guard fails the test when a machine is disrupted while another one of its role is out of service. At most one
// control plane and the budget of workers may be. The installer of Talos 1.13 disrupts nothing; the reboot after it
// does.
func (s *site) guard(workers int) {
	var mu sync.Mutex

	s.sim.SetOnCall(func(c fault.Call) error {
		if !slices.Contains(disruptive, c.Method) || strings.Contains(c.Service, "Lifecycle") {
			return nil
		}

		mu.Lock()
		defer mu.Unlock()

		role := strings.TrimRight(c.Machine, "0123456789")
		down := []string{}

		for _, other := range s.sim.Machines() {
			if other.Name() != c.Machine && strings.HasPrefix(other.Name(), role) && other.Configured() && !inService(other) {
				down = append(down, other.Name())
			}
		}

		limit := 0
		if role == "w-" {
			limit = workers - 1
		}

		if len(down) > limit {
			s.t.Errorf("%s on %s while %v are out of service", c.Method, c.Machine, down)
		}

		return nil
	})
}

// inService is true for a machine that runs and is ready. A booting machine may already have everything that it asks
// for.
func inService(m *sim.Machine) bool {
	ready, _ := m.Ready()

	return ready && m.Stage() == sim.StageRunning
}

// runsEverywhere checks the version that every machine really runs.
func (s *site) runsEverywhere(version string) {
	s.t.Helper()

	for _, m := range s.want.Machines {
		if got := s.sim.Machine(m.Name).TalosVersion(); got != version {
			s.t.Errorf("%s runs Talos %s, want %s", m.Name, got, version)
		}
	}
}

// schedulable checks that no node was left cordoned.
func (s *site) schedulable() {
	s.t.Helper()

	have := s.runner().Observe(bounded(s.t), s.want)
	for _, n := range have.Kubernetes.Nodes {
		if n.Unschedulable {
			s.t.Errorf("node %s was left cordoned", n.Name)
		}
	}
}

// TestUpgrade_installsAnotherImageOnce upgrades machines to their Talos version from another image, so that nothing
// that they report changes.
func TestUpgrade_installsAnotherImageOnce(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 1, sim.Options{})
	s.create()
	s.guard(1)

	for i := range s.want.Machines {
		s.want.Machines[i].Installer = "registry.example.com/installer:v1.13.0"
		s.want.Machines[i].Reinstall = s.want.Machines[i].Name != "cp-2"
	}

	result := s.converge()
	s.schedulable()

	if got, want := s.rebooted(), []string{"cp-1", "cp-3", "w-1"}; !slices.Equal(got, want) {
		t.Errorf("rebooted %v, want %v: %v", got, want, result.Done)
	}
}

func TestUpgrade_rollsMachineByMachine(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 2, sim.Options{})
	s.create()
	s.guard(1)
	s.upgrade(newerTalos)

	forecast, _ := cluster.Forecast(s.want, s.assumed(), s.policy)
	result := s.converge()

	s.runsEverywhere(newerTalos)
	s.schedulable()

	if got, want := s.rebooted(), []string{"cp-1", "cp-2", "cp-3", "w-1", "w-2"}; !slices.Equal(got, want) {
		t.Errorf("rebooted %v, want %v", got, want)
	}

	if got, want := texts(result.Done), texts(forecast); !slices.Equal(got, want) {
		t.Errorf("done:\n%s\nforecast:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	if again := s.converge(); len(again.Done) > 0 {
		t.Errorf("a second run did %v", again.Done)
	}
}

// assumed is the recorded state of the site.
func (s *site) assumed() cluster.Snapshot {
	have := s.runner().Observe(bounded(s.t), s.want)

	for name, m := range have.Machines {
		m.StaticPods = nil // state does not record them
		have.Machines[name] = m
	}

	return cluster.Assume(s.want, have.Machines)
}

func (s *site) rebooted() []string { return s.order("Reboot") }

func texts(steps []step.Step) []string {
	out := make([]string, len(steps))
	for i, step := range steps {
		out[i] = step.String()
	}

	return out
}

func TestUpgrade_inSeveralHops(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 1, sim.Options{TalosVersion: "v1.11.0"})
	for i := range s.want.Machines {
		s.want.Machines[i].TalosVersion = "v1.11.0"
	}

	s.createAs("v1.11.0")
	s.guard(1)
	s.upgrade(newerTalos)

	for i := range s.want.Machines {
		s.want.Machines[i].Via = []cluster.Release{{Version: "v1.12.4", Installer: "ghcr.io/siderolabs/installer:v1.12.4"}}
	}

	result := s.converge()
	s.runsEverywhere(newerTalos)

	var hops []string

	for _, op := range result.Done {
		if u, ok := op.(step.Upgrade); ok {
			hops = append(hops, u.Machine+" "+u.To)
		}
	}

	want := []string{
		"cp-1 v1.12.4", "cp-2 v1.12.4", "cp-3 v1.12.4", "w-1 v1.12.4",
		"cp-1 " + newerTalos, "cp-2 " + newerTalos, "cp-3 " + newerTalos, "w-1 " + newerTalos,
	}
	if !slices.Equal(hops, want) {
		t.Errorf("upgraded in the order %v, want %v", hops, want)
	}
}

// createAs creates a site whose machines run an older Talos.
func (s *site) createAs(version string) {
	s.t.Helper()

	for i, m := range s.want.Machines {
		config := s.renderFor(m.Role, "v1.11", version)
		s.configs[m.Name], s.want.Machines[i].ConfigDigest = config.Bytes, config.Digest
	}

	s.create()
}

func TestUpgrade_rolledBackStopsTheRollout(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 1, sim.Options{})
	s.create()

	if err := s.sim.SetImage(newerImage, images.Image{BootFails: true}); err != nil {
		t.Fatal(err)
	}

	s.upgrade(newerTalos)

	result, err := s.runner().Converge(bounded(t), s.want)

	var (
		refused *lifecycle.RefusedError
		stopped *lifecycle.IncompleteError
	)

	if !errors.As(err, &refused) || !errors.As(err, &stopped) || !strings.Contains(err.Error(), "rolled the upgrade back") ||
		!strings.Contains(err.Error(), "cp-1") {
		t.Fatalf("the error is %v, want that of an upgrade of cp-1 that Talos rolled back", err)
	}

	if done := slices.Concat(result.Done, stopped.Done); slices.ContainsFunc(done, upgrades) {
		t.Errorf("an upgrade that was rolled back counts as done: %v", done)
	}

	s.runsEverywhere("v1.13.0")
	s.schedulable()

	if got := s.rebooted(); !slices.Equal(got, []string{"cp-1"}) {
		t.Errorf("rebooted %v, want cp-1 alone", got)
	}
}

func upgrades(op step.Step) bool {
	_, is := op.(step.Upgrade)

	return is
}

// TestUpgrade_whoseBootHangs: Talos rolls back a failed boot, but not a boot that hangs before it reads META. The
// apply reports it, and continues once the machine was started with its other boot entry.
func TestUpgrade_whoseBootHangs(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 0, sim.Options{})
	s.create()
	s.policy.BootTimeout = time.Second

	if err := s.sim.SetImage(newerImage, images.Image{BootHangs: true}); err != nil {
		t.Fatal(err)
	}

	s.upgrade(newerTalos)

	result, err := s.convergeUntil(func(e lifecycle.Event) bool {
		return e.Machine == "cp-1" && strings.Contains(e.Reason, "hangs before META")
	})
	if err == nil || !strings.Contains(err.Error(), "cp-1: no response from") ||
		!strings.Contains(err.Error(), "upgraded to Talos "+newerTalos) || !strings.Contains(err.Error(), "other entry") {
		t.Fatalf("the error is %v, want what to do about cp-1", err)
	}

	if got := s.rebooted(); !slices.Equal(got, []string{"cp-1"}) {
		t.Errorf("rebooted %v, want cp-1 alone", got)
	}

	silent, reboot := result.Snapshot.Machines["cp-1"].Since, s.sim.CallsTo("Reboot")[0].Time
	if silent.Before(reboot) || !strings.Contains(err.Error(), silent.UTC().Format(time.RFC3339)) {
		t.Errorf("silent since %s, rebooted at %s: %v", silent, reboot, err)
	}

	// The release is repaired, and an operator selects the other boot entry at the console.
	if err := s.sim.SetImage(newerImage, images.Image{}); err != nil {
		t.Fatal(err)
	}

	if err := s.sim.Machine("cp-1").ChooseOtherEntry(); err != nil {
		t.Fatal(err)
	}

	s.converge()
	s.runsEverywhere(newerTalos)
	s.schedulable()
}

func TestUpgrade_refusedInstallerLeavesTheNodeAsItWas(t *testing.T) {
	t.Parallel()

	for name, image := range map[string]images.Image{"missing": {Missing: true}, "fails": {InstallFails: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := newSite(t, 1, 1, sim.Options{})
			s.create()

			if err := s.sim.SetImage(newerImage, image); err != nil {
				t.Fatal(err)
			}

			s.upgrade(newerTalos)

			_, err := s.runner().Converge(bounded(t), s.want)
			if err == nil || !strings.Contains(err.Error(), newerImage) {
				t.Fatalf("the error is %v, want one that names the image", err)
			}

			s.runsEverywhere("v1.13.0")
			s.schedulable()
		})
	}
}

func TestConfiguration_thatNeedsARebootRolls(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 2, sim.Options{})
	s.create()
	s.guard(1)
	s.reconfigure(needsReboot)
	s.converge()
	s.schedulable()

	if got, want := s.rebooted(), []string{"cp-1", "cp-2", "cp-3", "w-1", "w-2"}; !slices.Equal(got, want) {
		t.Errorf("rebooted %v, want %v", got, want)
	}
}

func TestConfiguration_onTrial(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 1, sim.Options{})
	s.create()
	s.policy.TryConfig = true
	s.reconfigure(appliedLive)
	s.sim.ForgetCalls()
	s.converge()

	var modes []string

	for _, c := range s.sim.CallsTo("ApplyConfiguration") {
		if c.Machine == "cp-1" {
			modes = append(modes, c.Detail)
		}
	}

	if len(modes) != 2 || !strings.Contains(modes[0], "try") || !strings.Contains(modes[1], "no_reboot") {
		t.Errorf("cp-1 was configured with %v, want a trial and then the commit", modes)
	}
}

func TestScale_upAndDown(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 0, sim.Options{})
	s.create()
	s.guard(1)
	s.add("cp-b", 2, step.ControlPlane)
	s.converge()
	s.hasMembers(3)

	s.remove("cp-b-1", "cp-1")
	s.converge()
	s.hasMembers(1)

	for _, name := range []string{"cp-b-1", "cp-1"} {
		if stage := s.sim.Machine(name).Stage(); stage != sim.StageMaintenance {
			t.Errorf("%s is %s, want maintenance", name, stage)
		}
	}

	if left := s.order("EtcdLeaveCluster"); len(left) != 2 {
		t.Errorf("left etcd: %v, want both that were removed", left)
	}
}

// TestChange_ofAControlPlaneThatLeftEtcd: a removal is interrupted after the machine left etcd. When the user undoes
// the removal, the machine joins again.
func TestChange_ofAControlPlaneThatLeftEtcd(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 0, sim.Options{})
	s.create()

	leaving := s.want.Machines[2]
	machine := s.runner().Fleet.Machine(leaving)

	if err := machine.LeaveEtcd(bounded(t), leaving.UUID); err != nil {
		t.Fatal(err)
	}

	s.hasMembers(2)
	s.converge()
	s.hasMembers(3)

	if rebooted := s.rebooted(); len(rebooted) != 1 {
		t.Errorf("rebooted were %v", rebooted)
	}

	if again := s.converge(); len(again.Done) > 0 {
		t.Errorf("the next run did %v", again.Done)
	}
}

func (s *site) hasMembers(n int) {
	s.t.Helper()

	if members, err := s.sim.EtcdMembers(bounded(s.t)); err != nil || len(members) != n {
		s.t.Errorf("etcd members %v (%v), want %d", members, err, n)
	}
}

func TestRemoval_ofADeadControlPlaneGoesThroughASurvivor(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 0, sim.Options{})
	s.create()
	s.sim.Machine("cp-2").PowerOff()
	s.policy.DeadAfter = 0
	s.remove("cp-2")

	result := s.converge()
	s.hasMembers(2)

	if len(result.Left) != 1 || result.Left[0].Machine != "cp-2" {
		t.Errorf("left behind: %v, want cp-2", result.Left)
	}

	if removed := s.order("EtcdRemoveMemberByID"); len(removed) != 1 {
		t.Errorf("members were removed through %v, want one call", removed)
	}
}

func TestJoin_ofAWipedControlPlane(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 0, sim.Options{})
	s.create()

	wiped := s.sim.Machine("cp-3")
	wiped.PowerOff()
	wiped.Wipe()
	wiped.PowerOn()

	if err := wiped.AwaitStage(bounded(t), sim.StageMaintenance); err != nil {
		t.Fatal(err)
	}

	s.converge()
	s.hasMembers(3)
}

// TestChanges_surviveFailures fails calls of every kind of change, and kills the process there. A second run ends in
// the same state, and no machine boots more often than the change needs.
func TestChanges_surviveFailures(t *testing.T) {
	t.Parallel()

	for name, change := range map[string]func(*site){
		"config":  func(s *site) { s.reconfigure(needsReboot) },
		"upgrade": func(s *site) { s.upgrade(newerTalos) },
		"grow":    func(s *site) { s.add("cp-b", 1, step.ControlPlane) },
		"shrink":  func(s *site) { s.remove("cp-3", "w-1") },
		"replace": func(s *site) { s.exchange("cp-2") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			points := pointsOf(t, change)
			t.Logf("calls that change machines: %v", points)

			for i, at := range some(points, changeFailPoints) {
				for _, disturbance := range inTurn(i, disturbances()) {
					t.Run(fmt.Sprintf("%s at %s", disturbance.name, at), func(t *testing.T) {
						t.Parallel()

						s := changed(t, change)
						disturbance.disturb(s, at, converge)
						s.settles()
					})
				}
			}
		})
	}
}

// exchange replaces the hardware of a machine at its address, and gives its new UUID as a user does.
func (s *site) exchange(name string) {
	s.t.Helper()

	old := s.sim.Machine(name)
	address := old.Address()
	old.PowerOff()

	if err := old.Move(netip.Addr{}); err != nil {
		s.t.Fatal(err)
	}

	m, err := s.sim.AddMachine(bounded(s.t), sim.MachineOptions{Name: name + "-new", Address: address})
	if err != nil {
		s.t.Fatal(err)
	}

	i := slices.IndexFunc(s.want.Machines, func(m cluster.Machine) bool { return m.Name == name })
	successor := s.want.Machines[i]
	member := s.memberOf(successor)

	s.remove(name)
	s.want.Removed[0].MemberID = member

	successor.Name, successor.UUID, successor.NodeName = m.Name(), m.UUID(), ""
	s.configs[m.Name()] = s.configs[name]
	s.want.Machines = append(s.want.Machines, successor)
}

// memberOf is the etcd member that state records for a machine.
func (s *site) memberOf(m cluster.Machine) string {
	have := s.runner().Observe(bounded(s.t), s.want)
	member, _ := have.MemberOf(m)

	return member.ID
}

// changeFailPoints is how many calls of a change fail. Each kind of failure occurs once.
const changeFailPoints = 5

func changed(t *testing.T, change func(*site)) *site {
	t.Helper()

	s := newSite(t, 3, 1, sim.Options{})
	s.create()
	change(s)
	s.sim.ForgetCalls()

	s.boots = map[string]int{}
	for _, m := range s.sim.Machines() {
		s.boots[m.Name()] = m.Boots()
	}

	return s
}

// pointsOf lists the calls that change machines during a change.
func pointsOf(t *testing.T, change func(*site)) []point {
	t.Helper()

	s := changed(t, change)
	s.settles()

	return s.points()
}

// settles finishes a change and checks the result: everything is as wanted, no node is cordoned, and no machine
// booted more than once.
func (s *site) settles() {
	s.t.Helper()

	removed := slices.Clone(s.want.Removed)
	s.converge()
	s.schedulable()

	members := 0

	for _, m := range s.want.Machines {
		if m.Role == step.ControlPlane {
			members++
		}

		if got := s.sim.Machine(m.Name).TalosVersion(); got != m.TalosVersion {
			s.t.Errorf("%s runs Talos %s, want %s", m.Name, got, m.TalosVersion)
		}
	}

	s.hasMembers(members)

	for _, m := range removed {
		if slices.ContainsFunc(s.want.Machines, func(w cluster.Machine) bool { return w.Address == m.Address }) {
			continue // it was replaced, and is off
		}

		if stage := s.sim.Machine(m.Name).Stage(); stage != sim.StageMaintenance {
			s.t.Errorf("%s was removed and is %s, want maintenance", m.Name, stage)
		}
	}

	for _, m := range s.sim.Machines() {
		if n := m.Boots() - s.boots[m.Name()]; n > 1 {
			s.t.Errorf("%s booted %d times", m.Name(), n)
		}
	}
}

// TestLock_runsSideBySideTakeTurns upgrades every machine in its own run, all at the same time, as for_each over
// machines does. They are disrupted one after the other.
func TestLock_runsSideBySideTakeTurns(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 2, sim.Options{})
	s.create()
	s.guard(1)
	s.upgrade(newerTalos)

	var runs sync.WaitGroup

	for _, m := range s.want.Machines {
		want := s.want
		want.Machines, want.Joins = []cluster.Machine{m}, true

		runs.Go(func() {
			if _, err := s.runner().Converge(bounded(t), want); err != nil {
				t.Errorf("upgrade of %s: %v", m.Name, err)
			}
		})
	}

	runs.Wait()
	s.runsEverywhere(newerTalos)
	s.schedulable()
}

// TestRollout_isHeldByAnAlarm: an etcd alarm keeps every machine in service, and the error names it. Without the
// alarm, the same run succeeds.
func TestRollout_isHeldByAnAlarm(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 1, sim.Options{})
	s.create()
	s.upgrade(newerTalos)

	if err := s.sim.Machine("cp-2").RaiseEtcdAlarm(bounded(t), etcd.NoSpace); err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(bounded(t))
	defer cancel()

	runner := s.runner()
	runner.Events = func(e lifecycle.Event) {
		if strings.Contains(e.Reason, "NOSPACE") {
			cancel()
		}
	}

	_, err := runner.Converge(ctx, s.want)
	if err == nil || !strings.Contains(err.Error(), "NOSPACE") {
		t.Fatalf("the error is %v, want one that names the alarm", err)
	}

	if got := s.rebooted(); len(got) > 0 {
		t.Errorf("rebooted %v in spite of the alarm", got)
	}

	if err := s.sim.Machine("cp-2").DisarmEtcdAlarms(bounded(t)); err != nil {
		t.Fatal(err)
	}

	s.converge()
	s.runsEverywhere(newerTalos)
	s.schedulable()
}

// TestRollout_leavesAForeignCordon upgrades a worker whose node another client cordoned. The node stays cordoned.
func TestRollout_leavesAForeignCordon(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 2, sim.Options{})
	s.create()

	node := s.want.Machines[1].NodeName
	s.cordonByHand(node)
	s.upgrade(newerTalos)
	s.converge()
	s.runsEverywhere(newerTalos)

	for _, n := range s.runner().Observe(bounded(t), s.want).Kubernetes.Nodes {
		if n.Unschedulable != (n.Name == node) || n.Cordoned {
			t.Errorf("node %s: unschedulable %t, marked %t", n.Name, n.Unschedulable, n.Cordoned)
		}
	}
}

// TestRollout_isNotHeldByStaleMarks: one node with talosop's mark was uncordoned by another client, and one was
// cordoned for a resource that gave up its machine. Neither holds the rollout, and the mark of this resource is
// removed.
func TestRollout_isNotHeldByStaleMarks(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 3, sim.Options{})
	s.create()

	const mark = `{"metadata":{"annotations":{"talosop.dev/cordoned":"2026-01-02T03:04:05Z workers b"}}`

	own, givenUp := s.want.Machines[2].NodeName, s.want.Machines[3].NodeName
	s.want.Machines = s.want.Machines[:3]
	s.patchNode(own, mark+"}")
	s.patchNode(givenUp, mark+`,"spec":{"unschedulable":true}}`)

	s.upgrade(newerTalos)

	if _, err := s.runner().Converge(bounded(t), s.want); err != nil {
		t.Fatal(err)
	}

	if got := s.sim.Machine("cp-1").TalosVersion(); got != newerTalos {
		t.Errorf("the control plane runs Talos %s", got)
	}

	for _, n := range s.runner().Observe(bounded(t), s.want).Kubernetes.Nodes {
		if left := n.Name == givenUp; n.Unschedulable != left || n.Cordoned != left || left && n.CordonedBy != "workers b" {
			t.Errorf("node %s: unschedulable %t, marked %t by %q", n.Name, n.Unschedulable, n.Cordoned, n.CordonedBy)
		}
	}
}

// cordonByHand does what kubectl cordon does.
func (s *site) cordonByHand(node string) {
	s.t.Helper()
	s.patchNode(node, `{"spec":{"unschedulable":true}}`)
}

func (s *site) patchNode(node, patch string) {
	s.t.Helper()
	kubectl.PatchNode(s.t, s.bundle, s.want.Endpoint, node, patch)
}

// TestUpgrade_isCalledOffWhenAnotherControlPlaneGoes switches a control plane off while the installer of another one
// runs. That one is not rebooted, and its node is uncordoned.
func TestUpgrade_isCalledOffWhenAnotherControlPlaneGoes(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 0, sim.Options{})
	s.create()
	s.upgrade(newerTalos)

	var once sync.Once

	ctx, cancel := context.WithCancel(bounded(t))
	defer cancel()

	s.sim.SetOnCall(func(c fault.Call) error {
		if c.Method == "Upgrade" && c.Machine == "cp-1" {
			once.Do(s.sim.Machine("cp-2").PowerOff)
		}

		return nil
	})

	runner := s.runner()
	// The observation from before the installer is newer than this.
	runner.Interval = time.Minute
	runner.Events = func(e lifecycle.Event) {
		if e.State == lifecycle.StepFailed && strings.Contains(e.Reason, "canceled") {
			cancel()
		}
	}

	_, err := runner.Converge(ctx, s.want)
	if err == nil || !strings.Contains(err.Error(), "cp-2") {
		t.Fatalf("the error is %v, want one that names cp-2", err)
	}

	if got := s.rebooted(); len(got) > 0 {
		t.Errorf("rebooted %v while cp-2 was away", got)
	}

	s.schedulable()
}

// TestSnapshot_comesBeforeTheRisk: before the first control plane goes out of service, another one gives an etcd
// snapshot. If the snapshot cannot be stored, no control plane goes.
func TestSnapshot_comesBeforeTheRisk(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 1, sim.Options{})
	s.create()
	s.upgrade(newerTalos)

	occupied := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(occupied, nil, 0o600); err != nil {
		t.Fatal(err)
	}

	runner := s.runner()
	runner.Snapshots = backup.Folder{Path: occupied, Cluster: "prod"}

	if _, err := runner.Converge(bounded(t), s.want); err == nil ||
		!strings.Contains(err.Error(), "snapshot of etcd first") {
		t.Fatalf("the error is %v, want one about the snapshot", err)
	}

	if got := s.rebooted(); len(got) > 0 {
		t.Fatalf("rebooted %v without a snapshot", got)
	}

	folder := t.TempDir()
	runner = s.runner()
	runner.Snapshots = backup.Folder{Path: folder, Cluster: "prod"}

	if _, err := runner.Converge(bounded(t), s.want); err != nil {
		t.Fatal(err)
	}

	kept, err := filepath.Glob(filepath.Join(folder, "prod-etcd-*.snapshot"))
	if err != nil || len(kept) != 1 {
		t.Errorf("snapshots %v (%v), want one", kept, err)
	}

	taken := s.sim.CallsTo("EtcdSnapshot")
	reboots := s.sim.CallsTo("Reboot")

	if len(taken) != 1 || taken[0].Machine == "cp-1" || taken[0].Seq > reboots[0].Seq {
		t.Errorf("snapshots were taken by %v, want one from another control plane than the first to go, before it", taken)
	}
}
