package talos

import (
	"context"
	"fmt"
	"slices"
	"strings"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/resources/etcd"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/panics"
)

// EtcdView is etcd as this machine's member sees it, from three concurrent calls, and a fourth while its data is
// for an older etcd than it runs. The member has to answer for itself. A member without a leader cannot list
// members or alarms; the view then has none, and its errors say why. On a worker it is ErrUnsupported.
func (m *Machine) EtcdView(ctx context.Context) (etcdstate.View, error) {
	var view etcdstate.View

	err := m.readMember(ctx, func(ctx context.Context, s *session) (err error) {
		view, err = m.etcdView(ctx, s)

		return err
	})
	if err != nil {
		return etcdstate.View{}, fmt.Errorf("view etcd: %w", err)
	}

	return view, nil
}

func (m *Machine) etcdView(ctx context.Context, s *session) (etcdstate.View, error) {
	var (
		calls               panics.Group
		own                 *machineapi.EtcdMemberStatus
		members             []etcdstate.Member
		alarms              []string
		unlisted, unalarmed error
	)

	calls.Go(func() error {
		members, unlisted = bounded(ctx, m, s.ownEtcdMembers)

		return nil
	})
	calls.Go(func() error {
		alarms, unalarmed = bounded(ctx, m, s.etcdAlarms)

		return nil
	})
	calls.Go(func() (err error) {
		own, err = bounded(ctx, m, s.etcdStatus)

		return err
	})

	if err := calls.Wait(); err != nil {
		return etcdstate.View{}, err
	}

	versions, unversioned := m.etcdVersions(ctx, s, own)
	view := etcdstate.View{Versions: versions, Member: etcd.FormatMemberID(own.GetMemberId()), Alarms: alarms,
		Errors: beyondAlarms(own.GetErrors())}
	if own.GetLeader() != 0 {
		view.Leader = etcd.FormatMemberID(own.GetLeader())
	}

	for _, member := range members {
		view.Members = append(view.Members, member.ID)
	}

	slices.Sort(view.Members)

	for _, err := range []error{unlisted, unalarmed, unversioned} {
		switch {
		case err == nil:
		case view.Leader != "" || !s.alive():
			return etcdstate.View{}, err
		default:
			view.Errors = append(view.Errors, err.Error())
		}
	}

	return view, nil
}

// beyondAlarms are the errors of a member without the alarms. Every member repeats the alarms of all members as
// errors (etcd 3.6, maintenanceServer.Status).
func beyondAlarms(errs []string) []string {
	return slices.DeleteFunc(slices.Clone(errs), func(text string) bool { return strings.Contains(text, "alarm:") })
}

// etcdAlarms lists the alarms that are raised in etcd, sorted.
func (s *session) etcdAlarms(ctx context.Context) ([]string, error) {
	answer, err := s.machine.EtcdAlarmList(ctx, &emptypb.Empty{})
	if err != nil {
		return nil, fmt.Errorf("list etcd alarms: %w", s.failed(err))
	}

	var alarms []string

	for _, message := range answer.GetMessages() {
		for _, alarm := range message.GetMemberAlarms() {
			if alarm.GetAlarm() != machineapi.EtcdMemberAlarm_NONE {
				alarms = append(alarms, fmt.Sprintf("%s on %s", alarm.GetAlarm(), etcd.FormatMemberID(alarm.GetMemberId())))
			}
		}
	}

	slices.Sort(alarms)

	return alarms, nil
}
