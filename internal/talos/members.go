package talos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/resources/etcd"
	"github.com/siderolabs/talos/pkg/machinery/resources/network"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// ForfeitLeadership makes the machine's member hand over the leadership of etcd. It is
// safe to repeat: a member that does not lead, or is the only one, does nothing.
// ErrQuorum is an etcd without a leader; ErrUnsupported (a worker), ErrRejected and
// ErrNotAuthorized are permanent.
func (m *Machine) ForfeitLeadership(ctx context.Context) error {
	return doing(m.forfeitLeadership(ctx), "transfer etcd leadership from %s", m.address)
}

func (m *Machine) forfeitLeadership(ctx context.Context) error {
	s, err := m.changing(ctx, step.Member, m.knownUUID())
	if err != nil {
		return err
	}

	// For a single member, only the text of Talos's error distinguishes it from others. For a member that does not
	// lead, Talos answers OK.
	members, err := bounded(ctx, m, s.etcdMembers)
	if err != nil {
		return etcdRefused(err)
	}

	if len(members) == 1 {
		return nil
	}

	otherLeads := func(ctx context.Context, s *session) error {
		own, err := bounded(ctx, m, s.etcdStatus)

		switch {
		case err != nil:
			return err
		case own.GetLeader() == 0, own.GetLeader() == own.GetMemberId():
			return errors.New("no other member leads")
		default:
			return nil
		}
	}

	transfer, cancel := context.WithTimeout(ctx, min(transferTimeout, m.fleet.options.Timeouts.Change))
	defer cancel()

	_, err = s.machine.EtcdForfeitLeadership(transfer, &machineapi.EtcdForfeitLeadershipRequest{})

	// The machine answers, and etcd tries on. The request carries its deadline, which either side sees pass first.
	late := transfer.Err() != nil || status.Code(err) == codes.DeadlineExceeded
	if late && ctx.Err() == nil && s.alive() {
		return doing(otherLeads(ctx, s), "the member that Talos selected, the first other one, does not become leader")
	}

	return m.orSettled(ctx, s, s.etcdFailed(err), otherLeads)
}

// transferTimeout is how long a member is tried to be made the leader. Talos chooses the first other one, whether it
// runs or not (Talos 1.13, internal/pkg/etcd/etcd.go: ForfeitLeadership). Raft gives up after one election timeout, a
// second, but etcd waits until the request ends (etcd 3.6, server.MoveLeader).
const transferTimeout = 5 * time.Second

// LeaveEtcd takes the machine's member out of etcd, stops it and deletes its data, after
// the hardware UUID was compared on a new connection. Destructive, and safe to repeat: a
// machine that is in the member list no more is left alone. The machine stays configured
// and would join again after a reboot. ErrQuorum is an etcd that refuses;
// ErrUnsupported (a worker), ErrRejected and ErrNotAuthorized are permanent. Bounded by
// Timeouts.Leave.
func (m *Machine) LeaveEtcd(ctx context.Context, uuid string) error {
	return doing(m.leaveEtcd(ctx, usableUUID(uuid)), "remove %s from etcd", m.address)
}

func (m *Machine) leaveEtcd(ctx context.Context, uuid string) error {
	s, err := m.changing(ctx, step.Member, uuid)
	if err != nil {
		return err
	}

	name, err := bounded(ctx, m, s.memberName)
	if err != nil {
		return err
	}

	members, err := bounded(ctx, m, s.etcdMembers)
	if err != nil {
		return etcdRefused(err)
	}

	own := slices.IndexFunc(members, func(e etcdstate.Member) bool { return e.Name == name })
	if own < 0 {
		return nil
	}

	leaveCtx, cancel := context.WithTimeout(ctx, m.fleet.options.Timeouts.Leave)
	defer cancel()

	_, err = s.machine.EtcdLeaveCluster(leaveCtx, &machineapi.EtcdLeaveClusterRequest{})

	return m.orSettled(ctx, s, s.etcdFailed(err), m.memberGone(members[own].ID))
}

// RemoveMember removes another machine's member, by its ID in the hexadecimal form that
// Talos prints. Destructive, and safe to repeat: a member that is gone is no error.
// ErrQuorum is an etcd that refuses because too few members would be left; ErrRejected
// (no such form of an ID), ErrUnsupported (a worker) and ErrNotAuthorized are permanent.
func (m *Machine) RemoveMember(ctx context.Context, member string) error {
	return doing(m.removeMember(ctx, member), "remove etcd member %s through %s", member, m.address)
}

func (m *Machine) removeMember(ctx context.Context, member string) error {
	id, err := etcd.ParseMemberID(member)
	if err != nil {
		return wait.Permanent(fmt.Errorf("%w: not a valid member ID: %w", ErrRejected, err))
	}

	s, err := m.changing(ctx, step.Member, m.knownUUID())
	if err != nil {
		return err
	}

	err = m.etcdCall(ctx, s, func(ctx context.Context) error {
		_, err := s.machine.EtcdRemoveMemberByID(ctx, &machineapi.EtcdRemoveMemberByIDRequest{MemberId: id})
		if status.Code(err) == codes.NotFound {
			return nil
		}

		return err
	})

	return m.orSettled(ctx, s, err, m.memberGone(etcd.FormatMemberID(id)))
}

// etcdCall runs a call that changes etcd with its own deadline.
func (m *Machine) etcdCall(ctx context.Context, s *session, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, m.fleet.options.Timeouts.Change)
	defer cancel()

	return s.etcdFailed(call(ctx))
}

// memberGone checks that a member is no longer in the list.
func (m *Machine) memberGone(id string) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		members, err := bounded(ctx, m, s.etcdMembers)
		if err != nil {
			return err
		}

		if slices.ContainsFunc(members, func(e etcdstate.Member) bool { return e.ID == id }) {
			return errors.New("the member is still in the member list")
		}

		return nil
	}
}

// memberName is what Talos calls the machine's member of etcd: its host name, without
// the domain (etcd.SpecController, Talos 1.13).
func (s *session) memberName(ctx context.Context) (string, error) {
	name, err := get[*network.HostnameStatus](ctx, s, network.NamespaceName, network.HostnameStatusType,
		network.HostnameID)
	if errors.Is(err, ErrGone) || err == nil && name.TypedSpec().Hostname == "" {
		return "", fmt.Errorf("%w: the machine has no host name yet", ErrInProgress)
	}

	if err != nil {
		return "", err
	}

	return name.TypedSpec().Hostname, nil
}

func (s *session) etcdStatus(ctx context.Context) (*machineapi.EtcdMemberStatus, error) {
	answer, err := s.machine.EtcdStatus(ctx, &emptypb.Empty{})
	if err != nil {
		return nil, fmt.Errorf("read the etcd status: %w", s.failed(err))
	}

	if len(answer.GetMessages()) == 0 || answer.GetMessages()[0].GetMemberStatus() == nil {
		return nil, errors.New("read the etcd status: the response is empty")
	}

	return answer.GetMessages()[0].GetMemberStatus(), nil
}

// quorumRefusals are the errors by which etcd refuses for the sake of its quorum, or for
// lack of one. Talos passes them on as text, most with code Unknown (Talos 1.13,
// internal/pkg/etcd/etcd.go/LeaveCluster; etcd 3.6, rpctypes/error.go).
var quorumRefusals = []string{
	"etcdserver: re-configuration failed due to not enough started members",
	"etcdserver: unhealthy cluster",
	"etcdserver: no leader",
}

// etcdFailed gives the error of a call to etcd its class.
func (s *session) etcdFailed(err error) error { return etcdRefused(s.failed(err)) }

func etcdRefused(err error) error {
	if err == nil {
		return nil
	}

	if slices.ContainsFunc(quorumRefusals, func(text string) bool { return strings.Contains(err.Error(), text) }) {
		return quorumError{err}
	}

	return final(err)
}

// quorumError is ErrQuorum, whatever the class of the code that it came with.
type quorumError struct{ err error }

func (e quorumError) Error() string { return ErrQuorum.Error() + ": " + e.err.Error() }
func (e quorumError) Unwrap() error { return ErrQuorum }
