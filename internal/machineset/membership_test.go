package machineset

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// other is hardware that no machine of these tests was recorded with.
const other = "4c4c4544-0042-3510-8053-000000000000"

// listing is a pool of workers and control planes (cp-…) by name: an address, and after a blank a UUID.
func listing(machines map[string]string) Set {
	planes := &Group{Role: step.ControlPlane, At: finding.Root("control_plane")}
	workers := &Group{Role: step.Worker, At: finding.Root("workers").AtMapKey("batch"), Prefix: "batch/", Pool: "batch"}
	p := Set{Groups: []*Group{planes, workers}, Machines: map[string]Machine{}}

	for name, text := range machines {
		address, uuid, _ := strings.Cut(text, " ")
		m := Machine{Group: planes, Key: name, Wanted: cluster.Wanted{Address: address, UUID: uuid}}

		if key, worker := strings.CutPrefix(name, "batch/"); worker {
			m.Group, m.Key = workers, key
		}

		p.Machines[name] = m
	}

	return p
}

// recordOf is a record in which every machine of a pool is a member with the UUID of its name.
func recordOf(p Set) Record {
	r := Record{Phase: cluster.Ready, Machines: map[string]step.MachineState{}, Seen: record.Machines{}}

	for name, m := range p.Machines {
		r.Machines[name] = step.MachineState{Access: step.Member, Role: m.Group.Role, UUID: hardwareOf(name),
			NodeName: "node-" + name}
		r.Seen[name] = record.Machine{}

		if m.Group.Role == step.ControlPlane {
			r.Seen[name] = record.Machine{MemberID: "member-" + name}
		}
	}

	return r
}

// Which machines leave, which move and which are only renamed.
func TestMembership_whoLeavesMovesOrIsRenamed(t *testing.T) {
	t.Parallel()

	before := map[string]string{"cp-1": "10.0.0.1", "cp-2": "10.0.0.2", "batch/w-1": "10.0.0.11", "batch/w-2": "10.0.0.12"}
	changed := func(edit map[string]string) map[string]string {
		after := maps.Clone(before)
		for name, text := range edit {
			if text == "" {
				delete(after, name)
			} else {
				after[name] = text
			}
		}

		return after
	}

	for name, test := range map[string]struct {
		after   map[string]string
		Leave   []string
		Moved   map[string]string
		Renamed map[string]string
		says    string
		quiet   bool
	}{
		"nothing":          {after: before, quiet: true},
		"an address spelt": {after: changed(map[string]string{"cp-1": "::ffff:10.0.0.1"})},
		"address": {after: changed(map[string]string{"cp-2": "10.0.0.9"}),
			Moved: map[string]string{"cp-2": "10.0.0.2"}},
		"removed": {after: changed(map[string]string{"batch/w-2": "", "cp-2": ""}),
			Leave: []string{"batch/w-2", "cp-2"}},
		"name": {after: changed(map[string]string{"batch/w-2": "", "batch/w-9": "10.0.0.12"}),
			Renamed: map[string]string{"batch/w-9": "batch/w-2"}},
		"hardware given": {after: changed(map[string]string{"cp-2": "10.0.0.2 " + strings.ToUpper(hardwareOf("cp-2"))})},
		"hardware": {after: changed(map[string]string{"cp-2": "10.0.0.2 " + other}),
			Leave: []string{"cp-2 (replaced)"}},
		"hardware moved": {after: changed(map[string]string{"cp-2": "10.0.0.9 " + other}),
			Leave: []string{"cp-2 (replaced)"}},
		"name and hardware": {after: changed(map[string]string{"batch/w-2": "", "batch/w-9": "10.0.0.12 " + other}),
			Leave: []string{"batch/w-2"}},
		"name and address by hardware": {
			after:   changed(map[string]string{"batch/w-2": "", "batch/w-9": "10.0.0.99 " + hardwareOf("batch/w-2")}),
			Moved:   map[string]string{"batch/w-9": "10.0.0.12"},
			Renamed: map[string]string{"batch/w-9": "batch/w-2"},
		},
		"other role": {after: changed(map[string]string{"cp-2": "", "batch/w-9": "10.0.0.2"}),
			says: "machine_role_change"},
		"place of another": {after: changed(map[string]string{"cp-2": "", "cp-1": "10.0.0.2"}), says: "machine_role_change",
			Moved: map[string]string{"cp-1": "10.0.0.1"}},
	} {
		prior := listing(before)
		r, diags := NewPriorState(recordOf(prior), listing(test.after), prior)

		var leave []string
		for _, m := range r.Removed {
			leave = append(leave, m.Name)

			if m.UUID == "" || m.NodeName == "" || m.Address == "" || (m.MemberID == "") != (m.Role == step.Worker) {
				t.Errorf("%s: %s leaves without a trace of it: %+v", name, m.Name, m)
			}

			if _, ok := r.Machines[m.Name]; !ok {
				t.Errorf("%s: what was recorded of %s is lost", name, m.Name)
			}
		}

		if !slices.Equal(leave, test.Leave) {
			t.Errorf("%s: %q leave, want %q", name, leave, test.Leave)
		}

		if !maps.Equal(r.Moved, test.Moved) || !maps.Equal(r.Renamed, test.Renamed) {
			t.Errorf("%s: moved are %v, renamed %v", name, r.Moved, r.Renamed)
		}

		if diags.HasError() != (test.says != "") || diags.HasError() &&
			diags.Errors()[0].Code != test.says {
			t.Errorf("%s: %v", name, diags)
		}

		if r.Changed() == test.quiet && test.says == "" {
			t.Errorf("%s: looks at machines: %v", name, r.Changed())
		}
	}
}

// A machine is searched for at its last observed address, also for a read or a destroy: a failed update may have left
// it elsewhere than state wants it.
func TestMembership_addressesSeenLast(t *testing.T) {
	t.Parallel()

	before := listing(map[string]string{"cp-1": "10.0.0.1", "batch/w-1": "10.0.0.11"})
	after := listing(map[string]string{"cp-1": "10.0.0.1", "batch/w-1": "10.0.0.12"})
	renamed := listing(map[string]string{"cp-1": "10.0.0.1", "batch/w-9": "10.0.0.12 " + hardwareOf("batch/w-1")})

	for name, test := range map[string]struct {
		now      Set
		Seen, At string
	}{
		"read":                      {now: before, Seen: "10.0.0.77", At: "10.0.0.77"},
		"read, and where it was":    {now: before, Seen: "10.0.0.11"},
		"moved":                     {now: after, Seen: "10.0.0.77", At: "10.0.0.77"},
		"moved, and seen there":     {now: after, Seen: "10.0.0.12", At: "10.0.0.11"},
		"moved, and never seen":     {now: after, At: "10.0.0.11"},
		"renamed, and seen between": {now: renamed, Seen: "10.0.0.77", At: "10.0.0.77"},
	} {
		stored := recordOf(before)
		stored.Seen.Change("batch/w-1", func(m *record.Machine) { m.Address = test.Seen })

		r, _ := NewPriorState(stored, test.now, before)

		for _, m := range test.now.Spec(r, Rendered{}).Machines {
			if m.Role == step.Worker && m.PreviousAddress != test.At {
				t.Errorf("%s: %s is looked for at %q, too, want %q", name, m.Name, m.PreviousAddress, test.At)
			}
		}
	}
}

// Replaced hardware inherits nothing from its predecessor. Otherwise the guard would refuse it and wait for the old
// node.
func TestMembership_replacedHardware(t *testing.T) {
	t.Parallel()

	prior := listing(map[string]string{"cp-1": "10.0.0.1", "cp-2": "10.0.0.2"})
	now := listing(map[string]string{"cp-1": "10.0.0.1", "cp-2": "10.0.0.2 " + other})
	r, _ := NewPriorState(recordOf(prior), now, prior)

	spec := now.Spec(r, Rendered{})

	i := slices.IndexFunc(spec.Machines, func(m cluster.Machine) bool { return m.Name == "cp-2" })
	if m := spec.Machines[i]; m.UUID != other || m.NodeName != "" || m.MemberID != "" || m.Joined ||
		m.PreviousAddress != "" {
		t.Errorf("the new machine is %+v", m)
	}

	if m := spec.Machines[1-i]; m.MemberID != "" || !m.Joined {
		t.Errorf("the machine that stays is %+v", m)
	}
}

// The next update removes what an update left behind, although no list has it.
func TestMembership_removesLeftovers(t *testing.T) {
	t.Parallel()

	p := listing(map[string]string{"cp-1": "10.0.0.1", "cp-2": "10.0.0.2 " + other})
	stored := recordOf(p)
	stored.Machines["batch/w-9 (replaced)"] = step.MachineState{Access: step.Member, UUID: hardwareOf("w-9"),
		NodeName: "old-worker"}
	stored.Seen["batch/w-9 (replaced)"] = record.Machine{Address: "10.0.0.19"}
	stored.Machines["cp-2 (replaced)"] = step.MachineState{Access: step.Member, UUID: ours, NodeName: "old"}
	stored.Seen["cp-2 (replaced)"] = record.Machine{MemberID: "member", Address: "10.0.0.2"}

	r, _ := NewPriorState(stored, p, p)

	want := cluster.Machine{Name: "cp-2 (replaced)", Role: step.ControlPlane,
		Wanted:     cluster.Wanted{Address: "10.0.0.2", UUID: ours},
		Remembered: cluster.Remembered{NodeName: "old", MemberID: "member"}}
	// A worker stays in its pool until the end; otherwise it would not use the pool's budget.
	if len(r.Removed) != 2 || r.Removed[0].Name != "batch/w-9 (replaced)" || r.Removed[0].Pool != "batch" {
		t.Fatalf("removed are %+v", r.Removed)
	}

	if r.Removed = r.Removed[1:]; r.Removed[0].Name != want.Name || r.Removed[0].UUID != want.UUID ||
		r.Removed[0].MemberID != want.MemberID ||
		r.Removed[0].Role != want.Role || r.Removed[0].Address != want.Address {
		t.Errorf("removed are %+v", r.Removed)
	}
}

// A destroy resets what an update left behind, unless another machine is at its address.
func TestMembership_destroysLeftovers(t *testing.T) {
	t.Parallel()

	p := listing(map[string]string{"cp-1": "10.0.0.1", "cp-2": "10.0.0.2 " + other})
	stored := recordOf(p)

	for name, address := range map[string]string{"cp-2 (replaced)": "10.0.0.2", "cp-2 (replaced)'": "10.0.0.7"} {
		stored.Machines[name] = step.MachineState{Access: step.Member, UUID: ours, NodeName: "old"}
		stored.Seen[name] = record.Machine{Address: address}
	}

	r := PriorStateOfDestroy(stored, p)

	left := r.Left
	if len(left) != 1 || left[0].Address != "10.0.0.7" || left[0].UUID != ours || len(r.Removed) > 0 {
		t.Errorf("left are %+v, and removed %+v", left, r.Removed)
	}
}

// A machine that waits in maintenance mode and left nothing behind may belong to any user: it is neither asked nor
// reset.
func TestMembership_leavesWipedMachinesAlone(t *testing.T) {
	t.Parallel()

	prior := listing(map[string]string{"cp-1": "10.0.0.1", "batch/w-1": "10.0.0.11", "batch/w-2": "10.0.0.12"})
	record := recordOf(prior)
	record.Machines["batch/w-1"] = step.MachineState{Access: step.Maintenance, UUID: ours}
	record.Machines["batch/w-2"] = step.MachineState{Access: step.Maintenance, UUID: theirs, NodeName: "still-there"}

	r, _ := NewPriorState(record, listing(map[string]string{"cp-1": "10.0.0.1"}), prior)

	if len(r.Removed) != 1 || r.Removed[0].Name != "batch/w-2" || !r.Changed() {
		t.Errorf("removed are %+v", r.Removed)
	}
}

// Removals that etcd would not survive, based on the recorded state.
func TestMembership_impossibleRemovals(t *testing.T) {
	t.Parallel()

	three := map[string]string{"cp-1": "10.0.0.1", "cp-2": "10.0.0.2", "cp-3": "10.0.0.3"}

	for name, test := range map[string]struct {
		after map[string]string
		lost  []string
		says  string
	}{
		"two of three, one after the other": {after: map[string]string{"cp-1": "10.0.0.1"}},
		"all, for new ones":                 {after: map[string]string{"cp-4": "10.0.0.4"}, says: "no_control_plane_left"},
		"the healthy one": {after: map[string]string{"cp-2": "10.0.0.2", "cp-3": "10.0.0.3"},
			lost: []string{"cp-2", "cp-3"}, says: "no_control_plane_left"},
		"one that lost its data": {after: map[string]string{"cp-1": "10.0.0.1", "cp-2": "10.0.0.2"},
			lost: []string{"cp-3"}},
		"one of two that lost their data": {after: map[string]string{"cp-1": "10.0.0.1", "cp-2": "10.0.0.2"},
			lost: []string{"cp-2", "cp-3"}, says: "etcd_majority_lost"},
		"hardware of one": {
			after: map[string]string{"cp-1": "10.0.0.1", "cp-2": "10.0.0.2",
				"cp-3": "10.0.0.3 4c4c4544-0042-3510-8053-000000000001"},
		},
		"hardware of two": {
			after: map[string]string{"cp-1": "10.0.0.1", "cp-2": "10.0.0.2 " + other,
				"cp-3": "10.0.0.3 4c4c4544-0042-3510-8053-000000000001"},
			says: "etcd_majority_lost",
		},
		"two to other places": {
			after: map[string]string{"cp-1": "10.0.0.1", "cp-2": "10.0.0.8 " + other,
				"cp-3": "10.0.0.9 4c4c4544-0042-3510-8053-000000000001"},
		},
	} {
		prior, p := listing(three), listing(test.after)
		record := recordOf(prior)

		for _, machine := range test.lost {
			state := record.Machines[machine]
			state.Access = step.Maintenance
			record.Machines[machine] = state
		}

		r, _ := NewPriorState(record, p, prior)

		diags := refuseLostQuorum(p, prior, r)
		if diags.HasError() != (test.says != "") || diags.HasError() && diags[0].Code != test.says {
			t.Errorf("%s: %v, want %q", name, diags, test.says)
		}
	}
}

// Intermediate images are those of the machine: with its schematic and platform, from the user's registry.
func TestInstaller_ofIntermediateVersions(t *testing.T) {
	t.Parallel()

	const schematic = "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515"

	for name, test := range map[string]struct {
		Group     Group
		Image     string
		schematic string
		Via       string
	}{
		"plain": {Via: "ghcr.io/siderolabs/installer:v1.12.6"},
		"schematic": {Group: Group{Schematic: schematic}, schematic: schematic,
			Via: "factory.talos.dev/metal-installer/" + schematic + ":v1.12.6"},
		"image": {Image: "registry.local/installer:v1.13.0@sha256:" + strings.Repeat("a", 64),
			Via: "registry.local/installer:v1.12.6"},
		"image of a factory": {Image: "mirror.local/metal-installer-secureboot/" + schematic + ":v1.13.0",
			schematic: schematic, Via: "mirror.local/metal-installer-secureboot/" + schematic + ":v1.12.6"},
		"plain elsewhere": {Group: Group{Platform: "aws"},
			Via: "factory.talos.dev/aws-installer/376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba:v1.12.6"},
	} {
		g := test.Group
		g.Role, g.TalosVersion = step.ControlPlane, "v1.13.0"

		m := Machine{Group: &g, OwnImage: test.Image != ""}
		m.Config.Install.Image = test.Image

		chosen, _ := machineconfig.ReadTalosVersion("v1.12.6")
		p := Set{Groups: []*Group{&g}, Machines: map[string]Machine{"cp-1": m},
			Changes: Changes{Via: []machineconfig.TalosVersion{chosen}}}

		got := p.Spec(PriorState{}, Rendered{}).Machines[0]
		if got.Schematic != test.schematic {
			t.Errorf("%s: the schematic is %q", name, got.Schematic)
		}

		if i := slices.IndexFunc(got.Via, func(r cluster.Release) bool { return r.Version == "v1.12.6" }); i < 0 ||
			got.Via[i].Installer != test.Via {
			t.Errorf("%s: passed are %v", name, got.Via)
		}
	}
}

// max_unavailable is a number or a percentage.
func TestReadBudget_numbersAndShares(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]cluster.Budget{"": {}, "1": {Count: 1}, "12": {Count: 12}, "20%": {Percent: 20},
		"100%": {Percent: 100}} {
		if got, ok := ReadBudget(text); !ok || got != want {
			t.Errorf("%q is %v, %v", text, got, ok)
		}
	}

	for _, bad := range []string{"0", "-1", "0%", "101%", "1.5", "20 %", "%", "all", "999999"} {
		if got, ok := ReadBudget(bad); ok {
			t.Errorf("%q is accepted as %v", bad, got)
		}
	}
}

// Control planes of other resources are asked for etcd where no control plane of the set has it, or before a restore.
func TestSet_askedBeforeEtcd(t *testing.T) {
	t.Parallel()

	others := []cluster.Machine{ControlPlanesAt("10.0.0.9")}

	for name, test := range map[string]struct {
		change func(p *Set, r *Record)
		asked  bool
	}{
		"its own works": {change: func(*Set, *Record) {}},
		"its own is silent": {change: func(_ *Set, r *Record) {
			r.Machines["cp-1"] = step.MachineState{Role: step.ControlPlane, Access: step.Unreachable}
		}},
		"its own was wiped": {change: func(_ *Set, r *Record) {
			r.Machines["cp-1"] = step.MachineState{Role: step.ControlPlane, Access: step.Maintenance}
		}, asked: true},
		"it is restored": {change: func(p *Set, _ *Record) { p.Restore.From = "file:a" }, asked: true},
		"it is new":      {change: func(_ *Set, r *Record) { r.Machines = nil }},
		"it joins a cluster": {change: func(p *Set, _ *Record) {
			p.Restore.From, p.InHandle, p.Others = "file:a", true, nil
		}},
	} {
		p := listing(map[string]string{"cp-1": "10.0.0.1", "batch/1": "10.0.0.2"})
		p.Others = others
		record := recordOf(p)
		test.change(&p, &record)

		if asked := p.AskedBeforeEtcd(PriorState{Record: record}); (len(asked) > 0) != test.asked {
			t.Errorf("%s: asked are %v", name, asked)
		}
	}
}

// Before a bootstrap there is no quorum, and beside control planes of a handle the apply asks etcd.
func TestRefuseLostQuorum_ofAnEtcdOfItsOwn(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		set   option
		phase cluster.Phase
		want  []string
	}{
		"its own":          {set: controlPlanes(1), phase: cluster.Degraded, want: []string{"Error control_plane.machines: no_control_plane_left"}},
		"before bootstrap": {set: controlPlanes(1), phase: cluster.Bootstrapping},
		"of a handle":      {set: onlyMachine(step.ControlPlane, false, "10.0.0.9"), phase: cluster.Ready},
	} {
		prior, p := aSet(t, test.set), aSet(t, test.set, without("cp-1", "m-1"))
		stored := recordOf(prior)
		stored.Phase = test.phase

		r, _ := NewPriorState(stored, p, prior)
		expect(t, name, refuseLostQuorum(p, prior, r), test.want)
	}
}
