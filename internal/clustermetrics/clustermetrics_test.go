package clustermetrics_test

import (
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/health"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/clustermetrics"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/statuspage"
)

var at = time.Unix(1700000000, 0)

// testObservation is a cluster with a control plane, a worker without a node and everything that arguments add.
func testObservation() statuspage.Observation {
	member := health.Member{Member: etcdstate.Member{ID: "1", Name: "cp-1"}, Leader: true}
	certificate := health.Certificate{Name: health.TalosAPI, Server: "cp-1 (10.0.0.11)"}
	certificate.NotAfter, certificate.Due = at, true

	return statuspage.Observation{
		Name: "prod", Operations: []string{"reboot cp-1"}, Drift: map[string][]string{"w-1": {"a", "b"}, "cp-1": nil},
		Backups: []statuspage.Backup{{Key: "c", Time: at.Add(time.Hour), Problem: "it is cut off"}, {Key: "b", Time: at},
			{Key: "a", Time: at.Add(-time.Hour)}},
		Health: health.Cluster{
			Conditions: []health.Condition{{Name: health.EtcdQuorum, Status: health.True, Reason: "secret"},
				{Name: health.NodesReady, Status: health.Unknown, Since: at, Reason: "secret"}},
			Etcd: health.Etcd{Members: []health.Member{member}, Quorum: 1, Reachable: true,
				Alarms: []string{"NOSPACE on cp-1"}},
			Certificates: []health.Certificate{certificate},
			Machines: []health.Machine{
				{Title: "cp-1 (10.0.0.11)", Name: "cp-1", Address: "10.0.0.11", Role: step.ControlPlane, Status: health.True,
					TalosVersion: "v1.14.1", Node: &kubestate.Node{Name: "cp-1", KubeletVersion: "v1.37.0", Staged: true}},
				{Title: "10.0.0.12", Address: "10.0.0.12", Role: step.ControlPlane, Status: health.False},
			},
			Unmanaged: []kubestate.Node{{Name: "asg-1"}}, Staged: []string{"cp-1"},
		},
	}
}

// Each part of an observation has its metrics, and none has a reason.
func TestText_ofAnObservation(t *testing.T) {
	t.Parallel()

	text, err := clustermetrics.Text(testObservation())
	if err != nil {
		t.Fatal(err)
	}

	for _, line := range []string{
		`talosop_cluster_healthy{cluster="prod"} 0.0`,
		`talosop_cluster_condition{cluster="prod",condition="EtcdQuorum",status="true"} 1.0`,
		`talosop_cluster_condition{cluster="prod",condition="EtcdQuorum",status="unknown"} 0.0`,
		`talosop_cluster_condition{cluster="prod",condition="NodesReady",status="unknown"} 1.0`,
		`# UNIT talosop_cluster_condition_last_change_timestamp_seconds seconds`,
		`talosop_cluster_condition_last_change_timestamp_seconds{cluster="prod",condition="NodesReady"} 1.7e+09`,
		`talosop_machine_info{cluster="prod",machine="cp-1",role="control plane",address="10.0.0.11",talos_version="v1.14.1",` +
			`kubernetes_version="v1.37.0"} 1.0`,
		`talosop_machine_status{cluster="prod",machine="10.0.0.12",status="false"} 1.0`,
		`talosop_machine_staged{cluster="prod",machine="cp-1"} 1.0`,
		`talosop_machine_differences{cluster="prod",machine="w-1"} 2.0`,
		`talosop_unmanaged_nodes{cluster="prod"} 1.0`,
		`talosop_etcd_member_healthy{cluster="prod",member="cp-1"} 1.0`,
		`talosop_etcd_member_leader{cluster="prod",member="cp-1"} 1.0`,
		`talosop_etcd_member_learner{cluster="prod",member="cp-1"} 0.0`,
		`talosop_etcd_quorum{cluster="prod"} 1.0`,
		`talosop_etcd_alarms{cluster="prod"} 1.0`,
		`talosop_certificate_expiry_timestamp_seconds{cluster="prod",certificate="Talos API",server="cp-1 (10.0.0.11)"} 1.7e+09`,
		`talosop_certificate_due{cluster="prod",certificate="Talos API",server="cp-1 (10.0.0.11)"} 1.0`,
		`talosop_pending_operations{cluster="prod"} 1.0`,
		`talosop_etcd_backups{cluster="prod",restorable="true"} 2.0`,
		`talosop_etcd_backups{cluster="prod",restorable="false"} 1.0`,
		`talosop_etcd_backup_newest_timestamp_seconds{cluster="prod"} 1.7e+09`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("%s is not in\n%s", line, text)
		}
	}

	if strings.Contains(text, "secret") {
		t.Errorf("a reason is in\n%s", text)
	}
}

// What is unknown has no metric, rather than zero.
func TestText_ofUnknownParts(t *testing.T) {
	t.Parallel()

	text, err := clustermetrics.Text(statuspage.Observation{Name: "prod"})
	if err != nil {
		t.Fatal(err)
	}

	for _, name := range []string{"unmanaged", "staged", "etcd", "backup", "pending", "differences", "certificate"} {
		if strings.Contains(text, name) {
			t.Errorf("%s is in\n%s", name, text)
		}
	}
}
