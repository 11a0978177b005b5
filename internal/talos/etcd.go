package talos

import (
	"context"
	"errors"
	"fmt"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/resources/etcd"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
)

// etcdServiceID is the id of etcd in Talos's service list and events.
const etcdServiceID = "etcd"

// EtcdMembers lists the members as this machine sees them. The answer needs an
// etcd with a leader: without one the call ends with its deadline. On a worker it
// is ErrUnsupported.
func (m *Machine) EtcdMembers(ctx context.Context) ([]cluster.EtcdMember, error) {
	var members []cluster.EtcdMember

	err := m.read(ctx, func(ctx context.Context, s *session) (err error) {
		if err := s.expect(cluster.Member); err != nil {
			return err
		}

		members, err = bounded(ctx, m, s.etcdMembers)

		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list etcd members: %w", err)
	}

	return members, nil
}

func (s *session) etcdMembers(ctx context.Context) ([]cluster.EtcdMember, error) {
	answer, err := s.machine.EtcdMemberList(ctx, &machineapi.EtcdMemberListRequest{})
	if err != nil {
		return nil, s.failed(err)
	}

	var out []cluster.EtcdMember

	for _, message := range answer.GetMessages() {
		for _, member := range message.GetMembers() {
			out = append(out, cluster.EtcdMember{
				ID:       etcd.FormatMemberID(member.GetId()),
				Name:     member.GetHostname(),
				Learner:  member.GetIsLearner(),
				PeerURLs: member.GetPeerUrls(),
			})
		}
	}

	if len(out) == 0 {
		return nil, errors.New("the member list is empty")
	}

	return out, nil
}

// etcdService returns the state of the etcd service; empty before Talos has loaded
// it, and on workers.
func (s *session) etcdService(ctx context.Context) (cluster.ServiceState, error) {
	answer, err := s.machine.ServiceList(ctx, &emptypb.Empty{})
	if err != nil {
		return "", fmt.Errorf("list services: %w", s.failed(err))
	}

	for _, message := range answer.GetMessages() {
		for _, service := range message.GetServices() {
			if service.GetId() == etcdServiceID {
				return cluster.ServiceState(service.GetState()), nil
			}
		}
	}

	return "", nil
}
