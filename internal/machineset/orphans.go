package machineset

import (
	"slices"
	"strconv"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
)

// Orphans are the machines of a set that its host has, and that are neither wanted nor known to leave.
func (r PriorState) Orphans(p Set, labels []string) []cluster.Machine {
	var orphans []cluster.Machine

	for _, label := range labels {
		m, ok := p.orphan(label)
		if _, wanted := p.Machines[m.Name]; !ok || wanted || r.leaves(m.Name) {
			continue
		}

		m.MemberID = r.Seen[m.Name].MemberID
		orphans = append(orphans, m)
	}

	return orphans
}

// orphan is a machine from its name on the host; ok is false for a name of none of the groups.
func (p Set) orphan(label string) (m cluster.Machine, ok bool) {
	dash := strings.LastIndexByte(label, '-')
	ordinal, err := strconv.Atoi(label[dash+1:])

	i := slices.IndexFunc(p.Groups, func(g *Group) bool { return dash > 0 && g.HostPool() == label[:dash] })
	if err != nil || i < 0 {
		return cluster.Machine{}, false
	}

	g := p.Groups[i]
	identity := workload.Machine{Pool: g.HostPool(), Ordinal: ordinal}

	return cluster.Machine{
		Name: g.Replica(ordinal), Role: g.Role, Pool: g.Pool, Container: true,
		Wanted:     cluster.Wanted{Address: p.Host.AddressOf(p.Settings.Name, identity)},
		Remembered: cluster.Remembered{NodeName: p.Host.NameOf(p.Settings.Name, identity)},
	}, true
}
