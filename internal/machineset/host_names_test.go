package machineset

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// A machine is called what its key says when it joins, and keeps that name.
func TestWithNames_keepsTheNamesOfNodes(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		Own, Hostname, Node, want string
	}{
		"not joined":             {Hostname: "batch-w-1", want: "batch-w-1"},
		"joined":                 {Hostname: "batch-w-1", Node: "batch-w-1", want: "batch-w-1"},
		"joined with a domain":   {Hostname: "w-1.example.org", Node: "w-1", want: "w-1.example.org"},
		"under another key":      {Hostname: "batch-w-1", Node: "storage-w-9", want: "storage-w-9"},
		"with a name of Talos's": {Hostname: "batch-w-1", Node: "talos-7gf-v4q", want: ""},
		"given":                  {Own: "w-1", Hostname: "w-1", Node: "storage-w-9", want: "w-1"},
		"seen with no name":      {Hostname: "batch-w-1", Node: "batch/w-1", want: "batch-w-1"},
	} {
		p := listing(map[string]string{"batch/w-1": "10.0.0.11"})
		m := p.Machines["batch/w-1"]
		m.OwnHostname, m.Config = c.Own != "", machineconfig.Machine{Hostname: c.Hostname}
		p.Machines["batch/w-1"] = m

		record := Record{Machines: map[string]cluster.MachineState{"batch/w-1": {NodeName: c.Node}}}

		if got := p.WithNames(record).Machines["batch/w-1"].Config.Hostname; got != c.want {
			t.Errorf("%s: it is called %q, want %q", name, got, c.want)
		}

		if got := p.Machines["batch/w-1"].Config.Hostname; got != c.Hostname {
			t.Errorf("%s: the set itself has %q now", name, got)
		}
	}
}
