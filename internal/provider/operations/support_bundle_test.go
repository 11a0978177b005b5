package operations_test

import (
	"encoding/base64"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// collectedOf is what talosctl support collects from a control plane, in each folder of a bundle.
var collectedOf = []string{"dmesg.log", "controller-runtime.log", "dependencies.dot", "mounts", "io", "processes", "summary",
	"machineconfig.yaml", "resources/machinestatuses.runtime.talos.dev.yaml", "resources/manifests.kubernetes.talos.dev.yaml",
	"service-logs/etcd.log", "service-logs/etcd.state", "service-logs/kubelet.log", "kubernetes-logs/kube-system/"}

// A bundle contains what talosctl support collects and none of the secrets of the cluster. They are missing in
// resources, although the bootstrap token is in a manifest that any client with os:reader may read. They are missing
// in configurations, and in logs, although programs write them there. A warning names the one machine that is off.
func TestSupportBundle_withoutSecrets(t *testing.T) {
	t.Parallel()

	b := sitetest.NewLiving(t, sim.Options{})
	path := filepath.Join(t.TempDir(), "bundle.zip")
	encodedSecrets := []string{}

	for _, secret := range tftest.SecretsIn(b.Bundle) {
		b.ControlPlane[0].WriteLog("etcd", "a mistake: "+secret)
	}

	for _, secret := range tf.MasksOf(b.Bundle) {
		encodedSecrets = append(encodedSecrets, base64.StdEncoding.EncodeToString([]byte(secret)))
		b.ControlPlane[0].WriteLog("kube-apiserver", encodedSecrets[len(encodedSecrets)-1])
	}

	off := b.ControlPlane[2]
	off.PowerOff()

	b.ForgetCalls()

	progress, diagnostics := invoke(t, "talosop_support_bundle", tftest.Config{"cluster": b.Handle, "path": path})
	if !strings.Contains(diagnostics, "Support bundle "+path+" is incomplete") || !strings.Contains(diagnostics, off.Name()+": ") {
		t.Errorf("said %s", diagnostics)
	}

	if want := []string{"collected: " + b.ControlPlane[0].Name(), "collected: " + b.ControlPlane[1].Name(),
		"missing: " + off.Name()}; !slices.Equal(slices.Sorted(slices.Values(progress)), want) {
		t.Errorf("got %q, want %q", progress, want)
	}

	if used := b.RolesUsed(); !slices.Equal(slices.Sorted(maps.Keys(used)), []string{"os:admin", "os:reader"}) ||
		!slices.Equal(used["os:admin"], []string{"MachineConfigs"}) {
		t.Errorf("asked %v", used)
	}

	files := tftest.FilesIn(t, path)
	names := slices.Sorted(maps.Keys(files))

	for _, m := range b.ControlPlane[:2] {
		for _, file := range collectedOf {
			if !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, m.Name()+"/"+file) }) {
				t.Errorf("%s/%s is not there: %q", m.Name(), file, names)
			}
		}
	}

	for _, file := range []string{"kubernetesResources/nodes.yaml", "kubernetesResources/systemPods.yaml"} {
		if !strings.Contains(files[file], "items:") {
			t.Errorf("%s is %q", file, files[file])
		}
	}

	if !strings.Contains(files["README.txt"], "- "+off.Name()+": ") ||
		!strings.Contains(files[b.ControlPlane[0].Name()+"/service-logs/etcd.log"], "a mistake: (sensitive value)") {
		t.Errorf("%s\n%s", files["README.txt"], files[b.ControlPlane[0].Name()+"/service-logs/etcd.log"])
	}

	sitetest.HoldsNone(t, b.Bundle, files)

	for name, text := range files {
		if strings.Contains(text, "PRIVATE KEY") || strings.Contains(text, "kind: Secret") {
			t.Errorf("%s has a key or a Secret", name)
		}

		for _, secret := range encodedSecrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s has a secret in Base64", name)
			}
		}
	}
}

// The resource writes a bundle at its create and when its triggers change. The plan refuses an existing file, unless
// it may be replaced.
func TestSupportBundle_asAResource(t *testing.T) {
	t.Parallel()

	b := sitetest.NewLiving(t, sim.Options{})
	path := filepath.Join(t.TempDir(), "bundle.zip")
	d := tftest.Drive(t, "talosop_support_bundle", nil)
	machine := b.ControlPlane[1].Address().String()

	config := func(trigger string, overwrite bool) tftest.Config {
		return tftest.Config{"cluster": b.Handle, "path": path, "machines": []any{machine}, "overwrite": overwrite,
			"triggers": tftest.Config{"report": trigger}}
	}

	d.Apply(t, config("1", false)).Must(t)
	d.ExpectEmpty(t, "after the create", config("1", false))

	if names := slices.Sorted(maps.Keys(tftest.FilesIn(t, path))); !slices.Contains(names,
		b.ControlPlane[1].Name()+"/summary") ||
		slices.Contains(names, b.ControlPlane[0].Name()+"/summary") {
		t.Errorf("it has %q", names)
	}

	before, err := os.Stat(path)
	tftest.Must(t, err)

	if diagnostics := tftest.Show(d.Plan(t, config("2", false)).Diagnostics); !strings.Contains(diagnostics, "the file already exists") {
		t.Errorf("planned over a file: %s", diagnostics)
	}

	planned := d.Plan(t, config("2", true)).Must(t)
	if lines := tftest.TextsOf(t, tftest.AttributeOf(t, planned.Value, "operations")); !slices.Equal(lines,
		[]string{"collect support data from " + machine}) {
		t.Errorf("planned: %q", lines)
	}

	d.Apply(t, config("2", true)).Must(t)

	if after, err := os.Stat(path); err != nil || os.SameFile(before, after) || after.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", after, err)
	}
}

// Besides the redacted configuration, a bundle has the files of a machine that talosctl itself collects, except
// sensitive resources and a file that only os:admin may read.
func TestSupportBundle_hasWhatTalosctlCollects(t *testing.T) {
	t.Parallel()

	ctl := clitest.Asset(t, "talosctl")
	b := sitetest.NewLiving(t, sim.Options{})
	address, folder := b.ControlPlane[0].Address().String(), t.TempDir()
	bundle, err := pki.Parse([]byte(b.Bundle))
	tftest.Must(t, err)

	config, err := bundle.Talosconfig(pki.TalosconfigInput{Context: "test", Endpoints: []string{address},
		Roles: []string{pki.RoleAdmin}, TTL: time.Hour})
	tftest.Must(t, err)
	tftest.Must(t, os.WriteFile(filepath.Join(folder, "talosconfig"), config, 0o600))

	theirs := filepath.Join(folder, "theirs.zip")
	run := exec.CommandContext(t.Context(), ctl, "--talosconfig", "talosconfig", "support", "-v", "-n", address,
		"-O", theirs)
	run.Dir, run.Env = folder, append(os.Environ(), "HOME="+folder)

	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}

	ours := filepath.Join(folder, "ours.zip")
	if _, diagnostics := invoke(t, "talosop_support_bundle", tftest.Config{"cluster": b.Handle, "path": ours,
		"machines": []any{address}}); diagnostics != "" {
		t.Error(diagnostics)
	}

	var lacks []string

	has := tftest.FilesIn(t, ours)
	for name, text := range tftest.FilesIn(t, theirs) {
		name = strings.Replace(name, address+"/", b.ControlPlane[0].Name()+"/", 1)
		if _, there := has[name]; !there && !strings.Contains(text, "spec: <REDACTED>") {
			lacks = append(lacks, name)
		}
	}

	if !slices.Equal(lacks, []string{b.ControlPlane[0].Name() + "/devices"}) {
		t.Errorf("it lacks %q, and has %q", lacks, slices.Sorted(maps.Keys(has)))
	}
}
