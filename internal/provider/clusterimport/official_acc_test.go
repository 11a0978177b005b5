package clusterimport_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/provider/officialstate"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// officialProvider is a configuration of siderolabs/talos as in its documentation, with patches for roles and for
// machines.
const officialProvider = `
terraform {
  required_providers {
    talos   = { source = "siderolabs/talos" }
    talosop = { source = "talosop/talosop" }
  }
}

variable "endpoint" { type = string }
variable "control_planes" { type = map(string) }
variable "workers" { type = map(string) }
`

const officialMachines = `
resource "talos_machine_secrets" "this" {
  talos_version = "v1.13"
}

data "talos_machine_configuration" "this" {
  for_each = toset(["controlplane", "worker"])

  cluster_name       = "prod"
  cluster_endpoint   = var.endpoint
  machine_type       = each.value
  machine_secrets    = talos_machine_secrets.this.machine_secrets
  talos_version      = var.contract
  kubernetes_version = "1.36.2"
  docs               = false
  examples           = false
  config_patches     = each.value == "controlplane" ? var.plane : var.worker
}

variable "plane" { type = list(string) }
variable "worker" { type = list(string) }

resource "talos_machine_configuration_apply" "this" {
  for_each = merge(var.control_planes, var.workers)

  client_configuration        = talos_machine_secrets.this.client_configuration
  machine_configuration_input = data.talos_machine_configuration.this[contains(keys(var.workers), each.key) ? "worker" : "controlplane"].machine_configuration
  node                        = each.value
  config_patches = concat(var.named ? [
    "apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: ${each.key}\nauto: \"off\"\n",
    yamlencode({ machine = { nodeAnnotations = { from = each.key } } }),
  ] : [], var.contract == "v1.14" ? [] : ["machine: {install: {image: \"ghcr.io/siderolabs/installer:v1.13.0\"}}"])
}

variable "named" { type = bool }
variable "contract" { type = string }

resource "talos_machine_bootstrap" "this" {
  depends_on = [talos_machine_configuration_apply.this]

  client_configuration = talos_machine_secrets.this.client_configuration
  node                 = values(var.control_planes)[0]
}
`

// officialSite is a cluster of the official provider, with explicit host names since contract v1.13.
func officialSite(
	t *testing.T, cli clitest.CLI, contract string, plane, worker []string,
) (*sitetest.Site, *clitest.Workspace) {
	t.Helper()

	program := optional(t, "terraform-provider-talos")
	opts := sim.Options{}
	if contract == machineconfig.DocumentsContract {
		opts.TalosVersion = sitetest.Talos114
	}

	s := sitetest.NewWith(t, opts, 3, 2)
	w := clitest.NewWorkspace(t, cli)
	w.AddProvider("siderolabs/talos", "0.12.0", program)
	w.Write("versions.tf", officialProvider)
	w.Write("main.tf", officialMachines)
	w.Write("site.auto.tfvars.json", tftest.JSON(t, map[string]any{"endpoint": s.URL, "plane": plane, "worker": worker,
		"named": contract != "v1.11", "contract": contract,
		"control_planes": sitetest.Addresses(s.ControlPlane), "workers": sitetest.Addresses(s.Workers)}))
	w.Init()
	w.MustRun("apply", "-auto-approve")

	return s, w
}

// migrate replaces the configuration of the official provider with the example of the guide.
func migrate(t *testing.T, s *sitetest.Site, w *clitest.Workspace) {
	t.Helper()

	tftest.Must(t, os.Remove(filepath.Join(w.Dir, "versions.tf")))
	tftest.Must(t, os.Remove(filepath.Join(w.Dir, "main.tf")))
	w.CopyFrom("../../../examples/guides/import-official")
	w.Write("site.auto.tfvars.json", tftest.JSON(t, map[string]any{"control_planes": sitetest.Addresses(s.ControlPlane),
		"workers": map[string]any{"batch": sitetest.Addresses(s.Workers)}}))
	s.ForgetCalls()
}

// untouched checks that nothing was sent to the machines.
func untouched(t *testing.T, s *sitetest.Site) {
	t.Helper()

	for _, method := range []string{"ApplyConfiguration", "Bootstrap", "Reset"} {
		if calls := s.CallsTo(method); len(calls) > 0 {
			t.Errorf("%s was called: %v", method, calls)
		}
	}
}

// A cluster of the official provider becomes one of talosop in one plan: its secrets are moved, its machines
// imported with their patches, and nothing is sent to them.
func TestAccImport_ofTheOfficialProvider(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccImport_ofTalosctl", "TestSecrets_movedFromTheOfficialProvider")
	t.Parallel()

	clitest.Each(t, func(t *testing.T, cli clitest.CLI) {
		s, w := officialSite(t, cli, "v1.13", []string{"cluster: {apiServer: {extraArgs: {v: \"3\"}}}"},
			[]string{"machine: {kernel: {modules: [{name: br_netfilter}]}}"})
		migrate(t, s, w)

		text := generated(t, w, 1)
		for _, want := range []string{"br_netfilter", "from: w-2", `v: \"3\"`} {
			if strings.Count(text, want) != 1 {
				t.Errorf("the generated configuration has %s %d times:\n%s", want, strings.Count(text, want), text)
			}
		}

		untouched(t, s)
	})
}

// The contract v1.14 of an alpha version of Talos has some of the documents of the released one. Their content is
// still imported, except the key that encrypts Secrets. It has another name there, so the plan refuses to replace it
// until a patch keeps the document.
func TestAccImport_ofAnAlphaOfTheOfficialProvider(t *testing.T) {
	testenv.BeforeRelease(t, "TestSettingsOf_someDocuments", "TestOf_keepsSecretsIn")
	t.Parallel()

	s, w := officialSite(t, clitest.Any(t), "v1.14",
		[]string{"apiVersion: v1alpha1\nkind: KubeAPIServerConfig\nextraArgs: {v: \"3\"}\n"},
		[]string{"machine: {kernel: {modules: [{name: br_netfilter}]}}"})
	migrate(t, s, w)

	plan := w.Run("plan", "-generate-config-out=generated.tf")
	sitetest.Shows(t, plan, "encryption_key_lost")
	w.Write("encryption.yaml", "cluster:\n  secretboxEncryptionSecret:\n    $patch: delete\n---\n"+documentIn(s.ControlPlane[0].Config(), "KubeEtcdEncryptionConfig"))
	w.Write("generated.tf", strings.Replace(w.Read("generated.tf"), "config_patches     = [",
		"config_patches     = [file(\"encryption.yaml\"), ", 1))
	w.MustRun("apply", "-auto-approve")
	untouched(t, s)
	sitetest.ExpectNoChanges(t, w, "with a patch that keeps the key")

	untouched(t, s)
}

// Each machine of the official provider moves to a separate resource, and the apply that follows sends nothing.
func TestAccMove_fromTheOfficialProvider(t *testing.T) {
	testenv.BeforeRelease(t, "TestMachine_movedFromTheOfficialProvider")
	t.Parallel()

	clitest.Each(t, func(t *testing.T, cli clitest.CLI) {
		s, w := officialSite(t, cli, "v1.13", []string{"cluster: {apiServer: {extraArgs: {v: \"3\"}}}"}, nil)
		bundle := w.Attribute("talos_machine_secrets.this", "machine_secrets")

		tftest.Must(t, os.Remove(filepath.Join(w.Dir, "versions.tf")))
		tftest.Must(t, os.Remove(filepath.Join(w.Dir, "main.tf")))
		w.CopyFrom("../../../examples/guides/import-machines")

		machines, patches, endpoints := map[string]any{}, map[string]any{}, []string{}

		for name, address := range sitetest.Addresses(s.ControlPlane) {
			machines[name] = map[string]any{"address": address, "role": "controlplane"}
			patches[name] = []string{"machine: {nodeAnnotations: {from: " + name + "}}",
				"cluster: {apiServer: {extraArgs: {v: \"3\"}}}"}
			endpoints = append(endpoints, address)
		}

		for name, address := range sitetest.Addresses(s.Workers) {
			machines[name] = map[string]any{"address": address, "role": "worker"}
			patches[name] = []string{"machine: {nodeAnnotations: {from: " + name + "}}"}
		}

		file, err := officialstate.Secrets([]byte(tftest.JSON(t, map[string]any{"machine_secrets": bundle})))
		tftest.Must(t, err)

		text, err := file.YAML()
		tftest.Must(t, err)

		w.Write("site.auto.tfvars.json", tftest.JSON(t, map[string]any{"machines": machines, "patches": patches,
			"secrets": string(text),
			"cluster": map[string]any{"name": "prod", "endpoint": s.URL, "talos_endpoints": endpoints,
				"talos_version": "v1.13.0", "kubernetes_version": "v1.36.2", "version_contract": "v1.13"}}))
		w.Write("rest.tf", `
removed {
  from = talos_machine_secrets.this

  lifecycle {
    destroy = false
  }
}

removed {
  from = talos_machine_bootstrap.this

  lifecycle {
    destroy = false
  }
}
`)
		s.ForgetCalls()

		plan := w.MustRun("plan")
		if !strings.Contains(plan.Output(), "0 to add, 5 to change, 0 to destroy") {
			t.Errorf("the plan of the move is:\n%s", plan.Output())
		}

		w.MustRun("apply", "-auto-approve")

		if empty, output := w.PlanIsEmpty(); !empty {
			t.Errorf("the plan after the move is not empty:\n%s", output)
		}

		untouched(t, s)
	})
}

// documentIn is a document of a machine configuration.
func documentIn(config []byte, kind string) string {
	for document := range strings.SplitSeq(string(config), "---\n") {
		if strings.Contains(document, "\nkind: "+kind+"\n") {
			return document
		}
	}

	return ""
}
