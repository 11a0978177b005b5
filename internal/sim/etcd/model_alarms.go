package etcd

import (
	"context"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
)

// The alarms of etcd. With EtcdNoSpace the whole cluster refuses writes, with
// EtcdCorrupt reads as well, until the alarm is disarmed.
const (
	NoSpace = machine.EtcdMemberAlarm_NOSPACE
	Corrupt = machine.EtcdMemberAlarm_CORRUPT
)

// alarmed reports whether any member raised the alarm; the world is locked.
func (c *ModelCluster) alarmed(kind Alarm) bool {
	return slices.ContainsFunc(c.alarms, func(a *machine.EtcdMemberAlarm) bool { return a.GetAlarm() == kind })
}

func (m *modelMember) Alarms(context.Context) ([]*machine.EtcdMemberAlarm, error) {
	m.world.Lock()
	defer m.world.Unlock()

	if err := m.serving(); err != nil {
		return nil, err
	}

	return slices.Clone(m.c.alarms), nil
}

func (m *modelMember) Disarm(context.Context) ([]*machine.EtcdMemberAlarm, error) {
	m.world.Lock()
	defer m.world.Unlock()

	if err := m.serving(); err != nil {
		return nil, err
	}

	ended := m.c.alarms
	m.c.alarms = nil
	m.world.Notify()

	return ended, nil
}

func (m *modelMember) Raise(_ context.Context, kind Alarm) error {
	m.world.Lock()
	defer m.world.Unlock()

	if err := m.serving(); err != nil {
		return err
	}

	raised := &machine.EtcdMemberAlarm{MemberId: m.memberID, Alarm: kind}
	if !slices.ContainsFunc(m.c.alarms,
		func(a *machine.EtcdMemberAlarm) bool { return a.GetMemberId() == m.memberID && a.GetAlarm() == kind }) {
		m.c.alarms = append(m.c.alarms, raised)
	}

	m.world.Notify()

	return nil
}

func (m *modelMember) Defragment(context.Context) error {
	m.world.Lock()
	defer m.world.Unlock()

	if !m.running {
		return Refused(m.host)
	}

	m.compact = true

	return nil
}
