package provider

import (
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// invoke does an action as Terraform does, and gives what it told on the way.
func invoke(t *testing.T, name string, config configuration) (told []string, said string) {
	t.Helper()

	server, ok := serving(t, nil).(walked).ProviderServer.(tfprotov6.ProviderServerWithActions)
	if !ok {
		t.Fatal("the provider serves no actions")
	}

	schema, ok := schemas(t).ActionSchemas[name]
	if !ok {
		t.Fatalf("there is no action %s", name)
	}

	value := dynamic(t, valueOf(t, schema.Schema.ValueType(), config))

	validated, err := server.ValidateActionConfig(t.Context(), &tfprotov6.ValidateActionConfigRequest{ActionType: name,
		Config: value})
	if err != nil || len(validated.Diagnostics) > 0 {
		t.Fatal(err, show(validated.Diagnostics))
	}

	stream, err := server.InvokeAction(t.Context(), &tfprotov6.InvokeActionRequest{ActionType: name, Config: value})
	if err != nil {
		t.Fatal(err)
	}

	for event := range stream.Events {
		switch event := event.Type.(type) {
		case tfprotov6.ProgressInvokeActionEventType:
			t.Log(event.Message)
			told = append(told, event.Message)
		case tfprotov6.CompletedInvokeActionEventType:
			said = show(event.Diagnostics)
		}
	}

	return told, said
}

// bootsOf is how often each machine booted.
func (b *living) bootsOf() []int {
	var boots []int
	for _, m := range b.controlPlane {
		boots = append(boots, m.Boots())
	}

	return boots
}

// Each action does what it says on machines that run, and tells it while it happens.
func TestActions_onACluster(t *testing.T) {
	t.Parallel()

	b := newLiving(t, sim.Options{})
	before := b.bootsOf()

	if _, said := invoke(t, "talosop_bootstrap_manifests_sync", configuration{"cluster": b.handle}); said != "" {
		t.Error(said)
	}

	told, said := invoke(t, "talosop_rolling_restart", configuration{"cluster": b.handle})
	if said != "" {
		t.Fatal(said)
	}

	for i, after := range b.bootsOf() {
		if after != before[i]+1 {
			t.Errorf("%s booted %d times, want once", b.controlPlane[i].Name(), after-before[i])
		}
	}

	for _, m := range b.controlPlane {
		if line := "finished: reboot " + m.Address().String() + " (drain)"; !slices.Contains(told, line) {
			t.Errorf("%q is not told: %q", line, told)
		}
	}

	if _, said := invoke(t, "talosop_etcd_defragment", configuration{"cluster": b.handle}); said != "" {
		t.Error(said)
	}

	_, said = invoke(t, "talosop_service_restart", configuration{"cluster": b.handle, "service": "etcd",
		"machines": []any{"cp-1"}})
	if !strings.Contains(said, "doesn't support restart operation via API") {
		t.Error(said)
	}

	_, said = invoke(t, "talosop_machine_reboot", configuration{"cluster": b.handle, "machines": []any{"10.9.9.9"}})
	if !strings.Contains(said, `Found "10.9.9.9"`) || !strings.Contains(said, b.controlPlane[0].Address().String()) {
		t.Error(said)
	}
}

// The resource does it when it is created and when its triggers change, and plans nothing otherwise.
func TestOperationResource_followsItsTriggers(t *testing.T) {
	t.Parallel()

	b := newLiving(t, sim.Options{})
	machine := b.controlPlane[1]
	boots := machine.Boots()
	d := drive(t, "talosop_machine_reboot", nil)

	config := func(trigger string) configuration {
		return configuration{"cluster": b.handle, "machines": []any{machine.Address().String()},
			"triggers": configuration{"date": trigger}}
	}

	planned := d.plan(t, config("a"))
	if lines := textsOf(t, attributeOf(t, planned.Value, "operations")); !slices.Equal(lines,
		[]string{"reboot " + machine.Address().String() + " (drain)"}) {
		t.Errorf("planned: %q", lines)
	}

	d.apply(t, config("a")).must(t)
	d.expectEmpty(t, "after the create", config("a"))

	if got := machine.Boots() - boots; got != 1 {
		t.Errorf("booted %d times at the create", got)
	}

	d.apply(t, config("b")).must(t)
	d.expectEmpty(t, "after another trigger", config("b"))

	if got := machine.Boots() - boots; got != 2 {
		t.Errorf("booted %d times in all", got)
	}
}

// What an apply left is gone on with by the next one, which does nothing to the machines that are through.
func TestOperationResource_goesOnWithWhatIsLeft(t *testing.T) {
	t.Parallel()

	b := newLiving(t, sim.Options{})
	d := drive(t, "talosop_rolling_restart", nil)
	config := configuration{"cluster": b.handle, "timeouts": configuration{"create": "10s"}}
	before := b.bootsOf()

	// The first one does not come back, whichever it is.
	for _, m := range b.controlPlane {
		m.HangNextReboot()
	}

	said := d.apply(t, config)
	left := textsOf(t, attributeOf(t, said.Value, "left"))

	if len(left) != 2 {
		t.Fatalf("left %q: %s", left, show(said.diagnostics))
	}

	for _, m := range b.controlPlane {
		m.PowerOff()
		m.PowerOn()
	}

	d.apply(t, config).must(t)
	d.expectEmpty(t, "after the second apply", config)

	// All were switched on again, and those that were left rebooted after that.
	for i, after := range b.bootsOf() {
		want := 1
		if slices.Contains(left, b.controlPlane[i].Address().String()) {
			want = 2
		}

		if got := after - before[i]; got != want {
			t.Errorf("%s booted %d times, want %d", b.controlPlane[i].Name(), got, want)
		}
	}
}
