package cluster_test

import (
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// Right before etcd begins on a machine, no other machine may have one.
func TestPreflight_ofABootstrap(t *testing.T) {
	t.Parallel()

	const waiting = "kubernetes-down\ncp-1 member stage=booting etcd=Preparing sent busy\n"

	for name, test := range map[string]struct{ snapshot, want string }{
		"no machine has an etcd":      {waiting + "cp-2 member stage=booting etcd=Preparing fresh", ""},
		"the other is in maintenance": {waiting + "cp-2 maintenance", ""},
		"the other boots for long":    {waiting + "cp-2 unreachable fresh", ""},
		"the other was asked":         {waiting + "cp-2 member stage=booting etcd=Preparing requested", "was bootstrapped on cp-2"},
		"the other has data": {waiting + "cp-2 member stage=running etcd=Running",
			"cp-2 may have etcd data: its etcd is Running"},
		"the other fell silent":        {waiting + "cp-2 unreachable", "cp-2 may have etcd data: it does not respond"},
		"another member list":          {waiting + "etcd cp-9\ncp-2 maintenance", "etcd already has members"},
		"Kubernetes answers":           {"nodes cp-9\ncp-1 member stage=booting etcd=Preparing\ncp-2 maintenance", "already has nodes"},
		"another resource founds it":   {waiting + "founder cp-9\ncp-2 maintenance", "another resource bootstraps etcd on cp-9"},
		"the machine itself is asked":  {"kubernetes-down\ncp-1 member etcd=Preparing requested sent busy\ncp-2 maintenance", ""},
		"the other's etcd is unknown":  {waiting + "cp-2 member stage=booting", "the state of its etcd is unknown"},
		"the other has not been asked": {waiting, "cp-2 may have etcd data: it does not respond"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			policy := cluster.DefaultPolicy()
			want := parseSpec(t, "beside cp-2 10.0.0.2\ncp-1 controlplane 10.0.0.1\n", &policy)
			have := parseSnapshot(t, want, test.snapshot+"\n")

			for _, step := range []step.Step{step.Bootstrap{Machine: "cp-1"}, step.Restore{Machine: "cp-1"}} {
				got := cluster.Preflight(want, have, policy, step)
				if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
					t.Errorf("%s: %q, want %q", step, got, test.want)
				}
			}
		})
	}
}

// The machine that waits for the name of another one does not keep that one from leaving.
func TestPreflight_ofAnExchange(t *testing.T) {
	t.Parallel()

	policy := cluster.DefaultPolicy()
	want := parseSpec(t, `bootstrapped
cp-1 controlplane 10.0.0.1 node=cp-1 wanted-node=cp-1
cp-2 controlplane 10.0.0.2 node=cp-2 wanted-node=cp-2
cp-3 controlplane 10.0.0.4 wanted-node=cp-3
w-1 worker 10.0.0.12 wanted-node=w-1
removed old-3 controlplane 10.0.0.3 node=cp-3
removed old-1 worker 10.0.0.11 node=w-1
`, &policy)
	have := parseSnapshot(t, want, `etcd cp-1 cp-2 cp-3
nodes cp-1 cp-2 cp-3 w-1
cp-1 member stage=running ready etcd=Running node=cp-1
cp-2 member stage=running ready etcd=Running node=cp-2
cp-3 maintenance
w-1 maintenance
old-3 member stage=running ready etcd=Running node=cp-3
old-1 member stage=running ready node=w-1
`)

	for _, step := range cluster.Plan(want, have, policy).Steps {
		if reason := cluster.Preflight(want, have, policy, step); reason != "" {
			t.Errorf("%s: %s", step, reason)
		}
	}
}
