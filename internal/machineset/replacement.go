package machineset

import (
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/constants"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/network"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

// Replaces is whether a plan makes another cluster or other machines than those of state: what plan modifiers find,
// which ModifyPlan is not told. What is not known yet replaces nothing.
func (p Set) Replaces(prior Set) bool {
	differ := func(now, before string) bool { return now != "" && now != before }

	switch {
	case differ(p.Settings.Name, prior.Settings.Name) && !p.canRename(prior):
		return true
	case p.Unknown.Has(UnknownMode):
		return false
	case p.Platform() != prior.Platform(), p.otherRole(prior), p.OtherNetworks(prior):
		return true
	default:
		now, before := p.host(), prior.host()

		return differ(now.Namespace, before.Namespace) || differ(now.Domain, before.Domain)
	}
}

// CanRename is whether a cluster that gets another name stays the same one: containers are named after it, and what has
// other secrets is another cluster. Those that the provider was given are compared with what state recorded of them,
// and others are refused.
func CanRename(containers, provided bool, secrets, prior string) bool {
	return !containers && (provided || pki.SameCluster(secrets, prior))
}

func (p Set) canRename(prior Set) bool {
	return CanRename(prior.Platform().NamesNode, p.Provided || prior.Provided, p.Secrets, prior.Secrets)
}

// otherRole is whether a machine that is a resource of its own gets another role.
func (p Set) otherRole(prior Set) bool {
	role := p.Groups[0].Role

	return p.Single && role != "" && role != prior.Groups[0].Role
}

// otherWrittenNetworks is whether attributes make others of them. Those that are empty may just not be known yet.
func (p Set) otherWrittenNetworks(prior Set) bool {
	now, before := p.Settings, prior.Settings
	pods, services := machineconfig.DefaultNetworks(p.Platform().Container)

	same := func(now, before []string, fallback string) bool {
		return p.Unknown.Has(UnknownConfiguration) && (len(now) == 0 || slices.Contains(now, "")) ||
			network.Same(now, before, fallback)
	}

	return !same(now.PodCIDRs, before.PodCIDRs, pods) || !same(now.ServiceCIDRs, before.ServiceCIDRs, services) ||
		!(now.DNSDomain == "" && p.Unknown.Has(UnknownConfiguration)) &&
			!network.SameDomain(now.DNSDomain, before.DNSDomain, constants.DefaultDNSDomain)
}

// AddressesBeside are the addresses of the control planes of other resources that a set knows; nil while they are not
// known.
func (p Set) AddressesBeside() []string {
	var addresses []string

	for _, m := range p.Others {
		addresses = append(addresses, m.Address)
	}

	return addresses
}

// ToReplace is the set in a removal after which its machines are created again. others are the control planes of other
// resources that the cluster has after it, nil while they are not known: one that leaves for good is not waited for.
func (p Set) ToReplace(others []string) Set {
	p.Replaced = true

	stay := slices.DeleteFunc(slices.Clone(p.Others),
		func(m cluster.Machine) bool { return !slices.Contains(others, m.Address) })
	if len(others) > 0 && len(stay) == len(others) { // else their addresses are unknown, or change
		p.Others = stay
	}

	return p
}
