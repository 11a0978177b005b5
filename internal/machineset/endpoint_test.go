package machineset

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

func TestCanonicalEndpoint(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"10.0.0.11":         "10.0.0.11",
		"10.0.0.11:50000":   "10.0.0.11",
		"10.0.0.11:050001":  "10.0.0.11:50001",
		"CP-1.example.:443": "cp-1.example:443",
		"fd00::11":          "fd00::11",
		"[fd00::0011]:4001": "[fd00::11]:4001",
	} {
		if got, err := CanonicalEndpoint(text); err != nil || got != want {
			t.Errorf("%s is %q (%v), want %q", text, got, err, want)
		}
	}

	for text, want := range map[string]string{
		"10.0.0.11:0":       "a port from 1 to 65535",
		"10.0.0.11:70000":   "a port from 1 to 65535",
		"10.0.0.11:ssh":     "a port from 1 to 65535",
		"https://10.0.0.11": "scheme",
		"https://a.b:50000": "scheme",
		"[fd00::11]":        "brackets",
		":50000":            "an IP address such as",
		"10.0.0.11:1:2":     "leave out the port",
	} {
		if got, err := CanonicalEndpoint(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is %q, and the error is %v, want %q", text, got, err, want)
		}
	}
}

func TestReached(t *testing.T) {
	t.Parallel()

	for _, c := range []struct{ address, endpoint, own, dialed string }{
		{"10.0.0.11", "", "10.0.0.11", ""},
		{"10.0.0.11:4001", "", "10.0.0.11", "10.0.0.11:4001"},
		{"[fd00::11]:4001", "", "fd00::11", "[fd00::11]:4001"},
		{"10.0.0.11", "203.0.113.5", "10.0.0.11", "203.0.113.5:50000"},
		{"10.0.0.11", "203.0.113.5:4001", "10.0.0.11", "203.0.113.5:4001"},
		{"10.0.0.11", "fd00::5", "10.0.0.11", "[fd00::5]:50000"},
		{"", "", "", ""},
	} {
		if own, dialed := Reached(c.address, c.endpoint); own != c.own || dialed != c.dialed {
			t.Errorf("%s with %q is %s at %q, want %s at %q", c.address, c.endpoint, own, dialed, c.own, c.dialed)
		}
	}
}

func TestSameEndpoint(t *testing.T) {
	t.Parallel()

	m := Machine{Wanted: cluster.Wanted{Address: "10.0.0.11", Endpoint: "203.0.113.5:4001"}}
	for text, want := range map[string]bool{"10.0.0.11": true, "203.0.113.5:4001": true, "203.0.113.5:4002": false,
		"203.0.113.5": false, "10.0.0.11:50000": true, "": false} {
		if got := m.SameEndpoint(text); got != want {
			t.Errorf("%q is the machine: %t", text, got)
		}
	}
}

// Every control plane is listed once, with those of the set first.
func TestControlPlaneAddresses(t *testing.T) {
	t.Parallel()

	cp, workers := &Group{Role: step.ControlPlane}, &Group{Role: step.Worker}
	p := Set{
		Groups: []*Group{cp, workers},
		Machines: map[string]Machine{
			"w": {Group: workers, Wanted: cluster.Wanted{Address: "10.0.0.9"}}, "b": {Group: cp, Wanted: cluster.Wanted{Address: "10.0.0.2"}},
			"a": {Group: cp, Wanted: cluster.Wanted{Address: "10.0.0.1"}}, "c": {Group: cp},
			"imported": {Wanted: cluster.Wanted{Address: "10.0.0.8"}},
		},
		Endpoints: []string{"10.0.0.3:4001", "10.0.0.2"},
		Others:    []cluster.Machine{{Wanted: cluster.Wanted{Address: "10.0.0.4"}}, {Wanted: cluster.Wanted{Address: "10.0.0.1"}}},
	}

	want := []string{"10.0.0.1", "10.0.0.2", "10.0.0.3:4001", "10.0.0.4"}
	if got := p.ControlPlaneAddresses(); !slices.Equal(got, want) {
		t.Errorf("addresses %v, want %v", got, want)
	}
}

// A machine that an update left behind is in no list. It is reached like the machines of its pool.
func TestNewPriorState_leftBehindIsReachedAsItsPool(t *testing.T) {
	t.Parallel()

	workers := &Group{Role: step.Worker, Prefix: "batch/", Pool: "batch"}

	for _, through := range []bool{true, false} {
		prior := Set{Groups: []*Group{workers}, Machines: map[string]Machine{
			"batch/a": {Group: workers, Wanted: cluster.Wanted{Address: "10.0.0.1", Through: true}},
			"batch/b": {Group: workers, Wanted: cluster.Wanted{Address: "10.0.0.2", Through: through}},
		}}

		r, _ := NewPriorState(Record{
			Machines: map[string]step.MachineState{"batch/left": {Access: step.Member}},
			Seen:     record.Machines{"batch/left": {Address: "10.0.0.9"}},
		}, prior, prior)
		if len(r.Removed) != 1 || r.Removed[0].Through != through {
			t.Errorf("removed %+v", r.Removed)
		}
	}
}

// Machines that leave are reached as state has them, unless their addresses now belong to others.
func TestDialedAt_ofMachinesThatLeave(t *testing.T) {
	t.Parallel()

	workers := &Group{Role: step.Worker, At: finding.Root("workers")}
	set := func(machines map[string]Machine) Set {
		for name, m := range machines {
			m.Group, m.Key = workers, name
			machines[name] = m
		}

		return Set{Groups: []*Group{workers}, Machines: machines}
	}
	prior := set(map[string]Machine{
		"leaves":    {Wanted: cluster.Wanted{Address: "10.0.0.1", Endpoint: "nat:4001", WaitsAt: "10.0.0.101"}},
		"is passed": {Wanted: cluster.Wanted{Address: "10.0.0.2", UUID: "aaaa", Through: true, Endpoint: "nat:4002"}},
		"stays":     {Wanted: cluster.Wanted{Address: "10.0.0.3", Endpoint: "nat:4003"}},
	})
	p := set(map[string]Machine{
		"stays": {Wanted: cluster.Wanted{Address: "10.0.0.3"}}, "is new": {Wanted: cluster.Wanted{Address: "10.0.0.2", UUID: "bbbb", WaitsAt: "10.0.0.102"}},
	})

	r, diags := NewPriorState(Record{Machines: map[string]step.MachineState{
		"leaves": {Access: step.Member}, "is passed": {Access: step.Member, UUID: "aaaa"},
		"stays": {Access: step.Member},
	}}, p, prior)
	if diags.HasError() {
		t.Fatal(diags)
	}

	for _, m := range r.Removed {
		if was := prior.Machines[m.Name]; m.Through != was.Through || m.WaitsAt != was.WaitsAt {
			t.Errorf("%s leaves by another way: %+v", m.Name, m)
		}
	}

	p.Leaving = r.Removed

	if dialed := p.DialedAt(); !maps.Equal(dialed, map[string]string{"10.0.0.1": "nat:4001"}) {
		t.Errorf("dialed at %v", dialed)
	}
}
