package machineset

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fieldpath"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// withoutDrift is a control plane cp-1 and a worker w-1 without drift.
func withoutDrift() (cluster.Spec, cluster.Snapshot) {
	want := cluster.Spec{Machines: []cluster.Machine{
		{Name: "cp-1", Role: step.ControlPlane, Wanted: cluster.Wanted{Address: "10.0.0.1"}, Installation: cluster.Installation{TalosVersion: "v1.13.0"}},
		{Name: "w-1", Role: step.Worker, Wanted: cluster.Wanted{Address: "10.0.0.11"}, Installation: cluster.Installation{TalosVersion: "v1.13.0"}},
	}}
	have := snapshotOf(map[string]step.MachineState{
		"cp-1": {Access: step.Member, TalosVersion: "v1.13.0", NodeName: "cp-1"},
		"w-1":  {Access: step.Member, TalosVersion: "v1.13.0", NodeName: "w-1"},
	})
	have.Etcd = etcdstate.State{Known: true, Members: []etcdstate.Member{{ID: "1", Name: "cp-1"}}}
	have.Kubernetes = kubestate.State{Reachable: true, Nodes: []kubestate.Node{{Name: "cp-1"}, {Name: "w-1"}}}

	return want, have
}

// Observed differences are reported, and unknown ones are not.
func TestDrift_isWhatIsKnownToDiffer(t *testing.T) {
	t.Parallel()

	const schematic = "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515"

	for name, test := range map[string]struct {
		change  func(want *cluster.Spec, have *cluster.Snapshot)
		differs map[string]record.Drift
		cp, w   []string
	}{
		"nothing": {change: func(*cluster.Spec, *cluster.Snapshot) {}},
		"another Talos": {
			change: func(_ *cluster.Spec, have *cluster.Snapshot) {
				have.Machines["w-1"] = step.MachineState{Access: step.Member, TalosVersion: "v1.13.2", NodeName: "w-1"}
			},
			w: []string{"Talos: running v1.13.2, expected v1.13.0"},
		},
		"another address": {
			change: func(_ *cluster.Spec, have *cluster.Snapshot) {
				have.Machines["w-1"] = step.MachineState{Access: step.Member, TalosVersion: "v1.13.0", NodeName: "w-1",
					FoundAt: "10.0.0.9"}
			},
			w: []string{"address: responds at 10.0.0.9, not at 10.0.0.11"},
		},
		"another schematic": {
			change: func(want *cluster.Spec, _ *cluster.Snapshot) { want.Machines[1].Schematic = schematic },
			w:      []string{"schematic: running none, expected ce4c980550dd…"},
		},
		"any schematic": {change: func(_ *cluster.Spec, have *cluster.Snapshot) {
			have.Machines["w-1"] = step.MachineState{Access: step.Member, TalosVersion: "v1.13.0", Schematic: schematic,
				NodeName: "w-1"}
		}},
		"configuration": {
			change:  func(*cluster.Spec, *cluster.Snapshot) {},
			differs: map[string]record.Drift{"cp-1": {differsAt("v1alpha1", "machine", "sysctls", "a.b")}},
			cp:      []string{`configuration: v1alpha1 machine.sysctls["a.b"]`},
		},
		"wiped": {
			change: func(_ *cluster.Spec, have *cluster.Snapshot) {
				have.Machines["cp-1"] = step.MachineState{Access: step.Maintenance}
			},
			cp: []string{"in maintenance mode without a configuration"},
		},
		"no member and no node": {
			change: func(_ *cluster.Spec, have *cluster.Snapshot) { have.Etcd.Members, have.Kubernetes.Nodes = nil, nil },
			cp:     []string{"no etcd member", "no Kubernetes node"},
			w:      []string{"no Kubernetes node"},
		},
		"no machine answers": {change: func(_ *cluster.Spec, have *cluster.Snapshot) {
			have.Etcd, have.Kubernetes = etcdstate.State{}, kubestate.State{}
		}},
		"the machine does not answer": {change: func(_ *cluster.Spec, have *cluster.Snapshot) {
			have.Machines["w-1"] = step.MachineState{Access: step.Unreachable}
		}},
	} {
		want, have := withoutDrift()
		test.change(&want, &have)

		drift := DriftOf(Set{}, want, have, test.differs)
		if !slices.Equal(drift["cp-1"].Lines(), test.cp) || !slices.Equal(drift["w-1"].Lines(), test.w) {
			t.Errorf("%s: drift is %q", name, drift)
		}
	}
}

// A difference that may be intentional is a warning, if it is observed.
func TestUnexpected_isReported(t *testing.T) {
	t.Parallel()

	planes := Set{Groups: []*Group{{Role: step.ControlPlane, At: finding.Path{}}}}
	one := Set{Groups: planes.Groups, InHandle: true}

	for name, test := range map[string]struct {
		Pool   Set
		change func(have *cluster.Snapshot)
		says   string
	}{
		"nothing": {Pool: planes, change: func(*cluster.Snapshot) {}},
		"cordoned by hand": {Pool: planes,
			change: func(have *cluster.Snapshot) { have.Kubernetes.Nodes[1].Unschedulable = true }, says: "w-1 (node w-1)"},
		"cordoned by us": {Pool: planes, change: func(have *cluster.Snapshot) {
			have.Kubernetes.Nodes[1] = kubestate.Node{Name: "w-1", Unschedulable: true, Cordoned: true}
		}},
		"unknown member": {Pool: planes, change: func(have *cluster.Snapshot) {
			have.Etcd.Members = append(have.Etcd.Members, etcdstate.Member{ID: "2f", Name: "who"})
		}, says: "who (2f)"},
		"member with the mark of another": {Pool: planes, change: func(have *cluster.Snapshot) {
			have.Etcd.Members = append(have.Etcd.Members, etcdstate.Member{ID: "2f", Name: "who"})
			have.Kubernetes.Owners = map[string]string{"who": "another"}
		}},
		"member with a mark that is not authentic": {Pool: planes, change: func(have *cluster.Snapshot) {
			have.Etcd.Members = append(have.Etcd.Members, etcdstate.Member{ID: "2f", Name: "who"})
			have.Kubernetes.Unproven = map[string]string{"who": "another"}
		}, says: "who (2f)"},
		"member of another": {Pool: one, change: func(have *cluster.Snapshot) {
			have.Etcd.Members = append(have.Etcd.Members, etcdstate.Member{ID: "2f"})
		}},
		"etcd does not know": {Pool: planes, change: func(have *cluster.Snapshot) { have.Etcd = etcdstate.State{} }},
	} {
		want, have := withoutDrift()
		test.change(&have)

		diags := Unexpected(test.Pool, want, have)
		if diags.HasError() || (len(diags) > 0) != (test.says != "") || len(diags) > 0 &&
			!strings.Contains(diags[0].Detail, test.says) {
			t.Errorf("%s: %v", name, diags)
		}
	}
}

// Repairing a configuration needs a reboot when the place of the drift does, except for places in which the wanted
// configuration changed as well.
func TestDrift_thatTakesAReboot(t *testing.T) {
	t.Parallel()

	const (
		before = "version: v1alpha1\nmachine:\n  type: worker\n  token: a\ncluster: {}\n"
		after  = "version: v1alpha1\nmachine:\n  type: worker\n  token: b\ncluster: {}\n"
	)

	for name, test := range map[string]struct {
		after string
		drift record.Drift
		want  []string
	}{
		"none":    {after: before},
		"a label": {after: before, drift: record.Drift{differsAt("v1alpha1", "machine", "nodeLabels", "rack")}},
		"a file": {after: before, drift: record.Drift{differsAt("v1alpha1", "machine", "files", 0, "content"),
			{Kind: record.NoNode}},
			want: []string{"machine.files"}},
		"a dotted label": {after: before,
			drift: record.Drift{differsAt("v1alpha1", "machine", "nodeLabels", "example.com/rack")}},
		"another document": {after: before, drift: record.Drift{differsAt("HostnameConfig", "hostname")}},
		"a change":         {after: after, want: []string{"machine.token"}},
		"a change and drift": {after: after, drift: record.Drift{differsAt("v1alpha1", "machine", "token")},
			want: []string{"machine.token"}},
	} {
		_, got, err := comparison([]byte(before), []byte(test.after), test.drift.Places(), "v1.13.0")
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s: reboots for %q (%v), want %q", name, got, err, test.want)
		}
	}
}

// A machine is expected to have its recorded configuration only while that is the one of state. Otherwise a
// difference would never be found.
func TestDrift_isComparedWithState(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		phase cluster.Phase
		drift record.Drift
		want  string
	}{
		"applied":                     {phase: cluster.Ready, want: "recorded"},
		"applied, and something lost": {phase: cluster.Ready, drift: record.Drift{{Kind: record.Wiped}}, want: "recorded"},
		"changed by hand": {phase: cluster.Ready, drift: record.Drift{differsAt("v1alpha1", "machine", "files")},
			want: "of state"},
		"an update that did not finish":  {phase: cluster.Degraded, want: "of state"},
		"a create that did not finish":   {phase: cluster.Joining, want: "of state"},
		"an import, which knows nothing": {want: "of state"},
	} {
		examination := &Examination{Wanted: func() (Rendered, error) {
			return Rendered{Machines: map[string]cluster.Configured{"cp-1": {ConfigDigest: "of state"}}}, nil
		}}
		machines := []cluster.Machine{{Name: "cp-1"}}

		examination.Expect(machines, Record{
			Phase: test.phase, Seen: record.Machines{"cp-1": {Drift: test.drift}},
			Machines: map[string]step.MachineState{"cp-1": {ConfigDigest: "recorded"}},
		})

		if got := machines[0].ConfigDigest; got != test.want {
			t.Errorf("%s: expected is the configuration %s, want the one %s", name, got, test.want)
		}
	}
}

// differsAt is drift in a field of a configuration.
func differsAt(document string, path ...any) record.Difference {
	return record.Difference{Kind: record.ConfigurationDiffers, Place: &fieldpath.Place{Document: document, Path: path}}
}

// A document with a key that no secrets of talosop can have is found, unless the wanted configuration has it, too.
func TestDriftOfConfiguration_unreadableSecrets(t *testing.T) {
	t.Parallel()

	const main = "version: v1alpha1\nmachine: {type: controlplane}\ncluster: {}\n"

	key := func(name string) []byte {
		return []byte(main + "---\napiVersion: v1alpha1\nkind: KubeEtcdEncryptionConfig\nconfig:\n  resources:\n" +
			"  - resources: [secrets]\n    providers: [{secretbox: {keys: [{name: " + name + ", secret: a}]}}]\n")
	}

	for name, test := range map[string]struct {
		wanted, active []byte
		want           string
	}{
		"another name":       {key("key2"), key("key1"), `key "key1" of secretbox`},
		"in the main form":   {[]byte(main), key("key1"), `key "key1" of secretbox`},
		"the same":           {key("key1"), key("key1"), ""},
		"a key of a bundle":  {[]byte(main), key("key2"), ""},
		"only in the wanted": {key("key1"), []byte(main), ""},
	} {
		drift, err := driftOfConfiguration(test.wanted, test.active)
		if err != nil || drift.First(record.UnreadableSecrets).Found != test.want {
			t.Errorf("%s: %v (%v), want %q", name, drift, err, test.want)
		}

		seen := Record{Seen: record.Machines{"cp-1": {Drift: drift}}}

		for planned, refused := range map[string]bool{string(test.wanted): test.want != "", string(test.active): false} {
			found := Set{}.refuseUnreadableSecrets(seen, Rendered{Configs: map[string][]byte{"cp-1": []byte(planned)}})
			if len(found) > 0 != refused {
				t.Errorf("%s: %v with\n%s", name, found, planned)
			}
		}
	}
}

// hardwareOf is the UUID of a test machine's hardware.
func hardwareOf(name string) string {
	pool, _, inPool := strings.Cut(name, PoolSeparator)
	if !inPool {
		pool = ""
	}

	return fmt.Sprintf("4c4c4544-0042-3510-8053-b4c04f4359%x%s", 3+len(pool), name[len(name)-1:])
}

// ours and theirs are the hardware of two machines.
var ours, theirs = hardwareOf("w-1"), hardwareOf("w-2")

func snapshotOf(machines map[string]step.MachineState) cluster.Snapshot {
	return cluster.Snapshot{Machines: machines}
}

// A plan is not refused because this build cannot read a configuration: the run asks Talos.
func TestComparison_unknownForm(t *testing.T) {
	t.Parallel()

	const newer = "version: v1alpha1\nmachine:\n  type: worker\n  future: 1\ncluster: {}\n"

	known := []byte("version: v1alpha1\nmachine:\n  type: worker\ncluster: {}\n")

	_, fields, err := comparison(known, []byte(newer), record.Drift{differsAt("v1alpha1", "machine", "files")}.Places(),
		"v1.13.0")
	if err != nil || len(fields) > 0 {
		t.Errorf("a machine that is to run it reboots for %q (%v)", fields, err)
	}
}
