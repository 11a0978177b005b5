package machineset

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
)

// HostSpec is what the machines of a set in containers need on the host cluster: the wanted machines and the leaving
// ones of the record. mark identifies the secrets (pki.Bundle.Mark).
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

// networksOr are the networks, or the default where none are given. Invalid networks are refused where a user can
// correct them.
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

// formerly is a machine on the host that leaves. Its name there follows from its name.
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

// imageOfPool is any image of the pool, which is all that leaving machines need.
func (p Set) imageOfPool() string {
	for _, name := range p.Names() {
		return p.Machines[name].Image
	}

	return p.Host.Image
}

// Unplaced is a set in containers with unknown names and addresses. Errors that only follow from a wrong name or a
// missing host are not reported. endpointOfNames is true when their endpoint may be derived from the names.
func (p Set) Unplaced(endpointOfNames bool) Set {
	p = p.Each(func(_ string, m *Machine) { m.Address, m.Config.Hostname, m.Config.CertSANs = "", "", nil })
	p.Unknown.Note(UnknownConfiguration, true)

	if endpointOfNames {
		p.Settings.Endpoint = "" // it is derived from the names
	}

	return p
}
