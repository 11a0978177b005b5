package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
)

// withVolume gives the workers a user volume on a disk of its own. The second value is what a reset wipes.
const withVolume = `
resource "talosop_worker" "this" {
  config_patches = [yamlencode({
    apiVersion   = "v1alpha1"
    kind         = "UserVolumeConfig"
    name         = "data"
    provisioning = { diskSelector = { match = "disk.dev_path == '%s'" }, minSize = "100MiB" }
  })]
  reset = %s
}
`

// resetOne wipes volumes of the first worker, which stays in the cluster.
const resetOne = `
resource "talosop_machine_reset" %q {
  cluster    = talosop_control_plane.this.cluster
  machines   = [%q]
  wipe       = [%q]
  depends_on = [talosop_worker.this]
}
`

// wipes: a worker with a user volume loses one volume at a time, and what is not named stays. It loses EPHEMERAL, then
// the user volume, both inside of the cluster. It leaves with its STATE alone, comes back, and leaves with everything.
// When Talos fails to wipe everything, the destroy says so.
func (s site) wipes(t *testing.T, cli clitest.CLI) {
	for _, ability := range []string{"install", "reset"} {
		s.needs(t, ability)
	}

	if s.userDisk == "" {
		t.Skip("left out: no worker has a second disk (TALOSOP_E2E_USER_DISK)")
	}

	w := s.workspace(t, cli)
	reset := func(options string) { w.Write("volume_override.tf", fmt.Sprintf(withVolume, s.userDisk, options)) }

	reset("null")
	s.applied(t, w, "create with a user volume")

	for _, wiped := range []string{"EPHEMERAL", "u-data"} {
		before := s.partitions(t, w)
		w.Write("reset-"+wiped+".tf", fmt.Sprintf(resetOne, strings.ToLower(wiped), s.workers[0], wiped))
		s.applied(t, w, "a wipe of "+wiped)
		changedOnly(t, before, s.partitions(t, w), wiped)
	}

	w.MustRun("state", "rm", "talosop_machine_reset.ephemeral", "talosop_machine_reset.u-data")
	w.Write("reset-EPHEMERAL.tf", "")
	w.Write("reset-u-data.tf", "")

	before := s.partitions(t, w)

	reset(`{ wipe = ["STATE"] }`)

	if output := s.workerLeaves(t, w); strings.Contains(output, wipeFailed) {
		t.Errorf("the wipe of STATE failed:\n%s", output)
	}

	reset(fmt.Sprintf(`{ user_disks = [%q] }`, s.userDisk))
	s.applied(t, w, "a worker that lost its STATE alone")
	changedOnly(t, before, s.partitions(t, w), "STATE")

	output := s.workerLeaves(t, w)
	left := slices.DeleteFunc(s.discovered(t), func(volume string) bool {
		return !strings.HasSuffix(volume, " STATE") && !strings.HasSuffix(volume, " EPHEMERAL") &&
			!strings.HasPrefix(volume, s.userDisk)
	})

	if warned := strings.Contains(output, wipeFailed); warned != (len(left) > 0) {
		t.Errorf("left after the wipe of all: %v; the destroy warned: %t\n%s", left, warned, output)
	}

	s.destroy(t, w)
}

// wipeFailed is in the warning about machines that left although Talos failed to wipe them.
const wipeFailed = "Talos failed to wipe"

// workerLeaves applies the options of the reset, and destroys the workers. It returns the output of the destroy.
func (s site) workerLeaves(t *testing.T, w *clitest.Workspace) (output string) {
	t.Helper()

	s.applied(t, w, "other options of the reset")
	output = w.MustRun("destroy", "-auto-approve", "-target=talosop_worker.this").Output()
	eventually(t, s.boot, "the worker in maintenance mode",
		func(ctx context.Context) error { return waitsInMaintenance(ctx, s.workers[0]) })
	t.Logf("volumes with a name: %v", s.discovered(t))

	return output
}

// volumesOfWipes are those with a partition of their own.
var volumesOfWipes = []string{"META", "STATE", "EPHEMERAL", "u-data"}

// partitions are the UUIDs of the partitions of the first worker, by volume. Talos reports those of new file systems
// only later.
func (s site) partitions(t *testing.T, w *clitest.Workspace) map[string]string {
	t.Helper()

	c, uuids := s.client(t, bundle(t, w), s.workers[0]), map[string]string{}

	for _, volume := range volumesOfWipes {
		eventually(t, s.boot, "volume "+volume, func(ctx context.Context) error {
			found, err := safe.StateGetByID[*block.VolumeStatus](ctx, c.COSI, volume)
			if err != nil {
				return err
			}

			spec := found.TypedSpec()
			if spec.Phase != block.VolumePhaseReady {
				return fmt.Errorf("it is %s", spec.Phase)
			}

			uuids[volume] = spec.PartitionUUID

			return nil
		})
	}

	t.Logf("partitions: %v", uuids)

	return uuids
}

// changedOnly checks that one volume is a new one, and that all others are as before.
func changedOnly(t *testing.T, before, after map[string]string, wiped string) {
	t.Helper()

	for _, volume := range slices.Sorted(maps.Keys(before)) {
		if changed := before[volume] != after[volume]; changed != (volume == wiped) {
			t.Errorf("after the wipe of %s, %s is %q, was %q", wiped, volume, after[volume], before[volume])
		}
	}
}

// discovered are the partitions with a name and content of the first worker, which waits in maintenance mode: device and
// name.
func (s site) discovered(t *testing.T) []string {
	t.Helper()

	var names []string

	eventually(t, s.boot, "the disks of a machine in maintenance mode", func(ctx context.Context) (err error) {
		c, err := asStranger(ctx, s.workers[0])
		if err != nil {
			return err
		}

		defer func() { err = errors.Join(err, c.Close()) }()

		list, err := safe.StateListAll[*block.DiscoveredVolume](ctx, c.COSI)
		if err != nil {
			return err
		}

		names = nil

		for v := range list.All() {
			if spec := v.TypedSpec(); spec.PartitionLabel != "" && spec.Name != "" {
				names = append(names, spec.DevPath+" "+spec.PartitionLabel)
			}
		}

		return nil
	})

	return names
}
