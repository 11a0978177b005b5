package machineset

import (
	"maps"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// A plan refuses a machine at the place of another one that answered there in the last read, and names that one. It
// does not refuse other names, other spellings, or machines that did not identify themselves.
func TestRefuseTakenPlaces(t *testing.T) {
	t.Parallel()

	before := map[string]string{"cp-1": "10.0.0.1", "batch/w-1": "10.0.0.11", "batch/w-2": "10.0.0.12", "batch/w-3": "fd00::13"}
	swapped := map[string]string{"batch/w-1": "10.0.0.12", "batch/w-2": "10.0.0.11"}

	for name, test := range map[string]struct {
		edit   map[string]string
		seen   map[string]string
		unseen []string
		noLook bool
		says   []string
	}{
		"nothing":                    {},
		"swapped":                    {edit: swapped, says: []string{"machines: batch/w-1 | batch/w-2", "places: batch/w-1: 10.0.0.12, where batch/w-2 answered | batch/w-2: 10.0.0.11, where batch/w-1 answered"}},
		"swapped, and state is bare": {edit: swapped, noLook: true},
		"swapped for good":           {edit: swapped, unseen: []string{"batch/w-1", "batch/w-2"}},
		"one of them moved": {edit: swapped, unseen: []string{"batch/w-1"},
			says: []string{"places: batch/w-1: 10.0.0.12, where batch/w-2 answered"}},
		"chained": {edit: map[string]string{"batch/w-1": "10.0.0.12", "batch/w-2": "10.0.0.99"},
			says: []string{"places: batch/w-1: 10.0.0.12, where batch/w-2 answered"}},
		"another spelling": {edit: map[string]string{"batch/w-1": "FD00:0::0013", "batch/w-3": "10.0.0.98"},
			says: []string{"FD00:0::0013, where batch/w-3 answered"}},
		"in small letters": {edit: map[string]string{"batch/w-1": "fd00::13", "batch/w-3": "10.0.0.98"},
			says: []string{"fd00::13, where batch/w-3 answered"}},
		"roles swapped": {edit: map[string]string{"cp-1": "10.0.0.11", "batch/w-1": "10.0.0.1"},
			says: []string{"batch/w-1: 10.0.0.1, where cp-1 answered", "cp-1: 10.0.0.11, where batch/w-1 answered"}},
		"address seen last": {edit: map[string]string{"batch/w-9": "10.0.0.77"},
			seen: map[string]string{"batch/w-1": "10.0.0.77"}, says: []string{"10.0.0.77, where batch/w-1 answered"}},
		"listed twice by hardware": {edit: map[string]string{"batch/w-9": "10.0.0.99 " + strings.ToUpper(hardwareOf("batch/w-1"))},
			says: []string{strings.ToUpper(hardwareOf("batch/w-1")) + ", which batch/w-1 reported"}},
		"renamed": {edit: map[string]string{"batch/w-1": "", "batch/w-9": "10.0.0.11"}},
		"renamed, and another in its place by hardware": {edit: map[string]string{
			"batch/w-1": "", "batch/w-9": "10.0.0.99 " + hardwareOf("batch/w-1")}},
		"renamed, and another one has its name": {edit: map[string]string{
			"batch/w-1": "10.0.0.99 " + other, "batch/w-9": "10.0.0.11"}},
		"exchanged":     {edit: map[string]string{"batch/w-1": "10.0.0.11 " + other}},
		"moved":         {edit: map[string]string{"batch/w-1": "10.0.0.99"}},
		"new":           {edit: map[string]string{"batch/w-9": "10.0.0.99"}},
		"one less":      {edit: map[string]string{"batch/w-1": ""}},
		"its successor": {edit: map[string]string{"batch/w-1": "", "batch/w-9": "10.0.0.11 " + other}},
	} {
		after := maps.Clone(before)
		maps.Copy(after, test.edit)
		maps.DeleteFunc(after, func(_, text string) bool { return text == "" })

		prior, p := listing(before), listing(after)
		stored := recordOf(prior)

		for name, address := range test.seen {
			stored.Seen.Change(name, func(m *record.Machine) { m.Address = address })
		}

		if !test.noLook {
			p.LastLook = &LastLook{Unseen: test.unseen}
		}

		recorded, _ := NewPriorState(stored, p, prior)
		found := refuseTakenPlaces(p, prior, stored, recorded)

		if len(found) != min(len(test.says), 1) {
			t.Errorf("%s: %v, want %q", name, found, test.says)

			continue
		}

		for _, says := range test.says {
			if !strings.Contains(args(found[0]), says) {
				t.Errorf("%s: %q, want %q", name, args(found[0]), says)
			}
		}
	}
}

// An address of one machine and an endpoint of another one can be the same place.
func TestValidate_endpointOfAnotherAddress(t *testing.T) {
	t.Parallel()

	for endpoint, want := range map[string]bool{"10.0.0.11:50000": true, "10.0.0.11:50001": false, "10.0.0.99:50000": false} {
		p := listing(map[string]string{"batch/w-1": "10.0.0.11", "batch/w-2": "10.0.0.12"})
		m := p.Machines["batch/w-2"]
		m.Endpoint = endpoint
		p.Machines["batch/w-2"] = m

		found := validateMachines(p)
		if got := len(found.Errors()) > 0; got != want {
			t.Errorf("%s: %v", endpoint, found)
		}
	}
}
