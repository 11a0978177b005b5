package etcdservice

import (
	"context"
	"slices"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/sim/etcd"
)

// Node is the member of the data directory, nil when that is empty.
func (s *Service) Node() etcd.Node {
	s.World.Lock()
	defer s.World.Unlock()

	return s.Disk.Etcd
}

// otherMembers are the etcd members of the cluster's other machines that are on.
func (s *Service) otherMembers() []etcd.Node {
	return slices.DeleteFunc(s.host.ClusterMembers(), func(n etcd.Node) bool { return n == s.Node() })
}

// AnyMember is the member that a client of all control-plane addresses reaches: a healthy one, or else one whose
// error says what is wrong.
func (s *Service) AnyMember(ctx context.Context) (etcd.Node, error) {
	nodes := s.host.ClusterMembers()
	for _, node := range nodes {
		if node.Healthy(ctx) == nil {
			return node, nil
		}
	}

	if own := s.Node(); own != nil {
		return own, nil
	}

	if len(nodes) > 0 {
		return nodes[0], nil
	}

	return nil, etcd.Refused(s.Address().String())
}

const promoteRetry = 5 * time.Millisecond

// leaveRetry replaces Talos's ten seconds between attempts to leave.
const leaveRetry = 20 * time.Millisecond

// realLeave is the least time to keep trying with real members, which count as
// connected only seconds after they started.
const realLeave = 30 * time.Second
