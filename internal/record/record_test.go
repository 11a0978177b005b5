package record_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fieldpath"
	"github.com/talosop/terraform-provider-talosop/internal/metakey"
	"github.com/talosop/terraform-provider-talosop/internal/record"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

// everything is a machine with all fields and differences of every kind.
func everything() record.Machine {
	return record.Machine{
		Address: "10.0.0.1", Stage: "running", Ready: true, UUID: "u", BootID: "b", Platform: "metal",
		TalosVersion: "v1.13.0", Schematic: "s", Extensions: []string{"e"}, Installer: "i",
		ConfigDigest: "d", StagedDigest: "e", Keys: rotation.ParseKeys("talos=1"), Images: kubenames.Images{kubenames.Kubelet: "kubelet:v1.36.3"},
		HostnameUnset: true, NodeName: "n", KubeletVersion: "v1.36.3",
		Running:  map[kubenames.Component]string{kubenames.Kubelet: "v1.36.3"},
		MemberID: "m", RestoredAt: time.Date(2026, 11, 28, 1, 2, 3, 4, time.UTC), PodDigest: "p", PeerAddress: "10.96.0.1",
		Link: "eth0", Soaks: true,
		Drift: record.Drift{
			{Kind: record.AddressDiffers, Found: "10.0.0.9", Wanted: "10.0.0.1"},
			{Kind: record.TalosDiffers, Found: "v1.13.0", Wanted: "v1.13.1"},
			{Kind: record.SchematicDiffers, Wanted: "0123456789abcdef"},
			{Kind: record.ConfigurationDiffers,
				Place: &fieldpath.Place{Document: "v1alpha1", Path: fieldpath.Path{"machine", "sysctls", "a.b: c"}}},
			{Kind: record.ImageDiffers, Component: kubenames.KubeAPIServer, Wanted: "registry:5000/a: b, not c"},
			{Kind: record.RunsOther, Component: kubenames.Kubelet, Found: "v1.36.2", Wanted: "kubelet:v1.36.3"},
			{Kind: record.MetaDiffers, Keys: metakey.Keys{0x0a, 0x0d}},
			{Kind: record.Wiped}, {Kind: record.Unproven}, {Kind: record.NoMember}, {Kind: record.LeftEtcd},
			{Kind: record.EtcdGoesBack, Wanted: "3.6"}, {Kind: record.NoNode}, {Kind: record.OwnedByAnother},
			{Kind: record.MarkUnproven, Found: `an "other"`}, {Kind: record.OthersWork}, {Kind: record.NotOnHost},
			{Kind: record.HostDiffers, Found: "Service p/dev does not exist"},
			{Kind: record.HostReplaces, Found: "it was made of something else"}, {Kind: record.HostVolumesLost},
			{Kind: record.HostStays, Found: "it has 30Gi"}, {Kind: record.NotReady, Found: "its kubelet is down"},
			{Kind: record.EtcdNotHealthy, Found: "NOSPACE"}, {Kind: record.Former, Found: "what was said once"},
		},
	}
}

// Decode reads what Encode wrote, and equal machines have equal texts.
func TestDecode_readsWhatEncodeWrote(t *testing.T) {
	t.Parallel()

	for i, f := 0, reflect.ValueOf(everything()); i < f.NumField(); i++ {
		if f.Field(i).IsZero() {
			t.Errorf("%s is not tried", f.Type().Field(i).Name)
		}
	}

	machines := record.Machines{"cp-1": everything(), "cp-2": {Images: kubenames.Images{}}, "cp-3": {}}
	text := machines.Encode()

	got, err := record.Decode(text)
	if err != nil || !reflect.DeepEqual(got, machines) {
		t.Errorf("%s is read as %+v, %v", text, got, err)
	}

	if again := got.Encode(); again != text {
		t.Errorf("%s becomes %s", text, again)
	}
}

// An empty text has no machines, and a text of another writer is an error.
func TestDecode_ofOtherTexts(t *testing.T) {
	t.Parallel()

	for _, text := range []string{"", "{}", record.Machines(nil).Encode()} {
		if got, err := record.Decode(text); err != nil || got == nil || len(got) > 0 {
			t.Errorf("%q is read as %v, %v", text, got, err)
		}
	}

	for _, text := range []string{"cp-1", `{"machines": []}`, `{"machines":{"a":{"drift":[{"keys":"x"}]}}}`} {
		if got, err := record.Decode(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

// Machines are renamed, and an unknown name changes nothing.
func TestMachines_changes(t *testing.T) {
	t.Parallel()

	m := record.Machines{"a": {UUID: "1"}}
	m.Rename("a", "b")
	m.Rename("c", "d")
	m.Change("b", func(m *record.Machine) { m.UUID = "2" })
	m.Change("d", func(m *record.Machine) { m.UUID = "3" })

	if want := (record.Machines{"b": {UUID: "2"}}); !reflect.DeepEqual(m, want) {
		t.Errorf("they are %v", m)
	}
}

// The queries that a plan makes on drift.
func TestDrift_whatItHas(t *testing.T) {
	t.Parallel()

	all := everything().Drift

	if lines := all.Lines(); len(lines) != len(all) {
		t.Fatalf("lines are %q", lines)
	}

	for i, d := range all {
		if all.Lines()[i] == "" || !all.Has(d.Kind) || all.Without(d.Kind).Has(d.Kind) || !reflect.DeepEqual(all.First(d.Kind), d) {
			t.Errorf("%s looks like another kind: %q", d.Kind, all.Lines()[i])
		}
	}

	if got := all.Places(); len(got) != 1 || got[0].String() != `v1alpha1 machine.sysctls["a.b: c"]` {
		t.Errorf("places are %v", got)
	}

	if got := all.MetaKeys(); !reflect.DeepEqual(got, []uint8{0x0a, 0x0d}) {
		t.Errorf("keys are %v", got)
	}

	if (record.Drift{{Kind: record.TalosDiffers}}).SaysNotReady() || !(record.Drift{{Kind: record.NoNode}}).SaysNotReady() {
		t.Error("what says that a machine is not ready is taken for something else")
	}
}
