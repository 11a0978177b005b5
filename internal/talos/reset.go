package talos

import (
	"context"
	"errors"
	"fmt"
	"slices"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/talosversion"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
	"github.com/talosop/terraform-provider-talosop/internal/wipe"
)

// containerMode is Talos's name of the runtime mode without disks.
const containerMode = "container"

// Reset wipes what makes the machine a member of its cluster (the partitions STATE and EPHEMERAL, and those of
// ETCD, CRI, KUBELET and LOG where they are separate partitions), or the selected volumes and disks. Then it reboots
// the machine into maintenance mode, or switches it off. Destructive. Unless the system disk is wiped, the
// installation stays, so that the machine boots from its disk again. In a container there are no partitions and Talos
// refuses their labels: it only stops, and the container runtime owns its volumes.
//
// Talos answers OK even when another sequence is in its way and nothing happens ("locked", Talos 1.13). So Reset
// asks only a machine that is booting or running. It returns when that machine changed to another stage, and
// ErrInProgress when it did not. A graceful reset drains the node and leaves etcd first; when leaving fails, Talos
// reboots without having wiped anything, which only an observation shows. When a wipe fails, it reboots as well: the
// observations in maintenance mode after that name what is left in Unwiped.
func (m *Machine) Reset(ctx context.Context, graceful bool, how wipe.Reset) error {
	return doing(m.reset(ctx, graceful, how), "reset %s", m.address)
}

func (m *Machine) reset(ctx context.Context, graceful bool, how wipe.Reset) error {
	s, begun, err := m.interrupting(ctx, m.knownUUID(), step.StageResetting)
	if err != nil || begun {
		return err
	}

	version, err := bounded(ctx, m, s.version)
	if err != nil {
		return err
	}

	request := &machineapi.ResetRequest{Graceful: graceful, Reboot: !how.Off}
	if version.GetPlatform().GetMode() != containerMode {
		// While a rollback is possible, a failed reset boots the release before, which may keep all data. A
		// machine that never gets ready is reset nevertheless: otherwise it could never be removed.
		if err := m.settle(ctx, m.bootProved(s)); err != nil && !errors.Is(err, ErrInProgress) {
			return err
		}

		if err := m.selectTargets(ctx, s, request, how, version.GetVersion().GetTag()); err != nil {
			return err
		}

		m.markReset(ctx, s, request)
	}

	if err := m.sendReset(ctx, s, request); err != nil && !s.ambiguous(err) {
		return err
	}

	return m.settle(ctx, m.leftIdle(""))
}

// markReset keeps what the result of a reset is compared with, for a machine that comes back. One that does not report
// it is reset all the same.
func (m *Machine) markReset(ctx context.Context, s *session, request *machineapi.ResetRequest) {
	var mark wipeMark

	contents, err := bounded(ctx, m, func(ctx context.Context) (map[string][]content, error) {
		return s.toWipe(ctx, request)
	})
	if err == nil && request.GetReboot() {
		mark.contents = contents
	}

	m.keepWipe(mark)
}

// selectTargets names in a request what a reset wipes. A whole system disk has no volumes, and then the mode decides
// about user disks.
func (m *Machine) selectTargets(
	ctx context.Context, s *session, request *machineapi.ResetRequest, how wipe.Reset, talos string,
) error {
	request.UserDisksToWipe = how.Disks()

	if how.WipesSystemDisk() {
		if len(request.UserDisksToWipe) == 0 {
			request.Mode = machineapi.ResetRequest_SYSTEM_DISK
		}

		return nil
	}

	partitions, err := m.partitionsToWipe(ctx, s, how.Volumes(), talos)
	request.SystemPartitionsToWipe = partitions

	return err
}

// partitionsToWipe are the selected partitions of a machine; without a selection, those that hold anything of its
// cluster. EPHEMERAL includes the volumes that could be on it: with the data of etcd, a machine that was wiped could
// never be bootstrapped again.
func (m *Machine) partitionsToWipe(
	ctx context.Context, s *session, selected []string, talos string,
) ([]*machineapi.ResetPartitionSpec, error) {
	volumes := selected
	if len(volumes) == 0 {
		volumes = []string{wipe.State, wipe.Ephemeral}
	}

	if talosversion.Of(talos).OwnVolumes && slices.Contains(volumes, wipe.Ephemeral) {
		partitions, err := bounded(ctx, m, s.volumePartitions)
		if err != nil {
			return nil, err
		}

		for _, volume := range wipe.OwnVolumes {
			if partitions[volume] {
				volumes = append(volumes, volume)
			}
		}
	}

	return specsOf(volumes), nil
}

// specsOf are the volumes of a reset.
func specsOf(volumes []string) []*machineapi.ResetPartitionSpec {
	var specs []*machineapi.ResetPartitionSpec
	for _, volume := range volumes {
		specs = append(specs, &machineapi.ResetPartitionSpec{Label: volume, Wipe: true})
	}

	return specs
}

// volumePartitions are the volumes with a partition.
func (s *session) volumePartitions(ctx context.Context) (map[string]bool, error) {
	items, err := list[*block.VolumeStatus](ctx, s)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", block.VolumeStatusType, err)
	}

	partitions := map[string]bool{}

	for item := range items.All() {
		partitions[item.Metadata().ID()] = item.TypedSpec().Type == block.VolumeTypePartition
	}

	return partitions, nil
}

// WipeVolumes wipes volumes and user disks of a member, and reboots it with its configuration. It compares the
// hardware UUID first, and returns when the machine went down. Destructive.
//
// When a wipe fails, Talos reboots without it: the observations after that name what is left in Unwiped. On locks, see
// [Machine.Reset].
func (m *Machine) WipeVolumes(ctx context.Context, selected wipe.Selection, uuid string) error {
	return doing(m.wipeVolumes(ctx, selected, usableUUID(uuid)), "wipe %s of %s", selected, m.address)
}

func (m *Machine) wipeVolumes(ctx context.Context, selected wipe.Selection, uuid string) error {
	s, begun, err := m.interrupting(ctx, uuid, step.StageResetting)
	if err != nil || begun {
		return err
	}

	version, err := bounded(ctx, m, s.version)
	if err != nil {
		return err
	}

	if version.GetPlatform().GetMode() == containerMode {
		return wait.Permanent(fmt.Errorf("%w: a container has no partitions and no disks", ErrUnsupported))
	}

	request := &machineapi.ResetRequest{Reboot: true, SystemPartitionsToWipe: specsOf(selected.Volumes()),
		UserDisksToWipe: selected.Disks()}
	if len(selected.Volumes()) == 0 {
		request.Mode = machineapi.ResetRequest_USER_DISKS
	}

	mark, err := bounded(ctx, m, func(ctx context.Context) (wipeMark, error) { return s.markWipe(ctx, request) })
	if err != nil {
		return err
	}

	m.keepWipe(mark)

	if err := m.sendReset(ctx, s, request); err != nil && !s.ambiguous(err) {
		return err
	}

	return m.settle(ctx, m.leftIdle(mark.boot))
}

func (m *Machine) sendReset(ctx context.Context, s *session, request *machineapi.ResetRequest) error {
	ctx, cancel := context.WithTimeout(ctx, m.fleet.options.Timeouts.Change)
	defer cancel()

	_, err := s.machine.Reset(ctx, request)

	return final(s.failed(err))
}
