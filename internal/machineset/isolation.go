package machineset

import (
	"fmt"
	"net/url"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

// Identity tells the cluster of a set from others that one process works on: by the mark of its secrets, and for an
// isolated cluster also by its endpoint, because another cluster has the same secrets.
func (p Set) Identity(bundle *pki.Bundle) string {
	if !p.Settings.Isolated {
		return bundle.Mark()
	}

	return bundle.Mark() + " isolated at " + p.Settings.Endpoint
}

// refuseIsolation refuses to isolate machines that joined a cluster, or to end their isolation: machines with discovery
// would join the other cluster that has the same secrets, and those without it are in that cluster already.
func refuseIsolation(p, prior Set, recorded PriorState) finding.List {
	if p.Unknown || p.Settings.Isolated == prior.Settings.Isolated || !recorded.HasMembers() {
		return nil
	}

	return finding.List{finding.Refused(p.ClusterPath("isolated"), "Unsupported change of isolated",
		fmt.Sprintf("isolated would change from %t to %t", prior.Settings.Isolated, p.Settings.Isolated),
		"It is decided when the cluster is created: machines that use discovery join the cluster that has the same secrets",
		fmt.Sprintf("Set isolated = %t, or destroy this cluster and create another one", prior.Settings.Isolated))}
}

// refuseOutsideOfCluster refuses a pool in containers that joins an isolated cluster by its handle: without DNS it
// finds the endpoint only where the resource that makes the control planes tells it the address.
func (p Set) refuseOutsideOfCluster() finding.List {
	if p.Host == nil || !p.InHandle || !p.Settings.Isolated {
		return nil
	}

	return finding.List{finding.Refused(p.ClusterPath("isolated"), "Unsupported pool of an isolated cluster",
		"the cluster is isolated, and its machines are in containers",
		"Its pods reach no DNS server, so that workers learn the address of the endpoint from the resource that makes the "+
			"control planes", "List the workers in the talosop_cluster that makes the cluster")}
}

// AddressConflictError is an address of an isolated cluster that another cluster has.
type AddressConflictError struct {
	At             finding.Path
	Reason, Remedy string
}

func (c *AddressConflictError) Error() string { return c.Reason }

// RefuseAddressesOf finds an address of an isolated set that a member of the cluster in its snapshot has; nil when
// there is none. Machines would be configured to connect to it, or would answer in its place.
func (p Set) RefuseAddressesOf(members []string) *AddressConflictError {
	conflict := func(at finding.Path, what, address string) *AddressConflictError {
		for _, member := range members {
			if SameAddress(member, address) {
				return &AddressConflictError{At: at, Reason: fmt.Sprintf("%s is %s, and the snapshot says that a member of "+
					"the cluster which it was taken of has that address", what, address),
					Remedy: "Give the isolated cluster machines, an endpoint and cert_sans that the other cluster does not have."}
			}
		}

		return nil
	}

	if endpoint, err := url.Parse(p.Settings.Endpoint); err == nil {
		if found := conflict(p.ClusterPath("endpoint"), "the host of endpoint", endpoint.Hostname()); found != nil {
			return found
		}
	}

	for i, name := range p.Settings.CertSANs {
		if found := conflict(p.ClusterPath("cert_sans").AtListIndex(i), fmt.Sprintf("cert_sans[%d]", i), name); found != nil {
			return found
		}
	}

	for _, name := range p.Names() {
		if found := conflict(p.placeOf(name), "the address of "+name, p.Machines[name].Address); found != nil {
			return found
		}
	}

	return nil
}
