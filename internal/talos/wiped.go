package talos

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// wipeMark is what the result of a wipe is compared with.
type wipeMark struct {
	// boot is that of the request, on a machine that stays a member; empty on one that leaves.
	boot string
	// contents are what was on the selected volumes and disks, by their names.
	contents map[string][]content
}

// content is what Talos discovers on a partition, or on a disk. A wipe erases the signatures on it, and the next boot
// makes partitions with other UUIDs (Talos 1.12 to 1.14, partition/wipe.go). Any client may read it, in maintenance
// mode, too: the resources are not sensitive (resources/block/discovered_volume.go, app/resources).
type content struct {
	// partition is the UUID of a partition, and device where a disk is attached.
	partition, device string
	// kind is such as xfs, luks or gpt; id is the UUID of that.
	kind, id string
}

func contentOf(found *block.DiscoveredVolumeSpec) content {
	c := content{partition: found.PartitionUUID, kind: found.Name, id: found.UUID}
	if c.partition == "" {
		c.device = path.Dir(found.DevicePath) // the last element is a name, which may be another one in the next boot
	}

	return c
}

// empty is true for a disk on which nothing is.
func (c content) empty() bool { return c.partition == "" && c.kind == "" }

// unique is false for what looks the same when it is made again, such as a disk of Ceph.
func (c content) unique() bool { return c.partition != "" || c.id != "" }

// toWipe reads what is on the volumes and disks that a reset wipes.
func (s *session) toWipe(ctx context.Context, request *machineapi.ResetRequest) (map[string][]content, error) {
	selected := slices.Clone(request.GetUserDisksToWipe())
	for _, volume := range request.GetSystemPartitionsToWipe() {
		selected = append(selected, volume.GetLabel())
	}

	statuses, err := list[*block.VolumeStatus](ctx, s)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", block.VolumeStatusType, err)
	}

	volumes := map[string]string{} // by device
	for status := range statuses.All() {
		volumes[status.TypedSpec().Location] = status.Metadata().ID()
	}

	found, err := s.discovered(ctx)
	contents := map[string][]content{}

	for _, f := range found {
		for _, name := range []string{volumes[f.DevPath], f.DevPath, f.ParentDevPath} {
			if c := contentOf(f); !c.empty() && slices.Contains(selected, name) {
				contents[name] = append(contents[name], c)
			}
		}
	}

	return contents, err
}

// markWipe is toWipe for a machine that stays a member.
func (s *session) markWipe(ctx context.Context, request *machineapi.ResetRequest) (mark wipeMark, err error) {
	if mark.boot, err = s.bootID(ctx); err != nil {
		return mark, err
	}

	mark.contents, err = s.toWipe(ctx, request)

	return mark, err
}

// discovered is what Talos discovers on the disks.
func (s *session) discovered(ctx context.Context) (found []*block.DiscoveredVolumeSpec, err error) {
	items, err := list[*block.DiscoveredVolume](ctx, s)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", block.DiscoveredVolumeType, err)
	}

	for item := range items.All() {
		found = append(found, item.TypedSpec())
	}

	return found, nil
}

func (m *Machine) keepWipe(mark wipeMark) {
	m.mu.Lock()
	defer m.mu.Unlock()

	m.wiped = mark
}

func (m *Machine) lastWipe() wipeMark {
	m.mu.Lock()
	defer m.mu.Unlock()

	return m.wiped
}

// observeWipe names what a wipe of this run left on a member, once it is in the boot after that.
func (m *Machine) observeWipe(ctx context.Context, s *session, out *step.MachineState) error {
	mark := m.lastWipe()
	if mark.boot == "" || len(mark.contents) == 0 {
		return nil
	}

	boot, err := bounded(ctx, m, s.bootID)
	if err != nil || boot == mark.boot {
		return err
	}

	// What runs on the machine may use its disks again.
	out.Unwiped, err = m.unwiped(ctx, s, mark, content.unique)

	return err
}

// observeReset names what the reset of a machine left that waits in maintenance mode. Talos discovered all disks before
// (Talos 1.12 to 1.14, block/volume_manager.go). A machine that does not report it is reset all the same.
func (m *Machine) observeReset(ctx context.Context, s *session, out *step.MachineState) (err error) {
	mark := m.lastWipe()
	if len(mark.contents) == 0 {
		return nil
	}

	out.Unwiped, err = m.unwiped(ctx, s, mark, func(content) bool { return true })
	if unreachable(err) {
		return err
	}

	return nil
}

// unwiped names the volumes and disks of a wipe on which anything is as before, among the contents that count.
func (m *Machine) unwiped(ctx context.Context, s *session, mark wipeMark, counts func(content) bool) (string, error) {
	found, err := bounded(ctx, m, s.discovered)
	now := map[content]bool{}

	for _, f := range found {
		now[contentOf(f)] = true
	}

	var left []string

	for _, name := range slices.Sorted(maps.Keys(mark.contents)) {
		if slices.ContainsFunc(mark.contents[name], func(c content) bool { return counts(c) && now[c] }) {
			left = append(left, name)
		}
	}

	return strings.Join(left, ", "), err
}
