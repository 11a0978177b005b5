package clusterimport_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	migration "github.com/talosop/terraform-provider-talosop/internal/migrate"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
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
			sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) { migrates(t, cli, tool) })
		})
	}
}

func migrates(t *testing.T, cli clitest.CLI, tool string) {
	t.Helper()

	s := sitetest.New(t, 1, 2)
	w := clitest.NewWorkspace(t, cli)
	ctl := foreignTool{t, clitest.Asset(t, "talosctl"), w.Dir}

	name, text := migratedConfig(s, tool)
	w.Write(name, text)

	for name, text := range migratedFiles {
		tftest.Must(t, os.MkdirAll(filepath.Join(w.Dir, filepath.Dir(name)), 0o700))
		w.Write(name, text)
	}

	ctl.run("gen", "secrets", "-o", "secrets.yaml")

	written := madeBy(t, w, tool)
	bundle := w.Read("secrets.yaml")
	writeTalosconfig(t, w, bundle, s)
	configure(s, ctl, written)
	joined(t, s, bundle)

	output := foreignTool{t, w.Provider(), w.Dir}.run("migrate", tool, "-secrets", "secrets.yaml", "-out", "migrated")

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
}

// madeBy writes the configurations of machines, and returns the files by machine. The tool makes them where it is
// among the test programs; otherwise they are those that TestReaders_makeWhatTheToolMakes compares with the tool's.
func madeBy(t *testing.T, w *clitest.Workspace, tool string) map[string]string {
	t.Helper()

	found, err := migration.Readers[tool](migration.Options{Folder: w.Dir, Secrets: "secrets.yaml",
		Lookup: func(string) (string, bool) { return "", false }})
	tftest.Must(t, err)

	files := map[string]string{}
	program := filepath.Join(os.Getenv("TALOSOP_TEST_ASSETS"), tool)
	_, missing := os.Stat(program)

	switch run := (foreignTool{t, program, w.Dir}).run; {
	case missing != nil:
	case tool == "topf":
		run("render")
	default:
		run("genconfig", "--offline-mode", "--no-gitignore", "--secret-file", "secrets.yaml")
	}

	for _, m := range found.Machines {
		files[m.Name] = map[string]string{"topf": "output/", "talhelper": "clusterconfig/prod-"}[tool] + m.Name + ".yaml"

		if missing != nil {
			files[m.Name] = m.Name + "-made.yaml"
			w.Write(files[m.Name], string(m.Config))
		}
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
