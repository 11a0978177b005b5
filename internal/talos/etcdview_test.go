package talos

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// etcdAPI is the part of a machine's API about etcd, for states that no simulated machine has.
type etcdAPI struct {
	machineapi.UnimplementedMachineServiceServer

	status                       *machineapi.EtcdMemberStatus
	unknown, unlisted, unalarmed error
}

func (a *etcdAPI) EtcdStatus(context.Context, *emptypb.Empty) (*machineapi.EtcdStatusResponse, error) {
	return &machineapi.EtcdStatusResponse{Messages: []*machineapi.EtcdStatus{{MemberStatus: a.status}}}, a.unknown
}

func (a *etcdAPI) EtcdMemberList(
	context.Context, *machineapi.EtcdMemberListRequest,
) (*machineapi.EtcdMemberListResponse, error) {
	members := []*machineapi.EtcdMember{{Id: 0xb}, {Id: 0xa0, IsLearner: true}, {Id: 0xa}}

	return &machineapi.EtcdMemberListResponse{Messages: []*machineapi.EtcdMembers{{Members: members}}}, a.unlisted
}

func (a *etcdAPI) EtcdAlarmList(context.Context, *emptypb.Empty) (*machineapi.EtcdAlarmListResponse, error) {
	alarms := []*machineapi.EtcdMemberAlarm{
		{MemberId: 0xb, Alarm: machineapi.EtcdMemberAlarm_NOSPACE},
		{MemberId: 0xa, Alarm: machineapi.EtcdMemberAlarm_NONE},
		{MemberId: 0xa, Alarm: machineapi.EtcdMemberAlarm_CORRUPT},
	}

	return &machineapi.EtcdAlarmListResponse{Messages: []*machineapi.EtcdAlarm{{MemberAlarms: alarms}}}, a.unalarmed
}

func TestEtcdView_ofPartialAnswers(t *testing.T) {
	t.Parallel()

	leaderless := errors.New("etcdserver: no leader")
	whole := etcdstate.View{
		Member: "000000000000000a", Leader: "000000000000000b",
		Members: []string{"000000000000000a", "000000000000000b", "00000000000000a0"},
		Alarms:  []string{"CORRUPT on 000000000000000a", "NOSPACE on 000000000000000b"},
		Errors:  []string{"etcdserver: no space"},
	}

	tests := map[string]struct {
		api   *etcdAPI
		want  etcdstate.View
		class error
	}{
		"whole": {
			api: &etcdAPI{status: &machineapi.EtcdMemberStatus{MemberId: 0xa, Leader: 0xb,
				Errors: []string{"etcdserver: no space"}}},
			want: whole,
		},
		"without a leader": {
			api: &etcdAPI{status: &machineapi.EtcdMemberStatus{MemberId: 0xa}, unlisted: leaderless, unalarmed: leaderless},
			want: etcdstate.View{
				Member: "000000000000000a", Errors: []string{"etcdserver: no leader",
					"list etcd alarms: etcdserver: no leader"},
			},
		},
		"a leader, and no list": {api: &etcdAPI{status: &machineapi.EtcdMemberStatus{MemberId: 0xa, Leader: 0xb},
			unlisted: leaderless}, class: errAny},
		"a leader, and no alarms": {api: &etcdAPI{status: &machineapi.EtcdMemberStatus{MemberId: 0xa, Leader: 0xb},
			unalarmed: leaderless}, class: errAny},
		"no member":       {api: &etcdAPI{unknown: errors.New("connection refused")}, class: errAny},
		"an empty answer": {api: &etcdAPI{}, class: errAny},
		"a worker": {api: &etcdAPI{unknown: status.Error(codes.Unimplemented, "only on control plane nodes")},
			class: ErrUnsupported},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got, err := machineOf(t, test.api).EtcdView(t.Context())
			if !isClass(err, test.class) {
				t.Fatalf("err = %v, want %v", err, test.class)
			}

			if got.Member != test.want.Member || got.Leader != test.want.Leader ||
				!slices.Equal(got.Members, test.want.Members) ||
				!slices.Equal(got.Alarms, test.want.Alarms) || !slices.Equal(got.Errors, test.want.Errors) {
				t.Errorf("view %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestEtcdErrors_areClassified(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		err       error
		class     error
		permanent bool
	}{
		"nothing": {},
		"not enough members": {
			err: status.Error(codes.Unknown, "failed to leave cluster: failed to remove member 1: etcdserver: "+
				"re-configuration failed due to not enough started members"),
			class: ErrQuorum,
		},
		"an unhealthy cluster": {err: status.Error(codes.Unknown, "failed to remove member: etcdserver: unhealthy cluster"),
			class: ErrQuorum},
		"no leader": {err: status.Error(codes.Unavailable, "etcdserver: no leader"), class: ErrQuorum},
		"a worker": {err: status.Error(codes.Unimplemented,
			"etcd leave is only available on control plane nodes"), class: ErrUnsupported, permanent: true},
		"no role": {err: status.Error(codes.PermissionDenied, "not authorized"), class: ErrNotAuthorized,
			permanent: true},
		"a slow etcd": {err: status.Error(codes.Unknown, "etcdserver: request timed out"), class: errAny},
		"a restart": {err: status.Error(codes.Unavailable, "error reading from server: EOF"),
			class: ErrUnreachable},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := etcdRefused(callError(test.err))
			if !isClass(got, test.class) || wait.IsPermanent(got) != test.permanent {
				t.Errorf("err = %v (permanent %t), want %v", got, wait.IsPermanent(got), test.class)
			}
		})
	}
}

func TestLifecycleUpgrade_inSteps(t *testing.T) {
	t.Parallel()

	for tag, want := range map[string]bool{
		"v1.13.0": true, "v1.13.6": true, "v1.14.1": true, "v2.0.0": true, "v1.12.6": false, "v1.13.0-alpha.1": false,
		"v1.10.0": false,
	} {
		got, err := upgradesInSteps(&machineapi.Version{Version: &machineapi.VersionInfo{Tag: tag}})
		if err != nil || got != want {
			t.Errorf("%s: %t, %v", tag, got, err)
		}
	}

	if _, err := upgradesInSteps(&machineapi.Version{}); !errors.Is(err, ErrUnsupported) || !wait.IsPermanent(err) {
		t.Errorf("no version: %v", err)
	}
}

func TestTail_isBounded(t *testing.T) {
	t.Parallel()

	output := ""
	for range 1000 {
		output = tail(output + "a line of the installer\n")
	}

	if n := len(output); n != 4<<10 || !strings.HasSuffix(output, "a line of the installer\n") {
		t.Errorf("%d bytes, ending %q", n, output[max(0, n-30):])
	}
}
