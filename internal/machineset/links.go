package machineset

import (
	"cmp"
	"fmt"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// The virtual IP of control planes is on the link that has the address of the machine, unless another one is given.
// Only the machine tells which that is: it is recorded, for plans that ask nobody.

// WithLinks is a set whose machines have their addresses on links, by machine.
func (p Set) WithLinks(links map[string]string) Set {
	if len(links) == 0 {
		return p
	}

	return p.Each(func(name string, m *Machine) { m.Config.Link = cmp.Or(links[name], m.Config.Link) })
}

// WithRecorded is a set whose machines have what only they and their host tell, as recorded.
func (p Set) WithRecorded(recorded Record) Set {
	return p.WithPeers(recorded.Peers()).WithLinks(recorded.Links())
}

// Links are those that WithLinks gave to machines.
func (p Set) Links() map[string]string {
	links := map[string]string{}

	for name, m := range p.Machines {
		if m.Config.Link != "" {
			links[name] = m.Config.Link
		}
	}

	return links
}

// Unlinked are the machines that are to have a virtual IP on a link that is not known yet.
func (p Set) Unlinked() []string {
	var names []string

	for _, name := range p.Names() {
		if m := p.Machines[name]; m.Config.Link == "" && machineconfig.VIPWithoutLink(p.Settings, m.Config) {
			names = append(names, name)
		}
	}

	return names
}

// refuseUnknownLinks refuses a virtual IP on links of members that state does not know: a plan could not tell whether
// their configurations change.
func (p Set) refuseUnknownLinks(recorded PriorState) finding.List {
	var found finding.List

	for _, name := range p.Unlinked() {
		if recorded.Machines[name].Access != step.Member {
			continue // the apply asks it before it is configured
		}

		found.Append(finding.Invalid(p.vipPath(name), "vip",
			fmt.Sprintf("found no link, and state does not say which one of %s has its address", name),
			"allowed is no link once a refresh asked the machine",
			"refresh while the machine answers, or set link"))
	}

	return found
}

// vipPath is the attribute that gives a machine its virtual IP.
func (p Set) vipPath(machine string) finding.Path {
	m := p.Machines[machine]

	return p.locate(machineconfig.VIPField(m.Config), m.Group, machine)
}
