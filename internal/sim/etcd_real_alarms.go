package sim

import (
	"context"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
)

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
