package talos

import (
	"context"
	"errors"
	"fmt"
	"io"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
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

// preparingWithData is the state of an etcd that is Preparing for a start with the
// data of an earlier boot, as after every reboot. To the planner it must not look
// like one that waits to be bootstrapped: the machine may hold the cluster's data.
const preparingWithData cluster.ServiceState = "Preparing to start with the data it has"

// etcdHasData reports whether etcd's data directory holds anything, which is what
// Talos itself looks at when it is told to bootstrap. The directory is there as soon
// as the service is Preparing. A machine that will not say counts as one without.
func (s *session) etcdHasData(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	stream, err := s.machine.List(ctx, &machineapi.ListRequest{Root: constants.EtcdDataPath})
	if err != nil {
		return false, s.unlisted(err)
	}

	for {
		entry, err := stream.Recv()

		switch {
		case errors.Is(err, io.EOF):
			return false, nil
		case err != nil:
			return false, s.unlisted(err)
		case entry.GetError() != "", entry.GetRelativeName() == ".":
			continue
		default:
			return true, nil
		}
	}
}

// unlisted keeps the errors of the way to the machine and drops the machine's own:
// a directory that is not there is a plain error on Talos, like any other.
func (s *session) unlisted(err error) error {
	if err = s.failed(err); unreachable(err) {
		return fmt.Errorf("list %s: %w", constants.EtcdDataPath, err)
	}

	return nil
}

// etcdProgress is how far the etcd of a control plane is, and whether this boot saw
// a bootstrap.
func (m *Machine) etcdProgress(ctx context.Context, s *session) (etcd cluster.ServiceState, requested bool, err error) {
	if etcd, err = bounded(ctx, m, s.etcdService); err != nil || etcd == cluster.ServiceRunning {
		return etcd, false, err
	}

	if requested, err = bounded(ctx, m, s.bootstrapRequested); err != nil || requested || etcd != cluster.ServicePreparing {
		return etcd, requested, err
	}

	data, err := bounded(ctx, m, s.etcdHasData)
	if data {
		etcd = preparingWithData
	}

	return etcd, false, err
}
