package machineset

import (
	"fmt"
	"net/url"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

// Identity identifies the cluster of a set within a process by the mark of its secrets. An isolated cluster also
// needs its endpoint, because another cluster has the same secrets.
func (p Set) Identity(bundle *pki.Bundle) string {
	if !p.Settings.Isolated {
		return bundle.Mark()
	}

	return bundle.Mark() + " isolated at " + p.Settings.Endpoint
}

// refuseIsolation refuses to isolate machines that joined a cluster, or to end their isolation. Machines with
// discovery would join the other cluster with the same secrets, and machines without it are already in that cluster.
func refuseIsolation(p, prior Set, recorded PriorState) finding.List {
	if p.Unknown.Has(UnknownConfiguration) || p.Settings.Isolated == prior.Settings.Isolated || !recorded.HasMembers() {
		return nil
	}

	return finding.List{isolationChange.At(p.ClusterPath("isolated"), finding.Args{"cluster": p.Settings.Name,
		"from": prior.Settings.Isolated, "to": p.Settings.Isolated})}
}

// refuseOutsideOfCluster refuses a pool in containers that joins an isolated cluster by its handle. Without DNS, it
// finds the endpoint only if the resource of the control planes configures the address.
func (p Set) refuseOutsideOfCluster() finding.List {
	if !p.Platform().inside || !p.InHandle || !p.Settings.Isolated {
		return nil
	}

	return finding.List{isolatedPool.At(p.ClusterPath("isolated"), finding.Args{"cluster": p.Settings.Name})}
}

// AddressConflictError is an address of an isolated cluster that another cluster uses.
type AddressConflictError struct {
	At             finding.Path
	Reason, Remedy string
}

func (c *AddressConflictError) Error() string { return c.Reason }

// RefuseAddressesOf finds an address of an isolated set that a member in the snapshot uses; nil when there is none.
// Machines would connect to it, or answer in its place.
func (p Set) RefuseAddressesOf(members []string) *AddressConflictError {
	for _, own := range p.ownAddresses() {
		same := func(member string) bool { return SameAddress(member, own.address) }
		if slices.ContainsFunc(members, same) {
			return &AddressConflictError{At: own.at, Reason: fmt.Sprintf("%s is %s, and in the snapshot a member of its "+
				"cluster has that address", own.what, own.address),
				Remedy: "Give the isolated cluster machines, an endpoint and `cert_sans` that the other cluster does not have."}
		}
	}

	return nil
}

// ownAddress is a configured address of a cluster: its attribute, its meaning and the address.
type ownAddress struct {
	at            finding.Path
	what, address string
}

// ownAddresses are all addresses in attributes and patches.
func (p Set) ownAddresses() []ownAddress {
	var own []ownAddress

	if endpoint, err := url.Parse(p.Settings.Endpoint); err == nil {
		own = append(own, ownAddress{p.ClusterPath("endpoint"), "the host of endpoint", endpoint.Hostname()})
	}

	for i, name := range p.Settings.CertSANs {
		own = append(own, ownAddress{p.ClusterPath("cert_sans").AtListIndex(i), fmt.Sprintf("cert_sans[%d]", i), name})
	}

	for _, name := range p.Names() {
		m, at := p.Machines[name], p.placeOf(name)
		own = append(own, ownAddress{at, "the address of " + name, m.Address})

		if m.Facts == nil {
			continue
		}

		for _, san := range m.Facts.CertSANs {
			own = append(own, ownAddress{at, "a certificate SAN of " + name, san})
		}

		for _, shared := range m.Facts.VirtualIPs {
			own = append(own, ownAddress{at, "a virtual IP of " + name, shared.String()})
		}
	}

	return own
}
