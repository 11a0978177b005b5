package machined

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
)

// Spares reports whether a volume stays as it was.
func (f *WipeFailure) Spares(volume string) bool {
	return f != nil && !f.Busy && (len(f.Volumes) == 0 || slices.Contains(f.Volumes, volume))
}

// Err is the error of Talos; nil where the wipe does not fail.
func (f *WipeFailure) Err() error {
	switch {
	case f == nil:
		return nil
	case f.Busy:
		return errors.New("failed wiping partition STATE: error dropping partition: failed to write GPT table: " +
			"failed to delete partition 5: device or resource busy")
	default:
		return errors.New("failed wiping partition: error locking block device: timeout")
	}
}

// TakeWipeFailure is how the next wipe fails, once; nil where it does not.
func (m *Hardware) TakeWipeFailure() *WipeFailure {
	m.World.Lock()
	defer m.World.Unlock()

	failure := m.Disk.Failure
	m.Disk.Failure = nil

	return failure
}

// PartitionUUID is that of a volume: a wipe drops its partition, and the next boot makes another one (Talos 1.12 to
// 1.14, partition/wipe.go, Wipe; go-blockdevice, AllocatePartition).
func (m *Hardware) PartitionUUID(volume string) string {
	m.World.Lock()
	defer m.World.Unlock()

	return m.serial(volume, "partition")
}

// serial is the UUID of something on a volume or a disk, from its last wipe on; the world is locked.
func (m *Hardware) serial(of, what string) string {
	return uuid.NewSHA1(uuid.NameSpaceOID, fmt.Appendf(nil, "%s %s %d %s", m.uuid, of, m.Disk.wipes[of], what)).String()
}

// wiped records the wipe of a volume or a user disk.
func (d *Storage) wiped(name string) {
	if d.wipes == nil {
		d.wipes = map[string]int{}
	}

	d.wipes[name]++
	delete(d.partitions, name)
	delete(d.written, name)
}

// WipeDisks empties user disks.
func (m *Hardware) WipeDisks(paths []string) {
	m.World.Update(func() {
		for _, path := range paths {
			m.Disk.wiped(path)
		}
	})
}

// Write puts data of a test on a volume or a user disk, and Holds reports whether it is still there.
func (m *Hardware) Write(to string) {
	m.World.Update(func() {
		if m.Disk.written == nil {
			m.Disk.written = map[string]bool{}
		}

		m.Disk.written[to] = true
	})

	if b := m.live(); b != nil {
		b.publishDiscovered()
	}
}

// Holds is true for a volume or a user disk with the data of Write.
func (m *Hardware) Holds(on string) bool {
	m.World.Lock()
	defer m.World.Unlock()

	return m.Disk.written[on]
}

// provision makes the partitions that are missing on the system disk, as a boot with a configuration does.
func (b *Boot) provision(disk string) {
	user := b.UserVolumes()

	b.World.Update(func() {
		if b.Disk.partitions == nil {
			b.Disk.partitions = map[string]string{}
		}

		number := firstPartition
		for _, volume := range slices.Concat(systemVolumes, OwnVolumes, user) {
			if !slices.Contains(OwnVolumes, volume) || b.Disk.Own[volume] {
				b.Disk.partitions[volume] = fmt.Sprintf("%s%d", disk, number)
			}

			number++
		}
	})
}

// systemVolumes are those that every installed machine has, and firstPartition the number of the first one: the
// partitions of the boot loader come before it.
var systemVolumes = []string{"META", "STATE", "EPHEMERAL"}

const firstPartition = 4

// publishDiscovered makes visible what Talos discovers on the disks, in maintenance mode, too (Talos 1.13,
// block/discovery.go).
func (b *Boot) publishDiscovered() {
	for _, spec := range b.discovered() {
		id := strings.TrimPrefix(spec.DevPath, "/dev/")
		Modify(b, block.NewDiscoveredVolume(block.NamespaceName, id), func(r *block.DiscoveredVolume) {
			*r.TypedSpec() = spec
		})
	}
}

// discovered are the disks, and the partitions on them. A user disk with data has one partition.
func (m *Hardware) discovered() []block.DiscoveredVolumeSpec {
	m.World.Lock()
	defer m.World.Unlock()

	var found []block.DiscoveredVolumeSpec

	for _, volume := range slices.Sorted(maps.Keys(m.Disk.partitions)) {
		spec := m.partition(volume, m.installedOn(), m.Disk.partitions[volume])
		spec.PartitionLabel = volume

		if strings.HasPrefix(volume, constants.RawVolumePrefix) {
			spec.Name, spec.UUID = "", "" // no file system
		}

		found = append(found, spec)
	}

	for _, disk := range m.Disks {
		spec := block.DiscoveredVolumeSpec{Type: "disk", DevPath: disk.Path, DevicePath: devicePath(disk.Path)}
		if system := len(m.Disk.partitions) > 0 && disk.Path == m.installedOn(); system || m.Disk.written[disk.Path] {
			spec.Name, spec.UUID = "gpt", m.serial(disk.Path, "table")
		}

		if found = append(found, spec); m.Disk.written[disk.Path] {
			found = append(found, m.partition(disk.Path, disk.Path, disk.Path+"1"))
		}
	}

	return found
}

// partition is what Talos discovers on a partition with a file system; the world is locked.
func (m *Hardware) partition(of, disk, device string) block.DiscoveredVolumeSpec {
	return block.DiscoveredVolumeSpec{
		Type: "partition", DevPath: device, ParentDevPath: disk, Parent: strings.TrimPrefix(disk, "/dev/"),
		DevicePath: devicePath(disk) + strings.TrimPrefix(device, "/dev"), PartitionUUID: m.serial(of, "partition"),
		Name: "xfs", UUID: m.serial(of, "xfs"),
	}
}

// devicePath is where a disk is attached.
func devicePath(disk string) string {
	name := strings.TrimPrefix(disk, "/dev/")

	return "/devices/" + name + "/block/" + name
}
