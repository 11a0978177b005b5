package talos

import (
	"context"
	"errors"
	"fmt"
	"slices"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/talosversion"
)

// containerMode is Talos's name of the runtime mode without disks.
const containerMode = "container"

// Reset wipes what makes the machine a member of its cluster (the partitions STATE and EPHEMERAL, and those of
// ETCD, CRI, KUBELET and LOG where they are separate partitions) and reboots it into maintenance mode.
// Destructive. The installation and META stay, so that the machine boots from its disk again. In a container there
// are no partitions and Talos refuses their labels: it only stops, and the container runtime owns its volumes.
//
// Talos answers OK even when another sequence is in its way and nothing happens ("locked", Talos 1.13). So Reset
// asks only a machine that is booting or running. It returns when that machine changed to another stage, and
// ErrInProgress when it did not. A graceful reset drains the node and leaves etcd first; when leaving fails, Talos
// reboots without having wiped anything, which only an observation shows.
func (m *Machine) Reset(ctx context.Context, graceful bool) error {
	return doing(m.reset(ctx, graceful), "reset %s", m.address)
}

func (m *Machine) reset(ctx context.Context, graceful bool) error {
	s, begun, err := m.interrupting(ctx, m.knownUUID(), step.StageResetting)
	if err != nil || begun {
		return err
	}

	version, err := bounded(ctx, m, s.version)
	if err != nil {
		return err
	}

	request := &machineapi.ResetRequest{Graceful: graceful, Reboot: true}
	if version.GetPlatform().GetMode() != containerMode {
		// While a rollback is possible, a failed reset boots the release before, which may keep all data. A
		// machine that never gets ready is reset nevertheless: otherwise it could never be removed.
		if err := m.settle(ctx, m.bootProved(s)); err != nil && !errors.Is(err, ErrInProgress) {
			return err
		}

		if request.SystemPartitionsToWipe, err = m.partitionsToWipe(ctx, s, version.GetVersion().GetTag()); err != nil {
			return err
		}
	}

	if err := m.sendReset(ctx, s, request); err != nil && !s.ambiguous(err) {
		return err
	}

	return m.settle(ctx, m.leftIdle(""))
}

// ownVolumes are what lies on EPHEMERAL unless it was given a partition when the machine was installed (Talos 1.14,
// block/internal/volumes/volumeconfig/system_volumes.go). Without that of etcd a machine that is wiped keeps its
// member's data, and can never be bootstrapped again.
var ownVolumes = []string{"ETCD", "CRI", "KUBELET", "LOG"}

// partitionsToWipe are the partitions of a machine that hold anything of its cluster.
func (m *Machine) partitionsToWipe(
	ctx context.Context, s *session, talos string,
) ([]*machineapi.ResetPartitionSpec, error) {
	labels := []string{constants.StatePartitionLabel, constants.EphemeralPartitionLabel}

	if talosversion.Of(talos).OwnVolumes {
		partitions, err := bounded(ctx, m, s.volumePartitions)
		if err != nil {
			return nil, err
		}

		for _, label := range ownVolumes {
			if slices.Contains(partitions, label) {
				labels = append(labels, label)
			}
		}
	}

	specs := make([]*machineapi.ResetPartitionSpec, len(labels))
	for i, label := range labels {
		specs[i] = &machineapi.ResetPartitionSpec{Label: label, Wipe: true}
	}

	return specs, nil
}

// volumePartitions lists the volumes that are partitions.
func (s *session) volumePartitions(ctx context.Context) ([]string, error) {
	items, err := list[*block.VolumeStatus](ctx, s)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", block.VolumeStatusType, err)
	}

	var names []string

	for item := range items.All() {
		if item.TypedSpec().Type == block.VolumeTypePartition {
			names = append(names, item.Metadata().ID())
		}
	}

	return names, nil
}

func (m *Machine) sendReset(ctx context.Context, s *session, request *machineapi.ResetRequest) error {
	ctx, cancel := context.WithTimeout(ctx, m.fleet.options.Timeouts.Change)
	defer cancel()

	_, err := s.machine.Reset(ctx, request)

	return final(s.failed(err))
}
