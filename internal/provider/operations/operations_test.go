package operations_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// invoke runs an action as Terraform does, and returns its progress messages.
func invoke(t *testing.T, name string, config tftest.Config) (progress []string, diagnostics string) {
	t.Helper()

	server, ok := tftest.Serve(t, nil).(tftest.Walk).ProviderServer.(tfprotov6.ActionServer)
	if !ok {
		t.Fatal("the provider serves no actions")
	}

	schema, ok := tftest.Schemas(t).ActionSchemas[name]
	if !ok {
		t.Fatalf("there is no action %s", name)
	}

	value := tftest.Dynamic(t, tftest.ValueOf(t, schema.Schema.ValueType(), config))

	validated, err := server.ValidateActionConfig(t.Context(), &tfprotov6.ValidateActionConfigRequest{ActionType: name,
		Config: value})
	if err != nil || len(validated.Diagnostics) > 0 {
		t.Fatal(err, tftest.Show(validated.Diagnostics))
	}

	stream, err := server.InvokeAction(t.Context(), &tfprotov6.InvokeActionRequest{ActionType: name, Config: value})
	if err != nil {
		t.Fatal(err)
	}

	for event := range stream.Events {
		switch event := event.Type.(type) {
		case tfprotov6.ProgressInvokeActionEventType:
			t.Log(event.Message)
			progress = append(progress, event.Message)
		case tfprotov6.CompletedInvokeActionEventType:
			diagnostics = tftest.Show(event.Diagnostics)
		}
	}

	return progress, diagnostics
}

// bootsOf is how often each machine booted.
func bootsOf(b *sitetest.Living) []int {
	var boots []int
	for _, m := range b.ControlPlane {
		boots = append(boots, m.Boots())
	}

	return boots
}

// Each action does its operation on running machines, and reports it meanwhile.
func TestActions_onACluster(t *testing.T) {
	t.Parallel()

	b := sitetest.NewLiving(t, sim.Options{})
	before := bootsOf(b)

	if _, diagnostics := invoke(t, "talosop_bootstrap_manifests_sync", tftest.Config{"cluster": b.Handle}); diagnostics != "" {
		t.Error(diagnostics)
	}

	progress, diagnostics := invoke(t, "talosop_rolling_restart", tftest.Config{"cluster": b.Handle})
	if diagnostics != "" {
		t.Fatal(diagnostics)
	}

	for i, after := range bootsOf(b) {
		if after != before[i]+1 {
			t.Errorf("%s booted %d times, want once", b.ControlPlane[i].Name(), after-before[i])
		}
	}

	for _, m := range b.ControlPlane {
		if line := "finished: reboot " + m.Address().String() + " (drain, wait for volumes)"; !slices.Contains(progress, line) {
			t.Errorf("%q is not reported: %q", line, progress)
		}
	}

	if _, diagnostics := invoke(t, "talosop_etcd_defragment", tftest.Config{"cluster": b.Handle}); diagnostics != "" {
		t.Error(diagnostics)
	}

	_, diagnostics = invoke(t, "talosop_service_restart", tftest.Config{"cluster": b.Handle, "service": "etcd",
		"machines": []any{"cp-1"}})
	if !strings.Contains(diagnostics, "doesn't support restart operation via API") {
		t.Error(diagnostics)
	}

	_, diagnostics = invoke(t, "talosop_machine_reboot", tftest.Config{"cluster": b.Handle, "machines": []any{"10.9.9.9"}})
	if !strings.Contains(diagnostics, `Found "10.9.9.9"`) || !strings.Contains(diagnostics, b.ControlPlane[0].Address().String()) {
		t.Error(diagnostics)
	}
}

// The resource runs the operation when it is created and when its triggers change, has an empty plan otherwise, and
// keeps no secrets in state.
func TestOperationResource_followsItsTriggers(t *testing.T) {
	t.Parallel()

	b := sitetest.NewLiving(t, sim.Options{})
	machine := b.ControlPlane[1]
	boots := machine.Boots()
	d := tftest.Drive(t, "talosop_machine_reboot", nil)

	config := func(trigger string) tftest.Config {
		return tftest.Config{"cluster": b.Handle, "machines": []any{machine.Address().String()},
			"triggers": tftest.Config{"date": trigger}}
	}

	planned := d.Plan(t, config("a"))
	if lines := tftest.TextsOf(t, tftest.AttributeOf(t, planned.Value, "operations")); !slices.Equal(lines,
		[]string{"reboot " + machine.Address().String() + " (drain, wait for volumes)"}) {
		t.Errorf("planned: %q", lines)
	}

	d.Apply(t, config("a")).Must(t)
	d.ExpectEmpty(t, "after the create", config("a"))

	if got := machine.Boots() - boots; got != 1 {
		t.Errorf("booted %d times at the create", got)
	}

	d.Apply(t, config("b")).Must(t)
	d.ExpectEmpty(t, "after another trigger", config("b"))

	if got := machine.Boots() - boots; got != 2 {
		t.Errorf("booted %d times in all", got)
	}

	sitetest.HoldsNone(t, b.Bundle, map[string]string{"the state": d.State.String(), "the private state": string(d.Private)})
}

// The next apply continues an incomplete operation, and does nothing to the machines that are done.
func TestOperationResource_goesOnWithWhatIsLeft(t *testing.T) {
	t.Parallel()

	b := sitetest.NewLiving(t, sim.Options{})
	d := tftest.Drive(t, "talosop_rolling_restart", nil)
	config := tftest.Config{"cluster": b.Handle, "timeouts": tftest.Config{"create": "30s"}}
	before := bootsOf(b)

	// The first one does not come back, whichever it is.
	for _, m := range b.ControlPlane {
		m.HangNextReboot()
	}

	done := d.Apply(t, config)
	left := tftest.TextsOf(t, tftest.AttributeOf(t, done.Value, "left"))

	if len(left) != 2 {
		t.Fatalf("left %q: %s", left, tftest.Show(done.Diagnostics))
	}

	for _, m := range b.ControlPlane {
		m.PowerOff()
		m.PowerOn()
	}

	d.Apply(t, config).Must(t)
	d.ExpectEmpty(t, "after the second apply", config)

	// All were powered on again, and those that were left rebooted after that.
	for i, after := range bootsOf(b) {
		want := 1
		if slices.Contains(left, b.ControlPlane[i].Address().String()) {
			want = 2
		}

		if got := after - before[i]; got != want {
			t.Errorf("%s booted %d times, want %d", b.ControlPlane[i].Name(), got, want)
		}
	}
}
