package machines

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// HostSpec is what the machines of a pool in containers are to have on the host cluster: those that are wanted, and those that
// the record gives up. mark is that of the secrets (pki.Bundle.Mark).
func (p MachineSet) HostSpec(recorded PriorState, mark string) workload.Spec {
	h := p.Host
	spec := workload.Spec{
		Cluster: p.Settings.Name, Mark: mark, Namespace: h.namespace, CreateNamespace: h.createNamespace, Domain: h.domain, Access: h.access,
		Endpoint: h.endpoint, Labels: h.labels, Annotations: h.annotations,
		PodCIDRs: networksOr(p.Settings.PodCIDRs, machineconfig.ContainerPodCIDR), ServiceCIDRs: networksOr(p.Settings.ServiceCIDRs, machineconfig.ContainerServiceCIDR),
	}

	for _, name := range p.names() {
		m := p.Machines[name]
		spec.Machines = append(spec.Machines, workload.Machine{
			Name: name, Pool: m.Group.hostPool(), Ordinal: m.ordinal, Role: workload.Role(m.Group.Role),
			Image: m.image, PullSecrets: h.pullSecrets, Pod: m.Pod, PeerAddress: m.config.PeerAddress,
		})
	}

	for _, m := range recorded.removed {
		if gone, ok := p.formerly(m); ok {
			spec.Machines = append(spec.Machines, gone)
		}
	}

	return spec
}

// networksOr are networks, or the one that is taken where none are given. What is no network is refused where a user can correct it.
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
func (p MachineSet) formerly(m cluster.Machine) (workload.Machine, bool) {
	if _, wanted := p.Machines[m.Name]; wanted || p.Host == nil {
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

	return workload.Machine{Name: m.Name, Pool: of, Ordinal: ordinal, Role: workload.Role(m.Role), Image: p.imageOfPool(), Leaving: true}, true
}

// imageOfPool is any image of the pool: for machines that go it only has to be one.
func (p MachineSet) imageOfPool() string {
	for _, name := range p.names() {
		return p.Machines[name].image
	}

	return p.Host.image
}
