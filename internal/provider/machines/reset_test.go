package machines_test

import (
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
)

// A reset that would leave a machine with data of its cluster, or that Talos refuses, is refused at plan time at the
// exact attribute.
func TestReset_mistakes(t *testing.T) {
	t.Parallel()

	const own = `AttributeName("machines").ElementKeyString("cp-1").AttributeName("reset")`

	user := "apiVersion: v1alpha1\nkind: UserVolumeConfig\nname: data\nprovisioning: {diskSelector: {match: system_disk}, minSize: 1GB}\n"
	one := tftest.With(tftest.BaseControlPlane(), tftest.Config{"cp-1": tftest.Config{"address": "10.0.0.11"}}, "machines")

	for name, test := range map[string]struct {
		config tftest.Config
		at     string
		says   []string
	}{
		"an unknown volume": {
			config: tftest.With(tftest.BaseControlPlane(), tftest.Config{"wipe": []any{"STATE", "EPHEMERAL", "u-data"}}, "reset"),
			at:     `AttributeName("reset").AttributeName("wipe")`, says: []string{"[reset_volume_unknown]", "Found u-data", "has none"},
		},
		"a mode of talosctl": {
			config: tftest.With(tftest.BaseControlPlane(), tftest.Config{"wipe": []any{"USER_DISKS"}}, "machines", "cp-1", "reset"),
			at:     own + `.AttributeName("wipe")`, says: []string{"[reset_volume_unknown]", "belong in `user_disks`"},
		},
		"a system disk with volumes": {
			config: tftest.With(tftest.BaseControlPlane(), tftest.Config{"wipe": []any{"SYSTEM_DISK", "STATE"}}, "reset"),
			at:     `AttributeName("reset").AttributeName("wipe")`, says: []string{"[reset_disk_and_volumes]"},
		},
		"without STATE": {
			config: tftest.With(tftest.BaseControlPlane(), tftest.Config{"wipe": []any{"EPHEMERAL"}}, "reset"),
			at:     `AttributeName("reset").AttributeName("wipe")`, says: []string{"[reset_keeps_state]", "talosop_machine_reset"},
		},
		"a control plane without EPHEMERAL": {
			config: tftest.With(tftest.BaseControlPlane(), tftest.Config{"wipe": []any{"STATE"}}, "machines", "cp-1", "reset"),
			at:     own + `.AttributeName("wipe")`, says: []string{"[reset_keeps_etcd]"},
		},
		"the last control plane": {
			config: tftest.With(one, tftest.Config{"graceful": true}, "reset"),
			at:     `AttributeName("reset").AttributeName("graceful")`, says: []string{"[reset_of_the_last_graceful]", "cp-1"},
		},
		"a link to a disk": {
			config: tftest.With(tftest.BaseControlPlane(), tftest.Config{"user_disks": []any{"/dev/disk/by-id/x"}}, "reset"),
			at:     `AttributeName("reset").AttributeName("user_disks").ElementKeyInt(0)`, says: []string{"[reset_disk_not_a_path]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tftest.ExpectMistake(t, tftest.Validate(t, "talosop_control_plane", test.config), test.at, test.says, false)
		})
	}

	valid := tftest.With(tftest.With(tftest.BaseControlPlane(), []any{user}, "config_patches"), tftest.Config{
		"wipe": []any{"STATE", "EPHEMERAL", "META", "u-data"}, "user_disks": []any{"/dev/sdb"}, "graceful": true, "reboot": false},
		"reset")
	if found := tftest.Validate(t, "talosop_control_plane", valid); len(found) > 0 {
		t.Error(tftest.Show(found))
	}

	worker := tftest.With(tftest.BaseWorker(), tftest.Config{"wipe": []any{"STATE"}, "graceful": true}, "reset")
	if found := tftest.Validate(t, "talosop_worker", worker); len(found) > 0 {
		t.Error(tftest.Show(found))
	}
}

// workersWithTwoDisks adds two machines to a living cluster, and returns them as `machines`, and in a
// configuration of workers.
func workersWithTwoDisks(t *testing.T, b *sitetest.Living) (workers []*sim.Machine, machines, config tftest.Config) {
	t.Helper()

	workers, err := b.AddMachines(t.Context(), "w", 2, sim.MachineOptions{Disks: []machined.Disk{
		{Path: "/dev/sda", Size: 20 << 30}, {Path: "/dev/sdb", Size: 10 << 30}}})
	tftest.Must(t, err)

	machines = tftest.Config{}
	for _, w := range workers {
		machines[w.Name()] = tftest.Config{"address": w.Address().String()}
	}

	b.Handle["version_contract"] = "v1.13"

	config = tftest.BaseWorker()
	config["cluster"], config["machines"] = b.Handle, machines

	return workers, machines, config
}

// Machines leave as last applied: the warning of the plan names what is wiped and the user volumes that stay.
func TestReset_ofMachinesThatLeave(t *testing.T) {
	t.Parallel()

	b := sitetest.NewLiving(t, sim.Options{})

	workers, machines, config := workersWithTwoDisks(t, b)
	config["config_patches"] = []any{"apiVersion: v1alpha1\nkind: UserVolumeConfig\nname: data\n" +
		"provisioning: {diskSelector: {match: system_disk}, minSize: 1GB}\n---\napiVersion: v1alpha1\nkind: RawVolumeConfig\n" +
		"name: blocks\nprovisioning: {diskSelector: {match: system_disk}, minSize: 1GB}\n"}

	d := tftest.Drive(t, "talosop_worker", nil)
	d.Apply(t, config).Must(t)

	for _, w := range workers {
		w.Write("u-data")
		w.Write("/dev/sdb")
	}

	boots := workers[1].Boots()
	config["reset"] = tftest.Config{"wipe": []any{"STATE", "EPHEMERAL", "r-blocks"}, "user_disks": []any{"/dev/sdb"},
		"reboot": false}

	if planned := d.Plan(t, config); len(tftest.TextsOf(t, tftest.AttributeOf(t, planned.Value, "operations"))) > 0 {
		t.Error("a change of reset plans operations")
	}

	d.Apply(t, config).Must(t)
	d.ExpectEmpty(t, "after a change of reset", config)

	if workers[1].Boots() != boots {
		t.Error("a change of reset touched a machine")
	}

	config["machines"] = tftest.Config{workers[0].Name(): machines[workers[0].Name()]}
	name := workers[1].Name()

	d.Plan(t, config).Tells(t, "[machines_wiped]", "EPHEMERAL, STATE, r-blocks, /dev/sdb ("+name+")", "User volumes that stay:",
		"u-data ("+name+")")

	done := d.Apply(t, config).Must(t)
	if shown := tftest.Show(done.Diagnostics); strings.Contains(shown, "[reset_not_finished]") {
		t.Error(shown)
	}

	if !workers[1].Holds("u-data") || workers[1].Holds("/dev/sdb") || workers[1].Configured() {
		t.Errorf("%s was wiped otherwise", name)
	}

	d.ExpectEmpty(t, "after the removal", config)
}

// A machine leaves although Talos failed to wipe it, at a removal and at a destroy. The warning names what is left on
// it, and the state forgets it.
func TestReset_failedWipe(t *testing.T) {
	t.Parallel()

	b := sitetest.NewLiving(t, sim.Options{})

	workers, machines, config := workersWithTwoDisks(t, b)
	for _, w := range workers {
		w.Write("/dev/sdb")
	}

	config["reset"] = tftest.Config{"user_disks": []any{"/dev/sdb"}}

	d := tftest.Drive(t, "talosop_worker", nil)
	d.Apply(t, config).Must(t)

	removed, destroyed := workers[1], workers[0]
	config["machines"] = tftest.Config{destroyed.Name(): machines[destroyed.Name()]}

	removed.FailDrop()
	d.Apply(t, config).Must(t).Tells(t, "[wipe_failed]", removed.Name()+": /dev/sdb", "talosctl wipe disk")
	d.ExpectEmpty(t, "after the removal", config)

	destroyed.FailWipe("EPHEMERAL")
	d.Apply(t, nil).Must(t).Tells(t, "[wipe_failed]", destroyed.Name()+": /dev/sdb, EPHEMERAL")

	if removed.Configured() || destroyed.Configured() {
		t.Error("a machine is still configured")
	}
}
