package clusterhandle

import "strings"

// The phrases at the end of descriptions: what a change does to running machines. A nested attribute has one only
// when it differs from that of its block. tf.TerraformOnly is the one of attributes that touch no machine.
const (
	// ReplacesWorkers is what tf.ReplacesCluster is for a pool of workers.
	ReplacesWorkers = " A change replaces the resource: its workers are drained, wiped, and join anew."
	// ReplacesMachine is what tf.ReplacesCluster is for a single machine.
	ReplacesMachine = " A change replaces the resource: the machine is drained, leaves etcd where it is a control " +
		"plane, is wiped, and joins anew."
	// JoinOnly is said of what Talos reads while it is installed.
	JoinOnly = " A change has an effect only on machines that are installed after it."

	rollsPods      = " A change replaces the pods, each drained first."
	hostInPlace    = " A change is made in place; pods stay."
	staysOnItsHost = " Another host cluster than the one that has the machines is refused."
	keptByMachines = " A change is refused: make another pool with it."
)

// ContainersOnly begins the description of an argument for containers alone, as tf.MetalOnly does for metal.
// What is nested has none.
const ContainersOnly = "Containers only. "

// Renamed is what another name of a cluster does, when a change to another cluster has a cost.
func Renamed(cost string) string {
	return strings.Replace(cost, " A change replaces", " On metal a change is made in place, without a reboot, as long "+
		"as the secrets stay. Containers are named after the cluster: there a change replaces", 1)
}
