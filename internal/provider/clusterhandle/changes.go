package clusterhandle

import "strings"

// The phrases at the end of descriptions: what a change does to running machines. A nested attribute has one only
// when it differs from that of its block. tf.TerraformOnly is the one of attributes that touch no machine.
const (
	// ReplacesWorkers is what tf.ReplacesCluster is for a pool of workers.
	ReplacesWorkers = " A change replaces the resource: its workers are drained, wiped, and join again."
	// ReplacesMachine is what tf.ReplacesCluster is for a single machine.
	ReplacesMachine = " A change replaces the resource: the machine is drained, leaves etcd (control planes), is " +
		"wiped, and joins again."
	// JoinOnly is said of what Talos reads while it is installed.
	JoinOnly = " A change affects only machines installed after it."

	rollsPods      = " A change replaces the pods, each drained first."
	hostInPlace    = " A change is applied in place; pods keep running."
	staysOnItsHost = " A host cluster other than the one with the machines is refused."
	keptByMachines = " A change is refused: create another pool instead."
)

// ContainersOnly begins the description of an argument for containers alone, as tf.MetalOnly does for metal.
// What is nested has none.
const ContainersOnly = "Containers only. "

// Renamed is what another name of a cluster does, when a change to another cluster has a cost.
func Renamed(cost string) string {
	return strings.Replace(cost, " A change replaces", " On metal a change is applied in place, without a reboot, "+
		"while the secrets stay the same. Containers carry the name, so there a change replaces", 1)
}
