package step_test

import (
	"reflect"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
)

// Steps are added up kind by kind. A machine that goes down twice counts once.
func TestTotalOf(t *testing.T) {
	t.Parallel()

	drains := step.Evacuation{Node: "node", Drain: true}
	got := step.TotalOf([]step.Step{
		step.ApplyConfig{Machine: "cp-2", Role: step.ControlPlane, Access: step.Maintenance, Installer: "image:1"},
		step.ApplyConfig{Machine: "w-1", Role: step.Worker, Access: step.Member, Reboot: "fields"},
		step.ApplyConfig{Machine: "w-2", Role: step.Worker, Access: step.Member},
		step.Upgrade{Machine: "w-1", From: "v1.12.0", To: "v1.13.0", Installer: "image:2", Evacuation: drains},
		step.Upgrade{Machine: "w-3", From: "v1.12.0", To: "v1.14.0", Evacuation: drains},
		step.UpgradeComponent{Machine: "w-1", Component: kubenames.Kubelet, From: "k:v1.35.0", Image: "k:v1.36.0"},
		step.LeaveEtcd{Machine: "cp-3", Evacuation: drains},
		step.Reset{Machine: "cp-3", Role: step.ControlPlane},
		step.Reset{Machine: "w-4", Evacuation: drains},
		step.RemoveMember{Machine: "cp-4"},
		step.Restore{Machine: "cp-1", From: "s3://backup"},
	})

	want := step.Total{
		Joining: []string{"cp-2"}, JoiningEtcd: 1, Reset: []string{"cp-3", "w-4"},
		Rebooted: []string{"w-1"}, Drained: []string{"w-3"}, Emptied: []string{"cp-3", "w-4"},
		LeavingEtcd: []string{"cp-3"}, Expelled: []string{"cp-4"}, RestoredFrom: "s3://backup",
		Talos: []string{"v1.12.0", "v1.13.0", "v1.14.0"}, Kubernetes: []string{"v1.35.0", "v1.36.0"},
		UpgradesKubernetes: true, Installers: map[string]string{"cp-2": "image:1", "w-1": "image:2", "w-3": ""},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}
