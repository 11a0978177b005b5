package machineset

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/system"
)

// running is the record of a set whose machines run what it wants.
func running(t *testing.T, p Set) Record {
	t.Helper()

	files, diags := p.RenderForPlan()
	if diags.HasError() {
		t.Fatal(diags)
	}

	record := recordOf(p)
	for name, state := range record.Machines {
		state.ConfigDigest, state.TalosVersion, state.Stage = files.Machines[name].ConfigDigest, "v1.14.1", step.StageRunning
		record.Machines[name] = state
	}

	return record
}

// disks is a set of three control planes and a worker with the volumes of their groups.
func disks(secrets string, planes, workers system.Settings) Set {
	p := listing(map[string]string{"cp-1": "10.0.0.1", "cp-2": "10.0.0.2", "cp-3": "10.0.0.3",
		"batch/w-1": "10.0.0.11"})
	p.Secrets = secrets
	p.Settings = machineconfig.Cluster{Name: "prod", Endpoint: "https://10.0.0.10:6443", KubernetesVersion: "v1.35.2",
		Contract: "v1.13"}

	for name, m := range p.Machines {
		m.Group.TalosVersion = "v1.14.1"
		m.Config = machineconfig.Machine{Role: machineconfig.Role(m.Group.Role), System: planes, TalosVersion: "v1.14.1",
			Install: machineconfig.Install{Disk: "/dev/sda"}}

		if m.Group.Role == step.Worker {
			m.Config.System = workers
		}

		p.Machines[name] = m
	}

	return p
}

func withVolume(name string, v system.Volume) system.Settings {
	return system.Settings{Volumes: map[string]system.Volume{name: v}}
}

// A change that a disk with data does not accept is refused at its attribute, for the machines with data.
func TestForecastUpdate_refusesChangesOfVolumes(t *testing.T) {
	t.Parallel()

	secrets, err := os.ReadFile(filepath.Join("..", "pki", "testdata", "test-only-secrets.yaml"))
	if err != nil {
		t.Fatal(err)
	}

	var (
		etcd    = withVolume("ETCD", system.Volume{MinSize: "10GiB"})
		sealed  = withVolume("STATE", system.Volume{EncryptionKeys: map[string]system.Key{"0": {TPM: &system.TPM{}}}})
		plain   = system.Settings{}
		patched = func(p Set) {
			m := p.Machines["batch/w-1"]
			m.Config.Patches = []string{"apiVersion: v1alpha1\nkind: VolumeConfig\nname: LOG\nprovisioning:\n  minSize: 1GiB\n"}
			p.Machines["batch/w-1"] = m
		}
		own = func(p Set) {
			m := p.Machines["cp-2"]
			m.Config.System, m.OwnVolumes = etcd, true
			p.Machines["cp-2"] = m
		}
	)

	for name, test := range map[string]struct {
		planes, workers system.Settings
		before          system.Settings
		change          func(Set)
		gone            string
		at, says        string
	}{
		"a partition for etcd": {planes: etcd, at: `control_plane.system_volumes["ETCD"]`,
			says: "document: VolumeConfig/ETCD\nmachines: cp-1 | cp-2 | cp-3\nwhat: a directory of EPHEMERAL would become a separate partition\n"},
		"none any more": {before: etcd, at: "control_plane.system_volumes",
			says: "document: VolumeConfig/ETCD\nmachines: cp-1 | cp-2 | cp-3\nwhat: a separate partition would become a directory of EPHEMERAL\n"},
		"encrypted": {workers: sealed, at: `workers["batch"].system_volumes["STATE"]`,
			says: "document: VolumeConfig/STATE\nmachines: batch/w-1\nwhat: a plain volume would become an encrypted one\n"},
		"by patch": {change: patched, at: `workers["batch"].machines["w-1"]`,
			says: "document: VolumeConfig/LOG\nmachines: batch/w-1\nwhat: a directory of EPHEMERAL would become a separate partition\n"},
		"on one machine": {change: own, at: `control_plane.machines["cp-2"].system_volumes["ETCD"]`,
			says: "document: VolumeConfig/ETCD\nmachines: cp-2\n"},
		"on a machine that joins": {change: own, gone: "cp-2"},
		"on other hardware": {change: func(p Set) {
			own(p)

			m := p.Machines["cp-2"]
			m.UUID = other
			p.Machines["cp-2"] = m
		}},
		"a larger one": {before: etcd, planes: withVolume("ETCD", system.Volume{MinSize: "20GiB"})},
	} {
		t.Run(name, func(t *testing.T) {
			prior, p := disks(string(secrets), test.before, plain), disks(string(secrets), test.planes, test.workers)
			record := running(t, prior)

			if test.change != nil {
				test.change(p)
			}

			if test.gone != "" {
				delete(prior.Machines, test.gone)
				delete(record.Machines, test.gone)
				delete(record.Seen, test.gone)
			}

			_, found := p.ForecastUpdate(prior, record, cluster.DefaultPolicy())

			if test.says == "" {
				if found.HasError() {
					t.Error(found)
				}

				return
			}

			if len(found) != 1 || found[0].At.String() != test.at || !strings.Contains(args(found[0]), test.says) {
				t.Errorf("found %+v\nwant %s: %s", found, test.at, test.says)
			}
		})
	}
}
