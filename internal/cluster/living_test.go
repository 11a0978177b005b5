package cluster_test

import (
	"slices"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// The control planes in a snapshot are asked before a restore without isolation, unless they are machines of the
// resource or its etcd has begun. Those that still run stop the restore.
func TestLivingMembers_stopARestore(t *testing.T) {
	t.Parallel()

	const host = "10.0.0.11"

	blank := step.MachineState{Access: step.Maintenance, UUID: "aaaa"}
	runs := step.MachineState{Access: step.Member, Stage: step.StageRunning, UUID: "bbbb"}
	boots := func(etcd step.ServiceState) step.MachineState {
		return step.MachineState{Access: step.Member, Stage: step.StageBooting, EtcdService: etcd}
	}
	same := runs
	same.UUID = blank.UUID

	want := cluster.Spec{RestoreFrom: "key", Machines: []cluster.Machine{
		cluster.MachineAt("cp-1", step.ControlPlane, "10.0.9.11")}}

	for name, test := range map[string]struct {
		change      func(*cluster.Spec)
		own, found  step.MachineState
		asks, stops bool
	}{
		"it runs":                 {own: blank, found: runs, asks: true, stops: true},
		"it is silent":            {own: blank, found: step.MachineState{Access: step.Unreachable}, asks: true},
		"it was reset":            {own: blank, found: step.MachineState{Access: step.Maintenance}, asks: true},
		"it has other keys":       {own: blank, found: step.MachineState{Access: step.Foreign}, asks: true},
		"it waits for etcd":       {own: blank, found: boots(step.ServicePreparing), asks: true},
		"its etcd is broken":      {own: blank, found: boots("Stopping"), asks: true, stops: true},
		"it is the same hardware": {own: blank, found: same, asks: true},
		"it is a machine of the resource": {own: blank, found: runs,
			change: func(s *cluster.Spec) { s.Machines[0].Address = host }},
		"the cluster is isolated": {own: blank, found: runs, change: func(s *cluster.Spec) { s.Isolated = true }},
		"the cluster began":       {own: runs, found: runs},
		"the cluster joins":       {own: blank, found: runs, change: func(s *cluster.Spec) { s.Joins = true }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			spec := want
			spec.Machines = slices.Clone(want.Machines)

			if test.change != nil {
				test.change(&spec)
			}

			have := cluster.Snapshot{Machines: map[string]step.MachineState{"cp-1": test.own}}
			hosts := cluster.HostsToAsk(spec, have, []string{host})

			if asks := len(hosts) > 0; asks != test.asks {
				t.Fatalf("asks %v, want %t", hosts, test.asks)
			}

			found := map[string]step.MachineState{}
			for _, h := range hosts {
				found[h] = test.found
			}

			if stops := len(cluster.RefuseLivingMembers(spec, have, found)) > 0; stops != test.stops {
				t.Errorf("it stops the restore: %t, want %t", stops, test.stops)
			}
		})
	}
}
