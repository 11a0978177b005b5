package provider_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// A provider whose CLI is killed during an apply ends within seconds, although a machine never comes back, and the
// next apply resumes.
func TestAccKilledCLI_providerEnds(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 1)
		w := s.Quickstart(t, cli, nil)
		s.ControlPlane[0].HangNextReboot()

		run := w.Start("apply", "-auto-approve")
		tftest.Must(t, wait.Until(t.Context(), 10*time.Millisecond, func(context.Context) error {
			if len(s.CallsTo("ApplyConfiguration")) == 0 {
				return errors.New("no machine is configured yet")
			}

			return nil
		}))

		if !run.ProviderRuns() {
			t.Fatal("no provider runs")
		}

		run.KillCLI()
		run.Wait()

		// Ten seconds of grace, and extra time for a busy computer.
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()

		tftest.Must(t, run.AwaitProviderEnd(ctx))

		s.ControlPlane[0].PowerOff()
		s.ControlPlane[0].PowerOn()
		// Its secrets are in state, and etcd had not started.
		w.Write("consent_override.tf", "resource \"talosop_control_plane\" \"this\" {\n  allow_bootstrap = true\n}\n")
		w.MustRun("apply", "-auto-approve")
		sitetest.Says(t, w.MustRun("plan"), "No changes.")
	})
}
