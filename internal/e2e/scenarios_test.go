package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// quickstart is the example that all scenarios apply.
const quickstart = "../../examples/quickstart"

// variables is the file with the values of the example's variables.
const variables = "e2e.auto.tfvars.json"

// workspace prepares the files of the quickstart for a site whose machines all wait in maintenance mode. Otherwise
// it fails the test before anything is sent to any of them.
func (s site) workspace(t *testing.T, cli clitest.CLI) *clitest.Workspace {
	t.Helper()

	s.allWait(t)

	return s.files(t, cli)
}

// allWait fails the test before anything is sent unless all machines wait in maintenance mode.
func (s site) allWait(t *testing.T) {
	t.Helper()

	if err := allInMaintenance(t.Context(), s.machines()); err != nil {
		t.Fatalf("nothing was sent to any machine, because not all of them wait in maintenance mode:\n%v\n"+
			"Boot them from the Talos image, or reset them (`talosctl reset --graceful=false --reboot`).", err)
	}
}

// files is workspace for machines that may already have a configuration.
func (s site) files(t *testing.T, cli clitest.CLI) *clitest.Workspace {
	t.Helper()

	w := clitest.NewWorkspace(t, cli)
	w.CopyFrom(quickstart)
	w.Write(variables, s.variables(t, false))

	w.Write("site_override.tf", fmt.Sprintf(ofSite, inHCL(s.contract), inHCL(s.timeout)))

	writePatches(w, "control-plane", s.controlPlanePatches)
	w.Init()

	return w
}

// writePatches writes patches into files that a configuration finds by the prefix of their names.
func writePatches(w *clitest.Workspace, name string, patches []string) {
	for i, patch := range patches {
		w.Write(fmt.Sprintf("%s-%d.patch", name, i), patch)
	}
}

// ofSite sets what the quickstart leaves at defaults.
const ofSite = `
resource "talosop_control_plane" "this" {
  version_contract = %[1]s
  config_patches   = [for p in fileset(path.module, "control-plane-*.patch") : file("${path.module}/${p}")]
  timeouts         = { create = %[2]s, update = %[2]s, delete = %[2]s }
}

resource "talosop_worker" "this" {
  timeouts = { create = %[2]s, update = %[2]s, delete = %[2]s }
}
`

// inHCL is a text, or null for none.
func inHCL(text string) string {
	if text == "" {
		return "null"
	}

	return strconv.Quote(text)
}

// isUsable checks around the provider that the cluster matches the request: one voting etcd member for each control
// plane, and a Ready node for every machine. It asks once, because a create waits for all of it.
func (s site) isUsable(t *testing.T, w *clitest.Workspace) {
	t.Helper()

	s.hasJoined(t, bundle(t, w))

	for _, address := range []string{"talosop_control_plane.this", "talosop_worker.this"} {
		if phase := w.Attribute(address, "phase"); phase != "Ready" {
			t.Errorf("%s: phase is %v, want Ready", address, phase)
		}
	}
}

// hasJoined checks around the provider that every control plane votes in etcd, and that every machine is a Ready node.
func (s site) hasJoined(t *testing.T, b *pki.Bundle) {
	t.Helper()

	members, err := s.members(t.Context(), b)
	if err != nil || len(members) != len(s.controlPlanes) {
		t.Errorf("etcd members are %v (%v), want %d voters", members, err, len(s.controlPlanes))
	}

	ready := func(ctx context.Context) error {
		nodes, err := s.nodes(ctx, b)
		if err == nil && len(nodes) != len(s.machines()) {
			err = fmt.Errorf("nodes are %v, want %d that are Ready", nodes, len(s.machines()))
		}

		return err
	}

	// A create waits for Ready nodes, unless the patch of the site says that another program installs the CNI.
	if s.settling > 0 {
		eventually(t, s.settling, "Ready nodes", ready)
	} else if err := ready(t.Context()); err != nil {
		t.Error(err)
	}
}

// plansNothing checks that a plan with refresh is empty.
func plansNothing(t *testing.T, w *clitest.Workspace, when string) {
	t.Helper()

	if empty, output := w.PlanIsEmpty(); !empty {
		t.Errorf("the plan %s is not empty:\n%s", when, output)
	}
}

// settles waits on real machines until a plan is empty. The readiness of a machine, which an output of the example
// shows, changes while static pods start, and after an apply that does not wait for the CNI. A refresh stores it.
func (s site) settles(t *testing.T, w *clitest.Workspace) {
	t.Helper()

	if s.settling > 0 {
		eventually(t, s.settling, "machines whose readiness stays as it is", func(context.Context) error {
			if empty, output := w.PlanIsEmpty(); !empty {
				w.MustRun("apply", "-refresh-only", "-auto-approve")

				return errors.New(output)
			}

			return nil
		})
	}
}

// destroy destroys the cluster and waits until every machine is back in maintenance mode.
func (s site) destroy(t *testing.T, w *clitest.Workspace) {
	t.Helper()

	w.MustRun("destroy", "-auto-approve")
	s.returned(t)

	if left := w.Resources(); len(left) > 0 {
		t.Errorf("the state holds %v after destroy", left)
	}
}

// returned waits until every machine is back in maintenance mode.
func (s site) returned(t *testing.T) {
	t.Helper()
	eventually(t, s.boot, "all machines in maintenance mode", func(ctx context.Context) error {
		return allInMaintenance(ctx, s.machines())
	})
}

// create: maintenance mode to a usable cluster, an empty second plan, import into an empty state, a plan that only
// takes the machines over and an empty one after it, untouched machines, and destroy from there. Machines that
// cannot reset keep the cluster.
func (s site) create(t *testing.T, cli clitest.CLI) {
	w := s.workspace(t, cli)
	w.MustRun("apply", "-auto-approve")
	s.isUsable(t, w)
	s.settles(t, w)
	plansNothing(t, w, "after create")
	s.agrees(t, w)

	before := observed(t, w)

	// Imported resources are protected until the configuration disables it.
	imported := s.imported(t, cli, w)
	imported.Write(variables, s.variables(t, true))

	// The machines belong to the first state until an apply takes them over, and the plan has nothing else to do. A
	// merged configuration does not show its patches: with patches the first apply stores the contents of the files.
	plan := imported.MustRun("plan").Output()
	if !strings.Contains(plan, "over from another resource") ||
		len(s.patches) == 0 && strings.Contains(plan, "apply configuration") {
		t.Errorf("the plan after import takes over nothing, or does more:\n%s", plan)
	}

	imported.Write(variables, s.variables(t, false))
	imported.MustRun("apply", "-auto-approve")
	plansNothing(t, imported, "after import and apply")

	// Only the run that installed an image knows which one it was, and only a refresh reads links.
	unknown := cmpopts.IgnoreFields(record.Machine{}, "Installer", "Link")

	if diff := cmp.Diff(before, observed(t, imported), unknown); diff != "" {
		t.Errorf("import and apply changed machines (-before +after):\n%s", diff)
	}

	if !s.can("reset") {
		t.Logf("left out: destroy, because these machines cannot reset (TALOSOP_E2E_CANNOT). They keep the cluster; its " +
			"state is gone with this test")

		return
	}

	s.destroy(t, imported)
}

// observed is what the state records of the machines, by resource and name, including digests of their
// configurations and boot IDs.
func observed(t *testing.T, w *clitest.Workspace) map[string]record.Machines {
	t.Helper()

	out := map[string]record.Machines{}

	for _, address := range []string{"talosop_control_plane.this", "talosop_worker.this"} {
		text, _ := w.Attribute(address, "record").(string)

		machines, err := record.Decode(text)
		if err != nil {
			t.Fatal(err)
		}

		out[address] = machines
	}

	return out
}

// imported makes a second workspace with an empty state. It imports the cluster into it from its secrets and
// addresses, as after the loss of a state or a move to another one.
func (s site) imported(t *testing.T, cli clitest.CLI, from *clitest.Workspace) *clitest.Workspace {
	t.Helper()

	text, ok := from.Attribute("talosop_secrets.this", "bundle").(string)
	if !ok {
		t.Fatal("the state holds no secrets bundle")
	}

	w := s.files(t, cli)
	w.Write("secrets.yaml", text)

	id := func(fields map[string]any) string {
		fields["secrets"] = "secrets.yaml"

		encoded, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}

		return string(encoded)
	}

	controlPlanes, workers := named("cp", s.controlPlanes), named("worker", s.workers)

	w.MustRun("import", "talosop_secrets.this", "secrets.yaml")
	w.MustRun("import", "talosop_control_plane.this", id(map[string]any{"machines": controlPlanes}))
	w.MustRun("import", "talosop_worker.this", id(map[string]any{"control_plane": controlPlanes, "machines": workers}))

	return w
}

// killed: the provider process is killed with SIGKILL when the first machine has its configuration, and again when
// etcd has its first member. Each time the next apply finishes the previous one.
func (s site) killed(t *testing.T, cli clitest.CLI) {
	s.needs(t, "reset")

	w := s.workspace(t, cli)

	apply := w.Start("apply", "-auto-approve")
	s.await(t, apply, "a configured machine", func(ctx context.Context) error { return s.someoneLeftMaintenance(ctx) })
	apply.KillProvider()
	failed(t, apply)

	secrets := bundle(t, w)

	apply = w.Start("apply", "-auto-approve")
	s.await(t, apply, "an etcd member", func(ctx context.Context) error {
		_, err := s.members(ctx, secrets)

		return err
	})
	apply.KillProvider()
	failed(t, apply)

	w.MustRun("apply", "-auto-approve")

	if got := bundle(t, w).ClusterID(); got != secrets.ClusterID() {
		t.Errorf("the cluster id is %s after the second apply, was %s: the secrets were regenerated", got, secrets.ClusterID())
	}

	s.isUsable(t, w)
	s.agrees(t, w)
	plansNothing(t, w, "after the create that was killed twice")

	// The teardown is killed once, when the first machine is back in maintenance mode.
	destroy := w.Start("destroy", "-auto-approve")
	s.await(t, destroy, "a reset machine", func(ctx context.Context) error { return s.someoneInMaintenance(ctx) })
	destroy.KillProvider()
	failed(t, destroy)

	s.destroy(t, w)
}

// interrupted: SIGINT to the CLI while machines are being configured. The CLI ends with status 1 and a state, and the
// next apply resumes.
func (s site) interrupted(t *testing.T, cli clitest.CLI) {
	s.needs(t, "reset")

	w := s.workspace(t, cli)

	apply := w.Start("apply", "-auto-approve")
	s.await(t, apply, "a configured machine", func(ctx context.Context) error { return s.someoneLeftMaintenance(ctx) })
	apply.Interrupt()

	result := failed(t, apply)
	if result.Exit != 1 {
		t.Errorf("exit status is %d after SIGINT, want 1\n%s", result.Exit, result.Output())
	}

	secrets := bundle(t, w)

	w.MustRun("apply", "-auto-approve")

	if got := bundle(t, w).ClusterID(); got != secrets.ClusterID() {
		t.Errorf("the cluster id is %s after the second apply, was %s: the secrets were regenerated", got, secrets.ClusterID())
	}

	s.isUsable(t, w)
	s.agrees(t, w)
	plansNothing(t, w, "after the create that was interrupted")
	s.destroy(t, w)
}

// await waits until ask returns nil while a command runs. The test fails when the command ends before that.
func (s site) await(t *testing.T, p *clitest.Process, what string, ask func(ctx context.Context) error) {
	t.Helper()
	awaitDuring(t, p, s.boot, what, ask)
}

func awaitDuring(
	t *testing.T, p *clitest.Process, limit time.Duration, what string, ask func(ctx context.Context) error,
) {
	t.Helper()

	ended := errors.New("the command ended first")

	eventually(t, limit, what, func(ctx context.Context) error {
		select {
		case <-p.Done():
			t.Fatalf("waiting for %s: %v\n%s", what, ended, p.Output())
		default:
		}

		return ask(ctx)
	})
}

// failed waits for a command that was interrupted; it must not report success.
func failed(t *testing.T, p *clitest.Process) clitest.Result {
	t.Helper()

	result := p.Wait()
	if result.Exit == 0 {
		t.Fatalf("%s succeeded although it was disturbed\n%s", strings.Join(result.Args, " "), result.Output())
	}

	return result
}

// someoneLeftMaintenance returns nil when at least one machine has left maintenance mode.
func (s site) someoneLeftMaintenance(ctx context.Context) error {
	if allInMaintenance(ctx, s.machines()) == nil {
		return errors.New("all machines wait in maintenance mode")
	}

	return nil
}

// someoneInMaintenance returns nil when at least one machine waits in maintenance mode.
func (s site) someoneInMaintenance(ctx context.Context) error {
	for _, address := range s.machines() {
		if waitsInMaintenance(ctx, address) == nil {
			return nil
		}
	}

	return fmt.Errorf("none of %d machines waits in maintenance mode", len(s.machines()))
}
