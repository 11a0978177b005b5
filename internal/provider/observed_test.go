package provider_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fieldpath"
	machinespkg "github.com/talosop/terraform-provider-talosop/internal/provider/machines"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// remembered is the record of machines in a state.
func remembered(t *testing.T, state tftypes.Value) record.Machines {
	t.Helper()

	machines, err := record.Decode(tftest.Text(t, state, "record"))
	tftest.Must(t, err)

	return machines
}

// rememberedBy is the record of the machines of a resource in the state of a workspace.
func rememberedBy(t *testing.T, w *clitest.Workspace, address string) record.Machines {
	t.Helper()

	stored, _ := w.Attribute(address, "record").(string)

	machines, err := record.Decode(stored)
	tftest.Must(t, err)

	return machines
}

// remembers checks the record of a machine in state; without a name, that of the only one.
func remembers(address, machine string, check func(record.Machine) bool) statecheck.StateCheck {
	return rememberedCheck{address, machine, check}
}

type rememberedCheck struct {
	address, machine string
	check            func(record.Machine) bool
}

// CheckState implements statecheck.StateCheck.
func (c rememberedCheck) CheckState(_ context.Context, req statecheck.CheckStateRequest, resp *statecheck.CheckStateResponse) {
	for _, r := range req.State.Values.RootModule.Resources {
		if r.Address != c.address {
			continue
		}

		stored, _ := r.AttributeValues["record"].(string)

		machines, err := record.Decode(stored)
		if err != nil {
			resp.Error = err

			return
		}

		for name, machine := range machines {
			if name == c.machine || c.machine == "" && len(machines) == 1 {
				if !c.check(machine) {
					resp.Error = fmt.Errorf("%s remembers of %s: %+v", c.address, name, machine)
				}

				return
			}
		}
	}

	resp.Error = fmt.Errorf("%s remembers nothing of %q", c.address, c.machine)
}

// remember is a state with a record of machines, and the matching observations.
func remember(t *testing.T, state tftypes.Value, machines record.Machines) tftypes.Value {
	t.Helper()

	single := tftest.AttributeOf(t, state, "observed").Type().Is(tftypes.Object{})
	shown := map[string]any{"record": machines.Encode()}

	for name, of := range map[string]func(record.Machine) any{
		"observed":                    func(m record.Machine) any { return shownOf(m) },
		"observed_talos_version":      func(m record.Machine) any { return orNull(m.TalosVersion) },
		"observed_kubernetes_version": func(m record.Machine) any { return orNull(m.KubeletVersion) },
	} {
		all := tftest.Config{}
		for machine, one := range machines {
			all[machine] = of(one)
			if single {
				shown[name] = all[machine]
			}
		}

		if !single {
			shown[strings.Replace(name, "version", "versions", 1)] = all
		}
	}

	for name, value := range shown {
		state = put(t, state, tftypes.NewAttributePath().WithAttributeName(name), value)
	}

	return state
}

// orNull is a text, or null for an empty one.
func orNull(text string) any {
	if text == "" {
		return nil
	}

	return text
}

// shownOf is a machine in observed.
func shownOf(m record.Machine) tftest.Config {
	drift := []any{}
	for _, line := range m.Drift.Lines() {
		drift = append(drift, line)
	}

	return tftest.Config{"address": orNull(m.Address), "uuid": orNull(m.UUID), "stage": orNull(string(m.Stage)), "ready": m.Ready,
		"node_name": orNull(m.NodeName), "drift": drift}
}

// seen changes the record of a machine in a state: one field, by its name.
func seen(t *testing.T, state tftypes.Value, machine, name string, value any) tftypes.Value {
	t.Helper()

	machines := remembered(t, state)

	one, known := machines[machine]
	if !known {
		t.Fatalf("nothing is known of %s", machine)
	}

	machines[machine] = withField(t, one, name, value)

	return remember(t, state, machines)
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

	if got, want := len(machinespkg.ObservedType().AttrTypes), len(shownOf(record.Machine{})); got != want {
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
