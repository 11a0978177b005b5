package machines_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgo "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// listNodes names the kubeconfig file for a process of this test binary that only lists the nodes of that cluster,
// as a program does with the credentials of an ephemeral resource.
const listNodes = "TALOSOP_TEST_LIST_NODES"

// beProgram lists the nodes into a file next to the kubeconfig in the environment.
func beProgram(to string) error {
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(os.Getenv("GIVEN_KUBECONFIG")))
	if err != nil {
		return err
	}

	config.Timeout = time.Minute

	api, err := clientgo.NewForConfig(config)
	if err != nil {
		return err
	}

	list, err := api.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return err
	}

	var names []string
	for _, node := range list.Items {
		names = append(names, node.Name)
	}

	return os.WriteFile(to, []byte(strings.Join(names, "\n")), 0o600)
}

// stackHCL is a control plane and workers in pods of the host, without protection.
func (s *hostSite) stackHCL(workers int) string {
	return fmt.Sprintf(`
provider "talosop" {
  host = { kubeconfig_path = %q }
}

resource "talosop_control_plane" "this" {
  mode                = "container"
  name                = "dev"
  secrets             = talosop_secrets.this.bundle
  talos_version       = "v1.13.0"
  kubernetes_version  = "v1.36.2"
  replicas            = 1
  deletion_protection = false
  host                = { namespace = %q }

  lifecycle {
    postcondition {
      condition     = self.phase == "Ready"
      error_message = "The control plane is ${self.phase}."
    }
  }
}

resource "talosop_worker" "this" {
  cluster       = talosop_control_plane.this.cluster
  name          = "worker"
  talos_version = "v1.13.0"
  replicas      = %d
}
`, s.Kubeconfig(), s.namespace, workers)
}

// A stack of modules on pods: both CLIs create it, have nothing to change afterwards, run a program with a
// kubeconfig that works from here, keep secrets out of logs, and leave nothing behind.
func TestAccContainer_stackOfModules(t *testing.T) {
	t.Parallel()
	testenv.BeforeRelease(t, "TestContainerCluster_lifecycle", "TestAccContainer_addonAndBackup")

	self, err := os.Executable()
	tftest.Must(t, err)

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := newHostSite(t)
		w := clitest.NewWorkspace(t, cli).KeepTrace()
		nodes := filepath.Join(w.Dir, "nodes")

		w.Write("main.tf", sitetest.ProviderHCL+sitetest.SecretsHCL+s.stackHCL(1)+fmt.Sprintf(`
ephemeral "talosop_kubeconfig" "this" {
  cluster = talosop_control_plane.this.cluster
}

resource "terraform_data" "program" {
  depends_on = [talosop_worker.this]

  provisioner "local-exec" {
    command     = %q
    environment = { %s = %q, GIVEN_KUBECONFIG = ephemeral.talosop_kubeconfig.this.kubeconfig }
  }
}
`, self, listNodes, nodes))
		w.Init()
		output := w.MustRun("apply", "-auto-approve").Output()

		if got, err := os.ReadFile(nodes); err != nil || string(got) != "dev-cp-0\ndev-worker-0" {
			t.Errorf("a program got the nodes %q: %v", got, err)
		}

		if empty, output := w.PlanIsEmpty(); !empty {
			t.Errorf("the second plan is not empty:\n%s", output)
		}

		kubeconfig, err := os.ReadFile(s.Kubeconfig())
		tftest.Must(t, err)

		if leak := sitetest.Leaked(string(kubeconfig), output+w.Read("terraform.tfstate")+w.Trace()); leak != "" {
			t.Errorf("credentials of the host cluster are in output, state or log: %s", leak)
		}

		w.MustRun("destroy", "-auto-approve")
		s.expectNothing(t, "dev")
	})
}
