package clusterimport_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// hetznerToken is the token of the modules, and every other secret of theirs.
const hetznerToken = "TOKEN-OF-HETZNER"

// hetznerModule is a Terraform module for Hetzner Cloud. Its own files make the machine configurations. testdata has
// what the files left out are about: servers, networks and load balancers.
type hetznerModule struct {
	// name is its folder among the test programs, and that of its stand-in in testdata.
	name  string
	files []string
	// talos is the version of its machines. With extraKernelArgs, Talos 1.12 and newer refuse what the contract generates.
	talos string
	// replaced are references to resources of Hetzner Cloud.
	replaced []string
	// arguments are those of the module block.
	arguments string
	// secrets is the patch with what the import omits, because it has the token or a key.
	secrets string
	// wanted are texts that the generated configuration has once.
	wanted []string
}

var hetznerModules = []hetznerModule{
	{
		name:  "hcloud-talos",
		talos: "v1.11.3",
		files: []string{"variables.tf", "talos.tf", "talos_patch_control_plane.tf", "talos_patch_worker.tf"},
		replaced: []string{
			"data.hcloud_locations.all.locations[*].name", `["fsn1"]`,
			"data.hcloud_floating_ip.control_plane_ipv4[0].ip_address", `"192.0.2.1"`,
			"hcloud_server.control_planes", "talos_machine_configuration_apply.this",
		},
		arguments: `
  location_name            = "fsn1"
  talos_version            = "v1.11.3"
  kubernetes_version       = "1.34.1"
  cluster_api_host_private = var.endpoint
  node_ipv4_cidr           = "127.0.0.0/8"
  tailscale                = { enabled = true, auth_key = "` + hetznerToken + `" }
  control_plane_nodes      = [for i, name in keys(var.control_planes) : { id = i + 1, type = "cx23" }]
  worker_nodes = [for i, name in keys(var.workers) : {
    id = i + 1, type = "cx33", labels = { disk = "ssd" }, taints = [{ key = "only", value = "gpu", effect = "NoSchedule" }]
  }]
`,
		secrets: `machine:
  network:
    interfaces:
      - {interface: eth0, dhcp: true}
      - {interface: eth1, dhcp: true, vip: {ip: ENDPOINT, hcloud: {apiToken: ` + hetznerToken + `}}}
---
apiVersion: v1alpha1
kind: ExtensionServiceConfig
name: tailscale
environment: [TS_AUTHKEY=` + hetznerToken + `]
`,
		wanted: []string{"netdev_max_backlog", "ntp3.hetzner.net", "talos-cloud-controller-manager"},
	},
	{
		name:  "hcloud-k8s",
		talos: "v1.13.0",
		files: []string{"variables.tf", "talos_config_base.tf", "talos_config_control_plane.tf",
			"talos_config_worker.tf"},
		replaced: []string{
			"hcloud_server.control_plane", "local.control_plane_servers",
			"hcloud_server.worker", "local.worker_servers",
			"hcloud_network_subnet.control_plane.ip_range", `"127.0.0.0/8"`,
		},
		arguments: `
  talos_version           = "v1.13.0"
  kubernetes_version      = "v1.36.2"
  kube_api_hostname       = "kube.example.com"
  control_plane_nodepools = [{ name = "control-plane", type = "cx23", location = "fsn1", count = 3 }]
  worker_nodepools        = [{ name = "worker", type = "cx33", location = "fsn1", count = 2 }]

  control_plane_private_vip_ipv4_enabled = true
`,
		secrets: `apiVersion: v1alpha1
kind: HCloudVIPConfig
name: ENDPOINT
link: eth1
apiToken: ` + hetznerToken + `
`,
		wanted: []string{"netdev_max_backlog", "ntp3.hetzner.net", "shutdownGracePeriodCriticalPods"},
	},
}

// site is a cluster of the official provider with the configurations of a module.
func (m hetznerModule) site(t *testing.T, cli clitest.CLI) (*sitetest.Site, *clitest.Workspace) {
	t.Helper()

	source := optional(t, m.name)
	s := sitetest.NewWith(t, sim.Options{TalosVersion: m.talos}, 3, 2)
	w := clitest.NewWorkspace(t, cli)
	w.AddProvider("siderolabs/talos", "0.12.0", optional(t, "terraform-provider-talos"))
	tftest.Must(t, os.Mkdir(filepath.Join(w.Dir, "module"), 0o700))

	for _, name := range m.files {
		text, err := os.ReadFile(filepath.Join(source, name))
		tftest.Must(t, err)
		w.Write("module/"+name, strings.NewReplacer(m.replaced...).Replace(string(text)))
	}

	rest, err := os.ReadFile(filepath.Join("testdata", m.name+".tf"))
	tftest.Must(t, err)
	w.Write("module/rest.tf", string(rest))

	endpoint, err := url.Parse(s.URL)
	tftest.Must(t, err)
	w.Write("site.auto.tfvars.json", tftest.JSON(t, map[string]any{"endpoint": endpoint.Hostname(),
		"control_planes": sitetest.Addresses(s.ControlPlane), "workers": sitetest.Addresses(s.Workers)}))
	w.Write("versions.tf", officialProvider)
	w.Write("main.tf", `module "talos" {
  source = "./module"

  servers      = { endpoint = var.endpoint, control_planes = var.control_planes, workers = var.workers }
  cluster_name = "prod"
  hcloud_token = "`+hetznerToken+`"
`+m.arguments+"}\n")
	w.Init()
	w.MustRun("apply", "-auto-approve")

	return s, w
}

// replaceModule replaces the configuration of the module with the example of the guide.
func replaceModule(t *testing.T, s *sitetest.Site, w *clitest.Workspace) {
	t.Helper()

	tftest.Must(t, os.RemoveAll(filepath.Join(w.Dir, "module")))
	migrate(t, s, w)

	text := strings.ReplaceAll(w.Read("main.tf"), "from = talos_", "from = module.talos.talos_")
	for _, more := range []string{"machine_configuration_apply.control_plane", "machine_configuration_apply.worker",
		"cluster_kubeconfig.this"} {
		text += fmt.Sprintf("\nremoved {\n  from = module.talos.talos_%s\n\n  lifecycle {\n    destroy = false\n  }\n}\n", more)
	}

	w.Write("main.tf", text)
}

// A cluster of each module for Hetzner Cloud: the parts with its token are reported, and set in the provider block;
// everything else is in the generated configuration.
func TestAccImport_ofAModuleForHetzner(t *testing.T) {
	testenv.BeforeRelease(t, "TestImport_secretsInConfigurations", "TestAccImport_ofTalosctl")
	t.Parallel()

	for _, m := range hetznerModules {
		t.Run(m.name, func(t *testing.T) {
			clitest.Each(t, func(t *testing.T, cli clitest.CLI) {
				s, w := m.site(t, cli)
				replaceModule(t, s, w)
				m.migrates(t, s, w)
			})
		})
	}
}

func (m hetznerModule) migrates(t *testing.T, s *sitetest.Site, w *clitest.Workspace) {
	t.Helper()

	first := w.Run("plan", "-generate-config-out=first.tf")
	if !strings.Contains(first.Unwrapped(), "cp-3: v1alpha1 cluster.inlineManifests") {
		t.Errorf("the first plan does not name the manifests:\n%s", first.Output())
	}

	if strings.Contains(first.Output()+w.Read("first.tf"), hetznerToken) {
		t.Error("the first plan shows the token")
	}

	tftest.Must(t, os.Remove(filepath.Join(w.Dir, "first.tf")))

	endpoint, err := url.Parse(s.URL)
	tftest.Must(t, err)

	patch := strings.ReplaceAll(m.secrets, "ENDPOINT", endpoint.Hostname())
	w.Write("main_override.tf", fmt.Sprintf(`
provider "talosop" {
  alias = "prod"
  clusters = { prod = {
    secrets  = talosop_secrets.this.bundle
    machines = { for name in keys(var.control_planes) : name => { config_patches = [%q, %q] } }
  } }
}
`, manifestsOf(t, s.ControlPlane[0]), patch))

	text := generated(t, w, 1)
	for _, want := range m.wanted {
		if strings.Count(text, want) != 1 {
			t.Errorf("the generated configuration has %s %d times:\n%s", want, strings.Count(text, want), text)
		}
	}

	if strings.Contains(text, hetznerToken) {
		t.Errorf("the generated configuration has the token:\n%s", text)
	}

	untouched(t, s)
}

// manifestsOf is a patch with the inline manifests of a machine, as a user copies them.
func manifestsOf(t *testing.T, m *sim.Machine) string {
	t.Helper()

	var main struct {
		Cluster struct {
			Manifests []any `yaml:"inlineManifests"`
		}
	}

	tftest.Must(t, yaml.Unmarshal(m.Config(), &main))

	return tftest.JSON(t, map[string]any{"cluster": map[string]any{"inlineManifests": main.Cluster.Manifests}})
}
