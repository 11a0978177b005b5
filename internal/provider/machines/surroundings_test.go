package machines

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/record"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/secretstest"
)

// privateValues is private state as in the framework.
type privateValues map[string]string

func (p privateValues) GetKey(_ context.Context, key string) ([]byte, diag.Diagnostics) {
	return []byte(p[key]), nil
}

func (p privateValues) SetKey(_ context.Context, key string, value []byte) diag.Diagnostics {
	if p[key] = string(value); len(value) == 0 {
		delete(p, key)
	}

	return nil
}

// allBeside is surroundings with all values known.
func allBeside() record.Surroundings {
	return record.Surroundings{
		Secrets: record.Secrets{Digest: "d", Identity: "i"},
		Host:    record.Host{UID: "u", Connection: "context prod", Server: "https://10.0.0.1"},
		Unseen:  []string{"w-1"}, OtherControlPlanes: []string{"10.0.0.12"},
		OtherKeys: rotation.Cluster{{Name: "cp-2", ControlPlane: true, Keys: rotation.ParseKeys("talos=1+2")},
			{Name: "w-9"}},
		NeedsConsent: true,
		Hooks:        []string{"noout"},
	}
}

// formerly is the same in private state of a former version.
func formerly() privateValues {
	return privateValues{
		"secrets": `"d"`, "cluster_identity": `"i"`,
		"host_cluster":    `{"uid":"u","connection":"context prod","server":"https://10.0.0.1"}`,
		"unseen_machines": `["w-1"]`, "other_control_planes": `["10.0.0.12"]`,
		"other_keys":              `[{"name":"cp-2","control_plane":true,"keys":"talos=1+2"},{"name":"w-9"}]`,
		"bootstrap_needs_consent": "true", "deletion_protection": "true",
	}
}

func read(t *testing.T, private privateValues) record.Surroundings {
	t.Helper()

	s, diags := readSurroundings(t.Context(), private)
	if diags.HasError() {
		t.Fatal(diags)
	}

	return s
}

// Surroundings are stored under one key and read back unchanged. The keys of former versions are read, too.
func TestSurroundings_areReadAsStored(t *testing.T) {
	t.Parallel()

	for i, f := 0, reflect.ValueOf(allBeside()); i < f.NumField(); i++ {
		if f.Field(i).IsZero() {
			t.Errorf("%s is not tried", f.Type().Field(i).Name)
		}
	}

	looked := record.Surroundings{Unseen: []string{}} // other than nil

	for _, s := range []record.Surroundings{allBeside(), looked, {}} {
		private := formerly()
		if diags := storeSurroundings(t.Context(), private, s); diags.HasError() {
			t.Fatal(diags)
		}

		if got := read(t, private); !reflect.DeepEqual(got, s) {
			t.Errorf("%+v is read as %+v", s, got)
		}

		if keys := slices.Sorted(maps.Keys(private)); !slices.Equal(keys, []string{"deletion_protection", surroundingsKey}) {
			t.Errorf("stored are %q", keys)
		}
	}

	former := allBeside()
	former.Hooks = nil // it had none

	if got := read(t, formerly()); !reflect.DeepEqual(got, former) {
		t.Errorf("of a former state %+v is read", got)
	}

	if got := read(t, privateValues{"unseen_machines": "[]", "other_keys": "[]"}); got.Unseen == nil || len(got.OtherKeys) > 0 {
		t.Errorf("of a former state without others %+v is read", got)
	}

	if got := read(t, nil); !reflect.DeepEqual(got, record.Surroundings{}) {
		t.Errorf("of nothing %+v is read", got)
	}

	for _, key := range []string{surroundingsKey, "unseen_machines", "host_cluster"} {
		if _, diags := readSurroundings(t.Context(), privateValues{key: `"text"`}); !diags.HasError() {
			t.Errorf("%s is read", key)
		}
	}
}

// controlPlane is a set with a control plane.
func controlPlane(secrets string, host *machineset.Host) writtenSet {
	return writtenSet{Set: machineset.Set{
		Secrets: secrets, Host: host, Groups: []*machineset.Group{{Role: step.ControlPlane}}}}
}

// What an observation does not show stays unchanged.
func TestSurroundings_keepWhatNoLookShows(t *testing.T) {
	t.Parallel()

	bundle, err := secretstest.Generate()
	if err != nil {
		t.Fatal(err)
	}

	text, err := bundle.YAML()
	if err != nil {
		t.Fatal(err)
	}

	want := cluster.Spec{Machines: []cluster.Machine{
		cluster.MachineAt("cp-1", step.ControlPlane, "10.0.0.11"),
	}}
	p, inPods := controlPlane(string(text), nil), controlPlane(string(text), &machineset.Host{})
	secrets := record.Secrets{Digest: bundle.CurrentDigest(), Identity: bundle.Identity()}
	silent := snapshotOf(map[string]step.MachineState{"cp-1": {Access: step.Unreachable}})
	answering := silent
	answering.Kubernetes = kubestate.State{Reachable: true, Nodes: []kubestate.Node{
		{Name: "cp-2", ControlPlane: true, Ready: true, Addresses: []string{"10.0.0.19"}}}}

	for name, test := range map[string]struct {
		set    writtenSet
		want   cluster.Spec
		have   cluster.Snapshot
		change func(*record.Surroundings)
	}{
		"no secrets":     {want: want, change: func(*record.Surroundings) {}},
		"no look":        {set: p, want: want, change: func(s *record.Surroundings) { s.Secrets = secrets }},
		"all are silent": {set: p, want: want, have: silent, change: func(s *record.Surroundings) { s.Secrets, s.Unseen = secrets, []string{"cp-1"} }},
		"another answers": {set: p, want: want, have: answering, change: func(s *record.Surroundings) {
			s.Secrets, s.Unseen, s.OtherControlPlanes = secrets, []string{"cp-1"}, []string{"10.0.0.19"}
			s.OtherKeys = rotation.Cluster{{Name: "cp-2", ControlPlane: true, Settled: true}}
		}},
		"containers": {set: inPods, want: want, have: answering, change: func(s *record.Surroundings) {
			s.Secrets, s.Unseen = secrets, []string{"cp-1"}
			s.OtherKeys = rotation.Cluster{{Name: "cp-2", ControlPlane: true, Settled: true}}
		}},
	} {
		expected := allBeside()
		test.change(&expected)

		if got := test.set.surroundings(allBeside(), test.want, test.have); !reflect.DeepEqual(got, expected) {
			t.Errorf("%s: remembered is %+v, not %+v", name, got, expected)
		}
	}
}

// A set gets what was recorded: others have control planes on metal, and the host of pods is the one in the
// attribute host_uid, if there is one.
func TestSurroundings_areRecalled(t *testing.T) {
	t.Parallel()

	p := controlPlane("", nil)
	p.recall(allBeside())

	if len(p.Holders) != 2 || !p.Holders[0].Settled || p.LastLook == nil || len(p.Others) != 1 {
		t.Errorf("got %+v, %+v, %+v", p.Holders, p.LastLook, p.Others)
	}

	for uid, want := range map[string]string{"": "u", "attribute": "attribute"} {
		p := controlPlane("", &machineset.Host{Recorded: workload.Identity{UID: uid}})
		p.recall(allBeside())

		if got := p.Host.Recorded; got.UID != want || got.Connection != "context prod" || len(p.Others) > 0 {
			t.Errorf("with %q the host is %+v", uid, got)
		}
	}

	p = controlPlane("", nil)
	if p.recall(record.Surroundings{}); p.LastLook != nil || p.Holders != nil {
		t.Errorf("nothing gives %+v, %+v", p.LastLook, p.Holders)
	}
}

// Keys in the text of private state are those of the annotations of nodes.
func TestSurroundings_keysAreText(t *testing.T) {
	t.Parallel()

	text, err := json.Marshal(allBeside().OtherKeys)
	if err != nil || string(text) != formerly()["other_keys"] {
		t.Errorf("stored is %s, %v", text, err)
	}
}
