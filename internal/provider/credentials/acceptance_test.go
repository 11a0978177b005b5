package credentials_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
)

// use is a check that passes a text of the state to f.
func use(t *testing.T, f func(text string)) knownvalue.Check {
	t.Helper()

	return knownvalue.StringFunc(func(text string) error {
		f(text)

		return nil
	})
}

// The kubeconfig and the talosconfig work once the create has ended, and both match the request.
func TestAccCredentials_workAfterTheCreate(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 1)
		config := s.WholeCluster() + `
ephemeral "talosop_kubeconfig" "this" {
  cluster = talosop_control_plane.this.cluster
  user    = "ci"
  ttl     = "20m"
}

ephemeral "talosop_talosconfig" "this" {
  cluster = talosop_control_plane.this.cluster
  roles   = ["os:reader"]
  nodes   = [talosop_control_plane.this.cluster.talos_endpoints[0]]
}

provider "echo" {
  data = { kubeconfig = ephemeral.talosop_kubeconfig.this, talosconfig = ephemeral.talosop_talosconfig.this }
}

resource "echo" "this" {}
`
		data := tfjsonpath.New("data")

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.QuickProviders(),
			Steps: []resource.TestStep{
				{Config: s.WholeCluster()},
				{
					Config: config,
					ConfigStateChecks: []statecheck.StateCheck{
						statecheck.ExpectKnownValue("echo.this", data.AtMapKey("kubeconfig").AtMapKey("kubeconfig"),
							use(t, func(file string) { kubeconfigWorks(t, file, 2) })),
						statecheck.ExpectKnownValue("echo.this", data.AtMapKey("kubeconfig").AtMapKey("endpoint"),
							knownvalue.StringExact(s.URL)),
						statecheck.ExpectKnownValue("echo.this", data.AtMapKey("kubeconfig").AtMapKey("not_after"), knownvalue.NotNull()),
						statecheck.ExpectKnownValue("echo.this", data.AtMapKey("talosconfig").AtMapKey("talosconfig"),
							use(t, func(file string) { talosconfigWorks(t, file) })),
					},
				},
			},
		})
	})
}

func kubeconfigWorks(t *testing.T, file string, want int) {
	t.Helper()

	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(file))
	if err != nil {
		t.Fatal(err)
	}

	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}

	nodes, err := api.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}

	if len(nodes.Items) != want {
		t.Errorf("the kubeconfig shows %d nodes", len(nodes.Items))
	}
}

func talosconfigWorks(t *testing.T, file string) {
	t.Helper()

	config, err := clientconfig.FromString(file)
	if err != nil {
		t.Fatal(err)
	}

	api, err := client.New(t.Context(), client.WithConfig(config))
	if err != nil {
		t.Fatal(err)
	}

	defer api.Close()

	if _, err := api.Version(t.Context()); err != nil {
		t.Errorf("ask for the version: %v", err)
	}

	if _, err := api.Kubeconfig(t.Context()); err == nil {
		t.Error("a reader was given the kubeconfig")
	}
}
