package statuspage

import (
	"cmp"
	"maps"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/health"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// Expected is a machine of a resource in an apply.
type Expected struct {
	// Name is its key in the resource, Node the name of its node, and Address where it is reached; empty when unknown.
	Name, Node, Address string
	Pool                string
	ControlPlane        bool
	// Talos is its wanted version, and State what is known of it, such as "booting".
	Talos, State string
}

// Applying is a cluster during an apply. What an apply does not observe, such as certificates, is left out, and a
// machine that does not work yet waits.
func Applying(o Observation, run Run) Cluster {
	o.Talos, o.index = o.wantedTalos(), o.indexed()

	c := o.cluster()
	c.Run, c.Conditions, c.Certificates = &run, nil, nil

	if c.Etcd.Cause != "" {
		c.Etcd = nil
	}

	for _, m := range c.all() {
		m.Problems = slices.DeleteFunc(m.Problems, func(p Problem) bool { return p.Kind == NotKnown })

		for i := range m.Problems {
			if m.Problems[i].Kind == Broken {
				m.Problems[i].Kind = Waiting
			}
		}
	}

	machines := c.byName()

	for _, e := range o.Machines {
		if machines[e.Name] == nil {
			c.expect(e)
		}
	}

	machines, c.Versions = c.byName(), o.versions(c)

	for _, w := range run.Waits {
		if m := machines[w.Machine]; m != nil {
			m.Problems = append(m.Problems, Problem{Waiting, w.Reason})
		}
	}

	for _, s := range run.Steps {
		if m := machines[s.Machine]; m != nil && s.State == Running {
			m.Problems = append(m.Problems, Problem{Working, cmp.Or(s.Reason, s.Text)})
		}
	}

	return c
}

// wantedTalos is the Talos of all machines of an apply; empty when they are to run several.
func (o Observation) wantedTalos() string {
	versions := map[string]bool{}
	for _, m := range o.Machines {
		versions[m.Talos] = true
	}

	if len(versions) != 1 {
		return o.Talos
	}

	return slices.Collect(maps.Keys(versions))[0]
}

// all are the machines of a cluster, for changes.
func (c *Cluster) all() []*Machine {
	var out []*Machine

	for i := range c.ControlPlanes {
		out = append(out, &c.ControlPlanes[i])
	}

	for _, p := range c.Pools {
		for i := range p.Machines {
			out = append(out, &p.Machines[i])
		}
	}

	return out
}

// byName are the machines of a cluster by their names, for changes.
func (c *Cluster) byName() map[string]*Machine {
	out := map[string]*Machine{}
	for _, m := range c.all() {
		out[m.Name] = m
	}

	return out
}

// expect adds a machine of a resource that was not observed as part of the cluster.
func (c *Cluster) expect(e Expected) {
	m := Machine{Name: e.Name, Address: e.Address}
	if e.State != "" {
		m.Problems = []Problem{{Waiting, e.State}}
	}

	if e.ControlPlane {
		c.ControlPlanes = append(c.ControlPlanes, m)

		return
	}

	i := slices.IndexFunc(c.Pools, func(p Pool) bool { return p.Name == e.Pool })
	if i < 0 {
		i = len(c.Pools)
		c.Pools = append(c.Pools, Pool{Name: e.Pool})
	}

	c.Pools[i].Machines = append(c.Pools[i].Machines, m)
}

// indexed are the machines of the resources by the names of their nodes and by their addresses.
func (o Observation) indexed() map[string]Expected {
	index := map[string]Expected{}

	for _, e := range o.Machines {
		index["node "+cmp.Or(e.Node, e.Name)] = e
		index["address "+e.Address] = e
	}

	return index
}

// known is the machine of a resource that was observed.
func (o Observation) known(m health.Machine) (Expected, bool) {
	for _, key := range []string{"node " + m.Name, "address " + m.Address} {
		if e, known := o.index[key]; known && e.ControlPlane == (m.Role == step.ControlPlane) {
			return e, true
		}
	}

	return Expected{}, false
}
