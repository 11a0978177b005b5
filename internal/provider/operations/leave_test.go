package operations_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// leaving is a talosop_machine_leave for a machine.
func leaving(b *sitetest.Living, m *sim.Machine, more tftest.Config) tftest.Config {
	config := tftest.Config{"cluster": b.Handle, "machine": m.Address().String()}
	for name, value := range more {
		config[name] = value
	}

	return config
}

// expectOut checks that a machine is out of etcd and Kubernetes, and how many members are left.
func expectOut(t *testing.T, b *sitetest.Living, m *sim.Machine, members int) {
	t.Helper()
	b.ExpectMembers(t, members)

	for _, node := range b.Kubernetes(t, b.Bundle).Observe(t.Context()).Nodes {
		if slices.Contains(node.Addresses, m.Address().String()) {
			t.Errorf("node %s is still there", node.Name)
		}
	}
}

// The create touches no machine. The destroy takes the machine out: it leaves etcd, is reset, and its node is deleted.
// Its VM can then be destroyed. A second one, of a machine that already left and is gone, does nothing.
func TestMachineLeave_atDestroy(t *testing.T) {
	t.Parallel()

	b := sitetest.NewLiving(t, sim.Options{})
	machine := b.ControlPlane[1]
	d, again := tftest.Drive(t, "talosop_machine_leave", nil), tftest.Drive(t, "talosop_machine_leave", nil)

	b.ForgetCalls()

	for _, resource := range []*tftest.Driven{d, again} {
		resource.Apply(t, leaving(b, machine, nil)).Must(t)
		resource.ExpectEmpty(t, "after the create", leaving(b, machine, nil))
	}

	b.ExpectUntouched(t)

	planned := tftest.Show(d.Plan(t, nil).Diagnostics)
	if !strings.Contains(planned, "[machine_leaves]") || !strings.Contains(planned, machine.Address().String()) {
		t.Errorf("planned: %s", planned)
	}

	d.Apply(t, nil).Must(t)
	expectOut(t, b, machine, 2)

	if machine.Configured() || machine.Stage() != sim.StageMaintenance {
		t.Errorf("it is %s", machine.Stage())
	}

	machine.PowerOff()
	b.ForgetCalls()
	again.Apply(t, nil).Must(t)

	if calls := b.CallsTo("Reset"); len(calls) > 0 {
		t.Errorf("reset again: %v", calls)
	}

	b.ExpectMembers(t, 2)
}

// A machine whose wipe fails leaves all the same, with a warning.
func TestMachineLeave_failedWipe(t *testing.T) {
	t.Parallel()

	b := sitetest.NewLiving(t, sim.Options{})
	machine := b.ControlPlane[1]
	machine.FailWipe("EPHEMERAL")

	_, diagnostics := invoke(t, "talosop_machine_leave", leaving(b, machine, nil))
	if !strings.Contains(diagnostics, "[wipe_failed]") || !strings.Contains(diagnostics, machine.Address().String()+": EPHEMERAL") {
		t.Error(diagnostics)
	}

	expectOut(t, b, machine, 2)
}

// A machine that is shut down keeps its data, and is off.
func TestMachineLeave_shutdown(t *testing.T) {
	t.Parallel()

	b := sitetest.NewLiving(t, sim.Options{})
	machine := b.ControlPlane[0]
	_, diagnostics := invoke(t, "talosop_machine_leave", leaving(b, machine, tftest.Config{"on_leave": "shutdown"}))

	if diagnostics != "" {
		t.Fatal(diagnostics)
	}

	expectOut(t, b, machine, 2)

	if calls := b.CallsTo("Reset"); len(calls) > 0 || len(b.CallsTo("Shutdown")) != 1 || !machine.Configured() {
		t.Errorf("reset %v, shut down %v", calls, b.CallsTo("Shutdown"))
	}
}

// A dead machine is removed through the others: no call reaches it, and a warning says that it was not reset.
func TestMachineLeave_dead(t *testing.T) {
	t.Parallel()

	b := sitetest.NewLiving(t, sim.Options{})
	machine := b.ControlPlane[2]
	machine.PowerOff()

	_, diagnostics := invoke(t, "talosop_machine_leave", leaving(b, machine, nil))
	if strings.Count(diagnostics, "[") != 1 || !strings.Contains(diagnostics, "[machines_not_reset]") {
		t.Fatal(diagnostics)
	}

	expectOut(t, b, machine, 2)
}

// A machine that accepts its reset and does not come back has left, with a warning.
func TestMachineLeave_doesNotComeBack(t *testing.T) {
	t.Parallel()

	b := sitetest.NewLiving(t, sim.Options{})
	machine := b.ControlPlane[1]
	machine.HangNextReboot()

	data := tftest.QuickProviderData()
	data.Policy.ResetTimeout = 2 * time.Second

	d := tftest.DriveWith(t, data, "talosop_machine_leave")
	d.Apply(t, leaving(b, machine, nil)).Must(t)

	diagnostics := tftest.Show(d.Apply(t, nil).Must(t).Diagnostics)
	if !strings.Contains(diagnostics, "[reset_not_finished]") {
		t.Error(diagnostics)
	}

	expectOut(t, b, machine, 2)
}

// Control planes leave one after the other. The last one is refused, and its etcd stays, unless protection is off.
func TestMachineLeave_lastControlPlane(t *testing.T) {
	t.Parallel()

	b := sitetest.NewLiving(t, sim.Options{})

	for i := range 2 {
		if _, diagnostics := invoke(t, "talosop_machine_leave", leaving(b, b.ControlPlane[i], nil)); diagnostics != "" {
			t.Fatal(diagnostics)
		}
	}

	last := b.ControlPlane[2]

	_, diagnostics := invoke(t, "talosop_machine_leave", leaving(b, last, nil))
	if !strings.Contains(diagnostics, "[operation_failed]") ||
		!strings.Contains(diagnostics, "it is the last control plane, and removing it destroys the cluster") {
		t.Error(diagnostics)
	}

	expectRunning(t, b, 1)

	d := tftest.Drive(t, "talosop_machine_leave", nil)
	d.Apply(t, leaving(b, last, tftest.Config{"deletion_protection": false})).Must(t)
	d.Apply(t, nil).Must(t)

	if last.Configured() {
		t.Error("the last control plane was not reset")
	}
}

func expectRunning(t *testing.T, b *sitetest.Living, members int) {
	t.Helper()
	b.ExpectMembers(t, members)

	if m := b.ControlPlane[2]; m.Stage() != sim.StageRunning {
		t.Errorf("%s is %s", m.Name(), m.Stage())
	}
}

// Another machine at the address stays as it is.
func TestMachineLeave_otherHardware(t *testing.T) {
	t.Parallel()

	b := sitetest.NewLiving(t, sim.Options{})
	config := leaving(b, b.ControlPlane[0], tftest.Config{"uuid": "00000000-0000-4000-8000-000000000000"})

	_, diagnostics := invoke(t, "talosop_machine_leave", config)
	if !strings.Contains(diagnostics, "WARNING [machines_not_reset]") {
		t.Errorf("diagnostics %q", diagnostics)
	}

	for _, node := range b.Kubernetes(t, b.Bundle).Observe(t.Context()).Nodes {
		if node.Cordoned || node.Unschedulable {
			t.Errorf("node %s is cordoned", node.Name)
		}
	}

	if calls := b.CallsTo("Reset"); len(calls) > 0 || b.ControlPlane[0].Stage() != sim.StageRunning {
		t.Errorf("reset: %v", calls)
	}

	b.ExpectMembers(t, 3)
}

// Another machine, or another VM at its address, replaces the resource. Another drain does not.
func TestMachineLeave_replacedWithItsMachine(t *testing.T) {
	t.Parallel()

	handle := tftest.Config{"name": "test", "endpoint": "https://10.0.0.10:6443", "secrets": tftest.Bundle()}
	config := func(machine, vm, drain string) tftest.Config {
		return tftest.Config{"cluster": handle, "machine": machine, "triggers": tftest.Config{"vm": vm},
			"drain": tftest.Config{"timeout": drain}}
	}

	d := tftest.Drive(t, "talosop_machine_leave", nil)
	d.Apply(t, config("10.0.0.11", "1", "5m")).Must(t)

	for want, other := range map[string]tftest.Config{
		"machine": config("10.0.0.12", "1", "5m"), "triggers": config("10.0.0.11", "2", "5m"),
		"": config("10.0.0.11", "1", "1m"),
	} {
		wanted := tftest.ValueOf(t, tftest.TypeOf(t, d.Name), other)

		resp, err := d.Server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{TypeName: d.Name,
			PriorState: tftest.Dynamic(t, d.State), ProposedNewState: tftest.Dynamic(t, d.Proposed(t, wanted)),
			Config: tftest.Dynamic(t, wanted), PriorPrivate: d.Private})
		tftest.Must(t, err)

		var replaced []string
		for _, at := range resp.RequiresReplace {
			replaced = append(replaced, fmt.Sprint(at))
		}

		warned := strings.Contains(tftest.Show(resp.Diagnostics), "[machine_leaves]")
		if got := strings.Join(replaced, " "); !strings.Contains(got, want) || (got == "") != (want == "") || warned != (want != "") {
			t.Errorf("%q replaces for %q: %s", want, got, tftest.Show(resp.Diagnostics))
		}
	}
}

// A pod has no VM that ends without its resource.
func TestMachineLeave_containers(t *testing.T) {
	t.Parallel()

	d := tftest.Drive(t, "talosop_machine_leave", nil)

	handle := tftest.Config{"name": "test", "mode": "container", "endpoint": "https://10.0.0.10:6443",
		"secrets": tftest.Bundle()}

	planned := d.Plan(t, tftest.Config{"machine": "10.0.0.11", "cluster": handle})
	if shown := tftest.Show(planned.Diagnostics); !strings.Contains(shown, "[machine_leave_of_containers]") {
		t.Error(shown)
	}
}
