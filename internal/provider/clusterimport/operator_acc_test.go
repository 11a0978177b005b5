package clusterimport_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterimport"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// operatorObjects are the objects of a cluster in metal mode for talos-operator.
func operatorObjects(s *sitetest.Site) string {
	list := func(machines []*sim.Machine) string {
		var text strings.Builder
		for _, m := range machines {
			fmt.Fprintf(&text, "      - {address: %q}\n", m.Address())
		}

		return text.String()
	}

	const machineSpec = `    machineSpec:
      installDisk: /dev/sda
      image: ghcr.io/siderolabs/installer:v1.13.0
      configPatches: [{machine: {sysctls: {net.core.somaxconn: "1024"}}}]
    machines:
`

	return fmt.Sprintf(`apiVersion: talos.alperen.cloud/v1alpha1
kind: TalosControlPlane
metadata: {name: prod, namespace: default}
spec:
  version: v1.13.0
  mode: metal
  kubeVersion: v1.36.2
  endpoint: %s
  deletionPolicy: preserve
  metalSpec:
%s%s---
apiVersion: talos.alperen.cloud/v1alpha1
kind: TalosWorker
metadata: {name: batch, namespace: default}
spec:
  version: v1.13.0
  mode: metal
  kubeVersion: v1.36.2
  controlPlaneRef: {name: prod}
  deletionPolicy: preserve
  metalSpec:
%s%s`, s.URL, machineSpec, list(s.ControlPlane), machineSpec, list(s.Workers))
}

// kubectlOf is the path of kubectl: the one on the PATH, or that of the testbed.
func kubectlOf(t *testing.T) string {
	t.Helper()

	if path, err := exec.LookPath("kubectl"); err == nil {
		return path
	}

	return clitest.Asset(t, "kubectl")
}

// runOperator runs talos-operator against a Kubernetes cluster until the test ends.
func runOperator(t *testing.T, kube *kubetest.Cluster) {
	t.Helper()

	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, optional(t, "talos-operator"), "--metrics-bind-address=0",
		"--health-probe-bind-address=0")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kube.Kubeconfig(), "HOME="+t.TempDir())

	var output strings.Builder

	cmd.Stderr, cmd.Stdout = &output, &output
	tftest.Must(t, cmd.Start())

	t.Cleanup(func() {
		cancel()

		if err := cmd.Wait(); err != nil && t.Failed() {
			t.Logf("the operator: %v\n%s", err, output.String())
		}
	})
}

// A cluster of talos-operator is imported with the secrets of its state Secret, while the operator runs.
func TestAccImport_ofTalosOperator(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccImport_ofTalosctl", "TestReadBundleFile_ofTalosOperator")

	cli := clitest.Any(t)
	optional(t, "talos-operator")

	kube := kubetest.NewCluster(t)
	s := sitetest.New(t, 3, 2)
	w := clitest.NewWorkspace(t, cli)
	kubectl := foreignTool{t, kubectlOf(t), w.Dir}
	run := func(args ...string) string {
		t.Helper()

		return kubectl.run(append([]string{"--kubeconfig", kube.Kubeconfig()}, args...)...)
	}

	run("apply", "--server-side", "-f", optional(t, "talos-operator-crds.yaml"))
	run("wait", "--for=condition=established", "crd", "--all", "--timeout=60s")
	runOperator(t, kube)

	w.Write("cluster.yaml", operatorObjects(s))
	run("apply", "-f", "cluster.yaml")

	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()

	tftest.Must(t, wait.Until(ctx, time.Second, func(ctx context.Context) error {
		states, err := kubectl.try(ctx, "--kubeconfig", kube.Kubeconfig(), "get", "taloscontrolplane,talosmachine", "-o",
			"jsonpath={range .items[*]}{.kind}/{.metadata.name}={.status.state} {end}")
		if err == nil && strings.Count(states, "=Available") < 5 {
			err = errors.New(states)
		}

		return err
	}))

	w.Write("secrets.yaml", run("get", "secret", "prod-state", "-o", "yaml"))

	bundle, err := clusterimport.ReadBundleFile(filepath.Join(w.Dir, "secrets.yaml"))
	tftest.Must(t, err)

	text, err := bundle.YAML()
	tftest.Must(t, err)
	joined(t, s, string(text))
	s.ForgetCalls()

	w.Write("main.tf", strings.Replace(fromProvider, `secrets = file("${path.module}/secrets.yaml")`,
		`secrets = base64decode(yamldecode(file("${path.module}/secrets.yaml")).data.secretBundle)`, 1)+importsCluster(t, s))
	w.Init()

	if made := generated(t, w, 1); strings.Count(made, "net.core.somaxconn") != 1 {
		t.Errorf("the generated configuration is:\n%s", made)
	}

	untouched(t, s)
}
