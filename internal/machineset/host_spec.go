package machineset

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
)

// HostSpec is what the machines of a set in containers are to have on the host cluster: those that are wanted, and
// those that the record gives up. mark is that of the secrets (pki.Bundle.Mark).
func (p Set) HostSpec(recorded PriorState, mark string) workload.Spec {
	h := p.Host
	spec := workload.Spec{
		Cluster: p.Settings.Name, Mark: mark, Namespace: h.Namespace, CreateNamespace: h.CreateNamespace, Domain: h.Domain,
		Access: h.Access, Isolated: p.Settings.Isolated,
		Endpoint: h.Endpoint, Labels: h.Labels, Annotations: h.Annotations,
	}

	spec.PodCIDRs, spec.ServiceCIDRs = p.networks()

	for _, name := range p.Names() {
		m := p.Machines[name]
		spec.Machines = append(spec.Machines, workload.Machine{
			Name: name, Pool: m.Group.HostPool(), Ordinal: m.Ordinal, Role: workload.Role(m.Group.Role),
			Image: m.Image, PullSecrets: h.PullSecrets, Pod: m.Pod, PeerAddress: m.Config.PeerAddress,
		})
	}

	for _, m := range recorded.leaving() {
		if gone, ok := p.formerly(m); ok {
			spec.Machines = append(spec.Machines, gone)
		}
	}

	return spec
}

// networksOr are networks, or the one that is taken where none are given. What is no network is refused where a user
// can correct it.
func networksOr(cidrs []string, fallback string) []netip.Prefix {
	if len(cidrs) == 0 {
		cidrs = []string{fallback}
	}

	var networks []netip.Prefix

	for _, cidr := range cidrs {
		if network, err := netip.ParsePrefix(cidr); err == nil {
			networks = append(networks, network)
		}
	}

	return networks
}

// formerly is a machine on the host that is to go. What it is called there follows from its name.
func (p Set) formerly(m cluster.Machine) (workload.Machine, bool) {
	if _, wanted := p.Machines[m.Name]; wanted || !p.Platform().NamesNode {
		return workload.Machine{}, false
	}

	of, number, ok := strings.Cut(m.Name, PoolSeparator)
	if !ok {
		i := max(strings.LastIndexByte(m.Name, '-'), 0)
		of, number = m.Name[:i], strings.TrimPrefix(m.Name[i:], "-")
	}

	ordinal, err := strconv.Atoi(number)
	if err != nil || of == "" {
		return workload.Machine{}, false
	}

	return workload.Machine{Name: m.Name, Pool: of, Ordinal: ordinal, Role: workload.Role(m.Role), Image: p.imageOfPool(),
		Leaving: true}, true
}

// imageOfPool is any image of the pool: for machines that go it only has to be one.
func (p Set) imageOfPool() string {
	for _, name := range p.Names() {
		return p.Machines[name].Image
	}

	return p.Host.Image
}

// Unplaced is a set in containers of which it is not known what they are called and where they answer. What a wrong
// name or a missing host leads to is no mistake of its own. endpointOfNames is whether their endpoint may be made of
// them.
func (p Set) Unplaced(endpointOfNames bool) Set {
	p = p.Each(func(_ string, m *Machine) { m.Address, m.Config.Hostname, m.Config.CertSANs = "", "", nil })
	p.Unknown.Note(UnknownConfiguration, true)

	if endpointOfNames {
		p.Settings.Endpoint = "" // it is made of the names
	}

	return p
}
