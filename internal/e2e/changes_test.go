package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"
	"github.com/siderolabs/talos/pkg/machinery/resources/config"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

// Patches of fields that every contract has in the main document: some that Talos applies at once, and one that
// needs a reboot with every Talos (env does not from 1.14 on).
const (
	livePatch    = `machine: {certSANs: [live.e2e.example.com]}`
	tryPatch     = `machine: {certSANs: [tried.e2e.example.com]}`
	rebootPatch  = `machine: {files: [{path: /var/e2e, content: rebooted, permissions: 0o644, op: create}]}`
	foreignPatch = `machine: {certSANs: [by-hand.e2e.example.com]}`
)

// onTrial lets the quickstart apply configurations in try mode, and take a snapshot of etcd before it reboots
// control planes.
const onTrial = `
resource "talosop_control_plane" "this" {
  apply_mode           = "try"
  etcd_snapshot_folder = "snapshots"
}

resource "talosop_worker" "this" {
  apply_mode = "try"
}
`

// changes: a cluster of one control plane grows to all machines. Its configuration is changed in every mode, drifts
// and is repaired. It is upgraded where machines can be, and shrinks to one machine again.
func (s site) changes(t *testing.T, cli clitest.CLI) {
	s.needs(t, "reset")

	w := s.workspace(t, cli)
	all := s.controlPlanes

	s.controlPlanes = all[:1]
	s.applied(t, w, "create")

	s.controlPlanes = all
	s.applied(t, w, "growth to all control planes")

	before := bootIDs(t, w)

	s.patches = append(s.patches, livePatch)
	s.applied(t, w, "a configuration that takes no reboot")

	w.Write("trial_override.tf", onTrial)

	s.patches[len(s.patches)-1] = tryPatch
	s.applied(t, w, "a configuration on trial")

	s.followsManifests(t, w)

	if after := bootIDs(t, w); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("boots are %v after configurations that take no reboot, were %v", after, before)
	}

	s.reboots(t, w, before)
	s.drifts(t, w)

	if s.can("upgrade") {
		s.talosVersion = s.talosAfter
		s.applied(t, w, "an upgrade")
	} else {
		t.Log("left out: the upgrade, because these machines cannot be upgraded (TALOSOP_E2E_CANNOT, TALOSOP_E2E_PLATFORM)")
	}

	s.shrinks(t, w)
	s.destroy(t, w)
}

// inlineManifest is a ConfigMap among the bootstrap manifests.
const inlineManifest = `cluster:
  inlineManifests:
    - name: e2e
      contents: |
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: e2e-manifest, namespace: kube-system}
        data: {value: %q}
`

// followsManifests changes an object among the bootstrap manifests, and removes it. Talos alone would only create
// it.
func (s site) followsManifests(t *testing.T, w *clitest.Workspace) {
	t.Helper()

	maps := s.kubernetesAPI(t, w).CoreV1().ConfigMaps(metav1.NamespaceSystem)
	write := func(patch string) {
		writePatches(w, "control-plane", append(slices.Clone(s.controlPlanePatches), patch))
	}

	for _, value := range []string{"1", "2"} {
		write(fmt.Sprintf(inlineManifest, value))
		s.applied(t, w, "another bootstrap manifest")

		live, err := maps.Get(t.Context(), "e2e-manifest", metav1.GetOptions{})
		if err != nil || live.Data["value"] != value {
			t.Errorf("the ConfigMap of the bootstrap manifests is %v (%v), want the value %s", live, err, value)
		}
	}

	write("cluster: {}")
	s.applied(t, w, "no such bootstrap manifest")

	if _, err := maps.Get(t.Context(), "e2e-manifest", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the ConfigMap is left when it is no bootstrap manifest any more: %v", err)
	}
}

// shrinks takes all control planes but the first out of the cluster.
func (s site) shrinks(t *testing.T, w *clitest.Workspace) {
	t.Helper()

	removed := s.controlPlanes[1:]
	s.controlPlanes = s.controlPlanes[:1]
	s.applied(t, w, "shrinking to one control plane")
	eventually(t, s.boot, "removed machines in maintenance mode",
		func(ctx context.Context) error { return allInMaintenance(ctx, removed) })
}

// reboots rolls out a configuration that needs a reboot to all machines.
func (s *site) reboots(t *testing.T, w *clitest.Workspace, before map[string]string) {
	t.Helper()

	if !s.can("reboot") {
		t.Log("left out: the configuration that takes a reboot, because these machines cannot reboot (TALOSOP_E2E_CANNOT)")

		return
	}

	s.patches = append(s.patches, rebootPatch)
	s.applied(t, w, "a configuration that takes a reboot")

	for name, boot := range bootIDs(t, w) {
		if boot == before[name] {
			t.Errorf("%s was not rebooted for a configuration that takes a reboot", name)
		}
	}

	if kept, err := filepath.Glob(filepath.Join(w.Dir, "snapshots", "e2e-etcd-*.snapshot")); err != nil || len(kept) != 1 {
		t.Errorf("snapshots of etcd are %v (%v), want one from before the reboots", kept, err)
	}
}

// applied applies the current variables and checks the cluster and the second plan.
func (s site) applied(t *testing.T, w *clitest.Workspace, what string) {
	t.Helper()

	began := time.Now()

	w.Write(variables, s.variables(t, false))
	output := w.MustRun("apply", "-auto-approve").Output()
	s.isUsable(t, w)
	s.settles(t, w)
	plansNothing(t, w, "after "+what)
	s.agrees(t, w)

	if t.Failed() {
		t.Fatalf("%s:\n%s", what, output)
	}

	t.Logf("%s: %s", what, time.Since(began).Round(time.Second))
}

// bootIDs are the boot IDs in state, by machine.
func bootIDs(t *testing.T, w *clitest.Workspace) map[string]string {
	t.Helper()

	boots := map[string]string{}

	for _, machines := range observed(t, w) {
		for name, m := range machines {
			boots[name] = m.BootID
		}
	}

	return boots
}

// drifts changes a machine outside Terraform, as `talosctl patch machineconfig` does. The plan names the difference
// and the apply reverts it. After a revert by hand the plan is empty.
func (s site) drifts(t *testing.T, w *clitest.Workspace) {
	t.Helper()

	b := bundle(t, w)
	original := s.patchByHand(t, b, s.workers[0], foreignPatch)

	empty, output := w.PlanIsEmpty()
	if empty || !strings.Contains(output, "machine.certSANs") || !strings.Contains(output, "worker-1") {
		t.Errorf("the plan after a change by hand does not name what differs:\n%s", output)
	}

	s.applied(t, w, "taking back a change by hand")
	s.patchByHand(t, b, s.workers[0], foreignPatch)
	s.configureByHand(t, b, s.workers[0], original)
	plansNothing(t, w, "after a change that was undone by hand")
}

// patchByHand merges a patch into the configuration of a machine and returns the previous configuration.
func (s site) patchByHand(t *testing.T, b *pki.Bundle, address, patch string) []byte {
	t.Helper()

	c := s.client(t, b, address)

	active, err := safe.StateGetByID[*config.MachineConfig](t.Context(), c.COSI, config.ActiveID)
	if err != nil {
		t.Fatal(err)
	}

	original, err := active.Provider().Bytes()
	if err != nil {
		t.Fatal(err)
	}

	loaded, err := configpatcher.LoadPatch([]byte(patch))
	if err != nil {
		t.Fatal(err)
	}

	patched, err := configpatcher.Apply(configpatcher.WithBytes(original), []configpatcher.Patch{loaded})
	if err != nil {
		t.Fatal(err)
	}

	changed, err := patched.Bytes()
	if err != nil {
		t.Fatal(err)
	}

	s.configureByHand(t, b, address, changed)

	return original
}

func (s site) configureByHand(t *testing.T, b *pki.Bundle, address string, machineConfig []byte) {
	t.Helper()

	_, err := s.client(t, b, address).ApplyConfiguration(t.Context(), &machine.ApplyConfigurationRequest{
		Data: machineConfig, Mode: machine.ApplyConfigurationRequest_NO_REBOOT,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// client connects to one machine as an administrator.
func (s site) client(t *testing.T, b *pki.Bundle, address string) *client.Client {
	t.Helper()

	text, err := b.Talosconfig(pki.TalosconfigInput{Context: "e2e", Endpoints: []string{address},
		Roles: []string{"os:admin"}, TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}

	parsed, err := clientconfig.FromBytes(text)
	if err != nil {
		t.Fatal(err)
	}

	c, err := client.New(t.Context(), client.WithConfig(parsed))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})

	return c
}

// stopped: a control plane is shut down and removed from the configuration. A remaining member removes its etcd
// member, and the cluster keeps working. The machine stays off.
func (s site) stopped(t *testing.T, cli clitest.CLI) {
	s.needs(t, "reset")
	s.needs(t, "shutdown")

	w := s.workspace(t, cli)
	s.applied(t, w, "create")

	last := len(s.controlPlanes) - 1
	off := s.controlPlanes[last]

	if err := s.client(t, bundle(t, w), off).Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}

	eventually(t, s.boot, "the end of "+off, func(ctx context.Context) error {
		if _, err := s.client(t, bundle(t, w), off).Version(ctx); err == nil {
			return errors.New("it still answers")
		}

		return nil
	})

	s.controlPlanes = s.controlPlanes[:last]
	s.applied(t, w, "removal of a machine that is off")
	s.destroy(t, w)
}
