package provider

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
func (m *machinery) openAll(ctx context.Context, p pool, recorded *recordedPool, leaving *[]cluster.Machine, render bool) (*session, error) {
	s, err := m.open(ctx, p, *recorded, render)
	if err != nil || s.route.host == nil {
		return s, err
	}

	// A host that is silent shows no strays; the operation, which gets the same answer, ends with that before it does anything.
	seen, _ := s.firstLook(ctx)

	strays := recorded.strays(p, seen.Strays)
	if len(strays) == 0 {
		return s, nil
	}

	s.close()

	*leaving = append(*leaving, strays...)

	return m.open(ctx, p, *recorded, render)
}

// strays are the machines of a pool that its host has, and that are neither wanted nor known to leave.
func (r recordedPool) strays(p pool, labels []string) []cluster.Machine {
	var strays []cluster.Machine

	for _, label := range labels {
		m, ok := p.stray(label)
		if _, wanted := p.machines[m.Name]; !ok || wanted || r.leaves(m.Name) {
			continue
		}

		m.MemberID = r.members[m.Name]
		strays = append(strays, m)
	}

	return strays
}

// stray is a machine by what it is called on the host; ok is false for one that is of none of the groups.
func (p pool) stray(label string) (m cluster.Machine, ok bool) {
	dash := strings.LastIndexByte(label, '-')
	ordinal, err := strconv.Atoi(label[dash+1:])

	i := slices.IndexFunc(p.groups, func(g *group) bool { return dash > 0 && g.hostPool() == label[:dash] })
	if err != nil || i < 0 {
		return cluster.Machine{}, false
	}

	g := p.groups[i]
	identity := workload.Machine{Pool: g.hostPool(), Ordinal: ordinal}

	return cluster.Machine{
		Name: g.replica(ordinal), Role: g.role, Pool: g.pool, Container: true,
		Address: p.host.addressOf(p.settings.Name, identity), NodeName: p.host.nameOf(p.settings.Name, identity),
	}, true
}

// recordStrays puts machines that leave, and of which nothing was ever seen, into what was observed, so that a plan says what becomes
// of them. It takes them for blank, as pods are that have just been made; the run asks them what they are.
func recordStrays(values map[string]attr.Value, strays []cluster.Machine) {
	for _, m := range strays {
		if _, known := values[m.Name]; !known {
			values[m.Name] = configuredMachine(cluster.ApplyConfig{}, cluster.MachineState{Stage: cluster.StageMaintenance}, nil, m.Address)
		}
	}
}

// newStrays are those that were not observed yet.
func (h *hostReport) newStrays(p pool, recorded recordedPool) []cluster.Machine {
	if h == nil {
		return nil
	}

	return recorded.strays(p, h.strays)
}
