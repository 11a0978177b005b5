package clusterimport_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
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
  metalSpec:
%s%s`, s.URL, machineSpec, list(s.ControlPlane), machineSpec, list(s.Workers))
}

// A cluster of talos-operator is imported with the secrets of its state Secret, while the operator runs. The deletion of
// its objects leaves the machines alone, and the operator takes them back when the objects return.
func TestAccImport_ofTalosOperator(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccImport_ofTalosctl", "TestReadBundleFile_ofTalosOperator")

	cli := clitest.Any(t)
	optional(t, "talos-operator")

	s := sitetest.New(t, 3, 2)
	w := clitest.NewWorkspace(t, cli)
	m := manages(t, w)

	m.defines(optional(t, "talos-operator-crds.yaml"))
	m.runs("talos-operator", "--metrics-bind-address=0", "--health-probe-bind-address=0")

	w.Write("cluster.yaml", operatorObjects(s))
	m.run("apply", "-f", "cluster.yaml")
	m.awaitOperator()

	m.run("annotate", operatorKinds, "--all", "talos.alperen.cloud/reconcile-mode=disable")
	w.Write("secrets.yaml", m.run("get", "secret", "prod-state", "-o", "yaml"))
	importsSecret(t, s, w, "secretBundle")

	for _, machine := range strings.Fields(m.run("get", "talosmachine", "-o", "name")) {
		m.run("patch", machine, "--type=merge", "-p", `{"spec": {"deletionPolicy": "preserve"}}`)
	}

	m.run("delete", "talosworker,taloscontrolplane", "--all")

	if left := m.run("get", operatorKinds, "-o", "name"); left != "" {
		t.Errorf("objects are left:\n%s", left)
	}

	untouched(t, s)

	m.run("apply", "-f", "cluster.yaml")
	m.awaitOperator()

	if empty, output := w.PlanIsEmpty(); !empty {
		t.Errorf("the operator changed machines that it took back:\n%s", output)
	}

	s.ExpectUntouched(t)
}

const operatorKinds = "taloscontrolplane,talosworker,talosmachine"

// awaitOperator waits until the operator has made its cluster.
func (m management) awaitOperator() {
	m.t.Helper()

	m.await(5, "Available", "talosmachine", ".status.state")
	m.await(2, "Ready", "taloscontrolplane,talosworker", ".status.state")
}
