// Package wipe is what a reset of a Talos machine erases, and what stays. Pure.
//
// The call Reset of the Talos API takes volumes, user disks and a mode. Talos 1.12 to 1.14 decide in the same way
// (machined/internal/server/v1alpha1/v1alpha1_server.go, Reset; runtime/v1alpha1/v1alpha1_sequencer.go, Reset):
//
//	volumes  user disks  mode         erased
//	none     none        SYSTEM_DISK  the system disk with its boot loader: only another medium boots the machine
//	some     none        ALL          these volumes
//	some     some        ALL          these volumes, and these disks
//	none     some        USER_DISKS   these disks
//
// Talos refuses user disks in mode SYSTEM_DISK, and volumes in mode USER_DISKS. It refuses a disk that does not
// exist, that is read-only, or that is a system disk. A volume is named by the ID of its VolumeStatus:
//
//	ID         what is on it                                         since
//	STATE      the machine configuration and the node identity
//	EPHEMERAL  /var: etcd, kubelet, containerd, logs, local pod data
//	META       META values, such as the network of the metal platform
//	ETCD       the data of etcd                                      Talos 1.14, before: a directory of EPHEMERAL
//	CRI        images and containers                                 Talos 1.14
//	KUBELET    the kubelet and local pod data                        Talos 1.14
//	LOG        logs                                                  Talos 1.14
//	u-, r-, e-, s-, x-  user, raw, existing, swap and external volumes of the machine configuration
//
// The four volumes of Talos 1.14 are directories of EPHEMERAL unless a VolumeConfig gives them partitions
// (block/internal/volumes/volumeconfig/system_volumes.go). Talos wipes such a directory only together with EPHEMERAL
// (system/volumes.go, FindBackingVolume). The boot partitions are no volumes. In a container, no volume has a
// partition, and Talos refuses them all.
package wipe

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// The volumes that decisions know.
const (
	State     = "STATE"
	Ephemeral = "EPHEMERAL"
	Meta      = "META"
	Etcd      = "ETCD"
	// SystemDisk is the whole system disk with its boot loader, in place of volumes.
	SystemDisk = "SYSTEM_DISK"
)

// OwnVolumes are those on EPHEMERAL unless a VolumeConfig gives them partitions (Talos 1.14).
var OwnVolumes = []string{Etcd, "CRI", "KUBELET", "LOG"}

// userVolume is a volume of the machine configuration (constants.UserVolumePrefix and the like of the machinery).
var userVolume = regexp.MustCompile(`^[uresx]-[A-Za-z0-9][A-Za-z0-9-]*$`)

// IsUserVolume reports whether a name is that of a volume that the machine configuration adds.
func IsUserVolume(name string) bool { return userVolume.MatchString(name) }

// IsRuntimeVolume reports whether a machine gets a volume again at its next boot, empty, and rejoins its cluster.
func IsRuntimeVolume(name string) bool {
	return name == Ephemeral || slices.Contains(OwnVolumes, name) || IsUserVolume(name)
}

// disk is the path of a block device as Talos lists it (DevPath of its Disk resources).
var disk = regexp.MustCompile(`^/dev/[a-z0-9]+$`)

// IsDisk reports whether a text is the path of a disk, and no link to one such as those below /dev/disk, which Talos
// does not resolve.
func IsDisk(path string) bool { return disk.MatchString(path) }

// Selection is what is erased. It is comparable, because steps are.
type Selection struct{ volumes, disks string }

// Select is a selection of volumes and user disks, in any order.
func Select(volumes, disks []string) Selection { return Selection{joined(volumes), joined(disks)} }

func joined(names []string) string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(names))), " ")
}

// Volumes are the selected volumes, in order.
func (s Selection) Volumes() []string { return strings.Fields(s.volumes) }

// Disks are the selected user disks, in order.
func (s Selection) Disks() []string { return strings.Fields(s.disks) }

// LosesEtcd reports whether a control plane loses the data of etcd.
func (s Selection) LosesEtcd() bool {
	volumes := s.Volumes()

	return slices.Contains(volumes, Ephemeral) || slices.Contains(volumes, Etcd)
}

// String names what is erased, such as "EPHEMERAL, u-data, /dev/sdb".
func (s Selection) String() string { return strings.Join(slices.Concat(s.Volumes(), s.Disks()), ", ") }

// Reset is how a machine is reset that leaves its cluster. The zero value drains its node, wipes the volumes with
// anything of the cluster (STATE, EPHEMERAL, and those of OwnVolumes with a partition), and reboots the machine.
type Reset struct {
	// Selection is what is wiped. Without volumes, it is the volumes above.
	Selection
	// Abrupt skips the drain.
	Abrupt bool
	// Off switches the machine off instead of a reboot.
	Off bool
	// ShutDown only shuts the machine down, in place of a reset: nothing is wiped.
	ShutDown bool
}

// StaysAway reports whether a machine does not answer any more after its reset: it is off, or has nothing to boot.
func (r Reset) StaysAway() bool { return r.Off || r.ShutDown || r.WipesSystemDisk() }

// WipesSystemDisk reports whether nothing stays on the system disk.
func (r Reset) WipesSystemDisk() bool { return slices.Contains(r.Volumes(), SystemDisk) }

// Wiped names what is wiped, such as "STATE, EPHEMERAL and /dev/sdb".
func (r Reset) Wiped() string {
	volumes := cmp.Or(strings.Join(r.Volumes(), ", "), "its state")
	if r.WipesSystemDisk() {
		volumes = "its system disk"
	}

	if disks := r.Disks(); len(disks) > 0 {
		return volumes + " and " + strings.Join(disks, ", ")
	}

	return volumes
}

// Then says what the machine does after the wipe.
func (r Reset) Then() string {
	switch {
	case r.Off:
		return "switches off"
	case r.WipesSystemDisk():
		return "reboots without an installed Talos"
	default:
		return "reboots to maintenance mode"
	}
}
