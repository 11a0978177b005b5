package clusterimport_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// Imports of clusters of other tools. The tool itself makes each cluster, on simulated machines. Each plan after the
// import is empty, even with the configuration that the CLI generates.

// foreignTool is an external program in a folder.
type foreignTool struct {
	t    *testing.T
	path string
	dir  string
}

// try runs a command, and returns its standard output.
func (f foreignTool) try(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, f.path, args...)
	cmd.Dir = f.dir
	cmd.Env = append(os.Environ(), "HOME="+f.dir, "TALOSCONFIG="+filepath.Join(f.dir, "talosconfig"))

	var stderr strings.Builder

	cmd.Stderr = &stderr

	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w: %s", filepath.Base(f.path), strings.Join(args, " "), err, stderr.String())
	}

	return string(out), err
}

func (f foreignTool) run(args ...string) string {
	f.t.Helper()

	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()

	out, err := f.try(ctx, args...)
	tftest.Must(f.t, err)

	return out
}

// eventually repeats a command until it succeeds, because a new machine reboots.
func (f foreignTool) eventually(args ...string) {
	f.t.Helper()

	ctx, cancel := context.WithTimeout(f.t.Context(), 2*time.Minute)
	defer cancel()

	tftest.Must(f.t, wait.Until(ctx, 50*time.Millisecond, func(ctx context.Context) error {
		_, err := f.try(ctx, args...)

		return err
	}))
}

// at addresses one machine.
func at(m *sim.Machine, args ...string) []string {
	return append(args, "-e", m.Address().String(), "-n", m.Address().String())
}

// configure sends configurations to waiting machines, and bootstraps the first of the control planes.
func configure(s *sitetest.Site, f foreignTool, files map[string]string) {
	f.t.Helper()

	for _, m := range append(append([]*sim.Machine{}, s.ControlPlane...), s.Workers...) {
		f.run(at(m, "apply-config", "--insecure", "-f", files[m.Name()])...)
	}

	f.eventually(at(s.ControlPlane[0], "bootstrap")...)
}

// joined waits until all machines are Ready nodes, and their API servers healthy.
func joined(t *testing.T, s *sitetest.Site, bundle string) {
	t.Helper()

	api := s.Kubernetes(t, bundle)
	want := len(s.ControlPlane) + len(s.Workers)

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()

	tftest.Must(t, wait.Until(ctx, 50*time.Millisecond, func(ctx context.Context) error {
		ready := 0

		for _, node := range api.Nodes.Observe(ctx).Nodes {
			if node.Ready {
				ready++
			}
		}

		if ready < want {
			return errors.New("nodes are missing")
		}

		return nil
	}))
}

// fromProvider is a provider with the secrets of a cluster, which stay out of state.
const fromProvider = `
terraform {
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

provider "talosop" {
  alias    = "prod"
  clusters = { for name in ["prod", "test"] : name => { secrets = file("${path.module}/secrets.yaml") } }
}
`

// importsCluster is an import by ID with generated configuration. It names a provider with an alias: Terraform 1.16
// looks for hashicorp/talosop when the resource has no block yet, and accepts no name of another provider.
func importsCluster(t *testing.T, s *sitetest.Site) string {
	t.Helper()

	id := tftest.JSON(t, map[string]any{"cluster": "prod", "control_plane": sitetest.Addresses(s.ControlPlane),
		"workers": map[string]any{"batch": sitetest.Addresses(s.Workers)}})

	return fmt.Sprintf("import {\n  provider = talosop.prod\n  to       = talosop_cluster.prod\n  id       = %q\n}\n", id)
}

// generated imports the resources of a configuration, with the configuration that the CLI generates, up to an empty
// plan.
func generated(t *testing.T, w *clitest.Workspace, imports int) string {
	t.Helper()

	plan := w.Run("plan", "-generate-config-out=generated.tf")
	text := w.Read("generated.tf")

	if plan.Exit != 0 ||
		!strings.Contains(plan.Output(), fmt.Sprintf("%d to import, 0 to add, 0 to change, 0 to destroy", imports)) {
		t.Fatalf("the first plan is:\n%s\nof\n%s", plan.Output(), text)
	}

	w.MustRun("apply", "-auto-approve")

	if empty, output := w.PlanIsEmpty(); !empty {
		t.Fatalf("the plan after the import is not empty:\n%s", output)
	}

	return text
}

// A cluster of talosctl, with patches for all, for roles and for machines, is imported with a configuration that has
// each of them at its level.
func TestAccImport_ofTalosctl(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) { importsOfTalosctl(t, cli, "v1.13") })
}

// The same for a cluster with a configuration of an older Talos, which was upgraded since.
func TestAccImport_ofAnOlderTalosctl(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccImport_ofTalosctl", "TestPatches_ofEveryContract")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) { importsOfTalosctl(t, cli, "v1.11") })
}

func importsOfTalosctl(t *testing.T, cli clitest.CLI, contract string) {
	t.Helper()

	s := sitetest.New(t, 3, 2)
	w := clitest.NewWorkspace(t, cli)
	ctl := foreignTool{t, clitest.Asset(t, "talosctl"), w.Dir}

	w.Write("all.yaml", "machine: {sysctls: {net.core.somaxconn: \"1024\"}}\n---\n"+
		"apiVersion: v1alpha1\nkind: RegistryMirrorConfig\nname: docker.io\nendpoints: [{url: \"https://mirror.test\"}]\n")
	w.Write("plane.yaml", "cluster: {apiServer: {extraArgs: {v: \"3\"}}, allowSchedulingOnControlPlanes: true}\n")
	w.Write("worker.yaml.patch", "machine: {nodeLabels: {rack: a}, features: {hostDNS: {$patch: delete}}}\n")
	ctl.run("gen", "secrets", "-o", "secrets.yaml")
	ctl.run("gen", "config", "prod", s.URL, "--with-secrets", "secrets.yaml", "--install-disk", "/dev/sda",
		"--kubernetes-version", "1.36.2", "--talos-version", contract, "--config-patch", "@all.yaml",
		"--config-patch-control-plane", "@plane.yaml", "--config-patch-worker", "@worker.yaml.patch")

	files := map[string]string{}
	for _, m := range append(append([]*sim.Machine{}, s.ControlPlane...), s.Workers...) {
		files[m.Name()] = m.Name() + ".yaml"
		base := "controlplane.yaml"

		if strings.HasPrefix(m.Name(), "w") {
			base = "worker.yaml"
		}

		name := "apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: " + m.Name() + "\nauto: \"off\"\n"
		if contract == "v1.11" {
			name = "machine: {network: {hostname: " + m.Name() + "}}"
		}

		ctl.run("machineconfig", "patch", base, "-o", files[m.Name()], "-p", name,
			"-p", "machine: {nodeAnnotations: {from: "+m.Name()+"}}")
	}

	configure(s, ctl, files)

	bundle := w.Read("secrets.yaml")
	joined(t, s, bundle)

	w.Write("main.tf", fromProvider+importsCluster(t, s))
	w.Init()

	text := generated(t, w, 1)
	for _, want := range []string{"net.core.somaxconn", "RegistryMirrorConfig", `rack = "a"`, "hostDNS", `from = "w-2"`} {
		if strings.Count(text, want) != 1 {
			t.Errorf("the generated configuration has %s %d times:\n%s", want, strings.Count(text, want), text)
		}
	}

	if calls := s.CallsTo("ApplyConfiguration"); len(calls) > 5 {
		t.Errorf("the import sent configurations: %v", calls)
	}
}

// takesIdentities reports whether a CLI supports identities in imports: Terraform since 1.12, of which an older one
// may be on the PATH, and OpenTofu since 1.12.
func takesIdentities(t *testing.T, cli clitest.CLI) bool {
	t.Helper()

	var version struct {
		Terraform string `json:"terraform_version"`
	}

	// After warnings about a configuration of the CLI.
	output := foreignTool{t, cli.Path, t.TempDir()}.run("version", "-json")
	tftest.Must(t, json.Unmarshal([]byte(output[max(0, strings.Index(output, "{")):]), &version))

	major, rest, _ := strings.Cut(version.Terraform, ".")
	minor, _, _ := strings.Cut(rest, ".")
	number, err := strconv.Atoi(minor)
	tftest.Must(t, err)

	return major == "1" && number >= 12
}

// An identity imports the same as an ID: each kind of resource, with the secrets of the provider block, up to an
// empty plan.
func TestAccImport_byIdentity(t *testing.T) {
	t.Parallel()

	for _, cli := range clitest.All(t) {
		if takesIdentities(t, cli) {
			t.Run(cli.Name, func(t *testing.T) { importsByIdentity(t, cli) })
		}
	}
}

func importsByIdentity(t *testing.T, cli clitest.CLI) {
	t.Helper()

	s := sitetest.New(t, 1, 2)
	w := clitest.NewWorkspace(t, cli)
	w.Write("secrets.yaml", tftest.Bundle())
	w.Write("main.tf", fromProvider+strings.Replace(s.ClusterHCL(sitetest.PoolHCL("batch", s.Workers, ""),
		"  allow_bootstrap = true"),
		"secrets             = talosop_secrets.this.bundle", "provider = talosop.prod", 1))
	w.Init()
	w.MustRun("apply", "-auto-approve")
	w.MustRun("state", "rm", "talosop_cluster.this")
	s.UnmarkNodes(t, w.Read("secrets.yaml"))

	at := func(m *sim.Machine) string { return m.Name() + "=" + m.Address().String() }
	plane := s.ControlPlane[0].Address().String()
	w.Write("main.tf", fromProvider+fmt.Sprintf(`
import {
  provider = talosop.prod
  to       = talosop_control_plane.this
  identity = { cluster = "test", machines = [%q] }
}

import {
  provider = talosop.prod
  to       = talosop_worker.this
  identity = { cluster = "test", name = "batch", control_plane = [%q], machines = [%q] }
}

import {
  provider = talosop.prod
  to       = talosop_machine.this
  identity = { cluster = "test", control_plane = [%q], machines = [%q] }
}
`, at(s.ControlPlane[0]), plane, at(s.Workers[0]), plane, at(s.Workers[1])))

	if text := generated(t, w, 3); strings.Contains(text, "- ") {
		t.Errorf("the configuration is:\n%s", text)
	}
}

// optional is a program for tests before a release, which is built from a clone and may be missing.
func optional(t *testing.T, name string) string {
	t.Helper()

	program := filepath.Join(os.Getenv("TALOSOP_TEST_ASSETS"), name)
	if _, err := os.Stat(program); err != nil {
		t.Skipf("%s is missing: `tools/testbed/build foreign` builds it from its source", name)
	}

	return program
}

// talconfig is a configuration of talhelper, without its nodes.
const talconfig = `clusterName: prod
talosVersion: v1.13.0
kubernetesVersion: v1.36.2
endpoint: ENDPOINT
allowSchedulingOnControlPlanes: true
additionalApiServerCertSans: [home.local]
clusterPodNets: [10.42.0.0/16]
clusterSvcNets: [10.43.0.0/16]
patches:
  - "machine: {sysctls: {net.core.somaxconn: \"1024\"}}"
  - |-
    apiVersion: v1alpha1
    kind: UserVolumeConfig
    name: data
    provisioning:
      diskSelector: {match: disk.transport == "sata"}
      minSize: 10GiB
controlPlane:
  patches:
    - "cluster: {apiServer: {extraArgs: {v: \"3\"}}}"
nodes:
`

// A cluster of talhelper, with settings for all machines, roles and single machines, is imported with all of them.
func TestAccImport_ofTalhelper(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccImport_ofTalosctl")
	t.Parallel()

	clitest.Each(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 3, 2)
		w := clitest.NewWorkspace(t, cli)
		helper := foreignTool{t, optional(t, "talhelper"), w.Dir}
		config, files := strings.Replace(talconfig, "ENDPOINT", s.URL, 1), map[string]string{}

		for _, m := range s.ControlPlane {
			config += fmt.Sprintf("  - {hostname: %s, ipAddress: %s, controlPlane: true, installDisk: /dev/sda, "+
				"nodeLabels: {rack: r-%s}}\n", m.Name(), m.Address(), m.Name())
		}

		for _, m := range s.Workers {
			config += fmt.Sprintf("  - {hostname: %s, ipAddress: %s, controlPlane: false, installDisk: /dev/sda, "+
				"nodeTaints: {only: \"gpu:NoSchedule\"}, kernelModules: [{name: br_netfilter}], ingressFirewall: "+
				"{defaultAction: accept, rules: [{name: %s-in, portSelector: {ports: [10250], protocol: tcp}, "+
				"ingress: [{subnet: 0.0.0.0/0}]}]}}\n", m.Name(), m.Address(), m.Name())
		}

		for _, m := range append(append([]*sim.Machine{}, s.ControlPlane...), s.Workers...) {
			files[m.Name()] = "clusterconfig/prod-" + m.Name() + ".yaml"
		}

		w.Write("talconfig.yaml", config)
		w.Write("secrets.yaml", helper.run("gensecret"))
		helper.run("genconfig", "--offline-mode", "--no-gitignore", "--secret-file", "secrets.yaml")

		ctl := foreignTool{t, clitest.Asset(t, "talosctl"), w.Dir}
		tftest.Must(t, os.Link(filepath.Join(w.Dir, "clusterconfig/talosconfig"), filepath.Join(w.Dir, "talosconfig")))
		configure(s, ctl, files)
		joined(t, s, w.Read("secrets.yaml"))

		w.Write("main.tf", fromProvider+importsCluster(t, s))
		w.Init()

		text := generated(t, w, 1)
		for _, want := range []string{"net.core.somaxconn", "UserVolumeConfig", `rack = "r-cp-2"`, "br_netfilter", "w-2-in",
			"home.local", `v: \"3\"`, "10.42.0.0/16"} {
			if strings.Count(text, want) != 1 {
				t.Errorf("the generated configuration has %s %d times:\n%s", want, strings.Count(text, want), text)
			}
		}
	})
}
