package sim

import (
	"context"
	"fmt"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/protobuf/types/known/emptypb"
)

// EtcdAlarm is a kind of alarm that an etcd member raises.
type EtcdAlarm = machine.EtcdMemberAlarm_AlarmType

// The alarms of etcd. With EtcdNoSpace the whole cluster refuses writes, with
// EtcdCorrupt reads as well, until the alarm is disarmed.
const (
	EtcdNoSpace = machine.EtcdMemberAlarm_NOSPACE
	EtcdCorrupt = machine.EtcdMemberAlarm_CORRUPT
)

// RaiseEtcdAlarm lets the machine's etcd member raise an alarm, real members included.
// It stays until a client disarms it. The machine must run a member in a cluster that
// has a leader.
func (m *Machine) RaiseEtcdAlarm(ctx context.Context, alarm EtcdAlarm) error {
	node, err := m.member()
	if err == nil {
		err = node.raise(ctx, alarm)
	}

	if err != nil {
		return fmt.Errorf("raise etcd alarm of %s: %w", m.name, err)
	}

	return nil
}

// DisarmEtcdAlarms ends the alarms of all members, as a client does through the machine.
func (m *Machine) DisarmEtcdAlarms(ctx context.Context) error {
	node, err := m.member()
	if err == nil {
		_, err = node.disarm(ctx)
	}

	if err != nil {
		return fmt.Errorf("disarm etcd alarms through %s: %w", m.name, err)
	}

	return nil
}

// EtcdAlarmList lists the alarms of all members through the local one.
func (a *api) EtcdAlarmList(ctx context.Context, _ *emptypb.Empty) (*machine.EtcdAlarmListResponse, error) {
	if err := a.b.onControlPlane("etcd alarm list"); err != nil {
		return nil, err
	}

	var alarms []*machine.EtcdMemberAlarm

	node, err := a.b.localMember()
	if err == nil {
		alarms, err = node.alarms(ctx)
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

	node, err := a.b.localMember()
	if err == nil {
		alarms, err = node.disarm(ctx)
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

	node, err := a.b.localMember()
	if err == nil {
		err = node.defragment(ctx)
	}

	if err != nil {
		return nil, fmt.Errorf("failed to defragment etcd: %w", err)
	}

	return &machine.EtcdDefragmentResponse{Messages: []*machine.EtcdDefragment{{}}}, nil
}

// alarmed says whether any member raised the alarm; sim.mu is held.
func (c *modelCluster) alarmed(kind EtcdAlarm) bool {
	return slices.ContainsFunc(c.alarms, func(a *machine.EtcdMemberAlarm) bool { return a.GetAlarm() == kind })
}

func (m *modelMember) alarms(context.Context) ([]*machine.EtcdMemberAlarm, error) {
	m.sim.mu.Lock()
	defer m.sim.mu.Unlock()

	if err := m.serving(); err != nil {
		return nil, err
	}

	return slices.Clone(m.c.alarms), nil
}

func (m *modelMember) disarm(context.Context) ([]*machine.EtcdMemberAlarm, error) {
	m.sim.mu.Lock()
	defer m.sim.mu.Unlock()

	if err := m.serving(); err != nil {
		return nil, err
	}

	ended := m.c.alarms
	m.c.alarms = nil
	m.sim.notify()

	return ended, nil
}

func (m *modelMember) raise(_ context.Context, kind EtcdAlarm) error {
	m.sim.mu.Lock()
	defer m.sim.mu.Unlock()

	if err := m.serving(); err != nil {
		return err
	}

	raised := &machine.EtcdMemberAlarm{MemberId: m.memberID, Alarm: kind}
	if !slices.ContainsFunc(m.c.alarms, func(a *machine.EtcdMemberAlarm) bool { return a.GetMemberId() == m.memberID && a.GetAlarm() == kind }) {
		m.c.alarms = append(m.c.alarms, raised)
	}

	m.sim.notify()

	return nil
}

func (m *modelMember) defragment(context.Context) error {
	m.sim.mu.Lock()
	defer m.sim.mu.Unlock()

	if !m.running {
		return etcdRefused(m.host)
	}

	m.compact = true

	return nil
}

func (m *realMember) alarms(ctx context.Context) ([]*machine.EtcdMemberAlarm, error) {
	return m.api().alarm(ctx, "GET", nil)
}

// disarm ends the alarms one by one, as etcd's client does.
func (m *realMember) disarm(ctx context.Context) ([]*machine.EtcdMemberAlarm, error) {
	raised, err := m.alarms(ctx)
	if err != nil {
		return nil, err
	}

	var ended []*machine.EtcdMemberAlarm

	for _, alarm := range raised {
		one, err := m.api().alarm(ctx, "DEACTIVATE", alarm)
		if err != nil {
			return nil, err
		}

		ended = append(ended, one...)
	}

	return ended, nil
}

func (m *realMember) raise(ctx context.Context, alarm EtcdAlarm) error {
	_, err := m.api().alarm(ctx, "ACTIVATE", &machine.EtcdMemberAlarm{MemberId: m.id(), Alarm: alarm})

	return err
}

func (m *realMember) defragment(ctx context.Context) error { return m.api().defragment(ctx) }
