package etcd

import (
	"context"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
)

func (m *realMember) Alarms(ctx context.Context) ([]*machine.EtcdMemberAlarm, error) {
	return m.api().alarm(ctx, "GET", nil)
}

// Disarm ends the alarms one by one, as etcd's client does.
func (m *realMember) Disarm(ctx context.Context) ([]*machine.EtcdMemberAlarm, error) {
	raised, err := m.Alarms(ctx)
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

func (m *realMember) Raise(ctx context.Context, alarm Alarm) error {
	_, err := m.api().alarm(ctx, "ACTIVATE", &machine.EtcdMemberAlarm{MemberId: m.ID(), Alarm: alarm})

	return err
}

func (m *realMember) Defragment(ctx context.Context) error { return m.api().defragment(ctx) }
