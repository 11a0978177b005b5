package functions_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
)

const everyFunction = `
terraform {
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

variable "token" {
  type      = string
  default   = "hunter2.hunter2hunter2"
  sensitive = true
}

# Known at apply alone.
resource "terraform_data" "late" {
  input = "v1.13.0"
}

locals {
  before = yamlencode({
    version = "v1alpha1"
    machine = { type = "worker", token = var.token, sysctls = { a = "1" } }
    cluster = { clusterName = "prod" }
  })
  after  = provider::talosop::merge_patches(local.before, yamlencode({ machine = { sysctls = { a = "2" } } }))
  absent = null
}

output "merged" {
  value = provider::talosop::parse_machine_config(nonsensitive(local.after)).v1alpha1.machine.sysctls
}
output "changes" {
  value = nonsensitive(provider::talosop::machine_config_diff(local.before, local.after))[*].text
}
output "added" {
  value = nonsensitive(provider::talosop::machine_config_diff(local.absent, local.after))[*].text
}
output "documents" {
  value = keys(provider::talosop::parse_machine_config("machine: {none: null, list: [1, a]}\n---\nkind: A\nname: b\n"))
}
output "parsed" {
  value = provider::talosop::parse_machine_config("machine: {none: null, list: [1, a, [true]]}")
}
output "valid" {
  value = provider::talosop::validate_patch("machine: {sysctls: {a: b}}", local.absent)
}
output "invalid" {
  value = can(provider::talosop::validate_patch("machine: {sysctl: {a: b}}", "v1.13"))
}
output "installers" {
  value = [
    provider::talosop::installer_image("v1.13.0", local.absent),
    provider::talosop::installer_image("v1.14.1", "customization: {}", { platform = "aws", secure_boot = true }),
    provider::talosop::installer_image("v1.13.0", "{}", local.absent),
  ]
}
output "id" {
  value = provider::talosop::schematic_id(yamlencode({
    customization = { systemExtensions = { officialExtensions = ["siderolabs/qemu-guest-agent"] } }
  }))
}
output "converted" {
  value = provider::talosop::convert_patches(["machine: {sysctls: {a: b}}"], "worker", "v1.13", "v1.14")
}
output "path" {
  value = provider::talosop::upgrade_path("v1.11.3", terraform_data.late.output)
}
output "late" {
  value = provider::talosop::installer_image("v1.13.0", "{}", { platform = terraform_data.late.output == "" ? "aws" : "metal" })
}
`

// Every function is called under each CLI, with arguments that are null, unknown in the plan, and sensitive.
func TestAccFunctions_underTheCLIs(t *testing.T) {
	t.Parallel()

	vanilla := "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"

	clitest.Each(t, func(t *testing.T, cli clitest.CLI) {
		t.Parallel()

		w := clitest.NewWorkspace(t, cli)
		w.Write("main.tf", everyFunction)
		w.Init()

		if plan := w.MustRun("plan").Unwrapped(); !strings.Contains(plan, "+ path = (known after apply)") {
			t.Errorf("what an unknown argument gives is not known after apply:\n%s", plan)
		}

		w.MustRun("apply", "-auto-approve")

		var outputs map[string]struct{ Value any }
		if err := json.Unmarshal([]byte(w.MustRun("output", "-json").Stdout), &outputs); err != nil {
			t.Fatal(err)
		}

		got := map[string]any{}
		for name, output := range outputs {
			got[name] = output.Value
		}

		want := map[string]any{
			"merged":  map[string]any{"a": "2"},
			"changes": []any{`~ v1alpha1: machine.sysctls.a: "1" -> "2"`},
			"added": []any{`+ v1alpha1: cluster.clusterName = "prod"`,
				"+ v1alpha1: machine.certSANs = []", `+ v1alpha1: machine.sysctls.a = "2"`,
				"+ v1alpha1: machine.token = (sensitive value)", `+ v1alpha1: machine.type = "worker"`,
				`+ v1alpha1: version = "v1alpha1"`},
			"documents": []any{"A/b", "v1alpha1"},
			"parsed": map[string]any{"v1alpha1": map[string]any{"machine": map[string]any{
				"none": nil, "list": []any{1.0, "a", []any{true}}}}},
			"valid": true, "invalid": false,
			"installers": []any{"ghcr.io/siderolabs/installer:v1.13.0",
				"factory.talos.dev/aws-installer-secureboot/" + vanilla + ":v1.14.1",
				"factory.talos.dev/metal-installer/" + vanilla + ":v1.13.0"},
			"id": "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515",
			"converted": map[string]any{"kept": []any{}, "removed": []any{},
				"patches": []any{"apiVersion: v1alpha1\nkind: SysctlConfig\nparams: {a: b}\n"}},
			"path": []any{"v1.12.12", "v1.13.0"},
			"late": "factory.talos.dev/metal-installer/" + vanilla + ":v1.13.0",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}

		w.Write("main.tf", everyFunction+`
output "wrong" {
  value = [
    provider::talosop::upgrade_path("v1.13.0", "v1.12.0"),
    provider::talosop::merge_patches("machine: {}", "machine: {tokn: 1}"),
    provider::talosop::schematic_id(local.absent),
  ]
}
`)

		output := w.Run("plan").Unwrapped()
		for _, part := range []string{`"to"`, "older than v1.13.0", `"patches"`, "unknown fields: machine.tokn", `"schematic"`,
			"must not be null"} {
			if !strings.Contains(output, part) {
				t.Errorf("an error does not say %s:\n%s", part, output)
			}
		}
	})
}
