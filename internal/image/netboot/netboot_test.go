package netboot_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/image/assets"
	"github.com/talosop/terraform-provider-talosop/internal/image/netboot"
	"github.com/talosop/terraform-provider-talosop/internal/image/schematic"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// The lines of Talos's own tests of its imager (1.14, pkg/imager/imager_test.go), and what the public factory answered
// for 1.13.8.
func TestCmdline_isThatOfTheImager(t *testing.T) {
	t.Parallel()

	for _, test := range []struct{ version, architecture, want string }{
		{"v1.10.0", "amd64", "talos.platform=metal console=tty0 init_on_alloc=1 slab_nomerge pti=on consoleblank=0 nvme_core.io_timeout=4294967295 printk.devkmsg=on ima_template=ima-ng ima_appraise=fix ima_hash=sha512 selinux=1"},
		{"v1.10.0", "arm64", "talos.platform=metal console=ttyAMA0 console=tty0 init_on_alloc=1 slab_nomerge pti=on consoleblank=0 nvme_core.io_timeout=4294967295 printk.devkmsg=on ima_template=ima-ng ima_appraise=fix ima_hash=sha512 selinux=1"},
		{"v1.11.0", "amd64", "talos.platform=metal console=tty0 init_on_alloc=1 slab_nomerge pti=on consoleblank=0 nvme_core.io_timeout=4294967295 printk.devkmsg=on selinux=1"},
		{"v1.13.8", "amd64", "talos.platform=metal console=tty0 init_on_alloc=1 slab_nomerge pti=on consoleblank=0 nvme_core.io_timeout=4294967295 printk.devkmsg=on selinux=1 module.sig_enforce=1 proc_mem.force_override=never"},
	} {
		got, ok := netboot.Cmdline(imageOf(test.version, "metal", test.architecture), schematic.Schematic{})
		if diff := cmp.Diff(test.want, got); diff != "" || !ok {
			t.Errorf("%s on %s: %t\n%s", test.version, test.architecture, ok, diff)
		}
	}
}

func imageOf(version, platform, architecture string) assets.Image {
	return assets.Image{Version: version, Platform: platform, Architecture: architecture}
}

func TestCmdline_hasWhatTheSchematicSays(t *testing.T) {
	t.Parallel()

	content, err := schematic.Parse("customization:\n  extraKernelArgs: [console=ttyS1, -selinux, a=b, a=c, ip=dhcp]\n" +
		"  meta: [{key: 10, value: x}]\n")
	if err != nil {
		t.Fatal(err)
	}

	const want = "talos.platform=metal console=ttyS1 slab_nomerge pti=on consoleblank=0 printk.devkmsg=on " +
		"module.sig_enforce=1 proc_mem.force_override=never talos.environment=INSTALLER_META_BASE64=MHhhPXg= a=b a=c ip=dhcp"

	got, ok := netboot.Cmdline(imageOf("v1.14.1", "metal", "amd64"), content)
	if diff := cmp.Diff(want, got); diff != "" || !ok {
		t.Error(ok, diff)
	}

	longer, ok := netboot.With(got, []string{"-ip=dhcp", "talos.platform=nocloud", "x"})
	if diff := cmp.Diff(strings.Replace(strings.TrimSuffix(want, " ip=dhcp"), "=metal", "=nocloud", 1)+" x", longer); diff != "" ||
		!ok {
		t.Error(ok, diff)
	}

	for name, image := range map[string]assets.Image{
		"a cloud": imageOf("v1.14.1", "aws", "amd64"),
	} {
		if got, ok := netboot.Cmdline(image, content); ok {
			t.Errorf("%s: %s", name, got)
		}
	}

	content.Overlay.Name = "rpi_generic"
	if got, ok := netboot.Cmdline(imageOf("v1.14.1", "metal", "arm64"), content); ok {
		t.Errorf("an overlay has arguments of its own: %s", got)
	}

	for _, platform := range netboot.Platforms() {
		if got, ok := netboot.Cmdline(imageOf("v1.13.0", platform, "amd64"), schematic.Schematic{}); !ok ||
			!strings.HasPrefix(got, "talos.platform="+platform+" ") {
			t.Errorf("%s: %s", platform, got)
		}
	}
}

func TestCanonicalMAC_spellings(t *testing.T) {
	t.Parallel()

	for _, text := range []string{"52:54:00:AB:cd:01", "52-54-00-ab-cd-01", "5254.00ab.cd01"} {
		if got, err := netboot.CanonicalMAC(text); err != nil || got != "52:54:00:ab:cd:01" {
			t.Errorf("%s is %s, %v", text, got, err)
		}
	}

	for _, text := range []string{"", "52:54:00:ab:cd", "02:00:5e:10:00:00:00:01", "host"} {
		if got, err := netboot.CanonicalMAC(text); err == nil {
			t.Errorf("%s is %s", text, got)
		}
	}
}

// Matchbox itself reads the files, finds the machine by its MAC address, and gives it a script that boots the same.
func TestAccMatchbox_boots(t *testing.T) {
	t.Parallel()

	if os.Getenv("TF_ACC") == "" {
		t.Skip("acceptance test: set TF_ACC=1, or run `make testacc`")
	}

	data := t.TempDir()
	boots := map[string]netboot.Boot{
		"cp-1": {Kernel: "http://10.0.0.2/kernel-amd64", Initramfs: "http://10.0.0.2/initramfs-amd64.xz",
			Cmdline: "talos.platform=metal console=tty0 talos.config=http://10.0.0.2/?mac=${mac:hexhyp}&a=<b> ip=dhcp"},
		"w.1_signed": {Kernel: "http://10.0.0.2/metal-amd64-secureboot-uki.efi", Cmdline: "talos.platform=metal"},
	}
	macs := map[string]string{"cp-1": "52:54:00:ab:cd:01", "w.1_signed": "52:54:00:ab:cd:02"}

	for name, boot := range boots {
		profile, err := boot.Profile(name)
		if err != nil {
			t.Fatal(err)
		}

		group, err := netboot.Group(name, macs[name])
		if err != nil {
			t.Fatal(err)
		}

		put(t, filepath.Join(data, "profiles", name+".json"), profile)
		put(t, filepath.Join(data, "groups", name+".json"), group)
	}

	address := serveMatchbox(t, data)

	for name, boot := range boots {
		// iPXE asks with dashes (${mac:hexhyp}).
		got := get(t, "http://"+address+"/ipxe?mac="+strings.ReplaceAll(macs[name], ":", "-"))

		// It frees no images first, which is for scripts that are chained to.
		want := strings.Replace(boot.IPXE(), "\nimgfree\n", "", 1)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-ours +Matchbox):\n%s", name, diff)
		}
	}

	if got := get(t, "http://"+address+"/ipxe?mac=52-54-00-ab-cd-03"); !strings.Contains(got, "404") {
		t.Errorf("another machine boots %q", got)
	}
}

func put(t *testing.T, path, content string) {
	t.Helper()

	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}

	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// serveMatchbox runs Matchbox on a folder until the test ends, and returns its address.
func serveMatchbox(t *testing.T, data string) string {
	t.Helper()

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}

	command := exec.CommandContext(t.Context(), clitest.Asset(t, "matchbox"), "-address", address, "-data-path", data,
		"-assets-path", "")
	command.WaitDelay = 10 * time.Second

	if err := command.Start(); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = command.Wait() })

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	if err := wait.Until(ctx, 20*time.Millisecond, func(ctx context.Context) error {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}

		return connection.Close()
	}); err != nil {
		t.Fatal(err)
	}

	return address
}

func get(t *testing.T, url string) string {
	t.Helper()

	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()

	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}

	if response.StatusCode != http.StatusOK {
		return fmt.Sprint(response.StatusCode)
	}

	return string(body)
}
