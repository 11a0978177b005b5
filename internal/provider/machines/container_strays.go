package machines

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
)

// The host may have machines of a pool that no state knows of: those of a run that was killed before its state was stored. They hold
// secrets of the cluster, and may be members of etcd, so that they leave as machines do that were taken out of the configuration.

// openAll is open for all machines that the host has of a pool: those that nobody wants or knows are added to leaving, a list of the
// record. It asks the host cluster, and nobody on metal.
func (m *ProviderData) openAll(ctx context.Context, p MachineSet, recorded *PriorState, leaving *[]cluster.Machine, render bool) (*session, error) {
	s, err := m.Open(ctx, p, *recorded, render)
	if err != nil || s.route.Host == nil {
		return s, err
	}

	// A host that is silent shows no strays; the operation, which gets the same answer, ends with that before it does anything.
	seen, _ := s.firstObservation(ctx)

	strays := recorded.orphans(p, seen.Orphans)
	if len(strays) == 0 {
		return s, nil
	}

	s.Close()

	*leaving = append(*leaving, strays...)

	return m.Open(ctx, p, *recorded, render)
}

// orphans are the machines of a pool that its host has, and that are neither wanted nor known to leave.
func (r PriorState) orphans(p MachineSet, labels []string) []cluster.Machine {
	var strays []cluster.Machine

	for _, label := range labels {
		m, ok := p.orphan(label)
		if _, wanted := p.Machines[m.Name]; !ok || wanted || r.leaves(m.Name) {
			continue
		}

		m.MemberID = r.members[m.Name]
		strays = append(strays, m)
	}

	return strays
}

// orphan is a machine by what it is called on the host; ok is false for one that is of none of the groups.
func (p MachineSet) orphan(label string) (m cluster.Machine, ok bool) {
	dash := strings.LastIndexByte(label, '-')
	ordinal, err := strconv.Atoi(label[dash+1:])

	i := slices.IndexFunc(p.groups, func(g *Group) bool { return dash > 0 && g.hostPool() == label[:dash] })
	if err != nil || i < 0 {
		return cluster.Machine{}, false
	}

	g := p.groups[i]
	identity := workload.Machine{Pool: g.hostPool(), Ordinal: ordinal}

	return cluster.Machine{
		Name: g.Replica(ordinal), Role: g.Role, Pool: g.Pool, Container: true,
		Address: p.Host.addressOf(p.Settings.Name, identity), NodeName: p.Host.nameOf(p.Settings.Name, identity),
	}, true
}

// recordOrphans puts machines that leave, and of which nothing was ever seen, into what was observed, so that a plan says what becomes
// of them. It takes them for blank, as pods are that have just been made; the run asks them what they are.
func recordOrphans(values map[string]attr.Value, strays []cluster.Machine) {
	for _, m := range strays {
		if _, known := values[m.Name]; !known {
			values[m.Name] = ConfiguredMachine(cluster.ApplyConfig{}, cluster.MachineState{Stage: cluster.StageMaintenance}, nil, m.Address)
		}
	}
}

// newOrphans are those that were not observed yet.
func (h *HostReport) newOrphans(p MachineSet, recorded PriorState) []cluster.Machine {
	if h == nil {
		return nil
	}

	return recorded.orphans(p, h.orphans)
}
