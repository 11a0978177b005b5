package lifecycle_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/operation"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// held is a snapshot in memory.
type held struct {
	data    []byte
	err     error // of Fetch
	fetched int
	members []string
}

func (h *held) Fetch(context.Context) error {
	h.fetched++

	return h.err
}

func (h *held) Members() []string { return h.members }

func (h *held) Reader() io.Reader { return bytes.NewReader(h.data) }

// lost creates a cluster, takes an etcd snapshot, wipes every control plane and requests a restore.
func lost(t *testing.T, opts sim.Options) *site {
	t.Helper()

	s := newSite(t, 3, 1, opts)
	s.create()
	s.wipeControlPlanes(s.takeSnapshot())

	return s
}

// takeSnapshot is the content of a backup.
func (s *site) takeSnapshot() []byte {
	s.t.Helper()

	var snapshot bytes.Buffer
	if err := s.runner().Fleet.Machine(s.want.Machines[0]).EtcdSnapshot(bounded(s.t), &snapshot); err != nil {
		s.t.Fatal(err)
	}

	return snapshot.Bytes()
}

// wipeControlPlanes resets every control plane without talosop and requests a restore.
func (s *site) wipeControlPlanes(snapshot []byte) {
	s.t.Helper()

	for _, m := range s.want.Machines {
		if m.Role != step.ControlPlane {
			continue
		}

		machine := s.sim.Machine(m.Name)
		machine.PowerOff()
		machine.Wipe()
		machine.PowerOn()

		if err := machine.AwaitStage(bounded(s.t), sim.StageMaintenance); err != nil {
			s.t.Fatal(err)
		}
	}

	s.want.RestoreFrom, s.snapshot = "backups/prod.db", &held{data: snapshot}
	s.sim.ForgetCalls()
}

// isRestored checks the result of a restore: one etcd of all control planes that began with the snapshot, and no
// nodes except those of the machines.
func (s *site) isRestored(have cluster.Snapshot) {
	s.t.Helper()
	s.isReady(have)

	began := 0

	for _, m := range have.Machines {
		if !m.RestoredAt.IsZero() {
			began++
		}
	}

	if began != 1 {
		s.t.Errorf("%d machines have an etcd that began with a snapshot, want 1", began)
	}

	if restored := s.order("EtcdRecover"); len(restored) == 0 {
		s.t.Error("no snapshot was sent")
	}
}

// TestRestore_ofAllControlPlanes: all control planes are wiped, and the cluster returns with its data.
func TestRestore_ofAllControlPlanes(t *testing.T) {
	t.Parallel()

	s := lost(t, sim.Options{})

	result, err := s.runner().Converge(bounded(t), s.want)
	if err != nil {
		t.Fatal(err)
	}

	s.isRestored(result.Snapshot)

	if s.snapshot.fetched != 1 {
		t.Errorf("the snapshot was fetched %d times", s.snapshot.fetched)
	}

	// With the new recorded state, the next run has nothing to do, and another snapshot is refused.
	s.want.RestoreFrom, s.want.RestoredAt = "", lastRestored(result.Snapshot)
	if result := s.converge(); len(result.Done) > 0 {
		t.Errorf("the next run did %v", result.Done)
	}

	s.want.RestoreFrom = "backups/older.db"

	var refused *lifecycle.RefusedError
	if _, err := s.runner().Converge(bounded(t), s.want); !errors.As(err, &refused) ||
		!strings.Contains(err.Error(), "backups/older.db") {
		t.Errorf("another snapshot for a cluster that lives: %v", err)
	}
}

// TestRestore_staysAfterReboots: the restored data survives the reboot of every member, one after the other, and then a
// loss of power of all of them. A member that kept only a part of what it got would show it now.
func TestRestore_staysAfterReboots(t *testing.T) {
	t.Parallel()

	t.Run("model", func(t *testing.T) {
		t.Parallel()
		restoresAndReboots(t, sim.Options{})
	})

	if assets := os.Getenv("TALOSOP_TEST_ASSETS"); assets != "" && testenv.Everything() {
		t.Run("etcd", func(t *testing.T) {
			t.Parallel()
			restoresAndReboots(t, sim.Options{Assets: assets, OnlyEtcd: true})
		})
	}
}

func restoresAndReboots(t *testing.T, opts sim.Options) {
	t.Helper()

	s := newSite(t, 3, 0, opts)
	s.create()

	kept := map[string]string{}
	for i := range 50 {
		kept[fmt.Sprintf("/test/kept-%d", i)] = fmt.Sprint("value ", i)
	}

	planes := []*sim.Machine{s.sim.Machine("cp-1"), s.sim.Machine("cp-2"), s.sim.Machine("cp-3")}
	if err := planes[0].PutEtcdKeys(t.Context(), kept); err != nil {
		t.Fatal(err)
	}

	s.wipeControlPlanes(s.takeSnapshot())
	s.converge()

	expect := func(when string) {
		t.Helper()

		for _, m := range planes {
			if keys, err := m.EtcdKeys(t.Context(), "/test/"); err != nil || !maps.Equal(keys, kept) {
				t.Errorf("%s %s has %d keys (%v), want %d", when, m.Name(), len(keys), err, len(kept))
			}
		}

		if members, err := s.sim.EtcdMembers(t.Context()); err != nil || len(members) != len(planes) {
			t.Errorf("%s the members are %v (%v)", when, members, err)
		}
	}

	expect("after the restore")

	boots := func() (n int) {
		for _, m := range planes {
			n += m.Boots()
		}

		return n
	}
	before := boots()

	if _, err := s.operates(operation.Operation{Kind: operation.Reboot}); err != nil {
		t.Fatal(err)
	}

	if rebooted := boots() - before; rebooted != len(planes) {
		t.Errorf("%d control planes were rebooted, want %d", rebooted, len(planes))
	}

	expect("after the reboots")

	for _, m := range planes {
		m.PowerOff()
	}

	for _, m := range planes {
		m.PowerOn()
	}

	// The snapshot is still wanted, and is not restored twice.
	result := s.converge()
	s.isReady(result.Snapshot)
	expect("after the loss of power")

	if restored := s.order("EtcdRecover"); len(restored) > 0 {
		t.Errorf("the snapshot was sent again to %v", restored)
	}
}

// TestRestore_ofAnOlderSnapshot: a worker that joined after the snapshot has no node any more. It registers again by
// itself, in the run that restores and in that of another resource.
func TestRestore_ofAnOlderSnapshot(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 0, sim.Options{})
	s.create()
	snapshot := s.takeSnapshot()

	s.add("late", 2, step.Worker)
	s.create()
	s.wipeControlPlanes(snapshot)

	s.policy.RegisterTimeout = 2 * time.Second

	other := s.want
	other.Machines = s.want.Machines[2:] // as in a talosop_worker
	s.want.Machines = s.want.Machines[:2]

	for _, want := range []cluster.Spec{s.want, {Name: other.Name, Endpoint: other.Endpoint, Machines: other.Machines,
		Resource: cluster.Resource{Joins: true}, Bootstrapped: true, NodesBecomeReady: true}} {
		result, err := s.runner().Converge(bounded(t), want)
		if err != nil {
			t.Fatal(err)
		}

		restart := step.RestartKubelet{Machine: want.Machines[len(want.Machines)-1].Name}
		if !slices.Contains(result.Done, step.Step(restart)) {
			t.Errorf("done %v, want %s", result.Done, restart)
		}
	}

	s.want.RestoreFrom = ""
	s.want.Machines = append(s.want.Machines, other.Machines...)
	s.isReady(s.runner().Observe(bounded(t), s.want))
}

// TestRestore_touchesNothingBeforeTheSnapshotIsThere: a missing snapshot ends the run before its first step.
func TestRestore_touchesNothingBeforeTheSnapshotIsThere(t *testing.T) {
	t.Parallel()

	s := lost(t, sim.Options{})
	s.snapshot.err = wait.Permanent(errors.New("no such object"))

	if _, err := s.runner().Converge(bounded(t), s.want); err == nil || !strings.Contains(err.Error(), "no such object") {
		t.Errorf("the run ended with %v", err)
	}

	if changes := s.changes(); len(changes) > 0 {
		t.Errorf("machines were changed: %v", changes)
	}
}

// TestTeardown_fetchesNoSnapshot: a create that never reached its restore is destroyed without the snapshot.
func TestTeardown_fetchesNoSnapshot(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 0, sim.Options{})
	s.create()

	s.want.RestoreFrom, s.snapshot = "backups/prod.db", &held{err: wait.Permanent(errors.New("no credentials"))}

	if _, err := s.runner().Teardown(bounded(t), s.want); err != nil {
		t.Errorf("teardown: %v", err)
	}

	if s.snapshot.fetched > 0 {
		t.Error("the snapshot was fetched")
	}

	s.isBlank()
}

// TestRestore_waitsForEveryControlPlane: a silent control plane may hold the data.
func TestRestore_waitsForEveryControlPlane(t *testing.T) {
	t.Parallel()

	s := lost(t, sim.Options{})
	silent := s.sim.Machine("cp-3")
	silent.PowerOff()

	ctx, cancel := context.WithCancel(bounded(t))
	defer cancel()

	ended := make(chan error, 1)

	go func() {
		_, err := s.runner().Converge(ctx, s.want)
		ended <- err
	}()

	// The others are configured and wait.
	for _, name := range []string{"cp-1", "cp-2"} {
		if err := s.sim.Machine(name).AwaitStage(bounded(t), sim.StageBooting); err != nil {
			t.Fatal(err)
		}
	}

	if restored := s.order("EtcdRecover"); len(restored) > 0 {
		t.Errorf("restored on %v while cp-3 was silent", restored)
	}

	silent.PowerOn()

	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

// TestRestore_survivesFailures fails calls that change a machine, and kills the process there. A second run ends in
// the same state, with one etcd.
func TestRestore_survivesFailures(t *testing.T) {
	t.Parallel()

	counted := lost(t, sim.Options{})
	counted.sim.ForgetCalls()
	counted.comesBack()

	points := counted.points() // three configurations, an upload and a bootstrap
	t.Logf("calls that change machines: %v", points)

	for _, at := range points[max(0, len(points)-3):] {
		for _, disturbance := range disturbances() {
			t.Run(fmt.Sprintf("%s at %s", disturbance.name, at), func(t *testing.T) {
				t.Parallel()

				s := lost(t, sim.Options{})
				disturbance.disturb(s, at, converge)
				s.comesBack()
			})
		}
	}
}

func (s *site) comesBack() {
	s.t.Helper()
	defer s.expectStruck()

	result, err := s.runner().Converge(bounded(s.t), s.want)
	if err != nil {
		s.t.Fatal(err)
	}

	s.isRestored(result.Snapshot)
}

func lastRestored(have cluster.Snapshot) (at time.Time) {
	for _, m := range have.Machines {
		if m.RestoredAt.After(at) {
			at = m.RestoredAt
		}
	}

	return at
}
