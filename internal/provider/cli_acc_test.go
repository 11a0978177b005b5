package provider_test

import (
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// These tests read what a person reads: the output of the CLI, its log and its state.

// A create that could not finish warns and names the machine that is the reason. It exits with 1 only for the
// postcondition. The second apply resumes.
func TestAccIncompleteCreate_namesItsMachine(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 2)
		s.Workers[1].HangNextReboot()

		w := s.Quickstart(t, cli, map[string]any{"deletion_protection": false})
		w.Write("override.tf", `resource "talosop_worker" "this" { timeouts = { create = "`+sitetest.Hanging+`" } }`)

		result := w.Run("apply", "-auto-approve")
		if result.Exit != 1 {
			t.Fatalf("exit %d:\n%s", result.Exit, result.Output())
		}

		for _, words := range []string{
			"Incomplete create of workers", "timed out after " + sitetest.Hanging, "w-2: ", "w-1: in the cluster, running",
			"Applying again is safe", "Resource postcondition failed",
		} {
			sitetest.Says(t, result, words)
		}

		s.Workers[1].PowerOff()
		s.Workers[1].PowerOn()
		w.MustRun("apply", "-auto-approve")

		if phase := w.Attribute("talosop_worker.this", "phase"); phase != "Ready" {
			t.Errorf("phase is %v", phase)
		}

		w.MustRun("destroy", "-auto-approve")
	})
}

// An update that cannot finish fails, keeps what it finished, and the next apply resumes it.
func TestAccIncompleteUpdate_keepsWhatJoined(t *testing.T) {
	t.Parallel()

	cli := clitest.Any(t)
	s := sitetest.New(t, 1, 3)
	w := s.Quickstart(t, cli, map[string]any{"deletion_protection": false, "workers": sitetest.Addresses(s.Workers[:1])})
	w.Write("override.tf", `resource "talosop_worker" "this" { timeouts = { update = "`+sitetest.Hanging+`" } }`)
	w.MustRun("apply", "-auto-approve")

	s.Workers[2].HangNextReboot()
	s.SetQuickstart(t, w, map[string]any{"deletion_protection": false})

	result := w.Run("apply", "-auto-approve")
	if result.Exit != 1 {
		t.Fatalf("exit %d:\n%s", result.Exit, result.Output())
	}

	for _, words := range []string{"Unable to update workers", "w-3: ", "w-2: in the cluster, running",
		"Applying again is safe"} {
		sitetest.Says(t, result, words)
	}

	machines, _ := w.Attribute("talosop_worker.this", "machines").(map[string]any)
	if _, configured := machines["w-3"]; !configured || machines["w-2"] == nil {
		t.Errorf("machines in state are %v", machines)
	}

	if phase := w.Attribute("talosop_worker.this", "phase"); phase != "Degraded" {
		t.Errorf("phase is %v", phase)
	}

	s.Workers[2].PowerOff()
	s.Workers[2].PowerOn()
	w.MustRun("apply", "-auto-approve")

	if empty, output := w.PlanIsEmpty(); !empty {
		t.Errorf("the plan after the second apply is not empty:\n%s", output)
	}

	w.MustRun("destroy", "-auto-approve")
}

// A user can give up machines that are lost for good: the result for the machines is stored even when the rest of
// the update fails.
func TestAccIncompleteUpdate_givesUpDeadMachines(t *testing.T) {
	testenv.BeforeRelease(t, "TestRemoval_ofADeadControlPlaneGoesThroughASurvivor",
		"TestAccIncompleteUpdate_keepsWhatJoined")
	t.Parallel()

	cli := clitest.Any(t)
	s := sitetest.New(t, 1, 2)
	s.Workers[1].HangNextReboot()

	w := s.Quickstart(t, cli, map[string]any{"deletion_protection": false})
	w.Write("override.tf", `resource "talosop_worker" "this" { timeouts = { create = "`+sitetest.Hanging+`" } }`)

	if result := w.Run("apply", "-auto-approve"); result.Exit != 1 {
		t.Fatalf("exit %d:\n%s", result.Exit, result.Output())
	}

	w.Write("override.tf", `resource "talosop_worker" "this" {
  on_destroy = "preserve"
  timeouts   = { update = "3s" }
}`)

	if result := w.Run("apply", "-auto-approve"); result.Exit != 1 {
		t.Errorf("exit %d:\n%s", result.Exit, result.Output())
	}

	if got := w.Attribute("talosop_worker.this", "on_destroy"); got != "preserve" {
		t.Errorf("on_destroy is %v", got)
	}

	w.MustRun("destroy", "-auto-approve")
}

// Machines that do not answer are reported once, by name. When their nodes are lost, too, the plan waits for them.
func TestAccRefresh_reportsSilentMachines(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 2)
		w := s.Quickstart(t, cli, map[string]any{"deletion_protection": false})
		w.MustRun("apply", "-auto-approve")

		s.Workers[0].PowerOff()
		s.Workers[1].PowerOff()

		plan := w.Run("plan", "-detailed-exitcode")
		if plan.Exit != 2 {
			t.Errorf("the plan is empty, or failed:\n%s", plan.Output())
		}

		sitetest.Says(t, plan, "wait for w-1, w-2")

		sitetest.Shows(t, plan, "machines_unreachable")
		sitetest.Says(t, plan, "w-1 ("+s.Workers[0].Address().String()+"):")
		sitetest.Says(t, plan, "w-2 ("+s.Workers[1].Address().String()+"):")

		s.Workers[0].PowerOn()
		s.Workers[1].PowerOn()
		w.MustRun("destroy", "-auto-approve")
	})
}

// Only Delete sees a tainted resource, and refuses it as well.
func TestAccDeletionProtection_ofATaintedResource(t *testing.T) {
	t.Parallel()

	cli := clitest.Any(t)
	s := sitetest.New(t, 1, 1)
	w := s.Quickstart(t, cli, nil)
	w.MustRun("apply", "-auto-approve")
	w.MustRun("taint", "talosop_control_plane.this")

	s.ForgetCalls()

	result := w.Run("apply", "-auto-approve")
	if result.Exit != 1 {
		t.Errorf("exit %d:\n%s", result.Exit, result.Output())
	}

	sitetest.Shows(t, result, "deletion_protection")

	for _, call := range s.CallsTo("Reset") {
		if call.Machine == s.ControlPlane[0].Name() {
			t.Errorf("the control plane was reset: %v", call)
		}
	}

	w.MustRun("untaint", "talosop_control_plane.this")
	w.MustRun("apply", "-auto-approve", "-var", "deletion_protection=false")
	w.MustRun("destroy", "-auto-approve", "-var", "deletion_protection=false")
}

// on_destroy = "preserve" says what keeps running.
func TestAccPreserve_namesWhatKeepsRunning(t *testing.T) {
	t.Parallel()

	cli := clitest.Any(t)
	s := sitetest.New(t, 1, 1)
	w := s.Quickstart(t, cli, map[string]any{"deletion_protection": false})
	w.Write("override.tf", `resource "talosop_worker" "this" { on_destroy = "preserve" }`)
	w.MustRun("apply", "-auto-approve")

	result := w.MustRun("destroy", "-auto-approve")
	sitetest.Shows(t, result, "machines_keep_running", "secrets_will_be_lost")
	sitetest.Says(t, result, "keep running: w-1")
	sitetest.Says(t, result, "w-1 of cluster \"quickstart\" (talosop_worker")

	if !s.Workers[0].Configured() {
		t.Error("the worker was reset")
	}

	if s.ControlPlane[0].Stage() != sim.StageMaintenance {
		t.Errorf("the control plane is %s", s.ControlPlane[0].Stage())
	}
}

// Secrets are generated once: no plan changes them, and both ways to import them end in an empty plan with the same
// bundle.
func TestAccSecrets_generatedAndImported(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		w := sitetest.Applied(t, cli, guardedSecrets)

		if empty, output := w.PlanIsEmpty(); !empty {
			t.Errorf("the second plan is not empty:\n%s", output)
		}

		text, _ := w.Attribute("talosop_secrets.this", "bundle").(string)

		bundle, err := pki.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}

		config, err := machineconfig.Generate(
			machineconfig.Cluster{Name: "test", Endpoint: "https://10.0.0.1:6443", KubernetesVersion: "v1.33.0",
				Contract: "v1.13"},
			machineconfig.Machine{Role: machineconfig.ControlPlane, Install: machineconfig.Install{Disk: "/dev/sda"}}, bundle)
		if err != nil {
			t.Fatal(err)
		}

		w.Write("secrets.yaml", text)
		w.Write("controlplane.yaml", string(config.Bytes))

		for _, file := range []string{"secrets.yaml", "controlplane.yaml"} {
			w.MustRun("state", "rm", "talosop_secrets.this")
			w.MustRun("import", "talosop_secrets.this", file)

			if empty, output := w.PlanIsEmpty(); !empty {
				t.Errorf("the plan after the import of %s is not empty:\n%s", file, output)
			}

			if got := w.Attribute("talosop_secrets.this", "bundle"); got != text {
				t.Errorf("the import of %s gives another bundle", file)
			}
		}
	})
}

// guardedSecrets is secrets as most people have them: with prevent_destroy.
const guardedSecrets = sitetest.ProviderHCL + "resource \"talosop_secrets\" \"this\" {}\n"

// No secret is in a log at TRACE, in output, or in state outside the attributes documented to hold it.
func TestAccSecrets_staySecret(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccSecrets_scan")
	t.Parallel()

	clitest.Each(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 2)
		s.Workers[1].HangNextReboot()

		w := s.Quickstart(t, cli, map[string]any{"deletion_protection": false}).KeepTrace()
		w.Write("override.tf", `resource "talosop_worker" "this" { timeouts = { create = "`+sitetest.Hanging+`" } }`)

		output := w.Run("apply", "-auto-approve").Output()
		output += w.MustRun("plan", "-replace=talosop_worker.this").Output()

		bundle, _ := w.Attribute("talosop_secrets.this", "bundle").(string)
		if bundle == "" {
			t.Fatal("there is no bundle in state")
		}

		s.Workers[1].PowerOff()
		s.Workers[1].PowerOn()

		visible := sitetest.VisibleValues(t, w.State())
		output += w.MustRun("destroy", "-auto-approve").Output()

		for _, secret := range tftest.SecretsIn(bundle) {
			for where, text := range map[string]string{"output": output, "log": w.Trace(), "state": visible} {
				if strings.Contains(text, secret) {
					t.Errorf("the %s of %s holds a secret of %d characters", where, cli.Name, len(secret))
				}
			}
		}

		if strings.Contains(output+w.Trace()+visible, "PRIVATE KEY") {
			t.Errorf("%s shows a private key", cli.Name)
		}

		// A log without the steps would prove nothing.
		if !strings.Contains(w.Trace(), "bootstrap etcd on cp-1") {
			t.Errorf("the log of %s does not tell of the bootstrap", cli.Name)
		}
	})
}
