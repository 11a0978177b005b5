package machines_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fieldpath"
	machinespkg "github.com/talosop/terraform-provider-talosop/internal/provider/machines"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// seen changes the record of a machine in a state: one field, by its name.
func seen(t *testing.T, state tftypes.Value, machine, name string, value any) tftypes.Value {
	t.Helper()

	machines := tftest.Remembered(t, state)

	one, known := machines[machine]
	if !known {
		t.Fatalf("nothing is known of %s", machine)
	}

	machines[machine] = withField(t, one, name, value)

	return tftest.Remember(t, state, machines)
}

// withField is a machine with a field by its name in the record.
func withField(t *testing.T, m record.Machine, name string, value any) record.Machine {
	t.Helper()

	fields := map[string]any{}

	encoded, err := json.Marshal(m)
	tftest.Must(t, err)
	tftest.Must(t, json.Unmarshal(encoded, &fields))

	fields[name] = value

	encoded, err = json.Marshal(fields)
	tftest.Must(t, err)

	var changed record.Machine

	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.DisallowUnknownFields()
	tftest.Must(t, decoder.Decode(&changed))

	return changed
}

// differsAt is drift of fields of a configuration.
func differsAt(t *testing.T, places ...string) record.Drift {
	t.Helper()

	var drift record.Drift

	for _, text := range places {
		place, err := fieldpath.ParsePlace(text)
		tftest.Must(t, err)

		drift = append(drift, record.Difference{Kind: record.ConfigurationDiffers, Place: &place})
	}

	return drift
}

// What a plan shows of machines matches their record.
func TestShown_isOfTheRecord(t *testing.T) {
	t.Parallel()

	for _, kind := range []string{"talosop_cluster", "talosop_control_plane", "talosop_worker", "talosop_machine"} {
		if got := len(attributeTypes(t, kind)); got > 10 {
			t.Errorf("%s shows %d attributes of a machine", kind, got)
		}
	}

	if got, want := len(machinespkg.ObservedType().AttrTypes), len(tftest.ShownOf(record.Machine{})); got != want {
		t.Errorf("observed has %d attributes, and these tests know %d", got, want)
	}
}

// attributeTypes are those of a machine in observed.
func attributeTypes(t *testing.T, kind string) map[string]tftypes.Type {
	t.Helper()

	observed := tftest.TypeOf(t, kind).AttributeTypes["observed"]
	if all, several := observed.(tftypes.Map); several {
		observed = all.ElementType
	}

	one, ok := observed.(tftypes.Object)
	if !ok {
		t.Fatalf("%s shows no objects", kind)
	}

	return one.AttributeTypes
}
