package sim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/talosop/terraform-provider-talosop/internal/sim/etcd"
)

// onControlPlane refuses calls that only control-plane machines serve. In maintenance
// mode the machine type is unknown, which is not a control plane either.
func (b *boot) onControlPlane(action string) error {
	if !b.ControlPlane() {
		return status.Errorf(codes.Unimplemented, "%s is only available on control plane nodes", action)
	}

	return nil
}

// EtcdMemberList lists members through any healthy member, or only the local one.
func (a *api) EtcdMemberList(
	ctx context.Context, req *machine.EtcdMemberListRequest,
) (*machine.EtcdMemberListResponse, error) {
	if err := a.b.onControlPlane("member list"); err != nil {
		return nil, err
	}

	node, err := a.b.etcd.LocalMember()
	if !req.GetQueryLocal() {
		node, err = a.b.etcd.AnyMember(ctx)
	}

	if err != nil {
		return nil, err
	}

	members, err := node.Members(ctx)
	if err != nil {
		return nil, err
	}

	members = advertised(members, a.b.sim.advertised)

	answer := &machine.EtcdMembers{Members: members}
	for _, m := range members {
		answer.LegacyMembers = append(answer.LegacyMembers, m.GetHostname())
	}

	return &machine.EtcdMemberListResponse{Messages: []*machine.EtcdMembers{answer}}, nil
}

// advertised is members by the addresses that machines are known by.
func advertised(members []*machine.EtcdMember, named func(netip.Addr) netip.Addr) []*machine.EtcdMember {
	renamed := func(urls []string) []string {
		out := make([]string, len(urls))

		for i, text := range urls {
			out[i] = text

			u, err := url.Parse(text)
			if err != nil {
				continue
			}

			if addr, err := netip.ParseAddr(u.Hostname()); err == nil {
				u.Host = net.JoinHostPort(named(addr).String(), u.Port())
				out[i] = u.String()
			}
		}

		return out
	}

	out := make([]*machine.EtcdMember, 0, len(members))
	for _, m := range members {
		out = append(out, &machine.EtcdMember{
			Id: m.GetId(), Hostname: m.GetHostname(), IsLearner: m.GetIsLearner(), PeerUrls: renamed(m.GetPeerUrls()),
			ClientUrls: renamed(m.GetClientUrls()),
		})
	}

	return out
}

// EtcdStatus describes the local member; it answers without quorum, with leader 0.
func (a *api) EtcdStatus(ctx context.Context, _ *emptypb.Empty) (*machine.EtcdStatusResponse, error) {
	if err := a.b.onControlPlane("etcd status"); err != nil {
		return nil, err
	}

	node, err := a.b.etcd.LocalMember()
	if err != nil {
		return nil, fmt.Errorf("failed to query etcd status: %w", err)
	}

	st, err := node.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("failed to query etcd status: %w", err)
	}

	return &machine.EtcdStatusResponse{Messages: []*machine.EtcdStatus{{MemberStatus: st}}}, nil
}

// EtcdRemoveMemberByID removes a dead member; one that is not listed is NotFound.
func (a *api) EtcdRemoveMemberByID(
	ctx context.Context, req *machine.EtcdRemoveMemberByIDRequest,
) (*machine.EtcdRemoveMemberByIDResponse, error) {
	if err := a.b.onControlPlane("etcd remove member"); err != nil {
		return nil, err
	}

	node, err := a.b.etcd.AnyMember(ctx)
	if err != nil {
		return nil, fmt.Errorf("failed to create etcd client: %w", err)
	}

	err = node.Remove(ctx, req.GetMemberId())

	switch {
	case errors.Is(err, etcd.ErrMemberNotFound):
		return nil, status.Errorf(codes.NotFound, "failed to remove member %d: %s", req.GetMemberId(), err)
	case err != nil:
		return nil, fmt.Errorf("failed to remove member: failed to remove member %d: %w", req.GetMemberId(), err)
	}

	return &machine.EtcdRemoveMemberByIDResponse{Messages: []*machine.EtcdRemoveMemberByID{{}}}, nil
}

// EtcdLeaveCluster removes the local member and deletes its data.
func (a *api) EtcdLeaveCluster(
	ctx context.Context, _ *machine.EtcdLeaveClusterRequest,
) (*machine.EtcdLeaveClusterResponse, error) {
	if err := a.b.onControlPlane("etcd leave"); err != nil {
		return nil, err
	}

	if err := a.b.etcd.Leave(ctx); err != nil {
		return nil, err
	}

	return &machine.EtcdLeaveClusterResponse{Messages: []*machine.EtcdLeaveCluster{{}}}, nil
}

// EtcdSnapshot streams the local member's database followed by its SHA-256. When etcd fails
// after the first bytes, the stream ends as if it was complete: what Talos's chunker reads
// from just closes (Talos 1.13, EtcdSnapshot).
func (a *api) EtcdSnapshot(_ *machine.EtcdSnapshotRequest, stream machine.MachineService_EtcdSnapshotServer) error {
	if err := a.b.onControlPlane("etcd snapshot"); err != nil {
		return err
	}

	chunks := &chunkWriter{send: stream.Send}

	node, err := a.b.etcd.LocalMember()
	if err == nil {
		err = node.Snapshot(stream.Context(), chunks)
	}

	switch {
	case chunks.err != nil:
		return chunks.err
	case err != nil && chunks.sent:
		a.b.World.Logf("%s: etcd snapshot ended early: %v", a.b.m.Name(), err)

		return nil
	case err != nil:
		return fmt.Errorf("failed reading etcd snapshot: %w", err)
	default:
		return nil
	}
}

// chunkWriter sends what is written in pieces, as the server's chunker does.
type chunkWriter struct {
	send func(*common.Data) error
	sent bool
	err  error // of sending
}

const chunkSize = 32 << 10

// Write implements io.Writer.
func (w *chunkWriter) Write(p []byte) (int, error) {
	written := 0

	for len(p) > 0 {
		n := min(len(p), chunkSize)
		if w.err = w.send(&common.Data{Bytes: append([]byte(nil), p[:n]...)}); w.err != nil {
			return written, w.err
		}

		w.sent = true
		written += n
		p = p[n:]
	}

	return written, nil
}
