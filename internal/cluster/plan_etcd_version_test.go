package cluster_test

import (
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
)

// A downgrade of etcd that is no longer wanted is canceled through a control plane whose member works.
func TestPlan_cancelsEtcdDowngradeThroughAHealthyMember(t *testing.T) {
	t.Parallel()

	const (
		cancel1 = "step cancel the etcd downgrade to 3.6 (through cp-1; no restart)\n"
		cancel2 = "step cancel the etcd downgrade to 3.6 (through cp-2; no restart)\n"
	)

	older := map[string]etcdstate.Versions{"cp-1": {Server: "3.6", Data: "3.6"}}

	for name, test := range map[string]struct {
		spec, snapshot, want string
		// runs are the members that run another etcd than 3.7.
		runs map[string]etcdstate.Versions
	}{
		"all work":               {snapshot: "", want: cancel1},
		"the member has errors":  {snapshot: "view cp-1 leader=cp-2 error=corrupt\n", want: cancel2},
		"the member sees no one": {snapshot: "view cp-1 leader=\n", want: cancel2},
		"the machine boots":      {snapshot: "cp-1 member stage=booting\n", want: cancel2},
		"the machine shuts down": {snapshot: "cp-1 member stage=rebooting\n", want: cancel2},
		"a machine is busy":      {snapshot: "cp-2 member stage=running ready busy\n"},
		"only others answer":     {snapshot: "cp-1 unreachable\n", want: cancel2},
		"one still goes back":    {spec: "cp-4 controlplane 10.0.0.4 version=v1.13.6\n", snapshot: "cp-4 member stage=running ready\n"},
		"others may go back":     {spec: "beside cp-9 10.0.0.9\n", snapshot: "cp-9 member stage=running ready\n"},
		"others may go back, and one upgrades": {spec: "beside cp-9 10.0.0.9\n",
			snapshot: "cp-9 member stage=running ready\ncp-1 member stage=running ready version=v1.13.6\n", want: cancel1, runs: older},
		"one joins, and another went back": {spec: "cp-4 controlplane 10.0.0.4 version=v1.13.6\n",
			snapshot: "cp-4 maintenance\n", want: cancel1, runs: older},
		"one joins, and none went back": {spec: "cp-4 controlplane 10.0.0.4 version=v1.13.6\n", snapshot: "cp-4 maintenance\n"},
	} {
		policy := cluster.DefaultPolicy()
		want := parseSpec(t, "bootstrapped\nversion v1.14.1\ncp-1 controlplane 10.0.0.1\ncp-2 controlplane 10.0.0.2\n"+
			"cp-3 controlplane 10.0.0.3\n"+test.spec, &policy)
		have := parseSnapshot(t, want, `talos v1.14.1
etcd cp-1 cp-2 cp-3
views cp-2
nodes cp-1 cp-2 cp-3
cp-1 member stage=running ready
cp-2 member stage=running ready
cp-3 member stage=running ready
`+test.snapshot)

		for id, view := range have.Etcd.Views {
			view.Versions = etcdstate.Versions{Server: "3.7", Data: "3.7", GoesBack: true}
			if other, ok := test.runs[id]; ok {
				view.Versions = other
			}

			have.Etcd.Views[id] = view
		}

		var got string

		for _, s := range cluster.Plan(want, have, policy).Steps {
			if text := s.String(); strings.Contains(text, "etcd downgrade") {
				got += "step " + text + "\n"
			}
		}

		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
