package sim_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/etcd"
)

func TestEtcdAlarms_areRaisedListedAndDisarmed(t *testing.T) {
	cluster, cps := upgradeSite(t, 2, sim.Options{})
	alarmsComeAndGo(t, cluster, cps)

	// Reads fail on a corrupt cluster, so no member counts as healthy.
	check(t, cps[1].RaiseEtcdAlarm(t.Context(), etcd.Corrupt))

	eventually(t, "etcd unhealthy", func(context.Context) error {
		if ready, _ := cps[0].Ready(); ready {
			return fmt.Errorf("%s is ready", cps[0].Name())
		}

		return nil
	})
}

func TestEtcdAlarms_ofRealMembers(t *testing.T) {
	t.Parallel()

	folder := filepath.Dir(asset(t, "etcd"))
	cluster, cps := upgradeSite(t, 2, sim.Options{Assets: folder, OnlyEtcd: true})
	alarmsComeAndGo(t, cluster, cps)
}

func alarmsComeAndGo(t *testing.T, cluster *testCluster, cps []*sim.Machine) {
	t.Helper()

	ctx, talos := within(t, time.Minute), cluster.secure(cps[0])

	raised := listAlarms(t, talos)
	if len(raised) != 0 {
		t.Fatalf("alarms of a new cluster: %v", raised)
	}

	check(t, cps[1].RaiseEtcdAlarm(ctx, etcd.NoSpace))

	id := etcdStatus(t, cluster.secure(cps[1])).GetMemberId()

	raised = listAlarms(t, talos)
	if len(raised) != 1 || raised[0].GetMemberId() != id || raised[0].GetAlarm() != etcd.NoSpace {
		t.Errorf("alarms %v, want NOSPACE of %d", raised, id)
	}

	if st := etcdStatus(t, talos); !strings.Contains(strings.Join(st.GetErrors(), ","),
		fmt.Sprintf("memberID:%d alarm:NOSPACE", id)) {
		t.Errorf("status errors %q lack the alarm", st.GetErrors())
	}

	// The size that a real etcd tells leaves out what it is about to commit of the writes before the alarm.
	eventually(t, "defragmented database", func(ctx context.Context) error {
		before := etcdStatus(t, talos)

		_, err := talos.EtcdDefragment(ctx)
		check(t, err)

		if after := etcdStatus(t, talos); after.GetDbSize() > before.GetDbSize() || after.GetLeader() == 0 {
			return fmt.Errorf("status %v after defragmentation, %v before", after, before)
		}

		return nil
	})

	leader := cps[slices.IndexFunc(cps, func(m *sim.Machine) bool {
		st := etcdStatus(t, cluster.secure(m))

		return st.GetLeader() == st.GetMemberId()
	})]
	follower := cps[1-slices.Index(cps, leader)]

	forfeit, err := cluster.secure(leader).EtcdForfeitLeadership(ctx, &machine.EtcdForfeitLeadershipRequest{})
	check(t, err)

	if got := forfeit.GetMessages()[0].GetMember(); got != follower.Hostname() {
		t.Errorf("leadership went to %q, want %s", got, follower.Hostname())
	}

	eventually(t, "new leader", func(context.Context) error {
		if st := etcdStatus(t, cluster.secure(follower)); st.GetLeader() != st.GetMemberId() {
			return fmt.Errorf("leader is %x", st.GetLeader())
		}

		return nil
	})

	resp, err := talos.EtcdAlarmDisarm(ctx)
	check(t, err)

	if ended := resp.GetMessages()[0].GetMemberAlarms(); len(ended) != 1 || ended[0].GetMemberId() != id {
		t.Errorf("disarmed %v, want the alarm of %d", ended, id)
	}

	if raised := listAlarms(t, talos); len(raised) != 0 {
		t.Errorf("alarms after disarming: %v", raised)
	}
}

func listAlarms(t *testing.T, talos *client.Client) []*machine.EtcdMemberAlarm {
	t.Helper()

	resp, err := talos.EtcdAlarmList(within(t, time.Minute))
	check(t, err)

	return resp.GetMessages()[0].GetMemberAlarms()
}

func etcdStatus(t *testing.T, talos *client.Client) *machine.EtcdMemberStatus {
	t.Helper()

	resp, err := talos.EtcdStatus(within(t, time.Minute))
	check(t, err)

	return resp.GetMessages()[0].GetMemberStatus()
}

func TestEtcdAlarms_noSpaceStopsLegacyUpgrades(t *testing.T) {
	cluster, cps := upgradeSite(t, 1, sim.Options{})
	check(t, cps[0].RaiseEtcdAlarm(t.Context(), etcd.NoSpace))

	_, err := legacyUpgrade(within(t, time.Minute), cluster.secure(cps[0]),
		&machine.UpgradeRequest{Image: installer + newVersion})
	if status.Code(err) != codes.Unknown || !strings.Contains(err.Error(), "database space exceeded") {
		t.Errorf("upgrade without space in etcd: %v", err)
	}
}

func TestEtcdMaintenance_isForControlPlanes(t *testing.T) {
	_, _, talos := newMaintenanceMachine(t, sim.Options{})

	if _, err := talos.EtcdAlarmList(within(t, time.Minute)); status.Code(err) != codes.Unimplemented {
		t.Errorf("alarms in maintenance mode: %v", err)
	}

	if _, err := talos.MachineClient.EtcdDefragment(within(t, time.Minute),
		&emptypb.Empty{}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("defragmentation in maintenance mode: %v", err)
	}
}
