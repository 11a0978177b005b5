package machines

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterimport"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

var (
	ours, theirs = hardwareOf("w-1"), hardwareOf("w-2")
	errStopped   = &lifecycle.IncompleteError{Err: errors.New("stopped")}
)

// oneMachine is a pool of w-1 with its recorded hardware.
func oneMachine(uuid string) cluster.Spec {
	return cluster.Spec{Machines: []cluster.Machine{
		{Name: "w-1", Role: step.Worker, Wanted: cluster.Wanted{Address: "10.0.0.21", UUID: uuid}, Meta: map[uint8]string{}}}}
}

func joined(uuid string) step.MachineState {
	return step.MachineState{
		Access: step.Member, Role: step.Worker, Stage: step.StageRunning, Ready: true, UUID: uuid,
		ConfigDigest: "sent", NodeName: "node",
	}
}

func snapshotOf(machines map[string]step.MachineState) cluster.Snapshot {
	return cluster.Snapshot{Machines: machines}
}

// storedAs is the part of a model that records machines.
func storedAs(machines record.Machines) CommonModel {
	common := CommonModel{lifecycleModel: lifecycleModel{Phase: types.StringValue("Ready")}}
	common.remember(machines)

	return common
}

// remembering is what a model records.
func remembering(t *testing.T, common CommonModel) record.Machines {
	t.Helper()

	machines, found := common.remembered()
	if found.HasError() {
		t.Fatal(found)
	}

	return machines
}

// The answer of another machine is never recorded for the intended one: neither its UUID, which would disable the
// identity check, nor anything else.
func TestRecord_ofForeignMachinesIsNotMade(t *testing.T) {
	t.Parallel()

	want := oneMachine(ours)
	prior := observed(want, snapshotOf(map[string]step.MachineState{"w-1": joined(ours)}), nil)

	waiting := step.MachineState{Access: step.Maintenance, UUID: theirs}
	controlPlane := joined(ours)
	controlPlane.Role = step.ControlPlane

	for name, test := range map[string]struct {
		State step.MachineState
		says  string
	}{
		"a member":              {State: joined(theirs), says: "UUID " + theirs + ", expected " + ours},
		"in maintenance mode":   {State: waiting, says: "UUID " + theirs + ", expected " + ours},
		"one of the other role": {State: controlPlane, says: "a control plane, expected a worker"},
	} {
		have := snapshotOf(map[string]step.MachineState{"w-1": test.State}).WithoutMismatches(want)

		if got := observed(want, have, prior); !reflect.DeepEqual(got, prior) {
			t.Errorf("%s: the record is %v", name, got)
		}

		if _, foreign, _ := machineset.Unanswered(want, have); len(foreign.Reasons) != 1 ||
			!strings.Contains(foreign.Reasons[0], test.says) {
			t.Errorf("%s: reported is %q", name, foreign.Reasons)
		}

		if machineset.Lost(want, have,
			machineset.PriorState{Record: machineset.Record{Machines: map[string]step.MachineState{"w-1": joined(ours)}}}) {
			t.Errorf("%s: it is taken for the loss of the machine", name)
		}
	}
}

// A UUID from the user identifies the intended machine, whatever was recorded.
func TestRecord_ofHardwareReplacedOnPurpose(t *testing.T) {
	t.Parallel()

	prior := observed(oneMachine(ours), snapshotOf(map[string]step.MachineState{"w-1": joined(ours)}), nil)
	want := oneMachine(theirs)
	have := snapshotOf(map[string]step.MachineState{"w-1": joined(theirs)}).WithoutMismatches(want)

	if got := observed(want, have, prior)["w-1"].UUID; got != theirs {
		t.Errorf("the UUID is %s", got)
	}
}

// A machine that is also listed under a new name gets no record under that name.
func TestRecord_ofAMachineListedTwice(t *testing.T) {
	t.Parallel()

	want := oneMachine(ours)
	want.Machines = append(want.Machines, cluster.MachineAt("w-0", step.Worker, "10.0.0.21"))

	have := snapshotOf(map[string]step.MachineState{"w-0": joined(ours), "w-1": joined(ours)}).WithoutMismatches(want)
	seen := observed(want, have, nil)

	if _, there := seen["w-0"]; there || len(seen) != 1 {
		t.Errorf("the record is %v", seen)
	}
}

// A cluster that had an etcd never counts as one without, or it would be bootstrapped again. A Ready cluster stays Ready
// after an update that changed nothing.
func TestPhase_ofFailedRuns(t *testing.T) {
	t.Parallel()

	want := cluster.Spec{Machines: []cluster.Machine{cluster.MachineAt("cp-1", step.ControlPlane, "10.0.0.11")}}
	silent := snapshotOf(map[string]step.MachineState{"cp-1": {Access: step.Unreachable}})
	accepted := snapshotOf(map[string]step.MachineState{
		"cp-1": {Access: step.Member, Stage: step.StageBooting, BootstrapRequested: true}})
	withEtcd := silent
	withEtcd.Etcd = etcdstate.State{Known: true, Members: []etcdstate.Member{{Name: "cp-1"}}}

	whole := snapshotOf(map[string]step.MachineState{"w-1": joined(ours)})
	whole.Kubernetes = kubestate.State{Reachable: true, Nodes: []kubestate.Node{{Name: "node", Ready: true}}}

	for name, test := range map[string]struct {
		Spec   *cluster.Spec
		have   cluster.Snapshot
		done   []step.Step
		before cluster.Phase
		Phase  cluster.Phase
	}{
		"nothing yet":        {have: silent, Phase: cluster.Provisioning},
		"nothing yet, again": {have: silent, before: cluster.Bootstrapping, Phase: cluster.Provisioning},
		"was joining":        {have: silent, before: cluster.Joining, Phase: cluster.Joining},
		"was degraded":       {have: silent, before: cluster.Degraded, Phase: cluster.Degraded},
		"bootstrapped in this run": {have: silent, done: []step.Step{step.Bootstrap{Machine: "cp-1"}},
			Phase: cluster.Joining},
		"bootstrap was accepted":  {have: accepted, before: cluster.Provisioning, Phase: cluster.Joining},
		"etcd answered":           {have: withEtcd, before: cluster.Provisioning, Phase: cluster.Joining},
		"complete, create failed": {Spec: new(oneMachine(ours)), have: whole, Phase: cluster.Joining},
		"complete, update changed nothing": {Spec: new(oneMachine(ours)), have: whole, before: cluster.Ready,
			Phase: cluster.Ready},
		"complete, update failed": {Spec: new(oneMachine(ours)), have: whole, before: cluster.Ready,
			done: []step.Step{step.Uncordon{Machine: "w-1"}}, Phase: cluster.Degraded},
		"silent, update failed": {have: silent, before: cluster.Ready, Phase: cluster.Degraded},
	} {
		if test.Spec == nil {
			test.Spec = &want
		}

		failed := run{began: true, want: *test.Spec, result: lifecycle.Result{Snapshot: test.have, Done: test.done}, err: errStopped}
		if got := failed.phase(test.before); got != test.Phase {
			t.Errorf("%s: the phase is %s, want %s", name, got, test.Phase)
		}
	}
}

// A machine that got its configuration is recorded, even when it is still on its way at the end of the run.
func TestRecord_keepsConfiguredMachines(t *testing.T) {
	t.Parallel()

	want := oneMachine(ours)
	want.Machines = append(want.Machines,
		cluster.MachineAt("w-2", step.Worker, "10.0.0.22"),
		cluster.MachineAt("w-3", step.Worker, "10.0.0.23"))

	prior := observed(oneMachine(ours), snapshotOf(map[string]step.MachineState{"w-1": joined(ours)}), nil)
	done := run{began: true,
		want: want, err: errStopped, Seen: prior,
		result: lifecycle.Result{
			Snapshot: snapshotOf(map[string]step.MachineState{
				"w-1": {Access: step.Unreachable}, "w-2": {Access: step.Unreachable, UUID: theirs},
				"w-3": {Access: step.Unreachable},
			}),
			Done: []step.Step{step.ApplyConfig{Machine: "w-1", Digest: "new"},
				step.ApplyConfig{Machine: "w-2", Digest: "new"}},
		},
	}

	machines := func(names ...string) types.Map {
		elements := map[string]attr.Value{}
		for _, name := range names {
			elements[name] = types.StringValue(name)
		}

		return types.MapValueMust(types.StringType, elements)
	}

	state := machineSetModel{
		machinesModel: machinesModel{Machines: machines("w-1")},
		CommonModel:   storedAs(prior),
	}
	plan := machineSetModel{machinesModel: machinesModel{Machines: machines("w-1", "w-2", "w-3")}}

	stored := state
	if diags := stored.settleUpdate(t.Context(), done, &machineset.Group{}, plan, state); diags.HasError() {
		t.Fatal(diags)
	}

	if !stored.Machines.Equal(machines("w-1", "w-2")) {
		t.Errorf("stored are %s", stored.Machines)
	}

	seen := remembering(t, stored.CommonModel)

	for machine, uuid := range map[string]string{"w-1": ours, "w-2": theirs} {
		if got := seen[machine]; got.UUID != uuid || got.ConfigDigest != "new" || got.Ready || got.Stage != "unknown" {
			t.Errorf("%s is %+v", machine, got)
		}
	}

	if _, there := seen["w-3"]; there {
		t.Error("w-3 was sent nothing and is recorded")
	}
}

// The installed image is recorded with the machine, and kept: no machine reports it.
func TestRecord_ofInstalledImages(t *testing.T) {
	t.Parallel()

	want := oneMachine(ours)
	have := snapshotOf(map[string]step.MachineState{"w-1": joined(ours)})
	upgrade := func(image string) step.Step { return step.Upgrade{Machine: "w-1", Installer: image} }

	for name, test := range map[string]struct {
		done []step.Step
		err  error
		want string
	}{
		"nothing was done": {want: "old:v1.12.4"},
		"a configuration": {done: []step.Step{step.ApplyConfig{Machine: "w-1", Access: step.Member}},
			want: "old:v1.12.4"},
		"an installation": {done: []step.Step{step.ApplyConfig{Machine: "w-1", Access: step.Maintenance,
			Installer: "new:v1.13.0"}}, want: "new:v1.13.0"},
		"an upgrade of two": {done: []step.Step{upgrade("between:v1.12.9"), upgrade("new:v1.13.0")},
			want: "new:v1.13.0"},
		"one, and then no more": {done: []step.Step{upgrade("between:v1.12.9")}, err: errStopped, want: "between:v1.12.9"},
	} {
		prior := observed(want, have, nil)
		prior.Change("w-1", func(m *record.Machine) { m.Installer = "old:v1.12.4" })

		done := run{began: true, want: want, err: test.err, Seen: prior,
			result: lifecycle.Result{Snapshot: have, Done: test.done}}
		if got := done.observed()["w-1"].Installer; got != test.want {
			t.Errorf("%s: recorded is %s, want %s", name, got, test.want)
		}
	}
}

// failedExchange is a run that replaced w-1, which was recorded as before, with another machine, and stopped. The
// old one waits in maintenance mode.
func failedExchange(before record.Machine, now step.MachineState, done ...step.Step) run {
	const left = "w-1" + machineset.ReplacedSuffix

	want := oneMachine(theirs)
	want.Removed = []cluster.Machine{{Name: left, Role: step.Worker, Wanted: cluster.Wanted{UUID: ours}, Remembered: cluster.Remembered{NodeName: "old"}}}

	have := snapshotOf(map[string]step.MachineState{"w-1": now, left: {Access: step.Maintenance}})
	have.Kubernetes.Reachable = true

	return run{began: true,
		want: want, err: errStopped, Replaced: map[string]string{left: "w-1"}, Seen: record.Machines{left: before},
		result: lifecycle.Result{Snapshot: have, Done: done},
	}
}

// Replaced hardware is recorded as soon as it belongs to the cluster: the next refresh would take it for a foreign
// machine.
func TestRecord_ofReplacedHardware(t *testing.T) {
	t.Parallel()

	silent := step.MachineState{Access: step.Unreachable}
	prior := observed(oneMachine(ours), snapshotOf(map[string]step.MachineState{"w-1": joined(ours)}), nil)
	common, before := storedAs(prior), prior["w-1"]

	for name, test := range map[string]struct {
		done run
		UUID string
	}{
		"it joined":            {failedExchange(before, joined(theirs)), theirs},
		"it was configured":    {failedExchange(before, silent, step.ApplyConfig{Machine: "w-1", Digest: "new"}), theirs},
		"nothing was sent yet": {failedExchange(before, silent), ours},
	} {
		machines := func(uuid string) machinesModel {
			return machinesModel{Machines: types.MapValueMust(types.StringType,
				map[string]attr.Value{"w-1": types.StringValue(uuid)})}
		}
		state, plan := machineSetModel{machinesModel: machines(ours), CommonModel: common},
			machineSetModel{machinesModel: machines(theirs)}

		stored := state
		if diags := stored.settleUpdate(t.Context(), test.done, &machineset.Group{}, plan, state); diags.HasError() {
			t.Fatal(diags)
		}

		if got := stored.Machines.Elements()["w-1"]; !got.Equal(types.StringValue(test.UUID)) {
			t.Errorf("%s: stored is %s, want %s", name, got, test.UUID)
		}

		machine := func(uuid string) OneMachineModel {
			return OneMachineModel{Name: types.StringValue("w-1"), machineModel: machineModel{UUID: types.StringValue(uuid)},
				lifecycleModel: lifecycleModel{Phase: common.Phase}}
		}

		before, after := machine(ours), machine(theirs)
		before.setCommon(common)

		one := before
		one.settleUpdate(t.Context(), test.done, after, before)

		if got := one.UUID.ValueString(); got != test.UUID {
			t.Errorf("%s: stored of the one machine is %s, want %s", name, got, test.UUID)
		}
	}
}

// While the old hardware is in the cluster, the single record of a machine describes it, and so does the comparison.
func TestRecord_keepsReplacedHardwareUntilItLeft(t *testing.T) {
	t.Parallel()

	common := storedAs(observed(oneMachine(ours), snapshotOf(map[string]step.MachineState{"w-1": joined(ours)}), nil))

	done := failedExchange(remembering(t, common)["w-1"], joined(theirs))
	done.result.Snapshot.Machines["w-1"+machineset.ReplacedSuffix] = step.MachineState{Access: step.Unreachable}

	before := OneMachineModel{Name: types.StringValue("w-1"), machineModel: machineModel{UUID: types.StringValue(ours)}}
	before.setCommon(common)

	after := before
	after.UUID = types.StringValue(theirs)

	stored := before
	stored.settleUpdate(t.Context(), done, after, before)

	if got := stored.Observed.Attributes()["uuid"]; stored.UUID.ValueString() != ours ||
		!got.Equal(types.StringValue(ours)) {
		t.Errorf("stored is %s, and observed %s", stored.UUID, got)
	}
}

// An import takes each machine once.
func TestImport_ofOneMachineUnderTwoNames(t *testing.T) {
	t.Parallel()

	found := map[string]clusterimport.Recognized{"a": {State: joined(ours)}, "b": {State: joined(theirs)},
		"c": {State: joined(strings.ToUpper(ours))}, "d": {}, "e": {}}

	problems := clusterimport.ListedTwice(found)
	if len(problems) != 1 || !strings.Contains(problems[0].Error(), "c (") ||
		!strings.Contains(problems[0].Error(), "same machine as a") {
		t.Errorf("problems are %v", problems)
	}
}

// The pod of a machine exists before the machine answers for the first time.
func TestRecord_ofPodsThatNeverAnswered(t *testing.T) {
	done := run{began: true,
		want: cluster.Spec{Machines: []cluster.Machine{{Name: "cp-0", Role: step.ControlPlane, Container: true}}},
		result: lifecycle.Result{Snapshot: cluster.Snapshot{
			Machines: map[string]step.MachineState{"cp-0": {Access: step.Unreachable}}}},
		Pods: map[string]string{"cp-0": "digest"},
	}

	if seen := done.observed(); len(seen) > 0 {
		t.Errorf("the record is %v", seen)
	}
}

// Observations survive a change of the name, and a machine with replaced hardware is recorded until it left.
func TestRecord_ofOneMachine(t *testing.T) {
	t.Parallel()

	remembered := func(name, uuid string) record.Machines {
		spec := cluster.Spec{Machines: []cluster.Machine{cluster.MachineAt(name, step.Worker, "10.0.0.21")}}
		have := snapshotOf(map[string]step.MachineState{name: joined(uuid)})

		return observed(spec, have, nil)
	}

	both := remembered("cp-1", ours)
	maps.Copy(both, remembered("cp-1"+machineset.ReplacedSuffix, theirs))

	for name, test := range map[string]struct {
		common CommonModel
		UUID   types.String
	}{
		"same name":  {storedAs(remembered("cp-1", ours)), types.StringValue(ours)},
		"other name": {storedAs(remembered("cp-0", ours)), types.StringValue(ours)},
		"exchanged":  {storedAs(both), types.StringValue(theirs)},
	} {
		m := OneMachineModel{Name: types.StringValue("cp-1")}
		m.setCommon(test.common)

		if got := m.Observed.Attributes()["uuid"]; !test.UUID.Equal(got) {
			t.Errorf("%s: uuid is %s, want %s", name, got, test.UUID)
		}

		if got := m.common().Observed.Elements(); len(got) != 1 || got["cp-1"] == nil {
			t.Errorf("%s: shown is %v", name, got)
		}

		if got := remembering(t, m.common()); len(got) != 1 || got["cp-1"].UUID != test.UUID.ValueString() {
			t.Errorf("%s: the record is %v", name, got)
		}
	}
}

// A warning names a machine that left its cluster without a reset: it holds secrets.
func TestRecord_namesMachinesThatWereNotReset(t *testing.T) {
	t.Parallel()

	left := []step.Hold{{Machine: "cp-3", Reason: "does not answer"}}

	got := run{result: lifecycle.Result{Left: left}}.warnOfRemoved()
	if len(got) != 1 || !strings.Contains(got[0].Detail, "cp-3: does not answer") ||
		!strings.Contains(got[0].Detail, "Wipe their disks") {
		t.Errorf("got %v", got)
	}

	if warnings := (run{result: lifecycle.Result{Left: left}, err: errStopped}).warnOfRemoved(); len(warnings) > 0 {
		t.Errorf("reported twice: %v", warnings)
	}
}

// The recorded address is where a machine answers.
func TestObserved_addressWhereFound(t *testing.T) {
	t.Parallel()

	spec, have := withoutDrift()
	found := have.Machines["w-1"]
	found.FoundAt = "10.0.0.9"
	have.Machines["w-1"] = found

	if got := observed(spec, have, nil)["w-1"].Address; got != "10.0.0.9" {
		t.Errorf("recorded is %s", got)
	}
}

// Replaced hardware is recorded next to the new one until it has left the cluster.
func TestRunObserved_replacedHardware(t *testing.T) {
	t.Parallel()

	want := cluster.Spec{
		Machines: []cluster.Machine{{Name: "cp-1", Role: step.ControlPlane}, {Name: "cp-2", Role: step.ControlPlane}},
		Removed:  []cluster.Machine{{Name: "cp-2" + machineset.ReplacedSuffix, Role: step.ControlPlane}},
	}
	failed := run{Seen: record.Machines{"cp-2" + machineset.ReplacedSuffix: {}, "cp-1": {}},
		began: true, want: want, err: errStopped, Replaced: map[string]string{"cp-2" + machineset.ReplacedSuffix: "cp-2"},
		result: lifecycle.Result{Snapshot: snapshotOf(nil)}}

	if got := slices.Sorted(maps.Keys(failed.observed())); !slices.Equal(got,
		[]string{"cp-1", "cp-2 (replaced)"}) {
		t.Errorf("recorded are %q", got)
	}

	succeeded := failed
	succeeded.err = nil

	if got := slices.Sorted(maps.Keys(succeeded.observed())); !slices.Equal(got, []string{"cp-1"}) {
		t.Errorf("after a success recorded are %q", got)
	}
}

// hardwareOf is the UUID of the hardware that stands for a machine.
func hardwareOf(name string) string {
	pool, _, inPool := strings.Cut(name, machineset.PoolSeparator)
	if !inPool {
		pool = ""
	}

	return fmt.Sprintf("4c4c4544-0042-3510-8053-b4c04f4359%x%s", 3+len(pool), name[len(name)-1:])
}

// A warning names a machine that accepted its reset and is away, whatever the rest of the run did.
func TestRecord_namesMachinesThatAreAwayAfterTheirReset(t *testing.T) {
	t.Parallel()

	away := []step.Hold{{Machine: "cp-3", Reason: "was reset and did not come back within 2m"}}

	for _, err := range []error{nil, errStopped} {
		got := run{result: lifecycle.Result{Away: away}, err: err}.warnOfRemoved()
		if len(got) != 1 || got[0].Code != "reset_not_finished" ||
			!strings.Contains(got[0].Detail, "cp-3: was reset and did not come back within 2m") {
			t.Errorf("got %v", got)
		}
	}
}
