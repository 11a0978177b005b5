package clusterimport_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterimport"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// apiCluster is a Cluster whose infrastructure waits for configurations.
const apiCluster = `apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: prod, namespace: default}
spec:
  clusterNetwork: {pods: {cidrBlocks: [10.42.0.0/16]}, services: {cidrBlocks: [10.43.0.0/16]}}
  controlPlaneEndpoint: {host: %s, port: %s}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: MetalCluster, name: prod}
`

// apiMachine is a Machine. Its configuration is the object of the same name.
const apiMachine = `---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata: {name: %[1]s, namespace: default, labels: {cluster.x-k8s.io/cluster-name: prod%[2]s}}
spec:
  clusterName: prod
  version: v1.36.2
  bootstrap: {configRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: TalosConfig, name: %[1]s}}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: MetalMachine, name: %[1]s}
`

const apiTalosConfig = `---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: TalosConfig
metadata:
  name: %[1]s
  namespace: default
  labels: {cluster.x-k8s.io/cluster-name: prod}
  ownerReferences: [{apiVersion: cluster.x-k8s.io/v1beta2, kind: Machine, name: %[1]s, uid: %[2]s, controller: true}]
spec:
  generateType: %[3]s
  talosVersion: v1.13.0
  hostname: {source: MachineName}
  strategicPatches:
    - "machine: {install: {disk: /dev/sda}, sysctls: {net.core.somaxconn: \"1024\"}}"
`

// runClusterAPI runs the bootstrap provider for Talos against a Kubernetes cluster until the test ends.
func runClusterAPI(t *testing.T, kube *kubetest.Cluster) {
	t.Helper()

	// No API server calls its webhooks, but it does not start without a certificate for them.
	bundle, err := pki.Parse([]byte(tftest.Bundle()))
	tftest.Must(t, err)

	own, err := bundle.TalosClient([]string{"os:reader"}, time.Hour)
	tftest.Must(t, err)

	certificates := t.TempDir()
	tftest.Must(t, os.WriteFile(filepath.Join(certificates, "tls.crt"), own.Certificate, 0o600))
	tftest.Must(t, os.WriteFile(filepath.Join(certificates, "tls.key"), own.Key, 0o600))

	free, err := net.Listen("tcp", "127.0.0.1:0")
	tftest.Must(t, err)

	_, port, err := net.SplitHostPort(free.Addr().String())
	tftest.Must(t, err)
	tftest.Must(t, free.Close())

	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, optional(t, "cluster-api-talos"), "--diagnostics-address=0", "--health-addr=0",
		"--webhook-cert-dir="+certificates, "--webhook-port="+port)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kube.Kubeconfig(), "HOME="+t.TempDir())

	var output strings.Builder

	cmd.Stderr, cmd.Stdout = &output, &output
	tftest.Must(t, cmd.Start())

	t.Cleanup(func() {
		cancel()

		if err := cmd.Wait(); err != nil && t.Failed() {
			t.Logf("the bootstrap provider: %v\n%s", err, output.String())
		}
	})
}

// apiMachines creates the objects of a cluster, and returns the configurations of its machines by name. Cluster API
// passes them to an infrastructure provider.
func apiMachines(t *testing.T, s *sitetest.Site, w *clitest.Workspace, kubectl func(...string) string) map[string]string {
	t.Helper()

	endpoint, err := url.Parse(s.URL)
	tftest.Must(t, err)

	machines := fmt.Sprintf(apiCluster, endpoint.Hostname(), endpoint.Port())

	for _, m := range s.Machines() {
		label := ""
		if slices.Contains(s.ControlPlane, m) {
			label = `, cluster.x-k8s.io/control-plane: ""`
		}

		machines += fmt.Sprintf(apiMachine, m.Name(), label)
	}

	w.Write("machines.yaml", machines)
	kubectl("apply", "-f", "machines.yaml")
	kubectl("patch", "cluster", "prod", "--subresource=status", "--type=merge", "-p",
		`{"status": {"initialization": {"infrastructureProvisioned": true}}}`)

	configs := ""

	for _, m := range s.Machines() {
		role := "controlplane"
		if slices.Contains(s.Workers, m) {
			role = "worker"
		}

		configs += fmt.Sprintf(apiTalosConfig, m.Name(),
			kubectl("get", "machine", m.Name(), "-o", "jsonpath={.metadata.uid}"), role)
	}

	w.Write("configs.yaml", configs)
	kubectl("apply", "-f", "configs.yaml")
	kubectl("wait", "talosconfig", "--all", "--for=jsonpath={.status.initialization.dataSecretCreated}=true", "--timeout=50s")

	files := map[string]string{}

	for _, m := range s.Machines() {
		data, err := base64.StdEncoding.DecodeString(kubectl("get", "secret", m.Name()+"-bootstrap-data", "-o",
			"jsonpath={.data.value}"))
		tftest.Must(t, err)

		files[m.Name()] = m.Name() + ".yaml"
		w.Write(files[m.Name()], string(data))
	}

	return files
}

// A cluster of Cluster API is imported with the Secret in which the bootstrap provider for Talos keeps its secrets.
func TestAccImport_ofClusterAPI(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccImport_ofTalosctl", "TestReadBundleFile_ofTalosOperator")

	cli := clitest.Any(t)
	optional(t, "cluster-api-talos")

	kube := kubetest.NewCluster(t)
	s := sitetest.New(t, 3, 2)
	w := clitest.NewWorkspace(t, cli)
	tool := foreignTool{t, kubectlOf(t), w.Dir}
	kubectl := func(args ...string) string {
		t.Helper()

		return tool.run(append([]string{"--kubeconfig", kube.Kubeconfig()}, args...)...)
	}

	kubectl("apply", "--server-side", "-f", optional(t, "cluster-api-talos-crds.yaml"))
	kubectl("wait", "--for=condition=established", "crd", "--all", "--timeout=50s")
	runClusterAPI(t, kube)

	files := apiMachines(t, s, w, kubectl)
	kubectl("patch", "cluster", "prod", "--type", "merge", "-p", `{"spec": {"paused": true}}`)
	w.Write("secrets.yaml", kubectl("get", "secret", "prod-talos", "-o", "yaml"))

	bundle, err := clusterimport.ReadBundleFile(filepath.Join(w.Dir, "secrets.yaml"))
	tftest.Must(t, err)

	text, err := bundle.YAML()
	tftest.Must(t, err)
	writeTalosconfig(t, w, string(text), s)
	configure(s, foreignTool{t, clitest.Asset(t, "talosctl"), w.Dir}, files)
	joined(t, s, string(text))
	s.ForgetCalls()

	w.Write("main.tf", strings.Replace(fromProvider, `secrets = file("${path.module}/secrets.yaml")`,
		`secrets = base64decode(yamldecode(file("${path.module}/secrets.yaml")).data.bundle)`, 1)+importsCluster(t, s))
	w.Init()

	made := generated(t, w, 1)
	for _, want := range []string{"net.core.somaxconn", "10.42.0.0/16"} {
		if strings.Count(made, want) != 1 {
			t.Errorf("the generated configuration has %s %d times:\n%s", want, strings.Count(made, want), made)
		}
	}

	untouched(t, s)
}
