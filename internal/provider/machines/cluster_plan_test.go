package machines_test

import (
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// The plan of a whole cluster names the machines of both roles, workers by pool, and
// configures all of them before etcd is bootstrapped.
func TestWholeCluster_planOfCreate(t *testing.T) {
	t.Parallel()

	plan := planOf(t, "talosop_cluster", nil, tftest.With(tftest.BaseCluster(), tftest.Unknown{}, "secrets"))

	want := []string{
		"apply configuration to cp-1: installs Talos v1.13.0 on /dev/sda, reboots, joins as control plane",
		"apply configuration to cp-2: installs Talos v1.13.0 on /dev/sda, reboots, joins as control plane",
		"apply configuration to cp-3: installs Talos v1.13.0 on /dev/sda, reboots, joins as control plane",
		"apply configuration to batch/w-1: installs Talos v1.13.0 on /dev/sda, reboots, joins as worker",
		"apply configuration to batch/w-2: installs Talos v1.13.0 on /dev/sda, reboots, joins as worker",
		"apply configuration to gpu/w-1: installs Talos v1.13.0 on /dev/nvme0n1, reboots, joins as worker",
		"bootstrap etcd on cp-1",
	}
	if got := tftest.TextsOf(t, tftest.AttributeOf(t, plan, "operations")); !slices.Equal(got, want) {
		t.Errorf("operations are %q", got)
	}

	for name, known := range map[string]bool{"phase": false, "observed": false, "id": true, "version_contract": true} {
		if got := tftest.AttributeOf(t, plan, name); got.IsKnown() != known {
			t.Errorf("%s is %s", name, got)
		}
	}

	handle := tftest.AttributeOf(t, plan, "cluster")
	if got := tftest.TextsOf(t, tftest.AttributeOf(t, handle, "talos_endpoints")); !slices.Equal(got,
		[]string{"10.0.0.11", "10.0.0.12", "10.0.0.13"}) {
		t.Errorf("cluster.talos_endpoints is %q", got)
	}
}

// Blocks that are unknown as a whole leave the operations unknown, and are no error.
func TestWholeCluster_planOfUnknownBlocks(t *testing.T) {
	t.Parallel()

	prior := settledState(t, "talosop_cluster", tftest.BaseCluster())

	for _, block := range []string{"control_plane", "workers"} {
		config := tftest.With(tftest.BaseCluster(), tftest.Unknown{}, block)
		if got := tftest.Validate(t, "talosop_cluster", config); len(got) > 0 {
			t.Errorf("unknown %s: %s", block, tftest.Show(got))
		}

		for kind, state := range map[string]*tftypes.Value{"create": nil, "update": &prior} {
			if got := tftest.AttributeOf(t, planOf(t, "talosop_cluster", state, config), "operations"); got.IsKnown() {
				t.Errorf("%s with unknown %s: operations are %s", kind, block, got)
			}
		}
	}
}

// Changes to a running cluster touch only the machines they are for.
func TestWholeCluster_planOfUpdates(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		config tftest.Config
		want   []string
	}{
		"worker added": {
			config: tftest.With(tftest.BaseCluster(), "10.0.0.32", "workers", "gpu", "machines", "w-2", "address"),
			want: []string{"apply configuration to gpu/w-2: installs Talos v1.13.0 on /dev/nvme0n1, reboots, " +
				"joins as worker"},
		},
		"pool added": {
			config: tftest.With(tftest.With(tftest.BaseCluster(), "10.0.0.41", "workers", "new", "machines", "w-1", "address"),
				"/dev/vda", "workers",
				"new", "install", "disk"),
			want: []string{"apply configuration to new/w-1: installs Talos v1.13.0 on /dev/vda, reboots, joins " +
				"as worker"},
		},
		"version of the cluster spelt out in a pool": {
			config: tftest.With(tftest.BaseCluster(), "v1.13.0", "workers", "batch", "talos_version"),
			want:   []string{},
		},
		"META of one worker": {
			config: tftest.With(tftest.BaseCluster(), "rack-1", "workers", "batch", "machines", "w-1", "meta", "user_1"),
			want:   []string{"write META 0x0c of batch/w-1"},
		},
	} {
		prior := settledState(t, "talosop_cluster", tftest.BaseCluster())

		if got := tftest.TextsOf(t, tftest.AttributeOf(t, planOf(t, "talosop_cluster", &prior, test.config),
			"operations")); !slices.Equal(
			got, test.want) {
			t.Errorf("%s: operations are %q, want %q", name, got, test.want)
		}
	}
}

// What the resources with one role refuse is refused in a whole cluster, on the block that asks for it.
func TestWholeCluster_refusedChanges(t *testing.T) {
	t.Parallel()

	const batch = `AttributeName("workers").ElementKeyString("batch")`

	for name, test := range map[string]struct {
		config tftest.Config
		At     string
		says   []string
	}{
		"Talos version of the cluster": {
			config: tftest.With(tftest.With(tftest.BaseCluster(), "v1.12.6", "talos_version"), "v1.12", "version_contract"),
			At:     `AttributeName("talos_version")`,
			says:   []string{"cp-1, cp-2 and cp-3 run Talos v1.13.0", "older v1.12.6"},
		},
		"Talos version of a pool": {
			config: tftest.With(tftest.With(tftest.BaseCluster(), "v1.12.6", "workers", "batch", "talos_version"), "v1.12",
				"version_contract"),
			At: batch + `.AttributeName("talos_version")`, says: []string{"batch/w-1 and batch/w-2 run Talos v1.13.0"},
		},
		"Kubernetes version": {
			config: tftest.With(tftest.BaseCluster(), "v1.34.1", "kubernetes_version"),
			At:     `AttributeName("kubernetes_version")`,
			says:   []string{"Kubernetes v1.35.2 runs", "[kubernetes_change]"},
		},
		"removal of all control planes": {
			config: tftest.With(tftest.BaseCluster(), tftest.Config{"cp-7": tftest.Config{"address": "10.0.0.17"}},
				"control_plane",
				"machines"),
			At:   `AttributeName("control_plane").AttributeName("machines")`,
			says: []string{"cp-1, cp-2 and cp-3 would leave"},
		},
		"control plane under the name of a worker": {
			config: tftest.With(tftest.Without(tftest.BaseCluster(), "control_plane", "machines", "cp-3"), "10.0.0.13",
				"workers", "batch",
				"machines", "w-9", "address"),
			At:   batch + `.AttributeName("machines").ElementKeyString("w-9")`,
			says: []string{"[machine_role_change]", "has the address or the hardware of cp-3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			prior := withDigests(t, settledState(t, "talosop_cluster", tftest.BaseCluster()))

			resp := tftest.Plan(t, "talosop_cluster", &prior, tftest.ValueOf(t, tftest.TypeOf(t, "talosop_cluster"),
				test.config))
			tftest.ExpectMistake(t, resp.Diagnostics, test.At, test.says, false)
		})
	}
}

// A new whole cluster is protected.
func TestWholeCluster_isProtectedFromTheStart(t *testing.T) {
	t.Parallel()

	typ := tftest.TypeOf(t, "talosop_cluster")
	prior := settledState(t, "talosop_cluster", tftest.BaseCluster())
	null := tftypes.NewValue(typ, nil)

	destroy, err := tftest.Server(t).PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: "talosop_cluster", PriorState: tftest.Dynamic(t, prior), ProposedNewState: tftest.Dynamic(t, null),
		Config: tftest.Dynamic(t, null),
	})
	if err != nil {
		t.Fatal(err)
	}

	tftest.ExpectMistake(t, destroy.Diagnostics, `AttributeName("deletion_protection")`, []string{`"prod"`, "destroyed"}, false)
}
