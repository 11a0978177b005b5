package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/operate"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/operation"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
	"github.com/talosop/terraform-provider-talosop/internal/wipe"
)

// wiping is a reset of volumes and user disks.
func wiping(volumes, disks []string) operation.Operation {
	return operation.Operation{Kind: operation.Reset, Wipe: wipe.Select(volumes, disks)}
}

var ofEphemeral = wiping([]string{wipe.Ephemeral}, nil)

const userVolumes = "apiVersion: v1alpha1\nkind: UserVolumeConfig\nname: data\n" +
	"provisioning: {diskSelector: {match: system_disk}, minSize: 1GB}\n---\n" +
	"apiVersion: v1alpha1\nkind: RawVolumeConfig\nname: blocks\n" +
	"provisioning: {diskSelector: {match: system_disk}, minSize: 1GB}\n"

// withUserVolumes creates a site whose machines have user volumes and a second disk, all with data.
func (s *site) withUserVolumes() {
	s.t.Helper()

	for i, m := range s.want.Machines {
		config := s.render(m.Role, userVolumes)
		s.configs[m.Name], s.want.Machines[i].ConfigDigest = config.Bytes, config.Digest
	}

	s.create()

	for _, m := range s.sim.Machines() {
		for _, place := range []string{"EPHEMERAL", "u-data", "r-blocks", "/dev/sdb"} {
			m.Write(place)
		}
	}
}

// withUserDisks is withUserVolumes with a second disk that Talos lists.
func (s *site) withUserDisks() {
	s.t.Helper()

	for _, m := range s.sim.Machines() {
		m.Disks = append(m.Disks, machined.Disk{Path: "/dev/sdb", Size: 10 << 30})
	}

	s.withUserVolumes()
}

// wipesAll lets machines that leave wipe all that has data, except for a raw volume.
func (s *site) wipesAll() {
	for i := range s.want.Machines {
		s.want.Machines[i].Reset.Selection = wipe.Select([]string{"STATE", "EPHEMERAL", "u-data"}, []string{"/dev/sdb"})
	}
}

// holds checks on which volumes and disks of a machine data is left.
func (s *site) holds(machine string, want ...string) {
	s.t.Helper()

	m := s.sim.Machine(machine)
	held := slices.DeleteFunc([]string{"/dev/sdb", "EPHEMERAL", "r-blocks", "u-data"},
		func(place string) bool { return !m.Holds(place) })

	if !slices.Equal(held, want) {
		s.t.Errorf("%s holds data on %q, want %q", machine, held, want)
	}

	if !m.Configured() {
		s.t.Errorf("%s lost its configuration", machine)
	}
}

// A broken EPHEMERAL of a worker is wiped alone: the machine rejoins with its configuration and its user volumes.
func TestWipe_repairsAWorker(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 2, sim.Options{})
	s.withUserVolumes()
	s.guard(1)

	w := s.sim.Machine("w-1")
	w.BreakEphemeral()

	if err := w.AwaitStage(bounded(t), sim.StageBooting); err != nil {
		t.Fatal(err)
	}

	result, err := s.operates(ofEphemeral, "w-1")
	if err != nil {
		t.Fatal(err)
	}

	if done := texts(result.Done); !slices.Contains(done, "wipe EPHEMERAL of w-1 and reboot it") {
		t.Errorf("did %q", done)
	}

	s.holds("w-1", "/dev/sdb", "r-blocks", "u-data")
	s.schedulable()

	if again := s.converge(); len(again.Done) > 0 {
		t.Errorf("the next run did %v", again.Done)
	}
}

// A reset is recorded on the node before the machine is wiped: a run that ends in between counts as one.
func TestWipe_isRecordedFirst(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 1, sim.Options{})
	s.create()

	began := time.Now().Truncate(time.Second)
	w := s.sim.Machine("w-1")
	w.SetFault(fault.Fault{Method: "Reset", Count: -1, Code: codes.InvalidArgument, Message: "not now"})

	if _, err := s.operates(ofEphemeral, "w-1"); err == nil {
		t.Fatal("it was reset")
	}

	for _, n := range s.runner().Observe(bounded(t), s.want).Kubernetes.Nodes {
		if reset := !n.ResetAt.IsZero(); reset != (n.Name == w.Hostname()) || reset && n.ResetAt.Before(began) {
			t.Errorf("the reset of %s is recorded at %s", n.Name, n.ResetAt)
		}
	}
}

// A control plane whose EPHEMERAL is broken cannot leave etcd: another one removes its member, and it joins again.
func TestWipe_repairsAControlPlane(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 1, sim.Options{})
	s.withUserVolumes()
	s.guard(1)

	members := s.membership()

	s.sim.Machine("cp-2").BreakEphemeral()

	if err := s.sim.Machine("cp-2").AwaitStage(bounded(t), sim.StageBooting); err != nil {
		t.Fatal(err)
	}

	result, err := s.operates(ofEphemeral, "cp-2")
	if err != nil {
		t.Fatal(err)
	}

	removed := slices.IndexFunc(result.Done, func(s step.Step) bool { _, is := s.(step.RemoveMember); return is })
	wiped := slices.IndexFunc(result.Done, func(s step.Step) bool { _, is := s.(step.Operate); return is })

	if removed < 0 || wiped < removed {
		t.Errorf("did %q", texts(result.Done))
	}

	s.hasMembers(3)
	s.holds("cp-2", "/dev/sdb", "r-blocks", "u-data")
	s.schedulable()

	if now := s.membership(); slices.Equal(now, members) {
		t.Errorf("etcd has the members %v as before", now)
	}

	if left := s.order("EtcdLeaveCluster"); len(left) > 0 {
		t.Errorf("%v left etcd", left)
	}
}

// Healthy control planes leave etcd before their data is wiped, one after the other, and all join again.
func TestWipe_healthyControlPlanesLeaveEtcd(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 0, sim.Options{})
	s.withUserVolumes()
	s.guard(1)

	if _, err := s.operates(ofEphemeral); err != nil {
		t.Fatal(err)
	}

	left, wiped := s.order("EtcdLeaveCluster"), s.order("Reset")
	if len(left) != 3 || !slices.Equal(left, wiped) {
		t.Errorf("left etcd: %v, wiped: %v", left, wiped)
	}

	s.hasMembers(3)
	s.schedulable()

	for _, m := range s.want.Machines {
		s.holds(m.Name, "/dev/sdb", "r-blocks", "u-data")
	}
}

// User disks and user volumes are wiped without the data of etcd, so no member leaves.
func TestWipe_userDisksAndVolumes(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 1, sim.Options{})
	s.withUserDisks()

	if _, err := s.operates(wiping(nil, []string{"/dev/sdb"}), "cp-1"); err != nil {
		t.Fatal(err)
	}

	s.holds("cp-1", "EPHEMERAL", "r-blocks", "u-data")
	s.hasMembers(1)

	if _, err := s.operates(wiping([]string{"u-data"}, []string{"/dev/sdb"}), "w-1"); err != nil {
		t.Fatal(err)
	}

	s.holds("w-1", "EPHEMERAL", "r-blocks")
	s.schedulable()
}

// A healthy machine whose wipe fails returns as it was. That is an error, and the next machine is left alone.
func TestWipe_failed(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 2, sim.Options{})
	s.withUserVolumes()
	s.sim.Machine("w-1").FailWipe()

	result, err := s.operates(wiping([]string{wipe.Ephemeral, "u-data"}, nil), "w-1", "w-2")

	var refused *lifecycle.RefusedError
	if !errors.As(err, &refused) || refused.Refusals[0].Machine != "w-1" ||
		!strings.Contains(err.Error(), "the wipe of EPHEMERAL, u-data failed") {
		t.Errorf("%v, after %q", err, texts(result.Done))
	}

	if sent := s.order("Reset"); !slices.Equal(sent, []string{"w-1"}) {
		t.Errorf("%v were reset", sent)
	}

	s.holds("w-1", "/dev/sdb", "EPHEMERAL", "r-blocks", "u-data")

	if _, err := s.operates(wiping([]string{wipe.Ephemeral, "u-data"}, nil), "w-1"); err != nil {
		t.Error(err)
	}

	s.holds("w-1", "/dev/sdb", "r-blocks")
}

// A user disk that Talos left out after the wipe of a volume failed is named as well, on a machine that stays.
func TestWipe_failedBeforeUserDisks(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 1, sim.Options{})
	s.withUserDisks()
	s.sim.Machine("w-1").FailDrop()

	_, err := s.operates(wiping([]string{wipe.Ephemeral}, []string{"/dev/sdb"}), "w-1")
	if err == nil || !strings.Contains(err.Error(), "the wipe of /dev/sdb failed") {
		t.Error(err)
	}

	s.holds("w-1", "/dev/sdb", "r-blocks", "u-data")
}

// A machine leaves although its wipe fails, and the result names what is left on it, once. A wipe that works is not
// mentioned, and neither is a volume that was not to be wiped.
func TestRemove_failedWipe(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		fails   func(*sim.Machine)
		options sim.Options
		left    string
	}{
		"a busy partition":   {fails: (*sim.Machine).FailDrop, left: "[w-2: /dev/sdb]"},
		"a disk with errors": {fails: failsOnTwo, left: "[w-2: /dev/sdb, EPHEMERAL, u-data]"},
		"no failure":         {fails: func(*sim.Machine) {}, left: "[]"},
		"an unknown result":  {fails: failsOnTwo, options: sim.Options{OnCall: denyInMaintenance}, left: "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := newSite(t, 1, 2, test.options)
			s.withUserDisks()
			s.wipesAll()
			test.fails(s.sim.Machine("w-2"))
			s.remove("w-2")

			result := s.converge()
			if left := fmt.Sprint(result.Unwiped); left != test.left || len(result.Left)+len(result.Away) > 0 {
				t.Errorf("unwiped: %s, want %s; left: %v, away: %v", left, test.left, result.Left, result.Away)
			}

			if m := s.sim.Machine("w-2"); m.Configured() || m.Stage() != sim.StageMaintenance {
				t.Errorf("w-2 is %s", m.Stage())
			}

			if again := s.converge(); len(again.Done)+len(again.Unwiped) > 0 {
				t.Errorf("the next run did %v, and found %v", again.Done, again.Unwiped)
			}
		})
	}
}

func failsOnTwo(m *sim.Machine) { m.FailWipe("EPHEMERAL", "u-data") }

// denyInMaintenance denies lists of resources to clients without a certificate.
func denyInMaintenance(c fault.Call) error {
	if c.Personality == fault.Maintenance && c.Method == "List" {
		return status.Error(codes.PermissionDenied, "not authorized")
	}

	return nil
}

// A teardown ends as without the failure, and so does a second one.
func TestTeardown_failedWipe(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 2, sim.Options{})
	s.withUserDisks()
	s.sim.Machine("w-1").FailWipe("EPHEMERAL")

	for _, want := range []string{"[w-1: EPHEMERAL]", "[]"} {
		result, err := s.runner().Teardown(bounded(t), s.want)
		if left := fmt.Sprint(result.Unwiped); err != nil || left != want {
			t.Errorf("unwiped: %s, want %s; %v", left, want, err)
		}
	}
}

// What cannot be wiped is refused before any machine is touched.
func TestWipe_refusals(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 1, sim.Options{})
	s.create()

	for name, test := range map[string]struct {
		asked    operation.Operation
		on, says string
	}{
		"the last etcd member": {ofEphemeral, "cp-1", "it is the last etcd member"},
		"an unknown volume":    {wiping([]string{"EPHEMERAL", "u-none"}, nil), "w-1", "it has no volume u-none"},
		"the system disk":      {wiping(nil, []string{"/dev/sda"}), "w-1", "disk /dev/sda is the system disk"},
		"an unknown disk":      {wiping(nil, []string{"/dev/sdz"}), "w-1", "it has no disk /dev/sdz"},
	} {
		var refused *lifecycle.RefusedError
		if _, err := s.operates(test.asked, test.on); !errors.As(err, &refused) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", name, err)
		}

		if sent := slices.Concat(s.order("Reset"), s.order("EtcdLeaveCluster")); len(sent) > 0 {
			t.Errorf("%s: %v were disrupted", name, sent)
		}
	}

	s.schedulable()
}

// In Talos 1.14, a directory is wiped only with the volume below it.
func TestWipe_directories(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 1, sim.Options{TalosVersion: talos114})
	s.withDocuments()
	s.create()

	if _, err := s.operates(wiping([]string{"LOG"}, nil), "w-1"); err == nil ||
		!strings.Contains(err.Error(), "volume LOG is a directory of EPHEMERAL, which is not wiped") {
		t.Error(err)
	}

	if _, err := s.operates(wiping([]string{"EPHEMERAL", "LOG"}, nil), "w-1"); err != nil {
		t.Error(err)
	}
}

// A process that is killed around a call leaves a cluster in which the next run wipes the machine, which joins again.
func TestWipe_killed(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 0, sim.Options{})
	s.withUserVolumes()

	asked := operate.Order{Operation: ofEphemeral, Machines: []string{"cp-2"}}
	run := func(ctx context.Context, r *lifecycle.Runner, want cluster.Spec) error {
		_, err := r.Operate(ctx, want, asked)

		return err
	}

	for _, at := range []point{{"cp-2", "EtcdLeaveCluster", 1}, {"cp-2", "Reset", 1}} {
		for _, served := range []bool{true, false} {
			if !served && !testenv.Everything() {
				continue
			}

			s.kill(at, served, run)

			if _, err := s.operates(ofEphemeral, "cp-2"); err != nil {
				t.Fatalf("killed at %s (served %t): %v", at, served, err)
			}

			s.hasMembers(3)
			s.holds("cp-2", "/dev/sdb", "r-blocks", "u-data")
			s.schedulable()
		}
	}
}

// A machine leaves as the user wants it: another selection of volumes and disks is wiped, and it switches off. Control
// planes leave etcd nevertheless.
func TestRemove_resetsAsWanted(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 2, sim.Options{})
	s.withUserDisks()

	off := wipe.Reset{Selection: wipe.Select([]string{"STATE", "EPHEMERAL", "u-data"}, []string{"/dev/sdb"}), Off: true}
	for i, m := range s.want.Machines {
		if m.Name == "cp-3" || m.Name == "w-2" {
			s.want.Machines[i].Reset = off
		}
	}

	s.remove("cp-3", "w-2")

	result := s.converge()
	want := "reset worker w-2 (drains it, waits for volumes, wipes EPHEMERAL, STATE, u-data and /dev/sdb, switches off)"

	if done := texts(result.Done); !slices.Contains(done, want) {
		t.Errorf("did %q", done)
	}

	if len(result.Left)+len(result.Away) > 0 {
		t.Errorf("left: %v, away: %v", result.Left, result.Away)
	}

	s.hasMembers(2)

	for _, name := range []string{"cp-3", "w-2"} {
		m := s.sim.Machine(name)
		if err := m.AwaitStage(bounded(t), sim.StageUnknown); err != nil {
			t.Error(err)
		}

		if m.Configured() || m.Holds("u-data") || m.Holds("/dev/sdb") || m.Holds("EPHEMERAL") || !m.Holds("r-blocks") {
			t.Errorf("%s was wiped otherwise", name)
		}
	}

	if again := s.converge(); len(again.Done) > 0 {
		t.Errorf("the next run did %v", again.Done)
	}
}

// A teardown ends although nothing is left to boot from, and skips the drain where it must.
func TestTeardown_wipesSystemDisks(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 1, sim.Options{})
	s.create()

	for i := range s.want.Machines {
		s.want.Machines[i].Reset = wipe.Reset{Selection: wipe.Select([]string{wipe.SystemDisk}, nil), Abrupt: true}
	}

	result, err := s.runner().Teardown(bounded(t), s.want)
	if err != nil {
		t.Fatal(err)
	}

	if done := texts(result.Done); !slices.Contains(done,
		"reset worker w-1 (wipes its system disk, reboots without an installed Talos)") {
		t.Errorf("did %q", done)
	}

	for _, m := range s.sim.Machines() {
		if m.Installed() || m.Configured() {
			t.Errorf("%s has an installed Talos", m.Name())
		}
	}
}
