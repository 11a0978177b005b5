package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
)

// Patches in the form of contract v1.13: of all machines, and of control planes.
const (
	formerOfAll = `
# Where the machines are.
machine:
  nodeLabels:
    example.com/rack: "4" # the rack at the door
  kubelet:
    extraArgs: { event-qps: "7" }
`
	formerOfControlPlanes = `
machine:
  certSANs: [talos.example.com]
cluster:
  apiServer:
    certSANs: [api.example.com]
    extraArgs: { event-ttl: 90m }
  controllerManager:
    extraArgs: { node-monitor-period: 6s }
  inlineManifests:
    - name: e2e-inline
      contents: |
        apiVersion: v1
        kind: ConfigMap
        metadata: { name: e2e-inline, namespace: kube-system }
`
)

// ofContract sets the contract, and takes the patches of every role from files.
const ofContract = `
resource "talosop_cluster" "this" {
  version_contract       = %q
  cluster_config_patches = local.patches["all"]

  control_plane = { replicas = var.control_planes, config_patches = local.patches["controlplane"] }
  workers       = { worker = { replicas = var.workers, config_patches = local.patches["worker"] } }
}
`

// patchesOfRoles are the files, and what becomes of them on contract v1.14.
const patchesOfRoles = `
locals {
  patches = {
    for role in ["all", "controlplane", "worker"] :
    role => [for file in sort(fileset(path.module, "${role}-*.patch")) : file("${path.module}/${file}")]
  }
}

output "converted" {
  value = {
    for role in ["controlplane", "worker"] :
    role => provider::talosop::convert_patches(
      concat(local.patches["all"], local.patches[role]), role, "v1.13", "v1.14"
    )
  }
}
`

// contract: a cluster of three control planes and a worker goes from Talos 1.13 to 1.14, and then to contract v1.14
// with converted patches, as the guide says, and back. A client writes all the time; every write it got an answer for
// is there. A machine restarts only when the plan says so.
func (h hosted) contract(t *testing.T, cli clitest.CLI) {
	if h.talosNext == "" {
		t.Skip("nothing says which tag of the image is Talos 1.14 (TALOSOP_E2E_HOST_TALOS_NEXT)")
	}

	former := map[string][]string{
		"all": append(slices.Clone(h.patches), formerOfAll), "controlplane": {formerOfControlPlanes},
	}
	h.patches, h.controlPlanes, h.workers = nil, 3, 1

	w := h.workspace(t, cli)
	w.Write("patches.tf", patchesOfRoles)
	h.writesContract(w, "v1.13", former)
	h.applied(t, w, "create")

	writer := startWriter(t, h.connect(t), bundle(t, w))

	h.talosVersion = h.talosNext
	h.applied(t, w, "the upgrade to Talos "+h.talosNext)

	h.writesContract(w, "v1.14", former)

	if refused := w.Run("plan"); refused.Exit == 0 || !strings.Contains(refused.Output(), "kind: KubeletConfig") {
		t.Errorf("the plan of contract v1.14 with the patches of v1.13 ended with %d, and does not show documents:\n%s",
			refused.Exit, refused.Output())
	}

	h.writesContract(w, "v1.13", former)

	converted := convertedPatches(t, w)

	h.writesContract(w, "v1.14", converted)
	h.moves(t, w, "the move to contract v1.14")

	h.writesContract(w, "v1.13", former)
	h.moves(t, w, "the way back to contract v1.13")

	writer.stop(t)
	t.Logf("%d writes, of which the slowest took %s", writer.written, writer.slowest.Round(time.Millisecond))
	h.destroy(t, w)
}

// writesContract writes the patches by role into files. Those of a role that has none any more are empty.
func (h hosted) writesContract(w *clitest.Workspace, contract string, patches map[string][]string) {
	w.Write("contract_override.tf", fmt.Sprintf(ofContract, contract))

	for _, role := range []string{"all", "controlplane", "worker"} {
		const most = 4

		writePatches(w, role, append(slices.Clone(patches[role]), make([]string, most-len(patches[role]))...))
	}
}

// convertedPatches are those of the files by role, as convert_patches writes them.
func convertedPatches(t *testing.T, w *clitest.Workspace) map[string][]string {
	t.Helper()

	var output map[string]struct {
		Patches []string
		Kept    []struct{ Path, Reason string }
	}

	if err := json.Unmarshal([]byte(w.MustRun("output", "-json", "converted").Stdout), &output); err != nil {
		t.Fatal(err)
	}

	converted := map[string][]string{}

	for role, result := range output {
		converted[role] = slices.DeleteFunc(result.Patches, func(patch string) bool { return strings.TrimSpace(patch) == "" })
		t.Logf("patches of %s:\n%s\nkept: %v", role, strings.Join(converted[role], "\n---\n"), result.Kept)
	}

	return converted
}

// moves applies the files. Exactly the machines restart of which the plan says so.
func (h hosted) moves(t *testing.T, w *clitest.Workspace, what string) {
	t.Helper()

	shown, _ := w.SavedPlan("move.plan")

	var plan struct {
		ResourceChanges []struct {
			Address string
			Change  struct {
				After struct {
					Operations []string
					Impact     struct{ Rebooted []string }
				}
			}
		} `json:"resource_changes"`
	}

	if err := json.Unmarshal([]byte(shown), &plan); err != nil {
		t.Fatal(err)
	}

	var planned []string

	for _, resource := range plan.ResourceChanges {
		if after := resource.Change.After; resource.Address == theCluster {
			t.Logf("%s: %s", what, strings.Join(after.Operations, "\n"))

			for _, machine := range after.Impact.Rebooted {
				planned = append(planned, hostedName+"-"+strings.ReplaceAll(machine, "/", "-"))
			}
		}
	}

	before := h.starts(t)
	h.applied(t, w, what)

	after := h.starts(t)
	maps.DeleteFunc(after, func(machine, start string) bool { return before[machine] == start })

	restarted := slices.Sorted(maps.Keys(after))
	if slices.Sort(planned); !slices.Equal(restarted, planned) {
		t.Errorf("%v restarted in %s, want %v", restarted, what, planned)
	}
}

// starts tell the starts of the machines apart.
func (h hosted) starts(t *testing.T) map[string]string {
	t.Helper()

	list, err := h.host(t).CoreV1().Pods(hostedNamespace).List(t.Context(), metav1.ListOptions{LabelSelector: ofCluster})
	if err != nil {
		t.Fatal(err)
	}

	starts := map[string]string{}
	for _, p := range list.Items {
		starts[strings.TrimSuffix(p.Name, "-0")] = fmt.Sprint(p.UID, p.Status.ContainerStatuses[0].RestartCount)
	}

	return starts
}
