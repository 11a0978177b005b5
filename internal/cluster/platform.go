package cluster

// platform is what a machine runs on: metal, as virtual machines are too, or a pod of a host cluster. To a pod that
// cluster is the power button, the disk and the cable. Rules ask here for what differs.
type platform struct {
	// identified is true where the host cluster says which machine is which and whether there is one, so that no address
	// is wrong. At an address of metal another machine may answer. In a container no UUID tells (Talos 1.13,
	// hardware.SystemInfoController).
	identified bool
	// deleted is true where a reset deletes the machine, silent or not, and leaves nothing of it: Talos itself wipes
	// nothing in a container (Talos 1.13, sequence Reset). Metal has to answer, and waits in maintenance mode after it.
	deleted bool
	// installed is true where Talos boots from a disk that it was installed on, or first from another medium. A pod runs
	// its image, so that another Talos takes another pod: Talos refuses upgrades in a container (Talos 1.13, mode.go).
	installed bool
	// reboots is true where a reboot can be had at any time and finds the data of before. Talos in a container refuses to
	// (Talos 1.13, mode.go), and the pod that is replaced instead may be blank.
	reboots bool
	// namesNode is true where the configuration gives the node the name that the machine has in the host cluster: it is
	// known before there is a node, stays, and is no other machine's.
	namesNode bool
	// moves is true where the other members of etcd find the machine at the address of its pod.
	moves bool
	// resetting says what a machine that was reset has not come to yet.
	resetting string
}

var (
	metal = platform{installed: true, reboots: true, resetting: "was reset, does not wait in maintenance mode yet"}
	pod   = platform{
		identified: true, deleted: true, namesNode: true, moves: true, resetting: "was deleted, and is not gone yet",
	}
)

func (m Machine) platform() platform {
	if m.Container {
		return pod
	}

	return metal
}
