package machineset

import (
	"cmp"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
)

// Platform is what the machines of a set run on: what the planner asks of it (cluster.Platform), and what attributes,
// forecasts and texts ask.
type Platform struct {
	cluster.Platform

	// Container is what the planner and the configurations are told.
	Container bool
	// Listed is true where users list machines one by one, with an address and settings of each. Pods are numbered, and
	// only patches are said of one of them.
	Listed bool
	// Hardware is true where a refresh reads what the firmware verified and which link has an address. Containers have no
	// firmware and say that it verified nothing, and their links are the runtime's.
	Hardware bool
	// list is the attribute of a group with its machines, or with how many there are.
	list string
	// made is true where an apply makes the machines themselves, of what is said of them, and anew when that changes:
	// something of one may be there that was never reached.
	made bool
	// inside is true where only the host cluster leads to the machines: connections go through it, by no other gateway,
	// and what it exposes has names of its DNS.
	inside bool
	// reboot is what machines do that begin anew, wiped what becomes of those that leave, and end how that is done.
	reboot, wiped, end string
	// WayBack is how machines come back under talosop that it forgot.
	WayBack string
}

var (
	onMetal = Platform{
		Platform: cluster.Metal, Listed: true, Hardware: true, list: "machines", reboot: "reboot", wiped: "wiped",
		end: "reset to maintenance mode with %s state wiped", WayBack: "import them with the secrets of the cluster",
	}
	inPods = Platform{
		Platform: cluster.Pod, Container: true, list: "replicas", made: true, inside: true, reboot: "restart",
		wiped: "deleted", end: "deleted with %s volumes",
		WayBack: "apply the same configuration with the same secrets, which takes them over",
	}
)

// Platform is the one of all machines of a set.
func (p Set) Platform() Platform {
	if p.Host != nil {
		return inPods
	}

	return onMetal
}

// host is what is said of the host cluster; nothing on metal.
func (p Set) host() *Host { return cmp.Or(p.Host, &Host{}) }

// RecordedHost is the host cluster that has the machines, as state knows it; zero on metal.
func (p Set) RecordedHost() workload.Identity { return p.host().Recorded }

// remakes is whether an apply changes what the machines of another set are made of. Another platform replaces the
// resource.
func (p Set) remakes(prior Set) bool { return p.Platform().made && prior.Platform().made }
