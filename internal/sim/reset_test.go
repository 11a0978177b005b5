package sim_test

import (
	"strings"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// TestReset_volumesOnEphemeral: which volumes a reset may name beside partitions, by the version of the machine.
func TestReset_volumesOnEphemeral(t *testing.T) {
	t.Parallel()

	for version, refusals := range map[string]map[string]string{
		"v1.13.6": {
			"EPHEMERAL+ETCD": `failed to reset: volume "ETCD" is not located`,
			"EPHEMERAL+LOG":  `failed to get volume status with label "LOG"`,
		},
		"v1.14.1": {
			"ETCD": `failed to reset: volume "ETCD" resides on volume "EPHEMERAL", and therefore "ETCD" cannot be wiped without ` +
				`wiping "EPHEMERAL"`,
			"STATE+LOG": `failed to reset: volume "LOG" resides on volume "EPHEMERAL", and therefore`,
		},
	} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()

			cluster, cps := upgradeSite(t, 1, sim.Options{TalosVersion: version})
			cps[0].SetMeta(9, "{}")

			reset := func(labels string) error {
				request := &machine.ResetRequest{Reboot: true}
				for label := range strings.SplitSeq(labels, "+") {
					request.SystemPartitionsToWipe = append(request.SystemPartitionsToWipe,
						&machine.ResetPartitionSpec{Label: label, Wipe: true})
				}

				_, err := cluster.secure(cps[0]).MachineClient.Reset(t.Context(), request)

				return err
			}

			for labels, want := range refusals {
				if err := reset(labels); status.Code(err) != codes.Unknown || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v, want %s", labels, err, want)
				}
			}

			all := map[string]string{"v1.13.6": "STATE+EPHEMERAL", "v1.14.1": "STATE+EPHEMERAL+ETCD+CRI+KUBELET+LOG"}
			check(t, reset(all[version]))
			check(t, cps[0].AwaitStage(t.Context(), sim.StageMaintenance))

			if held := cps[0].Meta(); len(held) > 0 {
				t.Errorf("META still has %v", held)
			}
		})
	}
}
