package cluster

import (
	"slices"
	"strings"
	"time"
)

// Role is what a machine does in its cluster. The values are those of Talos's
// machine.type.
type Role string

// The two roles of a Talos machine.
const (
	ControlPlane Role = "controlplane"
	Worker       Role = "worker"
)

// String names the role as people do.
func (r Role) String() string {
	if r == ControlPlane {
		return "control plane"
	}

	return string(r)
}

// Spec is what the user wants of the machines that one resource owns.
type Spec struct {
	// Name of the cluster.
	Name string
	// Endpoint is the URL of the Kubernetes API, such as https://10.0.0.10:6443.
	Endpoint string
	// Machines the resource owns, in any order. Without a control plane among
	// them they join a cluster that something else bootstrapped.
	Machines []Machine
	// Bootstrapped is true when the recorded state says that this cluster had an
	// etcd before. Such a cluster is never bootstrapped again.
	Bootstrapped bool
	// NodesBecomeReady is false when no CNI is installed by Talos (cni "none"):
	// nodes then register and stay NotReady until something else installs one.
	NodesBecomeReady bool
}

// Machine is one wanted machine.
type Machine struct {
	// Name is the key of the machine in its map: its identity in Terraform.
	Name string
	Role Role
	// Address of the Talos API: an IP address or a host name, without a port.
	Address string
	// UUID is the hardware identity that an earlier apply recorded or the user
	// gave; empty when none is known yet.
	UUID string
	// ConfigDigest is the normalised digest of the wanted configuration.
	ConfigDigest string
	// TalosVersion is the wanted version, such as v1.13.0. Shown in steps.
	TalosVersion string
	// InstallTarget is the disk or the disk selector that Talos installs to, as a
	// person would name it; empty where nothing is installed. Shown in steps.
	InstallTarget string
	// NodeName is the Kubernetes node that an earlier apply recorded together with
	// UUID; empty when none is known or UUID comes from elsewhere.
	NodeName string
	// Meta is the wanted values of META by their keys. Nil leaves META alone, and
	// keys that are not in it are never touched.
	Meta map[uint8]string
}

// sorted returns the machines of a role ordered by name.
func (s Spec) sorted(role Role) []Machine {
	var out []Machine

	for _, m := range s.Machines {
		if m.Role == role {
			out = append(out, m)
		}
	}

	slices.SortFunc(out, func(a, b Machine) int { return strings.Compare(a.Name, b.Name) })

	return out
}

// all returns every machine, control planes first, each role ordered by name.
func (s Spec) all() []Machine { return append(s.sorted(ControlPlane), s.sorted(Worker)...) }

// OwnsControlPlane reports whether the spec itself holds control-plane machines
// and is therefore the one that bootstraps etcd.
func (s Spec) OwnsControlPlane() bool {
	return slices.ContainsFunc(s.Machines, func(m Machine) bool { return m.Role == ControlPlane })
}

// Policy bounds the patience of the planner.
type Policy struct {
	// BootPatience is how long the first control plane may take to come up before
	// another one, known to hold no etcd data, is bootstrapped in its place.
	BootPatience time.Duration
	// DeadAfter is how long a machine may stay silent during a teardown before it
	// counts as dead: it is reported, and the rest is finished without it.
	DeadAfter time.Duration
	// ResetPatience is how long a machine may take from its reset until it waits in
	// maintenance mode. After that it counts as dead, like above.
	ResetPatience time.Duration
	// KeepNodes leaves the Kubernetes Node objects alone in a teardown, because
	// the whole cluster goes.
	KeepNodes bool
}

// DefaultPolicy returns the patience used when the user says nothing: a machine
// with slow firmware and a network install boots within ten minutes, also after a
// reset, and a machine that reboots on its own answers again within two.
func DefaultPolicy() Policy {
	return Policy{BootPatience: 10 * time.Minute, DeadAfter: 2 * time.Minute, ResetPatience: 10 * time.Minute}
}
