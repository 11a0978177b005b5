package provider_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// guideExample is a complete example of a guide, and what its cluster has to show.
type guideExample struct {
	controlPlanes, workers int
	// secureBoot is true for machines that boot with it.
	secureBoot bool
	// charts are those of its addons, by name and version; their machines run a real API server.
	charts map[string]string
	// configured are texts in the configuration of its last machine.
	configured []string
	// created checks what the apply made; nil without a check.
	created func(t *testing.T, w *clitest.Workspace, cli clitest.CLI)
}

// guideExamples are applied on every change, and addonExamples before a release.
var guideExamples, addonExamples = map[string]guideExample{
	"oidc":        {controlPlanes: 3, configured: []string{"https://id.example.com/realms/prod", "oidc-administrators"}},
	"virtual-ip":  {controlPlanes: 3, configured: []string{"kind: Layer2VIPConfig"}},
	"node-labels": {controlPlanes: 3, workers: 2, configured: []string{"example.com/pool: gpu", "example.com/gpu: NoSchedule"}},
	"disks-and-security": {controlPlanes: 3, workers: 1, secureBoot: true,
		configured: []string{"kind: UserVolumeConfig", "name: CRI"}},
	"reset-options": {controlPlanes: 1, workers: 2},
	"addons/cilium": {controlPlanes: 3, workers: 2,
		charts: map[string]string{"cilium": "1.18.3", "cert-manager": "v1.19.1"}},
	"metrics": {controlPlanes: 3, workers: 2, created: hasMetrics},
}, map[string]guideExample{
	"addons/longhorn": {controlPlanes: 3, workers: 3, configured: []string{"name: longhorn"},
		charts: map[string]string{"longhorn": "1.11.1"}},
	"addons/metrics-server": {controlPlanes: 3, configured: []string{"rotate-server-certificates"},
		charts: map[string]string{"metrics-server": "3.13.0"}},
}

// Complete examples of guides are applied to simulated machines, with other addresses alone, and then have an empty
// plan. Their destroy leaves nothing.
func TestAccExamples_ofGuidesApplied(t *testing.T) {
	t.Parallel()
	applyGuideExamples(t, guideExamples)
}

// The same for the examples of more addons.
func TestAccExamples_ofMoreAddonsApplied(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccExamples_ofGuidesApplied")
	t.Parallel()
	applyGuideExamples(t, addonExamples)
}

func applyGuideExamples(t *testing.T, examples map[string]guideExample) {
	t.Helper()

	for name, example := range examples {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) { example.apply(t, cli, "guides/"+name) })
		})
	}
}

func (e guideExample) apply(t *testing.T, cli clitest.CLI, folder string) {
	t.Helper()

	s := e.machines(t)
	w := clitest.NewWorkspace(t, cli).Example("../../examples", folder)
	w.Setenv("TF_VAR_passphrase", "correct horse battery staple")
	w.Setenv("TF_VAR_collector", ".")
	w.Write("main.tf", e.adapted(t, s, w.Read("main.tf")))
	w.Write("protection_override.tf", unprotected(w.Read("main.tf")))

	for chart, version := range e.charts {
		w.Write(chart+".tgz", string(kubetest.Chart(chart, version, filesOf(chart, version))))
	}

	w.Init()
	w.MustRun("apply", "-auto-approve")
	sitetest.ExpectNoChanges(t, w, "after the create")

	all := s.Machines()
	config := string(all[len(all)-1].Config())

	for _, want := range e.configured {
		if !strings.Contains(config, want) {
			t.Errorf("%s does not have %q:\n%s", all[len(all)-1].Name(), want, config)
		}
	}

	if e.created != nil {
		e.created(t, w, cli)
	}

	w.MustRun("destroy", "-auto-approve")
	expectEmptyState(t, w)
	s.ExpectBlank(t)
}

// machines are those of the example. Each has the disks that the examples look for.
func (e guideExample) machines(t *testing.T) *sitetest.Site {
	t.Helper()

	opts := sim.Options{TalosVersion: machineconfig.CurrentTalos}
	if len(e.charts) > 0 {
		opts.Assets = filepath.Dir(clitest.Asset(t, "kube-apiserver"))
	}

	s := sitetest.NewWith(t, opts, 0, 0)
	disks := sim.MachineOptions{Disks: []machined.Disk{{Path: "/dev/sda", Size: 64 << 30},
		{Path: "/dev/nvme0n1", Size: 256 << 30, Transport: "nvme"}}}

	var err error
	if s.ControlPlane, err = s.AddMachines(t.Context(), "cp", e.controlPlanes, disks); err != nil {
		t.Fatal(err)
	}

	if s.Workers, err = s.AddMachines(t.Context(), "w", e.workers, disks); err != nil {
		t.Fatal(err)
	}

	for _, m := range s.Machines() {
		m.SetSecureBoot(e.secureBoot)
	}

	if len(e.charts) > 0 {
		kubetest.Attach(t, s.Simulator)
	}

	return s
}

// adapted is the example with the addresses of the site, and with charts in files for the Kubernetes that a real API
// server has.
func (e guideExample) adapted(t *testing.T, s *sitetest.Site, content string) string {
	t.Helper()

	host, _, _ := strings.Cut(strings.TrimPrefix(s.URL, "https://"), ":")
	addresses := map[string]string{"10.0.0.10": host}
	planes, workers := s.ControlPlane, s.Workers

	content = regexp.MustCompile(`10\.0\.0\.\d+`).ReplaceAllStringFunc(content, func(found string) string {
		if addresses[found] == "" {
			machines := &planes
			if !strings.HasPrefix(found, "10.0.0.1") {
				machines = &workers
			}

			addresses[found], *machines = (*machines)[0].Address().String(), (*machines)[1:]
		}

		return addresses[found]
	})

	if len(e.charts) > 0 {
		content = strings.ReplaceAll(content, machineconfig.CurrentKubernetes, "v1.36.3")
		content = regexp.MustCompile(`(?m)^  repository +=.*\n|^  version +=.*\n`).ReplaceAllString(content, "")
		content = regexp.MustCompile(`(?m)^(  chart +=) "(.*)"$`).ReplaceAllString(content, `$1 "./$2.tgz"`)
	}

	return content
}

// filesOf are those of a sample that stands in for a chart. The pods of kubetest.Simple tolerate no taints, and the
// nodes of the example with metrics-server have one.
func filesOf(chart, version string) map[string]string {
	sample := kubetest.Simple

	switch chart {
	case "cilium":
		sample = kubetest.CNI
	case "metrics-server":
		sample = kubetest.AllValues
	}

	files := sample.Files(version)
	files["Chart.yaml"] = strings.Replace(files["Chart.yaml"], "name: "+string(sample)+"\n", "name: "+chart+"\n", 1)

	return files
}

// unprotected allows the destroy of the resources of a configuration.
func unprotected(content string) string {
	var out strings.Builder

	for _, kind := range []string{"talosop_secrets", "talosop_cluster", "talosop_control_plane"} {
		if strings.Contains(content, fmt.Sprintf("resource %q %q", kind, "prod")) {
			fmt.Fprintf(&out, "resource %q %q {\n  deletion_protection = false\n}\n", kind, "prod")
		}
	}

	return out.String()
}
