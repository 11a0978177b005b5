package machined

import (
	"cmp"
	"errors"
	"os"
	"slices"

	metakeys "github.com/siderolabs/talos/pkg/machinery/meta"

	"github.com/talosop/terraform-provider-talosop/internal/sim/etcd"
	"github.com/talosop/terraform-provider-talosop/internal/sim/images"
)

// Storage is the state that survives a reboot.
type Storage struct {
	// installed: META exists on the system disk, so an applied configuration does not
	// install again. Always true in containers.
	Installed bool
	// SystemDisk is the path of the disk that Talos was installed to, empty where a machine began as an installed one.
	SystemDisk string
	// dead: the whole disk was wiped; nothing is left to boot from.
	Dead bool
	// Entry is the boot loader's default, and fallback the other boot entry; nil when there is none.
	Entry, fallback *images.System
	// chosen is the entry that a user chose in the boot menu, for one boot; else nil.
	chosen *images.System
	// Config is /system/state/config.yaml on STATE, nil when there is none.
	Config []byte
	// NodeID is the node identity on STATE.
	NodeID string
	// Etcd is /var/lib/etcd on EPHEMERAL, nil when it is empty.
	Etcd etcd.Node
	// Snapshot is where the content of /var/lib/etcd.snapshot is, on EPHEMERAL too; empty
	// when there is none.
	Snapshot string
	// cni: a pod network that Talos did not bring wrote its configuration to /etc/cni, whose
	// overlay is on EPHEMERAL.
	CNI bool
	// enrolled: the kubelet's client certificate is on EPHEMERAL, signed by EnrolledBy.
	Enrolled   bool
	EnrolledBy []byte
	// Images are the images that containerd pulled to EPHEMERAL.
	Images images.Pulled
	// Own are those of OwnVolumes that got separate partitions at the installation.
	Own map[string]bool
	// Broken: the file system of EPHEMERAL is damaged, so that it is never mounted until it is wiped.
	Broken bool
	// Failure is how the next wipe of partitions fails; nil where it does not.
	Failure *WipeFailure
	// wipes is how often each volume was wiped, by its name.
	wipes map[string]int
	// partitions are the devices of the partitions that are there, by their volumes.
	partitions map[string]string
	// written are the volumes and disks with data of a test, by volume or path.
	written map[string]bool
	// meta is the values on META; no other partition's wipe touches them.
	meta map[uint8]string
}

// OwnVolumes lie on EPHEMERAL unless a VolumeConfig gives them partitions (since Talos 1.14).
var OwnVolumes = []string{"ETCD", "CRI", "KUBELET", "LOG"}

// WipeFailure is a wipe of partitions that fails: Talos reboots without a wipe of the user disks (Talos 1.12 to 1.14,
// v1alpha1_sequencer_tasks.go, ResetSystemDiskSpec). The other partitions are wiped.
type WipeFailure struct {
	// Volumes keep their partitions with all data, as on a disk with errors; all of them where none is named.
	Volumes []string
	// Busy: every partition is emptied and dropped, and the kernel still uses one, which is an error, too (seen on Talos
	// 1.13.0; go-blockdevice writes the partition table before it tells the kernel).
	Busy bool
}

// Upgrade makes next the default boot entry and keeps what runs as the other one. The
// installer writes META by itself, past the running system, hence no resource follows.
func (d *Storage) Upgrade(running, next images.System) {
	d.Entry, d.fallback = &next, &running

	if d.meta == nil {
		d.meta = map[uint8]string{}
	}

	d.meta[metakeys.Upgrade] = running.Label()
}

// Flip makes the other boot entry the default, as the boot loaders' Revert does.
func (d *Storage) Flip() error {
	if d.fallback == nil {
		return errors.New("previous UKI not found")
	}

	d.Entry, d.fallback = d.fallback, d.Entry

	return nil
}

// Choose is a user who chooses the other entry in the boot menu, for the next boot alone: the default stays.
func (d *Storage) Choose() error {
	if d.fallback == nil {
		return errors.New("there is one boot entry")
	}

	d.chosen = d.fallback

	return nil
}

// Boots is the entry that the next boot starts, nil where there is nothing on the disk.
func (d *Storage) Boots() *images.System { return cmp.Or(d.chosen, d.Entry) }

// TakeChoice clears the choice in the boot menu.
func (d *Storage) TakeChoice() { d.chosen = nil }

// TakeStaged reads the image of a staged upgrade from META and forgets it, so that it
// is tried once (Talos 1.13, MachineState.probeMeta).
func (d *Storage) TakeStaged() string {
	image, ok := d.meta[metakeys.StagedUpgradeImageRef]
	_, options := d.meta[metakeys.StagedUpgradeInstallOptions]

	if !ok || !options {
		return ""
	}

	delete(d.meta, metakeys.StagedUpgradeImageRef)
	delete(d.meta, metakeys.StagedUpgradeInstallOptions)

	return image
}

// WipePartitions empties what the labels stand for. Without META the machine counts
// as not installed; without the boot loader it never boots again.
func (m *Hardware) WipePartitions(labels []string, whole bool) {
	var (
		node     etcd.Node
		snapshot string
	)

	m.World.Update(func() {
		d := &m.Disk

		for _, label := range labels {
			d.wiped(label)

			switch label {
			case "STATE":
				d.Config, d.NodeID = nil, ""

				delete(d.meta, metakeys.StateEncryptionConfig) // Talos 1.13, ResetSystemDiskSpec
			case "EPHEMERAL":
				snapshot, d.Snapshot = d.Snapshot, ""
				d.CNI, d.Broken = false, false
			case "META":
				d.Installed, d.meta = false, nil
			}
		}

		wiped := func(volume string) bool {
			return slices.Contains(labels, volume) || !d.Own[volume] && slices.Contains(labels, "EPHEMERAL") || whole
		}

		if wiped("ETCD") {
			node, d.Etcd = d.Etcd, nil
		}

		if wiped("CRI") {
			d.Images = nil
		}

		if wiped("KUBELET") {
			d.Enrolled, d.EnrolledBy = false, nil
		}

		if whole {
			d.Own, d.partitions = nil, nil
		}

		d.Dead = whole
	})

	if node != nil {
		node.Wipe()
	}

	m.RemoveFile(snapshot)
}

// EphemeralBroken reports whether EPHEMERAL cannot be mounted.
func (m *Hardware) EphemeralBroken() bool {
	m.World.Lock()
	defer m.World.Unlock()

	return m.Disk.Broken
}

// RemoveFile deletes a file that stands for one on the disk, if there is one.
func (m *Hardware) RemoveFile(path string) {
	if path == "" {
		return
	}

	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		m.World.Logf("remove %s: %v", path, err)
	}
}

// SnapshotFile is the path of /var/lib/etcd.snapshot, empty when there is none.
func (m *Hardware) SnapshotFile() string {
	m.World.Lock()
	defer m.World.Unlock()

	return m.Disk.Snapshot
}

// DropSnapshotFile deletes /var/lib/etcd.snapshot.
func (m *Hardware) DropSnapshotFile() {
	var path string

	m.World.Update(func() { path, m.Disk.Snapshot = m.Disk.Snapshot, "" })
	m.RemoveFile(path)
}

// InstallCNI is what a pod network does that Talos did not bring (CNI none): it writes its
// configuration to the machine, whose node becomes Ready then, and stays so until EPHEMERAL is
// wiped. It may be called again.
func (m *Hardware) InstallCNI() {
	m.World.Update(func() { m.Disk.CNI = true })
}

// Configured reports whether the machine would boot with a configuration.
func (m *Hardware) Configured() bool {
	m.World.Lock()
	defer m.World.Unlock()

	return len(m.Disk.Config) > 0
}
