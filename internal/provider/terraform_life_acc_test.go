package provider_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// vms are the machines behind the names of a configuration.
type vms map[string]*sim.Machine

// vmsHCL stands in for virtual machines that the same configuration creates: their addresses and UUIDs are known
// after the apply. Another revision replaces a VM.
func vmsHCL(machines vms, revision string) string {
	var list strings.Builder
	for _, name := range slices.Sorted(maps.Keys(machines)) {
		fmt.Fprintf(&list, "    %s = { address = %q, uuid = %q }\n", name, machines[name].Address(), machines[name].UUID())
	}

	return fmt.Sprintf(`
locals {
  vms = {
%s  }
}

resource "terraform_data" "vm" {
  for_each         = local.vms
  input            = each.value
  triggers_replace = each.key == "w-2" ? %q : "1"
}
`, list.String(), revision)
}

// clusterOfVMs is a cluster with machines at the addresses of VMs.
func clusterOfVMs(s *sitetest.Site, machines vms, revision, version string) string {
	hcl := strings.ReplaceAll(s.ClusterHCL(sitetest.PoolHCL("batch", nil, ""), ""), "v1.13.0", version)
	of := func(prefix string) string {
		return fmt.Sprintf(
			`machines = { for name, vm in terraform_data.vm : name => { address = vm.output.address, uuid = vm.output.uuid } if startswith(name, %q) }`, prefix)
	}
	hcl = strings.Replace(hcl, "machines = {\n"+sitetest.MachinesHCL(s.ControlPlane)+"    }", of("cp-"), 1)
	hcl = strings.Replace(hcl, "machines = {\n      }", of("w-"), 1)

	return sitetest.ProviderHCL + sitetest.SecretsHCL + vmsHCL(machines, revision) + hcl
}

// A plan forecasts what happens to a cluster whose VMs are created in the same apply, and the apply does that.
func TestAccUnknown_machinesOfTheSameApply(t *testing.T) {
	testenv.BeforeRelease(t, "TestUnknownValues_tellWhatIsKnown", "TestUnknownValues_ofEveryAttribute")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 4)
		w := clitest.NewWorkspace(t, cli)
		small := vms{"cp-1": s.ControlPlane[0], "w-1": s.Workers[0], "w-2": s.Workers[1]}
		large, exchanged := maps.Clone(small), maps.Clone(small)
		large["w-3"], exchanged["w-2"] = s.Workers[2], s.Workers[3]

		for i, change := range []struct {
			name, config string
			says         []string
			shows        []string
			never        string
		}{
			{"create", clusterOfVMs(s, small, "1", "v1.13.0"), []string{
				"apply configuration to cp-1: installs Talos v1.13.0 on /dev/sda, reboots, joins as control plane",
				"bootstrap etcd on cp-1", "apply configuration to batch/w-2: installs",
			}, nil, ""},
			{"growth", clusterOfVMs(s, large, "1", "v1.13.0"), []string{"apply configuration to batch/w-3: installs"}, nil,
				"batch/w-1: "},
			{"shrink", clusterOfVMs(s, small, "1", "v1.13.0"), []string{"reset worker batch/w-3"},
				[]string{"machines_wiped"}, "w-1"},
			{"an upgrade beside a VM that is made again", clusterOfVMs(s, small, "2", "v1.13.2"), []string{
				"upgrade Talos on cp-1",
			}, []string{"plan_incomplete"}, ""},
			{"other hardware under a name", clusterOfVMs(s, exchanged, "2", "v1.13.2"), []string{
				"batch/w-2 is reset and removed if its `uuid` changes",
			}, []string{"plan_incomplete"}, ""},
		} {
			w.Write("main.tf", change.config)

			if i == 0 {
				w.Init()
			}

			planned := w.MustRun("plan", "-out=plan")
			sitetest.Says(t, planned, change.says...)
			sitetest.Shows(t, planned, change.shows...)

			if change.never != "" && strings.Contains(plannedLines(planned.Stdout), change.never) {
				t.Errorf("the plan of %s has %q:\n%s", change.name, change.never, planned.Stdout)
			}

			w.MustRun("apply", "plan")
			sitetest.ExpectNoChanges(t, w, "after "+change.name)
		}

		for name, m := range exchanged {
			if m.TalosVersion() != "v1.13.2" {
				t.Errorf("%s runs Talos %s", name, m.TalosVersion())
			}
		}

		if s.Workers[1].Configured() {
			t.Error("the hardware that w-2 was before is not reset")
		}

		sitetest.CountedAway(t, w, "cluster")
		s.ExpectReset(t)
		w.MustRun("destroy", "-auto-approve")
	})
}

// A machine that is unknown as a whole is planned: its name is known, and no machine in state leaves for it.
func TestAccUnknown_wholeMachines(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 2)
		w := clitest.NewWorkspace(t, cli)
		config := func(generation string, workers ...string) string {
			all := vms{"cp-1": s.ControlPlane[0], "w-1": s.Workers[0], "w-2": s.Workers[1]}
			resources, pool := "", ""

			for _, name := range append([]string{"cp-1"}, workers...) {
				resources += fmt.Sprintf(`
resource "terraform_data" %q {
  input            = { address = %q, uuid = %q }
  triggers_replace = %q
}
`, name, all[name].Address(), all[name].UUID(), generation)
			}

			for _, name := range workers {
				pool += fmt.Sprintf("        %s = terraform_data.%s.output\n", name, name)
			}

			return sitetest.ProviderHCL + resources + sitetest.SecretsHCL + fmt.Sprintf(`
resource "talosop_cluster" "this" {
  name                = "test"
  mode                = "metal"
  endpoint            = %q
  secrets             = talosop_secrets.this.bundle
  deletion_protection = false
  talos_version       = "v1.13.0"
  kubernetes_version  = "v1.36.2"
  control_plane = {
    install  = { disk = "/dev/sda" }
    machines = { cp-1 = terraform_data.cp-1.output }
  }
  workers = {
    batch = {
      install  = { disk = "/dev/sda" }
      machines = {
%s      }
    }
  }
}
`, s.URL, pool)
		}

		for i, change := range []struct{ name, config, says string }{
			{"create", config("1", "w-1"), "will be created"},
			{"growth", config("1", "w-1", "w-2"), "(known after apply)"},
			{"a VM that is made again", config("2", "w-1", "w-2"),
				"batch/w-1 is reset and removed if its `uuid` changes"},
		} {
			w.Write("main.tf", change.config)

			if i == 0 {
				w.Init()
			}

			planned := w.MustRun("plan", "-out=plan")
			sitetest.Says(t, planned, change.says)

			if sitetest.Shown(t, "machines_wiped").MatchString(planned.Stdout) {
				t.Errorf("the plan of %s wipes machines:\n%s", change.name, planned.Stdout)
			}

			w.MustRun("apply", "plan")
			sitetest.ExpectNoChanges(t, w, "after "+change.name)
		}

		w.Write("main.tf", strings.Replace(config("2", "w-1", "w-2"), "terraform_data.w-1.output",
			"{ hostname = \"w-1\" }", 1))

		sitetest.Shows(t, sitetest.Fails(t, w, "plan"), "address_missing")

		w.Write("main.tf", config("2", "w-1", "w-2"))
		w.MustRun("destroy", "-auto-approve")
		s.ExpectReset(t)
	})
}

// plannedLines are the operations that a CLI prints in a plan.
func plannedLines(output string) string {
	_, after, _ := strings.Cut(output, " operations ")
	operations, _, _ := strings.Cut(after, "\n        ]")

	return operations
}

// poolModule is a module of one resource of workers, as shared modules are.
const poolModule = `
terraform {
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

variable "cluster" {}
variable "machines" {}

resource "talosop_worker" "this" {
  cluster       = var.cluster
  talos_version = "v1.13.0"
  install       = { disk = "/dev/sda" }
  machines      = { for name, address in var.machines : name => { address = address } }
}
`

// poolsHCL calls the module once for each machine, which is a separate pool.
func poolsHCL(call string, machines []*sim.Machine) string {
	var pools strings.Builder
	for _, m := range machines {
		fmt.Fprintf(&pools, "    %s = { %s = %q }\n", m.Name(), m.Name(), m.Address())
	}

	return fmt.Sprintf(`
module %q {
  source   = "./pool"
  for_each = {
%s  }
  cluster  = talosop_control_plane.this.cluster
  machines = each.value
}
`, call, pools.String())
}

func movedHCL(from, to string) string {
	return fmt.Sprintf("moved {\n  from = %s\n  to   = %s\n}\n", from, to)
}

// Pools move into modules, between them and to other keys without contact to a machine. A pool that is removed from
// the configuration, with or without destroy, is reset or left unchanged.
func TestAccLife_movedAndRemoved(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 2)
		base := sitetest.ProviderHCL + sitetest.SecretsHCL + s.ControlPlaneHCL("")
		w := clitest.NewWorkspace(t, cli)
		tftest.Must(t, os.Mkdir(filepath.Join(w.Dir, "pool"), 0o755))
		w.Write("pool/main.tf", poolModule)
		w.Write("main.tf", base+s.WorkersOf(s.Workers[:1], ""))
		w.Init()
		w.MustRun("apply", "-auto-approve")
		s.ForgetCalls()

		for _, config := range []string{
			poolsHCL("pool", s.Workers[:1]) + movedHCL("talosop_worker.this", `module.pool["w-1"].talosop_worker.this`),
			poolsHCL("other", s.Workers[:1]) + movedHCL(`module.pool`, `module.other`),
			strings.Replace(poolsHCL("other", s.Workers[:1]), "    w-1 = {", "    first = {", 1) +
				movedHCL(`module.other["w-1"]`, `module.other["first"]`),
			s.WorkersOf(s.Workers[:1], "") + movedHCL(`module.other["first"].talosop_worker.this`, "talosop_worker.this"),
		} {
			w.Write("main.tf", base+config)
			w.Init()
			sitetest.Says(t, w.MustRun("plan", "-out=plan"), "has moved to", "0 to add, 0 to change, 0 to destroy")
			w.MustRun("apply", "plan")
			s.ExpectNothingSent(t)
			sitetest.ExpectNoChanges(t, w, "after the move")
		}

		both := strings.Replace(s.WorkersOf(s.Workers[1:], ""), `"this"`, `"other"`, 1)
		w.Write("main.tf", base+s.WorkersOf(s.Workers[:1], "")+both)
		w.MustRun("apply", "-auto-approve")

		removed := func(name, destroy string) string {
			return fmt.Sprintf("removed {\n  from = talosop_worker.%s\n  lifecycle {\n    destroy = %s\n  }\n}\n", name, destroy)
		}
		w.Write("main.tf", base+removed("this", "false")+removed("other", "true"))
		w.MustRun("apply", "-auto-approve")
		sitetest.ExpectNoChanges(t, w, "after the removals")

		if !s.Workers[0].Configured() || s.Workers[1].Configured() {
			t.Errorf("w-1 is configured: %t, w-2: %t", s.Workers[0].Configured(), s.Workers[1].Configured())
		}
	})
}

// Each resource is created and removed with its count, including its dependents, and an apply of a target touches
// nothing else.
func TestAccLife_countAndTarget(t *testing.T) {
	t.Parallel()
	testenv.BeforeRelease(t, "TestAccLife_movedAndRemoved", "TestLife_randomSequences")

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 2)
		w := clitest.NewWorkspace(t, cli)
		w.Write("main.tf", sitetest.ProviderHCL+counted(s))
		w.Init()

		for _, on := range []string{"true", "false", "true"} {
			w.Setenv("TF_VAR_on", on)
			w.MustRun("apply", "-auto-approve")
			sitetest.ExpectNoChanges(t, w, "with on = "+on)
		}

		s.ForgetCalls()
		w.Write("main.tf", sitetest.ProviderHCL+strings.ReplaceAll(counted(s), "v1.13.0", "v1.13.2"))
		w.MustRun("apply", "-auto-approve", "-target=talosop_worker.this[0]", "-target=talosop_control_plane.this[0]")

		for _, m := range []*sim.Machine{s.ControlPlane[0], s.Workers[0]} {
			if m.TalosVersion() != "v1.13.2" {
				t.Errorf("%s runs Talos %s", m.Name(), m.TalosVersion())
			}
		}

		if got := s.Workers[1].TalosVersion(); got != "v1.13.0" {
			t.Errorf("a machine beside the target runs Talos %s", got)
		}

		w.MustRun("apply", "-auto-approve")
		sitetest.ExpectNoChanges(t, w, "after all of it")
		w.MustRun("destroy", "-auto-approve")
	})
}

// counted is every resource on machines of a site, each with a count.
func counted(s *sitetest.Site) string {
	hcl := sitetest.SecretsHCL + s.ControlPlaneHCL("") + s.WorkersOf(s.Workers[:1], "") + fmt.Sprintf(`
resource "talosop_machine" "this" {
  cluster             = talosop_control_plane.this.cluster
  role                = "worker"
  name                = %q
  address             = %q
  talos_version       = "v1.13.0"
  install             = { disk = "/dev/sda" }
  deletion_protection = false
}

resource "talosop_etcd_backup" "this" {
  cluster = talosop_control_plane.this.cluster
  file    = { path = "${path.root}/backups" }
}

resource "talosop_kubeconfig_file" "this" {
  cluster = talosop_control_plane.this.cluster
  path    = "${path.root}/made/kubeconfig"
}

resource "talosop_talosconfig_file" "this" {
  cluster = talosop_control_plane.this.cluster
  path    = "${path.root}/made/talosconfig"
  roles   = ["os:reader"]
}
`, s.Workers[1].Name(), s.Workers[1].Address())

	for _, name := range []string{"secrets", "control_plane", "worker", "machine", "etcd_backup", "kubeconfig_file",
		"talosconfig_file"} {
		block := fmt.Sprintf("resource \"talosop_%s\" \"this\" {\n", name)
		hcl = strings.Replace(hcl, block, block+"  count = var.on ? 1 : 0\n", 1)
	}

	return "variable \"on\" {\n  type = bool\n}\n" + strings.NewReplacer("talosop_secrets.this.", "talosop_secrets.this[0].",
		"talosop_control_plane.this.", "talosop_control_plane.this[0].").Replace(hcl)
}
