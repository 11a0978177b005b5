package clusterimport_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	migration "github.com/talosop/terraform-provider-talosop/internal/migrate"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// migratedConfig is the configuration of a tool, with patches for all machines, for roles and for one machine, and with
// values that may be secret.
func migratedConfig(s *sitetest.Site, tool string) (name, text string) {
	var nodes strings.Builder

	for _, m := range append(append([]*sim.Machine{}, s.ControlPlane...), s.Workers...) {
		plane := !strings.HasPrefix(m.Name(), "w")

		if tool == "topf" {
			fmt.Fprintf(&nodes, "  - {host: %s, ip: %s, role: %s}\n", m.Name(), m.Address(),
				map[bool]string{true: "control-plane", false: "worker"}[plane])

			continue
		}

		fmt.Fprintf(&nodes, "  - {hostname: %s, ipAddress: %s, controlPlane: %t, installDisk: /dev/sda, "+
			"nodeLabels: {rack: r-%s}}\n", m.Name(), m.Address(), plane, m.Name())
	}

	if tool == "topf" {
		return "topf.yaml", fmt.Sprintf("clusterName: prod\nclusterEndpoint: %s\nkubernetesVersion: 1.36.2\n"+
			"talosVersion: 1.13.0\nnodes:\n%s", s.URL, nodes.String())
	}

	return "talconfig.yaml", strings.Replace(talconfig, "ENDPOINT", s.URL, 1) + nodes.String() + `worker:
  kernelModules: [{name: br_netfilter}]
  extensionServices: [{name: nut-client, environment: [UPS_PASSWORD=not-in-main]}]
`
}

// migratedFiles are the patches of topf beside topf.yaml.
var migratedFiles = map[string]string{
	"all/disk.yaml": "machine: {install: {disk: /dev/sda}, sysctls: {net.core.somaxconn: \"1024\"}}\n",
	"all/name.yaml.tpl": "apiVersion: v1alpha1\nkind: HostnameConfig\nauto: \"off\"\nhostname: {{ .Node.Host }}\n---\n" +
		"machine: {nodeLabels: {rack: \"r-{{ .Node.Host }}\"}}\n",
	"worker/nut.yaml": "apiVersion: v1alpha1\nkind: ExtensionServiceConfig\nname: nut-client\n" +
		"environment: [UPS_PASSWORD=not-in-main]\n",
}

// A cluster of a tool is migrated by the command: its configuration imports the cluster, and changes nothing.
func TestAccMigrate_plansNothing(t *testing.T) {
	t.Parallel()

	for _, tool := range []string{"talhelper", "topf"} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
				migrates(t, cli, tool, sim.DefaultTalosVersion, madeBy)
			})
		})
	}
}

// The command reads machine configurations with the documents of contract v1.14, in place of the patches.
func TestAccMigrate_ofDocuments(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		migrated := migrates(t, cli, "topf", sitetest.Talos114, withDocuments, "-configs", "output")

		for _, want := range []string{`"v1.14"`, "net.core.somaxconn", `"r-w-2"`} {
			if !strings.Contains(migrated, want) {
				t.Errorf("the configuration has no %s:\n%s", want, migrated)
			}
		}
	})
}

// The same with what topf writes for Talos 1.14. What talhelper 3.1 writes names the key for Secrets otherwise than Talos
// 1.14 (key1, of an alpha version), and is not imported without changes.
func TestAccMigrate_ofWrittenConfigurations(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccMigrate_ofDocuments", "TestReaders_takeWrittenConfigurations")
	t.Parallel()

	optional(t, "topf")
	migrates(t, clitest.Any(t), "topf", sitetest.Talos114, madeBy, "-configs", "output")
}

// migrates makes a cluster from what write writes, and migrates it. It returns the configuration.
func migrates(t *testing.T, cli clitest.CLI, tool, version string,
	write func(*testing.T, *sitetest.Site, *clitest.Workspace, string) map[string]string, args ...string,
) string {
	t.Helper()

	s := sitetest.NewWith(t, sim.Options{TalosVersion: version}, 1, 2)
	w := clitest.NewWorkspace(t, cli)
	ctl := foreignTool{t, clitest.Asset(t, "talosctl"), w.Dir}

	name, text := migratedConfig(s, tool)
	w.Write(name, strings.Replace(text, strings.TrimPrefix(sim.DefaultTalosVersion, "v"), version[1:], 1))

	for name, text := range migratedFiles {
		tftest.Must(t, os.MkdirAll(filepath.Join(w.Dir, filepath.Dir(name)), 0o700))
		w.Write(name, text)
	}

	ctl.run("gen", "secrets", "-o", "secrets.yaml")

	written := write(t, s, w, tool)
	bundle := w.Read("secrets.yaml")
	writeTalosconfig(t, w, bundle, s)
	configure(s, ctl, written)
	joined(t, s, bundle)

	output := foreignTool{t, w.Provider(), w.Dir}.run(append([]string{"migrate", tool, "-secrets", "secrets.yaml", "-out",
		"migrated"}, args...)...)

	if !strings.Contains(output, "secret-patches.yaml (secret") || strings.Contains(output, "Not translated") {
		t.Errorf("the command says:\n%s", output)
	}

	migrated := w.At("migrated")

	if main := migrated.Read("main.tf"); strings.Contains(main, "not-in-main") || strings.Contains(main, "PRIVATE") {
		t.Errorf("main.tf has secrets:\n%s", main)
	}

	migrated.Init()
	migrated.MustRun("fmt", "-check")

	plan := migrated.Run("plan")
	if !strings.Contains(plan.Output(), "1 to import, 0 to add, 0 to change, 0 to destroy") {
		t.Fatalf("the plan is:\n%s\nof\n%s", plan.Output(), migrated.Read("main.tf"))
	}

	migrated.MustRun("apply", "-auto-approve")

	if empty, output := migrated.PlanIsEmpty(); !empty {
		t.Errorf("the plan after the import is not empty:\n%s", output)
	}

	if calls := s.CallsTo("ApplyConfiguration"); len(calls) > 3 {
		t.Errorf("the migration sent configurations: %v", calls)
	}

	return migrated.Read("main.tf") + migrated.Read("patches/*")
}

// madeBy writes the configurations of machines, and returns the files by machine. The tool makes them where it is
// among the test programs; otherwise they are those that TestReaders_makeWhatTheToolMakes compares with the tool's.
func madeBy(t *testing.T, s *sitetest.Site, w *clitest.Workspace, tool string) map[string]string {
	t.Helper()

	files := map[string]string{}
	for _, m := range s.Machines() {
		files[m.Name()] = map[string]string{"topf": "output/", "talhelper": "clusterconfig/prod-"}[tool] + m.Name() + ".yaml"
	}

	program := filepath.Join(os.Getenv("TALOSOP_TEST_ASSETS"), tool)
	_, missing := os.Stat(program)

	switch run := (foreignTool{t, program, w.Dir}).run; {
	case missing != nil:
		found, err := migration.Readers[tool](migration.Options{Folder: w.Dir, Secrets: "secrets.yaml",
			Lookup: func(string) (string, bool) { return "", false }})
		tftest.Must(t, err)

		for _, m := range found.Machines {
			files[m.Name] = m.Name + "-made.yaml"
			w.Write(files[m.Name], string(m.Config))
		}
	case tool == "topf":
		run("render")
	default:
		run("genconfig", "--offline-mode", "--no-gitignore", "--secret-file", "secrets.yaml")
	}

	return files
}

// documentsOfAll and the next are the patches of a tool for contract v1.14, in the documents that it has.
const (
	documentsOfAll = `apiVersion: v1alpha1
kind: UnattendedInstallConfig
provisioning: {diskSelector: {match: disk.dev_path == "/dev/sda"}}
---
apiVersion: v1alpha1
kind: SysctlConfig
params: {net.core.somaxconn: "1024"}
`
	documentsOfOne = `apiVersion: v1alpha1
kind: HostnameConfig
auto: "off"
hostname: %[1]s
---
apiVersion: v1alpha1
kind: KubeNodeConfig
labels: {rack: r-%[1]s}
`
	documentsOfPlanes = `apiVersion: v1alpha1
kind: KubeAPIServerConfig
extraArgs: {v: "3"}
`
)

// withDocuments writes the configurations of machines as a tool does whose library is that of Talos 1.14.
func withDocuments(t *testing.T, s *sitetest.Site, w *clitest.Workspace, _ string) map[string]string {
	t.Helper()

	bundle, err := pki.Parse([]byte(w.Read("secrets.yaml")))
	tftest.Must(t, err)

	input, err := generate.NewInput("prod", s.URL, "1.36.2", generate.WithVersionContract(config.TalosVersion1_14),
		generate.WithSecretsBundle(bundle.Secrets()))
	tftest.Must(t, err)
	tftest.Must(t, os.MkdirAll(filepath.Join(w.Dir, "output"), 0o700))

	files := map[string]string{}

	for _, m := range s.Machines() {
		role, patches := machine.TypeControlPlane, []string{documentsOfAll, fmt.Sprintf(documentsOfOne, m.Name())}
		if slices.Contains(s.Workers, m) {
			role = machine.TypeWorker
			patches = append(patches, migratedFiles["worker/nut.yaml"])
		} else {
			patches = append(patches, documentsOfPlanes)
		}

		made, err := input.Config(role)
		tftest.Must(t, err)

		loaded, err := configpatcher.LoadPatches(patches)
		tftest.Must(t, err)

		patched, err := configpatcher.Apply(configpatcher.WithConfig(made), loaded)
		tftest.Must(t, err)

		text, err := patched.Bytes()
		tftest.Must(t, err)

		files[m.Name()] = "output/" + m.Name() + ".yaml"
		w.Write(files[m.Name()], string(text))
	}

	return files
}

// writeTalosconfig writes the credentials of talosctl.
func writeTalosconfig(t *testing.T, w *clitest.Workspace, bundle string, s *sitetest.Site) {
	t.Helper()

	parsed, err := pki.Parse([]byte(bundle))
	tftest.Must(t, err)

	text, err := parsed.Talosconfig(pki.TalosconfigInput{Context: "prod", Roles: []string{"os:admin"}, TTL: time.Hour,
		Endpoints: []string{s.ControlPlane[0].Address().String()}})
	tftest.Must(t, err)
	w.Write("talosconfig", string(text))
}
