package sim

import (
	"context"
	"errors"
	"fmt"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
)

// EtcdForfeitLeadership moves leadership away; not being the leader is no error.
func (a *api) EtcdForfeitLeadership(
	ctx context.Context, _ *machine.EtcdForfeitLeadershipRequest,
) (*machine.EtcdForfeitLeadershipResponse, error) {
	if err := a.b.onControlPlane("etcd forfeit leadership"); err != nil {
		return nil, err
	}

	node, err := a.b.etcd.LocalMember()
	if err != nil {
		return nil, fmt.Errorf("failed to create etcd client: %w", err)
	}

	members, err := node.Members(ctx)
	if err != nil {
		return nil, fmt.Errorf("failed to forfeit leadership: failed to list etcd members: %w", err)
	}

	if len(members) == 1 {
		return nil, errors.New("failed to forfeit leadership: cannot forfeit leadership, only one member")
	}

	name, err := node.MoveLeader(ctx)
	if err != nil {
		return nil, fmt.Errorf("failed to forfeit leadership: %w", err)
	}

	return &machine.EtcdForfeitLeadershipResponse{Messages: []*machine.EtcdForfeitLeadership{{Member: name}}}, nil
}
