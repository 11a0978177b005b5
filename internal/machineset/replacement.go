package machineset

import (
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/constants"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/network"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

// Replaces reports whether a plan makes another cluster or other machines than those of state. Plan modifiers decide
// that, and ModifyPlan does not receive it. Unknown values replace nothing.
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

// CanRename reports whether a renamed cluster stays the same one. Containers are named after it, and other secrets
// mean another cluster. Secrets of the provider are compared with the recorded digest, and different ones are
// refused.
func CanRename(containers, provided bool, secrets, prior string) bool {
	return !containers && (provided || pki.SameCluster(secrets, prior))
}

func (p Set) canRename(prior Set) bool {
	return CanRename(prior.Platform().NamesNode, p.Provided || prior.Provided, p.Secrets, prior.Secrets)
}

// otherRole reports whether a machine that is its own resource gets another role.
func (p Set) otherRole(prior Set) bool {
	role := p.Groups[0].Role

	return p.Single && role != "" && role != prior.Groups[0].Role
}

// otherWrittenNetworks reports whether the attributes of the networks differ. Empty ones may be unknown.
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

// AddressesBeside are the known addresses of control planes of other resources; nil while they are unknown.
func (p Set) AddressesBeside() []string {
	var addresses []string

	for _, m := range p.Others {
		addresses = append(addresses, m.Address)
	}

	return addresses
}

// ToReplace is the set in a removal after which its machines are created again. others are the control planes of
// other resources that the cluster has afterward, nil while they are unknown: a control plane that leaves permanently
// is not waited for.
func (p Set) ToReplace(others []string) Set {
	p.Replaced = true

	stay := slices.DeleteFunc(slices.Clone(p.Others),
		func(m cluster.Machine) bool { return !slices.Contains(others, m.Address) })
	if len(others) > 0 && len(stay) == len(others) { // otherwise their addresses are unknown, or change
		p.Others = stay
	}

	return p
}
