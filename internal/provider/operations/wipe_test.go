package operations_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// A control plane with a broken EPHEMERAL is repaired in one apply, whose plan names what is wiped and what stays.
func TestReset_repairsEphemeral(t *testing.T) {
	t.Parallel()

	b := sitetest.NewLiving(t, sim.Options{})
	broken := b.ControlPlane[1]

	for _, place := range []string{"EPHEMERAL", "/dev/sdb"} {
		broken.Write(place)
	}

	broken.BreakEphemeral()
	tftest.Must(t, broken.AwaitStage(t.Context(), sim.StageBooting))

	d := tftest.Drive(t, "talosop_machine_reset", nil)
	address := broken.Address().String()
	config := tftest.Config{"cluster": b.Handle, "machines": []any{address}}

	planned := d.Plan(t, config)
	planned.Tells(t, "[volumes_wiped]", "wipes EPHEMERAL of "+address, "A control plane leaves etcd first",
		"`STATE` with the machine configuration, `META`, and user, raw and existing volumes")

	line := "wipe EPHEMERAL of " + address + " and reboot it (drain, wait for volumes)"
	if lines := tftest.TextsOf(t, tftest.AttributeOf(t, planned.Value, "operations")); !slices.Equal(lines, []string{line}) {
		t.Errorf("planned: %q", lines)
	}

	d.Apply(t, config).Must(t)
	d.ExpectEmpty(t, "after the repair", config)

	if broken.Holds("EPHEMERAL") || !broken.Holds("/dev/sdb") || !broken.Configured() {
		t.Errorf("EPHEMERAL has data: %t, /dev/sdb has data: %t", broken.Holds("EPHEMERAL"), broken.Holds("/dev/sdb"))
	}

	members, err := b.EtcdMembers(t.Context())
	if err != nil || len(members) != 3 {
		t.Errorf("members %v, %v", members, err)
	}
}

// The action does the same, and wipes a user disk alone where that is all that is named.
func TestReset_action(t *testing.T) {
	t.Parallel()

	b := sitetest.NewLiving(t, sim.Options{})
	machine := b.ControlPlane[0]

	progress, diagnostics := invoke(t, "talosop_machine_reset", tftest.Config{"cluster": b.Handle,
		"machines": []any{machine.Address().String()}, "user_disks": []any{"/dev/sdz"}})
	if !strings.Contains(diagnostics, "it has no disk /dev/sdz") || len(progress) > 0 {
		t.Error(progress, diagnostics)
	}

	machine.Write("EPHEMERAL")

	progress, diagnostics = invoke(t, "talosop_machine_reset", tftest.Config{"cluster": b.Handle,
		"machines": []any{machine.Address().String()}})
	if line := "finished: wipe EPHEMERAL of " + machine.Address().String() + " and reboot it (drain, wait for volumes)"; diagnostics != "" ||
		!slices.Contains(progress, line) {
		t.Errorf("%q is not told: %q, %s", line, progress, diagnostics)
	}

	if machine.Holds("EPHEMERAL") {
		t.Error("EPHEMERAL has its data")
	}
}

// What a reset must not wipe is refused at plan time, at the exact attribute.
func TestReset_mistakes(t *testing.T) {
	t.Parallel()

	handle := tftest.Config{"name": "test", "endpoint": "https://10.0.0.10:6443", "secrets": tftest.Bundle(),
		"talos_endpoints": []any{"10.0.0.11"}}

	for name, test := range map[string]struct {
		config tftest.Config
		at     string
		says   []string
	}{
		"STATE": {tftest.Config{"wipe": []any{"EPHEMERAL", "STATE"}}, `AttributeName("wipe").ElementKeyInt(1)`,
			[]string{"[reset_volume_not_wiped]", `Found "STATE", without which`, "remove it from its resource"}},
		"an unknown label": {tftest.Config{"wipe": []any{"BOOT"}}, `AttributeName("wipe").ElementKeyInt(0)`,
			[]string{"[reset_volume_not_wiped]", `Found "BOOT".`, "talosctl get volumestatus"}},
		"no volumes":       {tftest.Config{"wipe": []any{}}, `AttributeName("wipe")`, []string{"at least 1"}},
		"a link to a disk": {tftest.Config{"user_disks": []any{"/dev/disk/by-id/a"}}, `AttributeName("user_disks").ElementKeyInt(0)`, []string{"[reset_disk_not_a_path]"}},
	} {
		test.config["cluster"], test.config["machines"] = handle, []any{"10.0.0.11"}

		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tftest.ExpectMistake(t, tftest.Validate(t, "talosop_machine_reset", test.config), test.at, test.says, false)
		})
	}

	pods := tftest.Config{"name": "test", "endpoint": "https://10.0.0.10:6443", "secrets": tftest.Bundle(), "mode": "container",
		"talos_endpoints": []any{"10.0.0.11"}}
	planned := tftest.Drive(t, "talosop_machine_reset", nil).Plan(t, tftest.Config{"cluster": pods, "machines": []any{"cp-0"}})
	tftest.ExpectMistake(t, planned.Diagnostics, `AttributeName("cluster").AttributeName("mode")`, []string{"[reset_of_pods]"}, false)
}

// With unknown disks, a plan says nothing about what is wiped.
func TestReset_unknownDisks(t *testing.T) {
	t.Parallel()

	planned := tftest.Drive(t, "talosop_machine_reset", nil).Plan(t, tftest.Config{"cluster": tftest.Config{"name": "test",
		"endpoint": "https://10.0.0.10:6443", "secrets": tftest.Bundle(), "talos_endpoints": []any{"10.0.0.11"}},
		"machines": []any{"10.0.0.11"}, "user_disks": tftest.Unknown{}})

	if shown := tftest.Show(planned.Diagnostics); shown != "" || tftest.AttributeOf(t, planned.Value, "operations").IsKnown() {
		t.Error(shown, tftest.AttributeOf(t, planned.Value, "operations"))
	}
}
