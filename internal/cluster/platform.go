package cluster

// Platform is what a machine runs on: metal, which includes virtual machines, or a pod of a host cluster. For a pod,
// that cluster has the role of the power button, the disk and the cable. Rules read the differences here.
type Platform struct {
	// Identified is true where the host cluster identifies machines and knows whether they exist, so that no address is
	// wrong. At an address of metal another machine may answer. Containers have no UUID (Talos 1.13,
	// hardware.SystemInfoController).
	Identified bool
	// Deleted is true where a reset deletes the machine, even a silent one, and leaves nothing of it: Talos itself wipes
	// nothing in a container (Talos 1.13, sequence Reset). Metal must answer, and then waits in maintenance mode.
	Deleted bool
	// Installed is true where Talos boots from the disk that it was installed on, or first from another medium. A pod
	// runs its image, so another Talos needs another pod: Talos refuses upgrades in a container (Talos 1.13, mode.go).
	Installed bool
	// Reboots is true where a reboot is possible at any time and keeps the data. Talos in a container refuses it (Talos
	// 1.13, mode.go), and the pod that replaces the former one may be blank.
	Reboots bool
	// NamesNode is true where machines are named after their cluster. The configuration gives the node the machine's
	// name in the host cluster, which is known before there is a node, stays, and is unique.
	NamesNode bool
	// Moves is true where a machine has the address of its pod, so that another pod has another one, for etcd members
	// too.
	Moves bool
	// Resetting is the unfinished result of a reset.
	Resetting string
}

// The platforms.
var (
	Metal = Platform{Installed: true, Reboots: true, Resetting: "was reset and is not in maintenance mode yet"}
	Pod   = Platform{
		Identified: true, Deleted: true, NamesNode: true, Moves: true, Resetting: "was deleted but still exists",
	}
)

// Platform is the platform of a machine.
func (m Machine) Platform() Platform {
	if m.Container {
		return Pod
	}

	return Metal
}

func hostInURL(host string) string {
	for _, c := range host {
		if c == ':' {
			return "[" + host + "]"
		}
	}

	return host
}
