package machineset

import (
	"reflect"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// The name of a machine is its key when it joins, and stays.
func TestWithNames_keepsTheNamesOfNodes(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		Own, Hostname, Node, want string
		unset, wiped              bool
	}{
		"not joined":             {Hostname: "batch-w-1", want: "batch-w-1"},
		"joined":                 {Hostname: "batch-w-1", Node: "batch-w-1", want: "batch-w-1"},
		"joined with a domain":   {Hostname: "w-1.example.org", Node: "w-1", want: "w-1.example.org"},
		"under another key":      {Hostname: "batch-w-1", Node: "storage-w-9", want: "storage-w-9"},
		"with a name of Talos's": {Hostname: "batch-w-1", Node: "talos-7gf-v4q", want: ""},
		"given":                  {Own: "w-1", Hostname: "w-1", Node: "storage-w-9", want: "w-1"},
		"seen with no name":      {Hostname: "batch-w-1", Node: "batch/w-1", want: "batch-w-1"},

		"named by DHCP":              {Hostname: "batch-w-1", Node: "rack-7", unset: true, want: ""},
		"named so by DHCP":           {Hostname: "batch-w-1", Node: "batch-w-1", unset: true, want: ""},
		"named by DHCP, node unseen": {Hostname: "batch-w-1", unset: true, want: ""},
		"named by DHCP until now":    {Own: "rack-7", Hostname: "rack-7", Node: "rack-7", unset: true, want: "rack-7"},
		"named by DHCP until a wipe": {Hostname: "batch-w-1", Node: "rack-7", unset: true, wiped: true, want: "batch-w-1"},
	} {
		p := listing(map[string]string{"batch/w-1": "10.0.0.11"})
		m := p.Machines["batch/w-1"]
		m.OwnHostname, m.Config = c.Own != "", machineconfig.Machine{Hostname: c.Hostname}
		p.Machines["batch/w-1"] = m

		state := step.MachineState{NodeName: c.Node}
		if c.wiped {
			state.Access = step.Maintenance
		}

		stored := Record{Machines: map[string]step.MachineState{"batch/w-1": state},
			Seen: record.Machines{"batch/w-1": {HostnameUnset: c.unset}}}

		if got := p.WithNames(stored).Machines["batch/w-1"].Config.Hostname; got != c.want {
			t.Errorf("%s: it is called %q, want %q", name, got, c.want)
		}

		if got := p.Machines["batch/w-1"].Config.Hostname; got != c.Hostname {
			t.Errorf("%s: the set itself has %q now", name, got)
		}
	}
}

// What an import found moves with the machine to another key, and leaves with it when other hardware takes its name.
func TestWithNames_unsetGoesWithTheMachine(t *testing.T) {
	t.Parallel()

	prior := listing(map[string]string{"batch/w-1": "10.0.0.11", "batch/w-2": "10.0.0.12"})
	stored := recordOf(prior)
	stored.Seen = record.Machines{"batch/w-1": {HostnameUnset: true}, "batch/w-2": {HostnameUnset: true}}
	p := listing(map[string]string{"batch/w-9": "10.0.0.11", "batch/w-2": "10.0.0.12 " + other})
	r, _ := NewPriorState(stored, p, prior)

	want := record.Machines{"batch/w-9": {HostnameUnset: true}, "batch/w-2 (replaced)": {HostnameUnset: true}}
	if !reflect.DeepEqual(r.Seen, want) || len(stored.Seen) != 2 || !stored.Seen["batch/w-1"].HostnameUnset {
		t.Errorf("it goes with %v; the record itself has %v", r.Seen, stored.Seen)
	}
}
