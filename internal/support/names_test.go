package support_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/support"
)

// A machine names its services itself: no name leads out of its folder, wherever the bundle is unpacked.
func TestCollect_namesOfMachinesStayInTheBundle(t *testing.T) {
	t.Parallel()

	bad := []string{
		"../../../../home/user/.profile", "service-logs/../../../../home/user/.profile", "../w-2/dmesg.log", "/etc/passwd",
		`..\..\autoexec.bat`, `C:\autoexec.bat`, "..", "", "a\nMissing:\n- nothing", "machineconfig.yaml",
	}
	files := map[string]string{"service-logs/etcd.log": "good", "kube-system/pod:container.log": "good"}

	for _, name := range bad {
		files[name] = "bad"
	}

	bundle := filepath.Join(t.TempDir(), "bundle.zip")

	missing, err := support.Collect(t.Context(), support.Request{
		Path: bundle, Cluster: "prod",
		Machines: map[string]support.Machine{
			"w-1": machine{configuration: configuration, files: files},
			"w-2": machine{configuration: configuration, files: map[string]string{"dmesg.log": "good"}},
		},
		Kubernetes: func(context.Context) (map[string][]byte, error) {
			return map[string][]byte{"../../nodes.yaml": []byte("bad"), "pods.yaml": []byte("good")}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}

	var got []string

	for name, content := range bundled(t, bundle) {
		got = append(got, name)

		if !fs.ValidPath(name) || strings.ContainsAny(name, "\\\n") || strings.Contains(content, "bad") && path.Base(name) != "README.txt" {
			t.Errorf("%q is in the bundle with %q", name, content)
		}
	}

	slices.Sort(got)

	want := []string{"README.txt", "kubernetesResources/pods.yaml", "w-1/kube-system/pod:container.log", "w-1/machineconfig.yaml",
		"w-1/service-logs/etcd.log", "w-2/dmesg.log", "w-2/machineconfig.yaml"}
	if !slices.Equal(got, want) {
		t.Errorf("the bundle has %q, want %q", got, want)
	}

	if len(missing) != len(bad)+1 {
		t.Errorf("missing %v, want the %d whose names lead elsewhere", missing, len(bad)+1)
	}

	for _, m := range missing {
		if text := fmt.Sprint(m); strings.Contains(text, "\n") || !strings.Contains(text, "excluded from the bundle") {
			t.Errorf("missing is %q", text)
		}
	}
}

// A link at the path of a bundle is not followed, and stays.
func TestCollect_followsNoLink(t *testing.T) {
	t.Parallel()

	folder := t.TempDir()
	victim, link := filepath.Join(folder, "victim"), filepath.Join(folder, "bundle.zip")

	if err := os.WriteFile(victim, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}

	if err := os.Symlink(victim, link); err != nil {
		t.Fatal(err)
	}

	for _, overwrite := range []bool{false, true} {
		_, err := support.Collect(t.Context(), support.Request{Path: link, Overwrite: overwrite, Cluster: "prod",
			Machines: map[string]support.Machine{"w-1": machine{configuration: configuration}}})

		content, read := os.ReadFile(victim)
		if err == nil || read != nil || string(content) != "old" {
			t.Errorf("overwrite %v: %v; the victim is %q (%v)", overwrite, err, content, read)
		}
	}
}
