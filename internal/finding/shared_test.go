package finding

import (
	"slices"
	"testing"
)

// Machines with the same mistake share an error. Other attributes, other remedies and warnings stay apart.
func TestShared_joinsMachinesWithTheSameMistake(t *testing.T) {
	t.Parallel()

	catalog := NewCatalog("Test")
	invalid := catalog.Invalid("invalid", "Found {{.value}}.", "Allowed: others.", "Use {{.better}}.")
	warning := catalog.Warning("warning", "Warning at {{.at}}", "Something.")
	machine := func(name, attribute string) Path { return Root("machines").AtMapKey(name).AtName(attribute) }
	with := func(name, attribute, value, better string) Finding {
		return invalid.At(machine(name, attribute), Args{"value": value, "better": better})
	}

	var got []string
	for _, f := range (List{
		with("a", "address", "1", "9"), warning.At(machine("a", "address"), nil), with("a", "uuid", "1", "9"),
		with("b", "address", "2", "9"), with("c", "address", "3", "8"), with("b", "address", "2", "9"),
		with("c", "address", "3", "8"),
		warning.At(machine("b", "address"), nil),
	}).Shared() {
		got = append(got, f.At.String()+" | "+f.Summary+" | "+f.Detail)
	}

	want := []string{
		"machines | Invalid machines |   - machines[\"a\"].address: Found 1.\n" +
			"  - machines[\"b\"].address: Found 2.\nAllowed: others. Use 9.",
		`machines["a"].address | Warning at machines["a"].address | Something.`,
		`machines["a"].uuid | Invalid machines["a"].uuid | Found 1. Allowed: others. Use 9.`,
		`machines["c"].address | Invalid machines["c"].address | Found 3. Allowed: others. Use 8.`,
		`machines["b"].address | Warning at machines["b"].address | Something.`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%q\nwant:\n%q", got, want)
	}
}
