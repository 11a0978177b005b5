package machineset

import (
	"cmp"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
)

// Platform is what the machines of a set run on, for the planner (cluster.Platform), attributes, forecasts and texts.
type Platform struct {
	cluster.Platform

	// Container is for the planner and the configurations.
	Container bool
	// Listed is true where users list machines one by one, each with an address and settings. Pods are numbered, and
	// only patches are set for one of them.
	Listed bool
	// Hardware is true where a refresh reads what the firmware verified and which link has an address. Containers have
	// no firmware, report that it verified nothing, and get their links from the runtime.
	Hardware bool
	// list is the attribute of a group with its machines, or with their number.
	list string
	// made is true where an apply creates the machines from their settings, and recreates them when those change. A
	// machine may exist without ever having been reached.
	made bool
	// inside is true where the machines are reached only through the host cluster. Connections use no other gateway, and
	// what it exposes has names in its DNS.
	inside bool
	// Return is how machines that talosop forgot return to it.
	Return string
}

var (
	onMetal = Platform{
		Platform: cluster.Metal, Listed: true, Hardware: true, list: "machines",
		Return: "import them with the secrets of the cluster",
	}
	inPods = Platform{
		Platform: cluster.Pod, Container: true, list: "replicas", made: true, inside: true,
		Return: "apply the same configuration with the same secrets, which takes them over",
	}
)

// Platform is the platform of all machines of a set.
func (p Set) Platform() Platform {
	if p.Host != nil {
		return inPods
	}

	return onMetal
}

// host is the configured host cluster; empty on metal.
func (p Set) host() *Host { return cmp.Or(p.Host, &Host{}) }

// RecordedHost is the recorded host cluster of the machines; zero on metal.
func (p Set) RecordedHost() workload.Identity { return p.host().Recorded }

// remakes reports whether an apply changes the specification of another set's machines. Another platform replaces the
// resource.
func (p Set) remakes(prior Set) bool { return p.Platform().made && prior.Platform().made }

// wasWhole reports whether a machine was observed to work, so that its record is complete; a killed run may have
// recorded less. Boards without SMBIOS have no UUID.
func wasWhole(p Set, known step.MachineState) bool {
	return known.Access == step.Member && known.Stage == step.StageRunning && known.TalosVersion != "" &&
		(known.BootID != "" || p.Platform().Identified)
}
