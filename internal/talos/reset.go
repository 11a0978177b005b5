package talos

import (
	"context"
	"fmt"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
)

// containerMode is Talos's name of the runtime mode without disks.
const containerMode = "container"

// Reset wipes what makes the machine a member of its cluster (the partitions STATE
// and EPHEMERAL) and reboots it into maintenance mode. Destructive. The installation
// and META stay, so that the machine boots from its disk again. In a container there
// are no partitions and Talos refuses their labels: it only stops, and whoever runs
// the container owns its volumes.
//
// Talos answers OK even when another sequence is in its way and nothing happens
// ("locked", Talos 1.13). Reset therefore asks only a machine that is booting or
// running, returns when that one went on to something else, and ErrInProgress when it
// did not. A graceful reset drains the node and leaves etcd first; when leaving fails,
// Talos reboots without having wiped anything, which only an observation shows.
func (m *Machine) Reset(ctx context.Context, graceful bool) error {
	if err := m.reset(ctx, graceful); err != nil {
		return fmt.Errorf("reset %s: %w", m.address, err)
	}

	return nil
}

func (m *Machine) reset(ctx context.Context, graceful bool) error {
	s, begun, err := m.interrupting(ctx, m.knownUUID(), cluster.StageResetting)
	if err != nil || begun {
		return err
	}

	version, err := bounded(ctx, m, s.version)
	if err != nil {
		return err
	}

	request := &machineapi.ResetRequest{Graceful: graceful, Reboot: true}
	if version.GetPlatform().GetMode() != containerMode {
		request.SystemPartitionsToWipe = []*machineapi.ResetPartitionSpec{
			{Label: constants.StatePartitionLabel, Wipe: true},
			{Label: constants.EphemeralPartitionLabel, Wipe: true},
		}
	}

	if err := m.sendReset(ctx, s, request); err != nil && !s.ambiguous(err) {
		return err
	}

	return m.settle(ctx, m.leftIdle(""))
}

func (m *Machine) sendReset(ctx context.Context, s *session, request *machineapi.ResetRequest) error {
	ctx, cancel := context.WithTimeout(ctx, m.fleet.options.Timeouts.Change)
	defer cancel()

	_, err := s.machine.Reset(ctx, request)

	return final(s.failed(err))
}
