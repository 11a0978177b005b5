package machines_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"golang.org/x/tools/txtar"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// Patches of the corpus that a machine can have together.
var (
	patchesOfAll = []string{"network/hosts", "network/kubespan", "network/search-domains", "network/time",
		"network/host-dns", "machine/sysctls", "machine/modules", "machine/environment", "machine/labels",
		"machine/annotations", "machine/kubelet-arguments", "machine/kubelet-configuration", "machine/kube-prism-port",
		"machine/static-pod", "machine/names", "machine/runtime-limits", "machine/files"}
	patchesOfPlanes = []string{"machine/talos-access", "cluster/proxy-mode", "cluster/names-of-the-api",
		"cluster/api-arguments", "cluster/pod-security", "cluster/event-rates", "cluster/audit", "cluster/controllers",
		"cluster/scheduler", "cluster/inline-manifests", "cluster/etcd"}
)

// corpusPatches are patches of the corpus of conversions.
func corpusPatches(t *testing.T, names ...string) (texts []string) {
	t.Helper()

	for _, name := range names {
		archive, patch, _ := strings.Cut(name, "/")

		content, err := os.ReadFile(filepath.Join("..", "..", "machineconfig", "testdata", "convert", archive+".txtar"))
		if err != nil {
			t.Fatal(err)
		}

		files := txtar.Parse(content).Files

		i := slices.IndexFunc(files, func(f txtar.File) bool { return f.Name == patch })
		if i < 0 {
			t.Fatalf("the corpus has no patch %s", name)
		}

		texts = append(texts, string(files[i].Data))
	}

	return texts
}

// patchedCluster is a configuration with the patches of each role in the form of a contract.
func patchedCluster(t *testing.T, s *sitetest.Site, talos, contract string) tftest.Config {
	t.Helper()

	config := sitetest.OnMachines(s, s.URL, s.ControlPlane, s.Workers)
	config["talos_version"], config["version_contract"] = talos, contract

	for role, at := range map[machineconfig.Role][]string{
		machineconfig.ControlPlane: {"control_plane"}, machineconfig.Worker: {"workers", "all"},
	} {
		patches := corpusPatches(t, patchesOfAll...)
		if role == machineconfig.ControlPlane {
			patches = append(patches, corpusPatches(t, patchesOfPlanes...)...)
		}

		converted, err := machineconfig.ConvertPatches(patches, role, "v1.13", contract)
		if err != nil {
			t.Fatal(err)
		}

		if contract == "v1.13" {
			converted.Patches = patches
		}

		var values []any
		for _, text := range converted.Patches {
			values = append(values, text)
		}

		config = tftest.With(config, values, append(at, "config_patches")...)
	}

	return config
}

// A cluster with patches moves to contract v1.14 and back as the guide says: only what the contract adds reboots
// machines, and each plan afterwards is empty.
func TestMove_toContract114AndBack(t *testing.T) {
	t.Parallel()

	s := sitetest.NewWith(t, sim.Options{}, 1, 1)
	d := tftest.DriveWith(t, tftest.QuickProviderData(), "talosop_cluster")

	for _, step := range []struct{ when, talos, contract string }{
		{"after the create", "v1.13.0", "v1.13"},
		{"after the upgrade", sitetest.Talos114, "v1.13"},
		{"after the move", sitetest.Talos114, "v1.14"},
		{"after going back", sitetest.Talos114, "v1.13"},
	} {
		config := patchedCluster(t, s, step.talos, step.contract)

		if strings.Contains(step.when, "move") || strings.Contains(step.when, "back") {
			onlyTheContractReboots(t, d.Plan(t, config).Must(t).Value)
		}

		d.Ready(t, config)
		d.ExpectEmpty(t, step.when, config)
	}

	d.Apply(t, nil).Must(t)
}

func onlyTheContractReboots(t *testing.T, plan tftypes.Value) {
	t.Helper()

	rebooted := tftest.FieldsOf(t, tftest.AttributeOf(t, plan, "impact"))["rebooted"]

	var names []tftypes.Value
	if err := rebooted.As(&names); err != nil || len(names) != 2 {
		t.Errorf("the plan reboots %v (%v), want both machines", names, err)
	}

	for _, operation := range tftest.Plain(t, tftest.AttributeOf(t, plan, "operations")).([]any) {
		text, _ := operation.(string)
		if strings.Contains(text, "reboot") &&
			!strings.Contains(text, "reboot for SecurityProfileConfig, VolumeConfig/EPHEMERAL)") {
			t.Errorf("the plan reboots for more than the contract adds: %s", text)
		}
	}
}

// A cluster is created with converted patches, and its plan is empty.
func TestMove_createWithConvertedPatches(t *testing.T) {
	t.Parallel()

	s := sitetest.NewWith(t, sim.Options{TalosVersion: sitetest.Talos114}, 1, 1)
	d := tftest.DriveWith(t, tftest.QuickProviderData(), "talosop_cluster")
	config := patchedCluster(t, s, sitetest.Talos114, "v1.14")

	d.Ready(t, config)
	d.ExpectEmpty(t, "after the create", config)
	d.Apply(t, nil).Must(t)
}

// A plan that refuses a patch of all machines shows what it is for each role.
func TestMove_refusedPatchIsShownAsDocuments(t *testing.T) {
	t.Parallel()

	s := sitetest.NewWith(t, sim.Options{TalosVersion: sitetest.Talos114}, 1, 1)
	config := sitetest.OnMachines(s, s.URL, s.ControlPlane, s.Workers)
	config["talos_version"] = sitetest.Talos114
	config["cluster_config_patches"] = []any{"machine: {kubelet: {clusterDNS: [10.96.0.10]}}\ncluster: {proxy: {mode: ipvs}}\n"}

	plan := tftest.DriveWith(t, tftest.QuickProviderData(), "talosop_cluster").Plan(t, config)
	plan.Tells(t, "[invalid_setting]", "  kind: KubeletConfig\n  clusterDNS: [10.96.0.10]\n  ---\n", "  kind: KubeProxyConfig\n  mode: ipvs",
		", for m-1", ", for all/m-1")

	if len(plan.Diagnostics) != 2 {
		t.Errorf("it is not one error for each role: %s", tftest.Show(plan.Diagnostics))
	}
}
