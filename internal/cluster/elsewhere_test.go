package cluster_test

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
)

// TestStandingOf_runs is what other runs know about one: whether it moves API servers or kubelets that they wait for,
// and the oldest API server that it has or starts.
func TestStandingOf_runs(t *testing.T) {
	const beside = `
etcd cp-1 cp-2
views cp-2
nodes cp-1 cp-2(controlplane)
peer cp-2 member stage=running ready etcd=Running
owners cp-2=another
`

	for name, test := range map[string]struct {
		snapshot string
		before   map[string]string
		want     cluster.Standing
		starts   bool
	}{
		"upgrades its API server": {
			snapshot: beside + "cp-1 member stage=running ready\nruns v1.35.4 cp-1 cp-2",
			want:     cluster.Standing{Moves: true, Oldest: "v1.35.4"},
		},
		"only waits for another one": {
			snapshot: beside + "cp-1 member stage=running ready pulled=v1.36.3\nruns v1.36.3 cp-1\n" +
				"runs cp-1 kubelet=v1.35.4\nruns v1.35.4 cp-2\nelsewhere moves",
			want: cluster.Standing{Oldest: "v1.36.3"},
		},
		"joins with an older API server": {
			snapshot: "nodes cp-2(controlplane)\nowners cp-2=another\ncp-1 maintenance\nruns v1.35.4 cp-2",
			want:     cluster.Standing{Moves: true, Oldest: "v1.35.4"}, starts: true,
		},
		"boots after it joined": {
			snapshot: "nodes cp-2(controlplane)\nowners cp-2=another\ncp-1 unreachable\nruns v1.36.3 cp-2",
			before:   map[string]string{"cp-1": "v1.35.4"},
			want:     cluster.Standing{Moves: true, Oldest: "v1.35.4"}, starts: true,
		},
		"waits for a machine that never answered": {
			snapshot: "nodes cp-2(controlplane)\nowners cp-2=another\ncp-1 unreachable\nruns v1.36.3 cp-2",
			starts:   true,
		},
		"has nothing to do": {
			snapshot: beside + "cp-1 member stage=running ready\nruns v1.36.3 cp-1 cp-2",
			want:     cluster.Standing{Oldest: "v1.36.3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			policy := cluster.DefaultPolicy()
			want := parseSpec(t, "bootstrapped\nshared\njoins\nkubernetes v1.36.3\ncp-1 controlplane 10.0.0.1", &policy)
			have := parseSnapshot(t, want, test.snapshot)
			d := cluster.Plan(want, have, policy)

			known := cluster.APIServers(want, have, d)
			for machine, version := range test.before {
				known[machine] = version
			}

			if got := cluster.StandingOf(want, have, d, known); got != test.want {
				t.Errorf("%+v, want %+v\n%s", got, test.want, render(d))
			}

			if got := cluster.StartsAPIServers(want, have); got != test.starts {
				t.Errorf("starts an API server: %t, want %t", got, test.starts)
			}
		})
	}
}
