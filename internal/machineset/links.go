package machineset

import (
	"cmp"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// The virtual IP of a control plane is on the link with the machine's address, unless another one is given. Only the
// machine knows that link, so it is recorded for plans, which do no I/O.

// WithLinks is a set with the links of its machines' addresses, by machine.
func (p Set) WithLinks(links map[string]string) Set {
	if len(links) == 0 {
		return p
	}

	return p.Each(func(name string, m *Machine) { m.Config.Link = cmp.Or(links[name], m.Config.Link) })
}

// WithRecorded is a set with the recorded facts that only its machines and their host know.
func (p Set) WithRecorded(recorded Record) Set {
	return p.WithPeers(recorded.Peers()).WithLinks(recorded.Links())
}

// Links are those from WithLinks.
func (p Set) Links() map[string]string {
	links := map[string]string{}

	for name, m := range p.Machines {
		if m.Config.Link != "" {
			links[name] = m.Config.Link
		}
	}

	return links
}

// Unlinked are the machines with a virtual IP on an unknown link.
func (p Set) Unlinked() []string {
	var names []string

	for _, name := range p.Names() {
		if m := p.Machines[name]; m.Config.Link == "" && machineconfig.VIPWithoutLink(p.Settings, m.Config) {
			names = append(names, name)
		}
	}

	return names
}

// refuseUnknownLinks refuses a virtual IP on unrecorded links of members: a plan cannot know whether their
// configurations change.
func (p Set) refuseUnknownLinks(recorded PriorState) finding.List {
	var (
		machines []string
		at       []finding.Path
	)

	for _, name := range p.Unlinked() {
		if recorded.Machines[name].Access != step.Member {
			continue // the apply asks it before it is configured
		}

		machines, at = append(machines, name), append(at, p.vipPath(name))
	}

	if len(machines) == 0 {
		return nil
	}

	return finding.List{linkUnknown.At(finding.Common(at), finding.Args{"machines": machines})}
}

// vipPath is the attribute that gives a machine its virtual IP.
func (p Set) vipPath(machine string) finding.Path {
	m := p.Machines[machine]

	return p.locate(machineconfig.VIPField(m.Config), m.Group, machine)
}
