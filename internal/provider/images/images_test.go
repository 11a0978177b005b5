package images_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/image"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/factorytest"
)

const (
	guestAgentContent = "customization: {systemExtensions: {officialExtensions: [siderolabs/qemu-guest-agent]}}"
	guestAgentID      = "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515"
)

func TestImage_offline(t *testing.T) {
	t.Parallel()

	const at = "https://factory.talos.dev/image/" + guestAgentID + "/v1.13.0/"

	state, diags := tftest.ReadData(t, "talosop_image", tftest.Config{"talos_version": "1.13.0",
		"schematic": guestAgentContent})
	if len(diags) > 0 {
		t.Fatal(tftest.Show(diags))
	}

	want := map[string]string{
		"id": guestAgentID + "/v1.13.0/metal-amd64-uki.efi", "platform": "metal", "architecture": "amd64",
		"factory_url": "https://factory.talos.dev", "schematic_id": guestAgentID,
		"schematic_content": "customization:\n    systemExtensions:\n        officialExtensions:\n            - siderolabs/qemu-guest-agent\n",
		"installer":         "factory.talos.dev/metal-installer/" + guestAgentID + ":v1.13.0",
		"iso":               at + "metal-amd64.iso", "disk_image": at + "metal-amd64.raw.zst",
		"kernel_cmdline_url": at + "cmdline-metal-amd64",
		"kernel_cmdline": "talos.platform=metal console=tty0 init_on_alloc=1 slab_nomerge pti=on consoleblank=0 " +
			"nvme_core.io_timeout=4294967295 printk.devkmsg=on selinux=1 module.sig_enforce=1 proc_mem.force_override=never",
		"pxe": "https://pxe.factory.talos.dev/pxe/" + guestAgentID + "/v1.13.0/metal-amd64",
	}
	if diff := cmp.Diff(want, tftest.TextsIn(t, state, "id", "platform", "architecture", "factory_url", "schematic_id",
		"schematic_content", "installer", "iso", "disk_image", "kernel_cmdline_url", "kernel_cmdline", "pxe")); diff != "" {
		t.Error(diff)
	}

	// By its ID: values that need the content are null.
	state, diags = tftest.ReadData(t, "talosop_image", tftest.Config{
		"talos_version": "v1.13.0", "schematic": guestAgentID, "platform": "aws", "architecture": "arm64"})
	if len(diags) > 0 {
		t.Fatal(tftest.Show(diags))
	}

	if diff := cmp.Diff(map[string]string{
		"installer": "factory.talos.dev/aws-installer/" + guestAgentID + ":v1.13.0", "disk_image": at + "aws-arm64.raw.xz",
	}, tftest.TextsIn(t, state, "installer", "disk_image", "iso", "pxe", "kernel_cmdline",
		"schematic_content")); diff != "" {
		t.Error(diff)
	}

	// Additions without a schematic.
	state, diags = tftest.ReadData(t, "talosop_image", tftest.Config{"talos_version": "v1.13.0",
		"extensions": []any{"siderolabs/qemu-guest-agent"}})
	if got := tftest.TextsIn(t, state, "schematic_id"); len(diags) > 0 || got["schematic_id"] != guestAgentID {
		t.Errorf("the extension alone is %v: %s", got, tftest.Show(diags))
	}
}

func TestImage_refuses(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		config tftest.Config
		at     string
		says   []string
	}{
		"version": {tftest.Config{"talos_version": "1.13"}, `AttributeName("talos_version")`, []string{`"v1.13"`}},
		"platform": {tftest.Config{"talos_version": "v1.13.0", "platform": "hetzner"}, `AttributeName("platform")`,
			[]string{`"hetzner"`, "hcloud"}},
		"architecture": {tftest.Config{"talos_version": "v1.13.0", "platform": "hcloud", "architecture": "arm64"},
			`AttributeName("architecture")`, []string{"amd64 on hcloud"}},
		"secure boot": {tftest.Config{"talos_version": "v1.13.0", "platform": "aws", "secure_boot": true},
			`AttributeName("secure_boot")`, []string{"aws"}},
		"content": {tftest.Config{"talos_version": "v1.13.0", "schematic": "customization: {extensions: []}"},
			`AttributeName("schematic")`, []string{`unknown field "extensions"`}},
		"id": {tftest.Config{"talos_version": "v1.13.0", "schematic": "abc"}, `AttributeName("schematic")`,
			[]string{"64 lower-case hex digits"}},
		"added to an id": {tftest.Config{"talos_version": "v1.13.0", "schematic": guestAgentID,
			"extra_kernel_args": []any{"a=b"}}, `AttributeName("schematic")`, []string{"[schematic_id_with_additions]"}},
		"short name": {tftest.Config{"talos_version": "v1.13.0", "extensions": []any{"iscsi-tools"}},
			`AttributeName("extensions").ElementKeyInt(0)`, []string{"[extension_without_vendor]", "siderolabs/iscsi-tools"}},
		"factory": {tftest.Config{"talos_version": "v1.13.0", "factory_url": "factory.talos.dev"},
			`AttributeName("factory_url")`, []string{"https://factory.talos.dev"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, diags := tftest.ReadData(t, "talosop_image", test.config)
			tftest.ExpectMistake(t, diags, test.at, test.says, false)
		})
	}
}

// An unknown value is checked once it is known.
func TestImages_unknown(t *testing.T) {
	t.Parallel()

	unknown := tftest.Unknown{}

	for name, config := range map[string]tftest.Config{
		"talosop_image": {"talos_version": unknown, "schematic": unknown, "platform": unknown, "architecture": unknown,
			"secure_boot": unknown, "factory_url": unknown, "online": unknown, "extensions": []any{unknown, "iscsi-tools"},
			"extra_kernel_args": unknown},
		"talosop_boot_assets": {"talos_version": "v1.13.0", "schematic": unknown, "platform": unknown, "assets_url": unknown,
			"kernel_args": unknown, "machines": tftest.Config{"cp-1": tftest.Config{"mac_address": unknown,
				"architecture": unknown, "kernel_args": unknown}, "cp-2": unknown}},
	} {
		typ := tftest.Schemas(t).DataSourceSchemas[name].ValueType()

		resp, err := tftest.Server(t).ValidateDataResourceConfig(t.Context(), &tfprotov6.ValidateDataResourceConfigRequest{
			TypeName: name, Config: tftest.Dynamic(t, tftest.ValueOf(t, typ, config))})
		tftest.Must(t, err)

		if len(resp.Diagnostics) > 0 {
			t.Errorf("%s: %s", name, tftest.Show(resp.Diagnostics))
		}
	}
}

// With `online` the factory gets the content, and confirms it.
func TestImage_online(t *testing.T) {
	t.Parallel()

	f := factorytest.New(t)
	asked := func(more tftest.Config) tftest.Config {
		config := tftest.Config{"talos_version": "v1.13.0", "factory_url": f.URL, "online": true}
		for name, value := range more {
			config[name] = value
		}

		return config
	}

	state, diags := tftest.ReadData(t, "talosop_image", asked(tftest.Config{"extensions": []any{"qemu-guest-agent"}}))
	if len(diags) > 0 {
		t.Fatal(tftest.Show(diags))
	}

	if got := tftest.TextsIn(t, state, "schematic_id", "kernel_cmdline"); got["schematic_id"] != guestAgentID ||
		got["kernel_cmdline"] != factorytest.Cmdline || !f.Knows(guestAgentID) {
		t.Errorf("the factory tells %v, and knows the schematic: %t", got, f.Knows(guestAgentID))
	}

	var images map[string]tftypes.Value
	tftest.Must(t, tftest.AttributeOf(t, state, "extension_images").As(&images))

	var ref string
	tftest.Must(t, images["siderolabs/qemu-guest-agent"].As(&ref))

	if len(images) != 1 || ref != "ghcr.io/siderolabs/qemu-guest-agent:10.0.2@sha256:cc" {
		t.Errorf("images of extensions are %v", images)
	}

	// By its ID, now that the factory knows it.
	state, diags = tftest.ReadData(t, "talosop_image", asked(tftest.Config{"schematic": guestAgentID}))
	if got := tftest.TextsIn(t, state, "schematic_content"); len(diags) > 0 ||
		!strings.Contains(got["schematic_content"], "qemu") {
		t.Errorf("by its id: %v, %s", got, tftest.Show(diags))
	}

	for name, test := range map[string]struct {
		config tftest.Config
		at     string
		says   []string
	}{
		"version": {asked(tftest.Config{"talos_version": "v1.13.1"}), `AttributeName("talos_version")`,
			[]string{"[talos_version_not_in_factory]", "v1.13.0 and v1.13.2"}},
		"id": {asked(tftest.Config{"schematic": strings.Repeat("0", 64)}), `AttributeName("schematic")`,
			[]string{"[schematic_unknown]"}},
		"extension": {asked(tftest.Config{"extensions": []any{"gvisor", "siderolabs/nothing"}}),
			`AttributeName("extensions")`, []string{"[extensions_unknown]", "siderolabs/nothing", "siderolabs/gvisor"}},
		"no factory": {asked(tftest.Config{"factory_url": "http://127.0.0.1:1"}), `AttributeName("factory_url")`,
			[]string{"[factory_request_failed]", "connection refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, diags := tftest.ReadData(t, "talosop_image", test.config)
			tftest.ExpectMistake(t, diags, test.at, test.says, false)
		})
	}

	f.Owner = "alice"
	_, diags = tftest.ReadData(t, "talosop_image", asked(nil))
	tftest.ExpectMistake(t, diags, `AttributeName("factory_url")`, []string{"puts the owner into it", image.VanillaSchematic}, false)
}

func TestBootAssets_ofMachines(t *testing.T) {
	t.Parallel()

	config := tftest.Config{
		"talos_version": "v1.13.0", "schematic": guestAgentContent, "assets_url": "http://10.0.0.2:8080/assets/",
		"kernel_args": []any{"ip=dhcp"},
		"machines": tftest.Config{
			"cp-1": tftest.Config{"mac_address": "52-54-00-AB-CD-01", "kernel_args": []any{"hostname=cp-1&<x>", "-ip"}},
			"w-1":  tftest.Config{"mac_address": "52:54:00:ab:cd:02", "architecture": "arm64"},
		},
	}

	state, diags := tftest.ReadData(t, "talosop_boot_assets", config)
	if len(diags) > 0 {
		t.Fatal(tftest.Show(diags))
	}

	const (
		served = "http://10.0.0.2:8080/assets/" + guestAgentID + "/v1.13.0/"
		line   = "talos.platform=metal console=tty0 init_on_alloc=1 slab_nomerge pti=on consoleblank=0 " +
			"nvme_core.io_timeout=4294967295 printk.devkmsg=on selinux=1 module.sig_enforce=1 proc_mem.force_override=never"
	)

	if diff := cmp.Diff(map[string]string{
		"kernel": served + "kernel-amd64", "initramfs": served + "initramfs-amd64.xz", "kernel_cmdline": line + " ip=dhcp",
		"ipxe_script": "#!ipxe\n\nimgfree\nkernel " + served + "kernel-amd64 " + line + " ip=dhcp\ninitrd " + served +
			"initramfs-amd64.xz\nboot\n",
		"iso": "https://factory.talos.dev/image/" + guestAgentID + "/v1.13.0/metal-amd64.iso",
	}, tftest.TextsIn(t, state, "kernel", "initramfs", "kernel_cmdline", "ipxe_script", "iso")); diff != "" {
		t.Error(diff)
	}

	var boot map[string]tftypes.Value
	tftest.Must(t, tftest.AttributeOf(t, state, "boot").As(&boot))

	got := tftest.TextsIn(t, boot["cp-1"], "mac_address", "matchbox_profile", "matchbox_group")
	if got["mac_address"] != "52:54:00:ab:cd:01" {
		t.Errorf("the address is %s", got["mac_address"])
	}

	for text, want := range map[string]any{
		got["matchbox_profile"]: map[string]any{"id": "cp-1", "name": "Talos on cp-1", "boot": map[string]any{
			"kernel": served + "kernel-amd64", "initrd": []any{served + "initramfs-amd64.xz"},
			"args": asAny(append(strings.Fields(line), "hostname=cp-1&<x>"))}},
		got["matchbox_group"]: map[string]any{"id": "cp-1", "name": "cp-1", "profile": "cp-1",
			"selector": map[string]any{"mac": "52:54:00:ab:cd:01"}},
	} {
		var read any
		tftest.Must(t, json.Unmarshal([]byte(text), &read))

		if diff := cmp.Diff(want, read); diff != "" {
			t.Errorf("%s:\n%s", text, diff)
		}
	}

	if got := tftest.TextsIn(t, boot["w-1"], "kernel", "kernel_cmdline"); got["kernel"] != served+"kernel-arm64" ||
		!strings.Contains(got["kernel_cmdline"], "console=ttyAMA0 console=tty0") {
		t.Errorf("the machine of another architecture boots %v", got)
	}

	var downloads map[string]tftypes.Value
	tftest.Must(t, tftest.AttributeOf(t, state, "downloads").As(&downloads))

	if len(downloads) != 4 || downloads[guestAgentID+"/v1.13.0/initramfs-arm64.xz"].IsNull() {
		t.Errorf("downloads are %v", downloads)
	}

	// With Secure Boot one signed file contains everything.
	config["secure_boot"] = true

	state, diags = tftest.ReadData(t, "talosop_boot_assets", config)
	if len(diags) > 0 {
		t.Fatal(tftest.Show(diags))
	}

	if got := tftest.TextsIn(t, state, "kernel", "initramfs", "ipxe_script"); got["initramfs"] != "" ||
		got["kernel"] != served+"metal-amd64-secureboot-uki.efi" || strings.Contains(got["ipxe_script"], "initrd") {
		t.Errorf("with Secure Boot: %v", got)
	}
}

func asAny(texts []string) []any {
	out := make([]any, len(texts))
	for i, text := range texts {
		out[i] = text
	}

	return out
}

func TestBootAssets_refuses(t *testing.T) {
	t.Parallel()

	machine := func(name string, one tftest.Config) tftest.Config {
		return tftest.Config{"talos_version": "v1.13.0", "machines": tftest.Config{
			name: one, "other": tftest.Config{"mac_address": "52:54:00:ab:cd:01"}}}
	}

	const ofOne = `AttributeName("machines").ElementKeyString("cp-1")`

	for name, test := range map[string]struct {
		config tftest.Config
		at     string
		says   []string
	}{
		"arguments by an id": {tftest.Config{"talos_version": "v1.13.0", "schematic": guestAgentID},
			`AttributeName("schematic")`, []string{"[schematic_without_arguments]"}},
		"platform": {tftest.Config{"talos_version": "v1.13.0", "platform": "aws"}, `AttributeName("platform")`,
			[]string{"[platform_without_netboot]", "metal, equinixMetal"}},
		"assets": {tftest.Config{"talos_version": "v1.13.0", "assets_url": "/assets"}, `AttributeName("assets_url")`,
			[]string{"[invalid_assets_url]", `"/assets"`}},
		"address": {machine("cp-1", tftest.Config{"mac_address": "10.0.0.1"}), ofOne + `.AttributeName("mac_address")`,
			[]string{"[invalid_mac_address]", `"10.0.0.1"`}},
		"no address": {machine("cp-1", tftest.Config{"architecture": "amd64"}), ofOne + `.AttributeName("mac_address")`,
			[]string{"[invalid_mac_address]", `Found ""`}},
		"address twice": {machine("cp-1", tftest.Config{"mac_address": "52-54-00-AB-CD-01"}),
			`AttributeName("machines").ElementKeyString("other").AttributeName("mac_address")`, []string{"[duplicate_mac_address]", "cp-1"}},
		"architecture": {machine("cp-1", tftest.Config{"mac_address": "52:54:00:ab:cd:02", "architecture": "x86"}),
			ofOne + `.AttributeName("architecture")`, []string{`"x86"`}},
		"name": {machine("../cp-1", tftest.Config{"mac_address": "52:54:00:ab:cd:02"}),
			`AttributeName("machines").ElementKeyString("../cp-1")`, []string{"[invalid_boot_machine_name]"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, diags := tftest.ReadData(t, "talosop_boot_assets", test.config)
			tftest.ExpectMistake(t, diags, test.at, test.says, false)
		})
	}
}

// Both are read under the CLIs, with a factory.
func TestAccImages_underTheCLIs(t *testing.T) {
	t.Parallel()

	f := factorytest.New(t)

	clitest.Each(t, func(t *testing.T, cli clitest.CLI) {
		t.Parallel()

		w := clitest.NewWorkspace(t, cli)
		w.Setenv("TF_VAR_factory_url", f.URL)
		w.Write("main.tf", `
terraform {
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

variable "factory_url" { type = string }

data "talosop_image" "this" {
  talos_version = "v1.13.0"
  extensions    = ["qemu-guest-agent"]
  factory_url   = var.factory_url
  online        = true
}

data "talosop_boot_assets" "this" {
  talos_version = "v1.13.0"
  schematic     = data.talosop_image.this.schematic_id
  factory_url   = var.factory_url
  online        = true
  machines      = { cp-1 = { mac_address = "52:54:00:ab:cd:01" } }
}

output "group" {
  value = jsondecode(data.talosop_boot_assets.this.boot["cp-1"].matchbox_group).selector.mac
}
output "same" {
  value = data.talosop_image.this.schematic_id == provider::talosop::schematic_id(data.talosop_image.this.schematic_content)
}
`)
		w.Init()
		w.MustRun("apply", "-auto-approve")

		for name, want := range map[string]string{"group": `"52:54:00:ab:cd:01"`, "same": "true"} {
			if got := strings.TrimSpace(w.MustRun("output", "-json", name).Stdout); got != want {
				t.Errorf("%s is %s, want %s", name, got, want)
			}
		}

		if empty, output := w.PlanIsEmpty(); !empty {
			t.Errorf("the next plan is not empty:\n%s", output)
		}
	})
}
