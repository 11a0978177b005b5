package migrate

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// copied is a copy of a recorded folder with a Talos version, its secrets, and other files that replace its own.
func copied(t *testing.T, tool, version string, files map[string]string) Options {
	t.Helper()

	target := t.TempDir()
	if err := os.CopyFS(target, os.DirFS(filepath.Join("testdata", tool))); err != nil {
		t.Fatal(err)
	}

	secrets, err := os.ReadFile("testdata/secrets.yaml")
	if err != nil {
		t.Fatal(err)
	}

	name := "talsecret.yaml"

	if tool == "topf" {
		name = "secrets.yaml"

		config, err := os.ReadFile(filepath.Join(target, "topf.yaml"))
		if err != nil {
			t.Fatal(err)
		}

		write(t, target, "topf.yaml", strings.ReplaceAll(string(config), "${TALOS_VERSION}", version))
	}

	write(t, target, name, string(secrets))

	for name, text := range files {
		write(t, target, name, text)
	}

	return Options{Folder: target, Lookup: func(name string) (string, bool) {
		return version, name == "TALOS_VERSION"
	}}
}

func write(t *testing.T, folder, name, text string) {
	t.Helper()

	if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o700); err != nil {
		t.Fatal(err)
	}

	if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// recorded are the versions of Talos of which testdata has what the tools wrote.
var recorded = map[string][]string{"talhelper": {"v1.11.3", "v1.12.4", "v1.13.2"}, "topf": {"v1.12.4", "v1.13.2"}}

// The configurations are those that the tools themselves wrote (testdata/record).
func TestReaders_makeWhatTheToolMakes(t *testing.T) {
	for tool, versions := range recorded {
		for _, version := range versions {
			t.Run(tool+version, func(t *testing.T) {
				found, err := Readers[tool](copied(t, tool, version, nil))
				if err != nil {
					t.Fatal(err)
				}

				for _, m := range found.Machines {
					sameAsRecorded(t, m, filepath.Join("testdata/expected", tool, version, m.Name+".yaml"))
				}
			})
		}
	}
}

func sameAsRecorded(t *testing.T, m Machine, name string) {
	t.Helper()

	recorded, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}

	changes, err := machineconfig.Diff(recorded, m.Config)
	if err != nil {
		t.Fatal(err)
	}

	for _, change := range changes {
		t.Errorf("%s differs from what the tool makes: %s", m.Name, fmt.Sprint(change))
	}
}

// What has no effect on machines, and what the migration cannot make, is listed.
func TestReaders_listWhatIsOmitted(t *testing.T) {
	found, err := Talhelper(copied(t, "talhelper", "v1.13.2", nil))
	if err != nil {
		t.Fatal(err)
	}

	expectOmitted(t, found, "cp-1: imageSchematic", "cp-1: ipAddress", "w-1: machineSpec.arch")

	found, err = Talhelper(copied(t, "talhelper", "v1.13.2", map[string]string{"talconfig.yaml": `
clusterName: prod
talosVersion: v1.13.2
kubernetesVersion: v1.34.1
endpoint: https://192.0.2.10:6443
oldField: true
imageFactory: {ISOURLTmpl: "x", schematicEndpoint: "/s", protocol: http}
nodes:
  - hostname: cp-1
    ipAddress: 192.0.2.11
    controlPlane: true
    noSchematicValidate: true
    networkInterfaces:
      - deviceSelector: {physical: true}
        dhcp: true
      - {interface: bond0, bond: {interfaces: [eth0, eth1]}}
`}))
	if err != nil {
		t.Fatal(err)
	}

	expectOmitted(t, found, "cp-1: networkInterfaces[0]", "cp-1: networkInterfaces[1]", "cp-1: noSchematicValidate",
		"imageFactory.ISOURLTmpl", "imageFactory.protocol", "imageFactory.schematicEndpoint", "oldField")

	found, err = Topf(copied(t, "topf", "v1.13.2", map[string]string{"topf.yaml": `
clusterName: prod
clusterEndpoint: https://192.0.2.10:6443
kubernetesVersion: v1.34.1
talosVersion: v1.13.2
data: {region: eu}
nodesProvider: ./nodes
oldField: true
nodes: [{host: cp-1, role: control-plane}]
`}))
	if err != nil {
		t.Fatal(err)
	}

	expectOmitted(t, found, "nodesProvider", "oldField")
}

func expectOmitted(t *testing.T, found Cluster, want ...string) {
	t.Helper()

	var fields []string

	for _, o := range found.Omitted {
		fields = append(fields, o.Field)
		if o.Reason == "" {
			t.Errorf("%s has no reason", o.Field)
		}
	}

	slices.Sort(fields)

	if !slices.Equal(fields, want) {
		t.Errorf("omitted are %q, not %q", fields, want)
	}
}

// Errors say what to do first.
func TestReaders_refuse(t *testing.T) {
	const encrypted = "machine: ENC[AES256_GCM,data:abc]\nsops: {mac: x}\n"

	read := func(name string) string {
		content, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}

		return string(content)
	}
	topf := read("topf/topf.yaml")

	for name, test := range map[string]struct {
		tool, version string
		files         map[string]string
		want          string
	}{
		"an encrypted patch": {"talhelper", "v1.13.2", map[string]string{"patches/plane.yaml": encrypted},
			"sops -d"},
		"encrypted secrets":   {"talhelper", "v1.13.2", map[string]string{"talsecret.yaml": encrypted}, "sops -d"},
		"encrypted variables": {"talhelper", "v1.13.2", map[string]string{"talenv.sops.yaml": encrypted}, "sops -d"},
		"a variable that is unset": {"talhelper", "v1.13.2", map[string]string{"talenv.yaml": ""},
			"variable ZONE is not set"},
		"an unknown expression": {"talhelper", "v1.13.2", map[string]string{"patches/plane.yaml": "a: ${A^^}"},
			"${A^^} is not supported"},
		"a contract with documents":  {"talhelper", "v1.14.0", nil, "-configs"},
		"an encrypted patch of topf": {"topf", "v1.13.2", map[string]string{"worker/02.yaml": encrypted}, "sops -d"},
		"a reference of vals": {"topf", "v1.13.2", map[string]string{"worker/02.yaml": "a: ref+vault://x"},
			"vals eval"},
		"a JSON patch": {"topf", "v1.13.2", map[string]string{"worker/02.yaml": "[{op: remove}]"},
			"no mapping"},
		"a missing key": {"topf", "v1.13.2", map[string]string{"worker/02.yaml.tpl": "a: {{ .Data.none }}"},
			"no entry for key"},
		"no version": {"topf", "v1.13.2", map[string]string{"topf.yaml": strings.Replace(topf,
			"talosVersion: ${TALOS_VERSION}", "", 1)}, "-talos-version"},
		"a role": {"topf", "v1.13.2", map[string]string{"topf.yaml": strings.Replace(topf, "role: worker", "role: x",
			1)}, "the role is"},
		"no secrets": {"topf", "v1.13.2", map[string]string{"topf.yaml": topf + "secretsPath: none.yaml\n" +
			"secretsProvider: ./keys\n"}, "./keys secrets get prod"},
		"a newer Talos": {"topf", "v1.14.0", nil, "-configs"},
	} {
		t.Run(name, func(t *testing.T) {
			for file, text := range test.files {
				test.files[file] = strings.ReplaceAll(text, "${TALOS_VERSION}", test.version)
			}

			_, err := Readers[test.tool](copied(t, test.tool, test.version, test.files))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want one with %q", err, test.want)
			}
		})
	}
}

// Configurations that the tool wrote replace those that the package makes.
func TestReaders_takeWrittenConfigurations(t *testing.T) {
	for _, tool := range []string{"talhelper", "topf"} {
		t.Run(tool, func(t *testing.T) {
			options := copied(t, tool, "v1.14.0", nil)
			options.Configurations = filepath.Join(options.Folder, "written")

			for _, name := range []string{"cp-1", "w-1", "w-2"} {
				file := name + ".yaml"
				if tool == "talhelper" {
					file = "prod-" + file
				}

				write(t, options.Configurations, file, name)
			}

			found, err := Readers[tool](options)
			if err != nil {
				t.Fatal(err)
			}

			for _, m := range found.Machines {
				if string(m.Config) != m.Name {
					t.Errorf("%s has the configuration of %s", m.Name, m.Config)
				}
			}
		})
	}
}
