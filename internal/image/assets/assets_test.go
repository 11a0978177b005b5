package assets

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/image"
)

const vanilla = image.VanillaSchematic

func TestAssets_ofTheFactory(t *testing.T) {
	t.Parallel()

	const at = "https://factory.talos.dev/image/" + vanilla + "/v1.13.0/"

	for name, test := range map[string]struct {
		image Image
		want  Assets
	}{
		"metal": {
			Image{Version: "v1.13.0", Schematic: vanilla, Platform: "metal", Architecture: "amd64"},
			Assets{
				Installer: "factory.talos.dev/metal-installer/" + vanilla + ":v1.13.0",
				ISO:       at + "metal-amd64.iso", DiskImage: at + "metal-amd64.raw.zst", UKI: at + "metal-amd64-uki.efi",
				Kernel: at + "kernel-amd64", Initramfs: at + "initramfs-amd64.xz", Cmdline: at + "cmdline-metal-amd64",
				PXE: "https://pxe.factory.talos.dev/pxe/" + vanilla + "/v1.13.0/metal-amd64",
			},
		},
		"secure boot": {
			Image{Version: "v1.13.0", Schematic: vanilla, Platform: "metal", Architecture: "arm64", SecureBoot: true},
			Assets{
				Installer: "factory.talos.dev/metal-installer-secureboot/" + vanilla + ":v1.13.0",
				ISO:       at + "metal-arm64-secureboot.iso", DiskImage: at + "metal-arm64-secureboot.raw.zst",
				UKI:    at + "metal-arm64-secureboot-uki.efi",
				Kernel: at + "kernel-arm64", Initramfs: at + "initramfs-arm64.xz", Cmdline: at + "cmdline-metal-arm64-secureboot",
				PXE: "https://pxe.factory.talos.dev/pxe/" + vanilla + "/v1.13.0/metal-arm64-secureboot",
			},
		},
		"a cloud": {
			Image{Version: "v1.13.0", Schematic: vanilla, Platform: "gcp", Architecture: "amd64"},
			Assets{
				Installer: "factory.talos.dev/gcp-installer/" + vanilla + ":v1.13.0",
				DiskImage: at + "gcp-amd64.raw.tar.gz", UKI: at + "gcp-amd64-uki.efi", Kernel: at + "kernel-amd64",
				Initramfs: at + "initramfs-amd64.xz", Cmdline: at + "cmdline-gcp-amd64",
			},
		},
		"no installer by that name": {
			Image{Version: "v1.13.0", Schematic: vanilla, Platform: "equinixMetal", Architecture: "amd64"},
			Assets{
				UKI: at + "equinixMetal-amd64-uki.efi", Kernel: at + "kernel-amd64", Initramfs: at + "initramfs-amd64.xz",
				Cmdline: at + "cmdline-equinixMetal-amd64",
				PXE:     "https://pxe.factory.talos.dev/pxe/" + vanilla + "/v1.13.0/equinixMetal-amd64",
			},
		},
		"another factory": {
			Image{Version: "v1.13.0", Schematic: vanilla, Platform: "vultr", Architecture: "amd64", Factory: "http://f.test:8080/x/"},
			Assets{
				Installer: "f.test:8080/x/vultr-installer/" + vanilla + ":v1.13.0",
				ISO:       "http://f.test:8080/x/image/" + vanilla + "/v1.13.0/vultr-amd64.iso",
				UKI:       "http://f.test:8080/x/image/" + vanilla + "/v1.13.0/vultr-amd64-uki.efi",
				Kernel:    "http://f.test:8080/x/image/" + vanilla + "/v1.13.0/kernel-amd64",
				Initramfs: "http://f.test:8080/x/image/" + vanilla + "/v1.13.0/initramfs-amd64.xz",
				Cmdline:   "http://f.test:8080/x/image/" + vanilla + "/v1.13.0/cmdline-vultr-amd64",
				PXE:       "http://f.test:8080/x/pxe/" + vanilla + "/v1.13.0/vultr-amd64",
			},
		},
	} {
		got, err := test.image.Assets()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}

		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestAssets_refuses(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		image       Image
		field, want string
	}{
		{Image{Platform: "digitalocean"}, "platform", "digital-ocean"},
		{Image{Architecture: "x86_64"}, "architecture", "amd64 or arm64"},
		{Image{Platform: "hcloud", Architecture: "arm64"}, "architecture", "allowed: amd64 on hcloud"},
		{Image{Platform: "aws", SecureBoot: true}, "secure_boot", "false on aws"},
		{Image{Platform: "alibabacloud", Version: "v1.13.0"}, "talos_version", "v1.14.0-beta.2 or newer"},
		{Image{Factory: "factory.talos.dev"}, "factory_url", `found "factory.talos.dev"`},
		{Image{Factory: "https://me:secret@factory.talos.dev"}, "factory_url", "a URL such as"},
	} {
		_, err := test.image.Assets()

		var wrong *PartError
		if !errors.As(err, &wrong) || wrong.Field != test.field || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v gives %v, want %s: %s", test.image, err, test.field, test.want)
		}
	}

	if wrong := (Image{}).Check(); wrong != nil {
		t.Errorf("nothing is known, and refused: %v", wrong)
	}
}
