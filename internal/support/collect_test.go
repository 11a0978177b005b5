package support_test

import (
	"archive/zip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/support"
)

// machine has a configuration and files.
type machine struct {
	configuration string
	files         map[string]string
	missing       map[string]error
	err           error
	hangs         bool
}

func (m machine) Configuration(context.Context) ([]byte, error) {
	return []byte(m.configuration), m.err
}

func (m machine) SupportFiles(
	ctx context.Context, file func(name string, content []byte) error,
) (map[string]error, error) {
	if m.hangs {
		<-ctx.Done()

		return nil, context.Cause(ctx)
	}

	for name, content := range m.files {
		if err := file(name, []byte(content)); err != nil {
			return nil, err
		}
	}

	return m.missing, m.err
}

const configuration = `version: v1alpha1
machine:
  type: worker
  token: abcdef.0123456789abcdef
  ca:
    crt: Y2VydGlmaWNhdGU=
  env:
    LICENSE: LICENSE-OF-THE-USER
cluster:
  controlPlane:
    endpoint: https://10.0.0.10:6443
`

// bundled are the files of a bundle by their names.
func bundled(t *testing.T, path string) map[string]string {
	t.Helper()

	read, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}

	defer read.Close()

	files := map[string]string{}

	for _, f := range read.File {
		content, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}

		text, err := io.ReadAll(content)
		if err != nil {
			t.Fatal(err)
		}

		if _, twice := files[f.Name]; twice {
			t.Errorf("%s is there twice", f.Name)
		}

		files[f.Name] = string(text)
	}

	return files
}

// What one machine has as a secret is not reported by another one either, and what does not answer stops nothing.
func TestCollect_withoutSecretsAndWithWhatAnswers(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "deep", "bundle.zip")

	missing, err := support.Collect(t.Context(), support.Request{
		Path: path, Cluster: "prod", Secrets: []string{"SECRET-OF-THE-CLUSTER"}, Patience: 50 * time.Millisecond,
		Machines: map[string]support.Machine{
			"w-1": machine{configuration: configuration, files: map[string]string{"dmesg.log": "began\n"}},
			"w-2": machine{configuration: "version: v1alpha1\n", missing: map[string]error{"io": errors.New("no disks")},
				files: map[string]string{"dmesg.log": "the license is LICENSE-OF-THE-USER, and " +
					base64.StdEncoding.EncodeToString([]byte("SECRET-OF-THE-CLUSTER"))}},
			"w-3": machine{err: errors.New("does not\nanswer")},
			"w-4": machine{configuration: "version: v1alpha1\n", hangs: true},
		},
		Kubernetes: func(context.Context) (map[string][]byte, error) {
			return map[string][]byte{"nodes.yaml": []byte("items: []\n")}, errors.New("no pods")
		},
	})
	if err != nil {
		t.Fatal(err)
	}

	want := "[Kubernetes: no pods w-2: io: no disks w-3: does not answer w-4: timed out after 50ms]"
	if got := fmt.Sprint(missing); got != want {
		t.Errorf("missing %s, want %s", got, want)
	}

	files := bundled(t, path)
	for name, says := range map[string]string{
		"w-1/dmesg.log": "began", "w-2/dmesg.log": "the license is (sensitive value), and (sensitive value)",
		"w-1/machineconfig.yaml": "token: (sensitive value)", "kubernetesResources/nodes.yaml": "items",
		"README.txt": "- w-3: does not answer\n",
	} {
		if !strings.Contains(files[name], says) {
			t.Errorf("%s is %q, want %q in it", name, files[name], says)
		}
	}

	for name, text := range files {
		for _, secret := range []string{"abcdef.0123456789abcdef", "0123456789abcdef", "LICENSE-OF", "SECRET-OF"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s has %s:\n%s", name, secret, text)
			}
		}
	}

	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// A file that is there stays as it is, also one that appears while a bundle is made, and nothing is left beside it.
func TestCollect_replacesNothingUnlessAsked(t *testing.T) {
	t.Parallel()

	folder := t.TempDir()
	path := filepath.Join(folder, "bundle.zip")
	put := func() {
		if err := os.WriteFile(path, []byte("mine"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	request := func(appears bool, overwrite bool) support.Request {
		return support.Request{Path: path, Overwrite: overwrite,
			Machines: map[string]support.Machine{"w-1": machine{configuration: configuration}},
			Tell: func(string) {
				if appears {
					put()
				}
			}}
	}

	_, err := support.Collect(t.Context(), request(true, false))
	unchanged := func(when string) {
		content, read := os.ReadFile(path)
		if !errors.Is(err, support.ErrExists) || string(content) != "mine" {
			t.Errorf("%s: %v; there is %q, %v", when, err, content, read)
		}
	}
	unchanged("one that appears")

	_, err = support.Collect(t.Context(), request(false, false))
	unchanged("one that is there")

	if _, err := support.Collect(t.Context(), request(false, true)); err != nil || len(bundled(t, path)) != 2 {
		t.Errorf("asked for: %v", err)
	}

	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}

	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}

	if _, err = support.Collect(t.Context(), request(false, true)); !errors.Is(err, support.ErrExists) {
		t.Errorf("a folder: %v", err)
	}

	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
		t.Errorf("left %v, %v", left, err)
	}
}

// Where nothing answers, and where the run is interrupted, there is no file and nothing left of it.
func TestCollect_makesNoEmptyFile(t *testing.T) {
	t.Parallel()

	folder := t.TempDir()
	dead := support.Request{Path: filepath.Join(folder, "bundle.zip"),
		Machines: map[string]support.Machine{"w-1": machine{err: errors.New("no answer")}}}

	if _, err := support.Collect(t.Context(), dead); !errors.Is(err, support.ErrNothing) ||
		!strings.Contains(err.Error(), "w-1: no answer") {
		t.Error(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	dead.Machines["w-1"] = machine{configuration: configuration}
	if _, err := support.Collect(ctx, dead); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}

	if left, err := os.ReadDir(folder); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
