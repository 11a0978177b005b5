package tftest

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// Put changes an existing value.
func Put(t *testing.T, state tftypes.Value, at *tftypes.AttributePath, value any) tftypes.Value {
	t.Helper()

	found := false

	changed, err := tftypes.Transform(state, func(p *tftypes.AttributePath, v tftypes.Value) (tftypes.Value, error) {
		if !p.Equal(at) {
			return v, nil
		}

		found = true

		return ValueOf(t, v.Type(), value), nil
	})
	if err != nil || !found {
		t.Fatalf("there is no %s: %v", at, err)
	}

	return changed
}

// Remembered is the record of machines in a state.
func Remembered(t *testing.T, state tftypes.Value) record.Machines {
	t.Helper()

	machines, err := record.Decode(Text(t, state, "record"))
	Must(t, err)

	return machines
}

// Remember is a state with a record of machines, and the matching observations.
func Remember(t *testing.T, state tftypes.Value, machines record.Machines) tftypes.Value {
	t.Helper()

	single := AttributeOf(t, state, "observed").Type().Is(tftypes.Object{})
	shown := map[string]any{"record": machines.Encode()}

	for name, of := range map[string]func(record.Machine) any{
		"observed":                    func(m record.Machine) any { return ShownOf(m) },
		"observed_talos_version":      func(m record.Machine) any { return orNull(m.TalosVersion) },
		"observed_kubernetes_version": func(m record.Machine) any { return orNull(m.KubeletVersion) },
	} {
		all := Config{}
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
		state = Put(t, state, tftypes.NewAttributePath().WithAttributeName(name), value)
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

// ShownOf is a machine in observed.
func ShownOf(m record.Machine) Config {
	drift := []any{}
	for _, line := range m.Drift.Lines() {
		drift = append(drift, line)
	}

	return Config{"address": orNull(m.Address), "uuid": orNull(m.UUID), "stage": orNull(string(m.Stage)), "ready": m.Ready,
		"node_name": orNull(m.NodeName), "drift": drift}
}
