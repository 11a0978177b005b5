package sim

import (
	"context"
	"fmt"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/talosop/terraform-provider-talosop/internal/sim/etcd"
)

// RaiseEtcdAlarm lets the machine's etcd member raise an alarm, real members included.
// It stays until a client disarms it. The machine must run a member in a cluster that
// has a leader.
func (m *Machine) RaiseEtcdAlarm(ctx context.Context, alarm etcd.Alarm) error {
	node, err := m.member()
	if err == nil {
		err = node.Raise(ctx, alarm)
	}

	if err != nil {
		return fmt.Errorf("raise etcd alarm of %s: %w", m.Name(), err)
	}

	return nil
}

// DisarmEtcdAlarms ends the alarms of all members, as a client does through the machine.
func (m *Machine) DisarmEtcdAlarms(ctx context.Context) error {
	node, err := m.member()
	if err == nil {
		_, err = node.Disarm(ctx)
	}

	if err != nil {
		return fmt.Errorf("disarm etcd alarms through %s: %w", m.Name(), err)
	}

	return nil
}

// EtcdAlarmList lists the alarms of all members through the local one.
func (a *api) EtcdAlarmList(ctx context.Context, _ *emptypb.Empty) (*machine.EtcdAlarmListResponse, error) {
	if err := a.b.onControlPlane("etcd alarm list"); err != nil {
		return nil, err
	}

	var alarms []*machine.EtcdMemberAlarm

	node, err := a.b.etcd.LocalMember()
	if err == nil {
		alarms, err = node.Alarms(ctx)
	}

	if err != nil {
		return nil, fmt.Errorf("failed to list etcd alarms: %w", err)
	}

	return &machine.EtcdAlarmListResponse{Messages: []*machine.EtcdAlarm{{MemberAlarms: alarms}}}, nil
}

// EtcdAlarmDisarm ends the alarms of all members and tells which those were.
func (a *api) EtcdAlarmDisarm(ctx context.Context, _ *emptypb.Empty) (*machine.EtcdAlarmDisarmResponse, error) {
	if err := a.b.onControlPlane("etcd alarm disarm"); err != nil {
		return nil, err
	}

	var alarms []*machine.EtcdMemberAlarm

	node, err := a.b.etcd.LocalMember()
	if err == nil {
		alarms, err = node.Disarm(ctx)
	}

	if err != nil {
		return nil, fmt.Errorf("failed to disarm etcd alarm: %w", err)
	}

	return &machine.EtcdAlarmDisarmResponse{Messages: []*machine.EtcdAlarmDisarm{{MemberAlarms: alarms}}}, nil
}

// EtcdDefragment rewrites the local member's database; it works without quorum.
func (a *api) EtcdDefragment(ctx context.Context, _ *emptypb.Empty) (*machine.EtcdDefragmentResponse, error) {
	if err := a.b.onControlPlane("etcd defragment"); err != nil {
		return nil, err
	}

	node, err := a.b.etcd.LocalMember()
	if err == nil {
		err = node.Defragment(ctx)
	}

	if err != nil {
		return nil, fmt.Errorf("failed to defragment etcd: %w", err)
	}

	return &machine.EtcdDefragmentResponse{Messages: []*machine.EtcdDefragment{{}}}, nil
}
