package sim_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
	"google.golang.org/grpc/codes"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
)

// A machine is installed to the disk that its configuration finds, and refuses one whose selector finds none. A path
// that no disk has passes the call: the installation fails, and the machine waits for another configuration.
func TestInstall_onTheDiskOfTheConfiguration(t *testing.T) {
	t.Parallel()

	const link = "/dev/disk/by-id/nvme-SIM"

	disks := []machined.Disk{{Path: "/dev/sda", Size: 20 << 30, Model: "SIMDISK"},
		{Path: "/dev/nvme0n1", Size: 100 << 30, Model: "FAST", Transport: "nvme", Symlinks: []string{link}}}

	for name, test := range map[string]struct{ install, disk, refused string }{
		"the first one":   {"disk: /dev/sda", "/dev/sda", ""},
		"another one":     {"disk: /dev/nvme0n1", "/dev/nvme0n1", ""},
		"by its link":     {"disk: " + link, "/dev/nvme0n1", ""},
		"by its model":    {"diskSelector: {model: FAST}", "/dev/nvme0n1", ""},
		"by its size":     {"diskSelector: {size: '> 50GB'}", "/dev/nvme0n1", ""},
		"no such model":   {"diskSelector: {model: SLOW}", "", "no disks matched the expression"},
		"none so large":   {"diskSelector: {size: '> 1TB'}", "", "no disks matched the expression"},
		"no such path":    {"disk: /dev/vda", "", ""},
		"no such by-path": {"disk: /dev/disk/by-path/x", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			simulator := sim.ForTest(t, sim.Options{})
			c := newTestCluster(t, simulator)
			m, err := simulator.AddMachine(t.Context(), sim.MachineOptions{Disks: disks})
			check(t, err)

			head, tail, _ := strings.Cut(string(c.config(machinetype.TypeControlPlane)), "        disk: ")
			_, rest, _ := strings.Cut(tail, "\n")

			_, err = insecure(t, m).ApplyConfiguration(t.Context(), &machine.ApplyConfigurationRequest{
				Data: []byte(head + "        " + test.install + "\n" + rest), Mode: machine.ApplyConfigurationRequest_AUTO,
			})

			if test.refused != "" {
				if client.StatusCode(err) != codes.InvalidArgument || !strings.Contains(err.Error(), test.refused) {
					t.Errorf("it says %v, want %q", err, test.refused)
				}

				return
			}

			check(t, err)

			if test.disk == "" {
				eventually(t, "the boot after the installation", func(context.Context) error {
					if m.Boots() < 2 {
						return errors.New("it boots for the first time")
					}

					return nil
				})
				check(t, m.AwaitStage(within(t, time.Minute), sim.StageMaintenance))

				if m.Installed() {
					t.Error("the machine is installed")
				}

				return
			}

			c.bootstrap(m)
			check(t, m.AwaitReady(within(t, time.Minute)))

			system, err := safe.ReaderGetByID[*block.SystemDisk](t.Context(), c.secure(m).COSI, block.SystemDiskID)
			check(t, err)

			if got := system.TypedSpec().DevPath; got != test.disk {
				t.Errorf("installed to %s, want %s", got, test.disk)
			}
		})
	}
}
