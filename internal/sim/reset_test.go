package sim_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
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

// TestReset_failedWipe: what is on the disks after a reset, as any client may read in maintenance mode.
func TestReset_failedWipe(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		fails func(*sim.Machine)
		left  []string
	}{
		"no failure":         {func(*sim.Machine) {}, []string{"/dev/sda gpt", "/dev/sda4 xfs META"}},
		"a busy partition":   {(*sim.Machine).FailDrop, []string{"/dev/sda gpt", "/dev/sda4 xfs META", "/dev/sdb gpt", "/dev/sdb1 xfs"}},
		"a disk with errors": {func(m *sim.Machine) { m.FailWipe("EPHEMERAL") }, []string{"/dev/sda gpt", "/dev/sda4 xfs META", "/dev/sda6 xfs EPHEMERAL", "/dev/sdb gpt", "/dev/sdb1 xfs"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			cluster, cps := upgradeSite(t, 1, sim.Options{})
			m := cps[0]
			m.Disks = append(m.Disks, machined.Disk{Path: "/dev/sdb", Size: 10 << 30})
			m.Write("/dev/sdb")
			test.fails(m)

			before := discovered(t, cluster.secure(m))
			for _, volume := range []string{"/dev/sda5 xfs STATE", "/dev/sda6 xfs EPHEMERAL", "/dev/sdb1 xfs"} {
				if !slices.Contains(before, volume) {
					t.Errorf("%s is not among %q", volume, before)
				}
			}

			_, err := cluster.secure(m).MachineClient.Reset(t.Context(), &machine.ResetRequest{Reboot: true,
				SystemPartitionsToWipe: []*machine.ResetPartitionSpec{{Label: "STATE", Wipe: true}, {Label: "EPHEMERAL", Wipe: true}},
				UserDisksToWipe:        []string{"/dev/sdb"}})
			check(t, err)
			check(t, m.AwaitStage(t.Context(), sim.StageMaintenance))

			if left := discovered(t, insecure(t, m)); !slices.Equal(left, test.left) {
				t.Errorf("left are %q, want %q", left, test.left)
			}
		})
	}
}

// discovered are the devices with content: their paths, what is on them, and their labels.
func discovered(t *testing.T, c *client.Client) (found []string) {
	t.Helper()

	items, err := safe.StateListAll[*block.DiscoveredVolume](t.Context(), c.COSI)
	check(t, err)

	for item := range items.All() {
		if spec := item.TypedSpec(); spec.Name != "" {
			found = append(found, strings.TrimSpace(spec.DevPath+" "+spec.Name+" "+spec.PartitionLabel))
		}
	}

	slices.Sort(found)

	return found
}
