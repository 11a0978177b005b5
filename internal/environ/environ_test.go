package environ_test

import (
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/environ"
)

func TestSwitch(t *testing.T) {
	const name = "TALOSOP_TEST_SWITCH"

	if on, err := environ.Switch(name); on || err != nil {
		t.Errorf("unset: %v, %v; want off", on, err)
	}

	for value, want := range map[string]bool{
		"1": true, "t": true, "T": true, "true": true, "TRUE": true, "True": true,
		"0": false, "f": false, "F": false, "false": false, "FALSE": false, "False": false,
	} {
		t.Setenv(name, value)

		if on, err := environ.Switch(name); on != want || err != nil {
			t.Errorf("%q: %v, %v; want %v", value, on, err, want)
		}
	}

	for _, value := range []string{"", " ", "yes", "no", "on", "off", "2", "-1", "tRUE", "true ", " true", "enabled", `"true"`} {
		t.Setenv(name, value)

		_, err := environ.Switch(name)
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "true, false") {
			t.Errorf("%q: %v; want an error with the variable and what is allowed", value, err)
		}
	}
}
