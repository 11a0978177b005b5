package clusterimport_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// A cluster of another tool, or one whose state was lost, is imported from its secrets and the addresses of its
// machines, and then the plan is empty.
func TestAccImport_plansNothing(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 3, 2)
		w := s.Quickstart(t, cli, nil)
		w.MustRun("apply", "-auto-approve")

		if empty, output := w.PlanIsEmpty(); !empty {
			t.Fatalf("the second plan is not empty:\n%s", output)
		}

		bundle, _ := w.Attribute("talosop_secrets.this", "bundle").(string)
		w.Write("secrets.yaml", bundle)

		for _, address := range []string{"talosop_worker.this", "talosop_control_plane.this", "talosop_secrets.this"} {
			w.MustRun("state", "rm", address)
		}

		s.UnmarkNodes(t, bundle)

		w.MustRun("import", "talosop_secrets.this", "secrets.yaml")
		w.MustRun("import", "talosop_control_plane.this",
			tftest.JSON(t, map[string]any{"secrets": "secrets.yaml", "machines": sitetest.Addresses(s.ControlPlane)}))
		w.MustRun("import", "talosop_worker.this", tftest.JSON(t, map[string]any{
			"secrets": "secrets.yaml", "machines": sitetest.Addresses(s.Workers),
			"control_plane": sitetest.Addresses(s.ControlPlane),
		}))

		s.ForgetCalls()

		if empty, output := w.PlanIsEmpty(); !empty {
			t.Errorf("the plan after import is not empty:\n%s", output)
		}

		w.MustRun("apply", "-auto-approve", "-var", "deletion_protection=false")

		for _, method := range []string{"ApplyConfiguration", "Bootstrap", "Reset"} {
			if calls := s.CallsTo(method); len(calls) > 0 {
				t.Errorf("after import %s was called: %v", method, calls)
			}
		}

		destroyed := w.MustRun("destroy", "-auto-approve", "-var", "deletion_protection=false")
		if strings.Contains(destroyed.Unwrapped(), "gone from the host cluster") {
			t.Errorf("machines of metal are missed on a host cluster:\n%s", destroyed.Output())
		}
	})
}

// Machines with names from DHCP have no host name in their configuration. After an import none is added, whatever
// else changes, until the configuration sets one. Other differences between the machines and the configuration are
// planned with their paths, and reverted.
func TestAccImport_namedByDHCP(t *testing.T) {
	testenv.BeforeRelease(t, "TestWithNames_keepsTheNamesOfNodes", "TestAccImport_plansNothing")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 0)

		for name, leased := range map[string]string{"w": "rack-7", "v": "batch-v-1"} { // the second has its key as its name
			machines, err := s.AddMachines(t.Context(), name, 1, sim.MachineOptions{Hostname: leased})
			tftest.Must(t, err)

			s.Workers = append(s.Workers, machines...)
		}

		const unnamed = `"apiVersion: v1alpha1\nkind: HostnameConfig\nauto: stable\n"`

		config := func(extra string) string {
			return sitetest.SecretsHCL + s.ClusterHCL(sitetest.PoolHCL("batch", s.Workers, extra), "")
		}
		tuned := strings.Replace(config("config_patches = ["+unnamed+"]"), "  control_plane = {", `
  cluster_config_patches = ["machine: {sysctls: {net.core.somaxconn: \"1024\"}}"]
  control_plane = {`, 1)
		w := clitest.NewWorkspace(t, cli)
		w.Write("main.tf", sitetest.ProviderHCL+tuned)
		w.Init()
		w.MustRun("apply", "-auto-approve")

		bundle, _ := w.Attribute("talosop_secrets.this", "bundle").(string)
		w.Write("secrets.yaml", bundle)
		w.MustRun("state", "rm", "talosop_cluster.this")
		s.UnmarkNodes(t, bundle)

		w.Write("main.tf", sitetest.ProviderHCL+config(""))
		w.MustRun("import", "talosop_cluster.this", tftest.JSON(t, map[string]any{"secrets": "secrets.yaml",
			"control_plane": sitetest.Addresses(s.ControlPlane),
			"workers":       map[string]any{"batch": sitetest.Addresses(s.Workers)}}))

		for _, name := range []string{"batch/w-1", "batch/v-1"} {
			if drift := fmt.Sprint(observedIn(t, w, name)["drift"]); drift != "[]" {
				t.Errorf("the import found %s on %s, which is in a patch", drift, name)
			}
		}

		first := w.MustRun("plan", "-out=first")
		sitetest.Says(t, first, `apply configuration to batch/w-1 (no reboot): - machine.sysctls[\"net.core.somaxconn\"]`)

		if strings.Contains(first.Output(), "HostnameConfig") || strings.Contains(first.Output(), "Machines differ") {
			t.Errorf("the first plan is:\n%s", first.Output())
		}

		w.MustRun("apply", "first") // including the mark of the resource on its nodes

		if empty, output := w.PlanIsEmpty(); !empty {
			t.Fatalf("the plan after an import is not empty:\n%s", output)
		}

		w.Write("main.tf", sitetest.ProviderHCL+config(`config_patches = ["machine: {nodeLabels: {rack: b2}}"]`))

		if plan := w.MustRun("plan").Stdout; strings.Contains(plan, "HostnameConfig") || !strings.Contains(plan, "nodeLabels") {
			t.Errorf("the plan of a label is:\n%s", plan)
		}

		w.MustRun("apply", "-auto-approve")

		labeled := config(`config_patches = ["machine: {nodeLabels: {rack: b2}}"]`)
		w.Write("main.tf", sitetest.ProviderHCL+strings.Replace(labeled, "w-1 = {", `w-1 = { hostname = "rack-7",`, 1))

		if plan := w.MustRun("plan").Stdout; !strings.Contains(plan,
			`batch/w-1 (no reboot): HostnameConfig auto = \"stable\" -> \"off\", + HostnameConfig hostname = \"rack-7\"`) {
			t.Errorf("the plan of a host name is:\n%s", plan)
		}

		w.MustRun("apply", "-auto-approve")

		if empty, output := w.PlanIsEmpty(); !empty {
			t.Errorf("the plan after a host name is not empty:\n%s", output)
		}

		known := sitetest.RememberedBy(t, w, sitetest.TheCluster)
		named, unset := known["batch/w-1"], known["batch/v-1"]

		if named.HostnameUnset || !unset.HostnameUnset || named.NodeName != "rack-7" {
			t.Errorf("state has %v and %v", named, unset)
		}

		sitetest.CountedAway(t, w, "cluster")
		s.ExpectReset(t)
	})
}

// observedIn is the record of a machine in state.
func observedIn(t *testing.T, w *clitest.Workspace, machine string) map[string]any {
	t.Helper()

	observed, _ := w.Attribute("talosop_cluster.this", "observed").(map[string]any)
	record, ok := observed[machine].(map[string]any)
	if !ok {
		t.Fatalf("nothing was observed of %s: %v", machine, observed)
	}

	return record
}

// What cannot be imported is refused, with the machine that is the reason.
func TestAccImport_refused(t *testing.T) {
	t.Parallel()

	cli := clitest.Any(t)
	s := sitetest.New(t, 1, 1)
	w := s.Quickstart(t, cli, nil)
	w.Write("secrets.yaml", tftest.Bundle())

	machines := func(value any) string {
		return tftest.JSON(t, map[string]any{"secrets": "secrets.yaml", "machines": value})
	}

	for name, test := range map[string]struct {
		Address, id, says string
	}{
		"not JSON":          {"talosop_control_plane.this", "prod", "not the JSON object"},
		"unknown field":     {"talosop_control_plane.this", `{"secret":"x"}`, `unknown field "secret"`},
		"no machines":       {"talosop_control_plane.this", `{"secrets":"secrets.yaml"}`, "machines is missing"},
		"no control planes": {"talosop_worker.this", machines(sitetest.Addresses(s.Workers)), "control_plane is missing"},
		"other access": {"talosop_worker.this", `{"secrets":"secrets.yaml","machines":{"w-1":"10.0.0.2"},` +
			`"control_plane":{"cp-1":"10.0.0.1"},"access":"proxy"}`, "allowed are direct and through_control_plane"},
		"access of control planes": {"talosop_control_plane.this", `{"secrets":"secrets.yaml",` +
			`"machines":{"cp-1":"10.0.0.1"},"access":"through_control_plane"}`, "control planes are reached directly"},
		"no such file": {"talosop_control_plane.this", `{"secrets":"nowhere.yaml","machines":{"cp-1":"10.0.0.1"}}`,
			"nowhere.yaml"},
		"in maintenance mode": {"talosop_control_plane.this", machines(sitetest.Addresses(s.ControlPlane)),
			"waits in maintenance mode"},
		"secrets of nothing": {"talosop_secrets.this", "main.tf", "Unable to import secrets"},
	} {
		result := w.Run("import", test.Address, test.id)
		if result.Exit == 0 || !strings.Contains(result.Unwrapped(), test.says) {
			t.Errorf("%s: exit %d, and it does not say %q:\n%s", name, result.Exit, test.says, result.Output())
		}
	}
}
