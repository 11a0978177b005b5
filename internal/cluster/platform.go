package cluster

// Platform is what a machine runs on: metal, as virtual machines are too, or a pod of a host cluster. To a pod that
// cluster is the power button, the disk and the cable. Rules ask here for what differs.
type Platform struct {
	// Identified is true where the host cluster says which machine is which and whether there is one, so that no address
	// is wrong. At an address of metal another machine may answer. In a container no UUID tells (Talos 1.13,
	// hardware.SystemInfoController).
	Identified bool
	// Deleted is true where a reset deletes the machine, silent or not, and leaves nothing of it: Talos itself wipes
	// nothing in a container (Talos 1.13, sequence Reset). Metal has to answer, and waits in maintenance mode after it.
	Deleted bool
	// Installed is true where Talos boots from a disk that it was installed on, or first from another medium. A pod runs
	// its image, so that another Talos takes another pod: Talos refuses upgrades in a container (Talos 1.13, mode.go).
	Installed bool
	// Reboots is true where a reboot can be had at any time and finds the data of before. Talos in a container refuses to
	// (Talos 1.13, mode.go), and the pod that is replaced instead may be blank.
	Reboots bool
	// NamesNode is true where machines are called after their cluster: the configuration gives the node the name that the
	// machine has in the host cluster, which is known before there is a node, stays, and is no other machine's.
	NamesNode bool
	// Moves is true where a machine has the address of its pod, so that another pod is found at another one, by the other
	// members of etcd, too.
	Moves bool
	// Resetting says what a machine that was reset has not come to yet.
	Resetting string
}

// The platforms.
var (
	Metal = Platform{Installed: true, Reboots: true, Resetting: "was reset, does not wait in maintenance mode yet"}
	Pod   = Platform{
		Identified: true, Deleted: true, NamesNode: true, Moves: true, Resetting: "was deleted, and is not gone yet",
	}
)

// Platform is the one of a machine.
func (m Machine) Platform() Platform {
	if m.Container {
		return Pod
	}

	return Metal
}
