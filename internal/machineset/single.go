package machineset

import (
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
)

// Single is what is said of a set of one machine, beside which its cluster has others.
type Single struct {
	// Bootstrap is true for the control plane that begins etcd.
	Bootstrap bool
	// Beside are the other control planes, as far as the handle lists them.
	Beside []cluster.Machine
}

// ControlPlanesAt is a control plane of another resource.
func ControlPlanesAt(endpoint string) cluster.Machine {
	return cluster.Machine{Name: "control plane " + endpoint, Role: cluster.ControlPlane, Address: endpoint}
}

// OtherControlPlanes are the control planes of other resources that a plan reckons with: those
// that the handle lists. Where it lists none, and where a list of one more would make an
// etcd of two that can spare nobody, there are others: the plan is not to refuse what only
// an incomplete list forbids, and the run asks etcd itself.
func (p Set) OtherControlPlanes() []cluster.Machine {
	var beside []cluster.Machine

	enough := 2

	switch {
	case p.TakesCluster():
		return nil
	case !p.OwnsControlPlane():
		enough = 1

		for _, endpoint := range p.Endpoints {
			beside = append(beside, ControlPlanesAt(endpoint))
		}
	case p.Single.Beside != nil && len(p.Single.Beside) == 0:
		return nil // it is the only one
	default:
		beside = slices.Clone(p.Single.Beside)
	}

	return append(beside, unlisted(max(0, enough-len(beside)))...)
}

// unlisted are up to two control planes that are known to be there, and no more of them.
func unlisted(n int) []cluster.Machine {
	var others []cluster.Machine

	for _, name := range []string{"some other control plane", "yet another control plane"}[:n] {
		others = append(others, cluster.Machine{Name: name, Role: cluster.ControlPlane, Address: name})
	}

	return others
}
