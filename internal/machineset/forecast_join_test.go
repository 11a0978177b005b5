package machineset

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// joining is a set of a planned control plane and worker, and their configurations.
func joining() (Set, Rendered) {
	p := listing(map[string]string{"cp-1": "10.0.0.1", "batch/w-1": "10.0.0.11"})
	for name, m := range p.Machines {
		m.Group.TalosVersion = "1.13.0"
		m.Config.Install.Image = "example.org/installer:v1.13.0"
		p.Machines[name] = m
	}

	return p, Rendered{Machines: map[string]cluster.Configured{
		"cp-1":      {ConfigDigest: "digest", WantedNode: "cp-1"},
		"batch/w-1": {ConfigDigest: "digest", WantedNode: "batch-w-1"},
	}}
}

// wiped is a machine that waits in maintenance mode while the cluster still has its node.
func wiped(name string) step.MachineState {
	return step.MachineState{Access: step.Maintenance, Stage: step.StageMaintenance, UUID: hardwareOf(name),
		Platform: "metal", TalosVersion: "v1.13.0", Installer: "example.org/installer:v1.13.0"}
}

// everything is the fields of a record that knows nothing about the machine that joins.
var everything = []step.Field{step.FieldStage, step.FieldReady, step.FieldKubernetesVersion, step.FieldDrift}

// A plan by which a machine joins keeps its identity, regardless of what happened to it. What is not recorded, or may
// change, is unknown.
func TestForecast_keepsWhoAMachineIs(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		machine string
		record  func(*step.MachineState)
		set     func(Set)
		steps   []step.Step
		more    []step.Field
		keeps   bool // the name of its node
	}{
		"a wiped worker":        {machine: "batch/w-1", keeps: true},
		"a wiped control plane": {machine: "cp-1", keeps: true},
		"its node is deleted before": {machine: "batch/w-1", keeps: true,
			steps: []step.Step{step.DeleteNode{Machine: "batch/w-1", Node: "batch-w-1"}}},
		"its node is gone": {machine: "batch/w-1", more: []step.Field{step.FieldNodeName},
			record: func(s *step.MachineState) { s.NodeName = "" }},
		"it is to have another name": {machine: "batch/w-1", more: []step.Field{step.FieldNodeName},
			record: func(s *step.MachineState) { s.NodeName = "storage-w-1" }},
		"a board without SMBIOS": {machine: "batch/w-1", keeps: true, more: []step.Field{step.FieldUUID},
			record: func(s *step.MachineState) { s.UUID = "" }},
		"its UUID is written over": {machine: "batch/w-1", keeps: true, more: []step.Field{step.FieldUUID},
			steps: []step.Step{step.WriteMeta{Machine: "batch/w-1", Keys: "0x0f"}}},
		"booted from other media": {machine: "batch/w-1", keeps: true,
			more: []step.Field{step.FieldTalosVersion},
			record: func(s *step.MachineState) {
				s.TalosVersion, s.Platform, s.Installer = "v1.12.1", "nocloud", "example.org/other:v1.12.1"
			}},
		"a run that was killed after the configuration": {machine: "batch/w-1",
			more: []step.Field{step.FieldTalosVersion, step.FieldUUID, step.FieldNodeName},
			record: func(s *step.MachineState) {
				*s = step.MachineState{Access: step.Member, Stage: step.StageUnknown}
			}},
		"etcd begins": {machine: "batch/w-1", keeps: true,
			steps:  []step.Step{step.Restore{Machine: "cp-1"}},
			record: func(s *step.MachineState) { *s = working(*s) }},
		"it is reset by the plan": {machine: "batch/w-1", keeps: true,
			steps:  []step.Step{step.Reset{Machine: "batch/w-1"}},
			record: func(s *step.MachineState) { *s = working(*s) }},
		"other hardware": {machine: "batch/w-1", keeps: true, more: []step.Field{step.FieldUUID},
			record: func(s *step.MachineState) { *s = working(*s) },
			set: func(p Set) {
				m := p.Machines["batch/w-1"]
				m.UUID = other
				p.Machines["batch/w-1"] = m
			}},
	} {
		prior, files := joining()
		p, _ := joining()

		if c.set != nil {
			c.set(p)
		}

		stored := recordOf(prior)
		stored.Seen = record.Machines{"cp-1": {Address: "10.0.0.1"}, "batch/w-1": {Address: "10.0.0.11"}}

		for machine, configured := range files.Machines {
			state := wiped(machine)
			state.NodeName = configured.WantedNode

			if machine == c.machine && c.record != nil {
				c.record(&state)
			}

			stored.Machines[machine] = state
		}

		r, _ := NewPriorState(stored, p, prior)
		got := r.forecastMachines(p, files, c.steps)[c.machine]

		want := MachineForecast{From: c.machine, Shown: step.Shown{
			Joins: true, Open: slices.Concat(everything, c.more), Texts: map[step.Field]string{},
		}}
		if c.keeps {
			want.Texts[step.FieldNodeName] = files.Machines[c.machine].WantedNode
		}

		slices.Sort(want.Open)
		slices.Sort(got.Open)
		got.Open = slices.Compact(got.Open)

		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

// working is a machine that was observed to work.
func working(s step.MachineState) step.MachineState {
	s.Access, s.Stage, s.Ready, s.BootID, s.ConfigDigest = step.Member, step.StageRunning, true, "boot", "digest"

	return s
}

// Everything about a machine without a record is unknown.
func TestForecast_ofANewMachineIsOpen(t *testing.T) {
	t.Parallel()

	p, files := joining()
	prior := listing(map[string]string{"cp-1": "10.0.0.1"})
	r, _ := NewPriorState(recordOf(prior), p, prior)

	want := MachineForecast{NoRecord: true}
	if got := r.forecastMachines(p, files, nil)["batch/w-1"]; !cmp.Equal(want, got) {
		t.Errorf("the forecast is %+v", got)
	}
}

// Unknown hardware may be other hardware. For a machine that joins anyway, that is not reported.
func TestAssuming_tellsOfHardwareThatMayLeave(t *testing.T) {
	t.Parallel()

	p, _ := joining()
	for name, m := range p.Machines {
		m.AnyHardware = true
		p.Machines[name] = m
	}

	got := p.mayBeExchanged(map[string]MachineForecast{"cp-1": {Shown: step.Shown{Joins: true}}, "batch/w-1": {}})
	if want := []string{"batch/w-1 is reset and removed if its `uuid` changes"}; !cmp.Equal(want, got) {
		t.Errorf("it says %q", got)
	}
}
