package machineset

import (
	"maps"
	"slices"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// A machine is called what its key says when it joins, and keeps that name.
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

		state := cluster.MachineState{NodeName: c.Node}
		if c.wiped {
			state.Access = step.Maintenance
		}

		record := Record{Machines: map[string]cluster.MachineState{"batch/w-1": state},
			HostnameUnset: map[string]bool{"batch/w-1": c.unset}}

		if got := p.WithNames(record).Machines["batch/w-1"].Config.Hostname; got != c.want {
			t.Errorf("%s: it is called %q, want %q", name, got, c.want)
		}

		if got := p.Machines["batch/w-1"].Config.Hostname; got != c.Hostname {
			t.Errorf("%s: the set itself has %q now", name, got)
		}
	}
}

// What an import found goes with the machine to another key, and leaves with it where other hardware takes its name.
func TestWithNames_unsetGoesWithTheMachine(t *testing.T) {
	t.Parallel()

	prior := listing(map[string]string{"batch/w-1": "10.0.0.11", "batch/w-2": "10.0.0.12"})
	record := recordOf(prior)
	record.HostnameUnset = map[string]bool{"batch/w-1": true, "batch/w-2": true}
	p := listing(map[string]string{"batch/w-9": "10.0.0.11", "batch/w-2": "10.0.0.12 " + other})
	r, _ := NewPriorState(record, p, prior)

	want := map[string]bool{"batch/w-9": true, "batch/w-2 (replaced)": true}
	if !maps.Equal(r.HostnameUnset, want) || len(record.HostnameUnset) != 2 || !record.HostnameUnset["batch/w-1"] {
		t.Errorf("it goes with %v; the record itself has %v", r.HostnameUnset, record.HostnameUnset)
	}

	files := Rendered{Nodes: map[string]string{"batch/w-9": "", "batch/w-2": "batch-w-2"}}
	for name, open := range map[string]bool{"batch/w-9": false, "batch/w-2": true} {
		if got := r.forecastMachines(p, files, nil)[name].Open; slices.Contains(got, FieldHostnameUnset) != open {
			t.Errorf("of %s the plan leaves open %v", name, got)
		}
	}
}
