package machineset

import (
	"fmt"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// Control planes are downgraded where etcd can be, and refused with the reason elsewhere.
func TestEtcdObstacle_byTheVersionsOfTalos(t *testing.T) {
	t.Parallel()

	for _, test := range []struct{ from, to, says string }{
		{"v1.14.1", "v1.13.6", ""},
		{"v1.13.6", "v1.12.4", ""},
		{"v1.14.1", "v1.14.0", ""},
		{"v1.11.6", "v1.10.9", "talos_loses_etcd"},
		{"v1.14.1", "v1.12.4", "talos_etcd_step"},
	} {
		from, errFrom := machineconfig.ParseTalosVersion(test.from)
		to, errTo := machineconfig.ParseTalosVersion(test.to)

		if errFrom != nil || errTo != nil {
			t.Fatal(errFrom, errTo)
		}

		same(t, test.from+" to "+test.to, etcdObstacle(from, to).code(), test.says)
	}
}

// An etcd image in a configuration must be one that Talos starts, and not older than the running one.
func TestEtcdImageMisfit_byTalosAndData(t *testing.T) {
	t.Parallel()

	for _, test := range []struct{ pinned, runs, talos, says string }{
		{"3.6", "3.6", "v1.14.1", ""},
		{"3.7", "3.7", "v1.14.1", ""},
		{"3.6", "", "v1.13.6", ""},
		{"3.7", "3.7", "v1.13.6", "etcd_image_too_new"},
		{"3.5", "3.5", "v1.14.1", "etcd_image_too_old"},
		{"3.6", "3.7", "v1.14.1", "etcd_image_downgrade"},
		{"3.6", "3.7", "v1.13.6", "etcd_image_downgrade"},
	} {
		why := obstacle{why: etcdImageMisfit(test.pinned, test.runs, test.talos)}
		same(t, fmt.Sprintf("image %s, %s runs, Talos %s", test.pinned, test.runs, test.talos), why.code(), test.says)
	}
}

// A plan begins with the etcd downgrade that a refresh observed: it does not enable it again, or cancels it.
func TestAssume_knowsThatEtcdGoesBack(t *testing.T) {
	t.Parallel()

	member := step.MachineState{Access: step.Member, Role: step.ControlPlane, Stage: step.StageRunning, Ready: true,
		TalosVersion: "v1.14.1", ConfigDigest: "d", UUID: "u"}
	stored := Record{Machines: map[string]step.MachineState{"cp-1": member},
		Seen: record.Machines{"cp-1": {Drift: record.Drift{{Kind: record.EtcdGoesBack, Wanted: "3.6"}}}}}

	for talos, want := range map[string]string{
		"v1.14.1": "cancel the etcd downgrade to 3.6 (through cp-1; no restart)",
		"v1.13.6": "upgrade Talos on cp-1: v1.14.1 -> v1.13.6 (reboot)",
	} {
		spec := cluster.Spec{Bootstrapped: true, NodesBecomeReady: true, Machines: []cluster.Machine{{Name: "cp-1",
			Role: step.ControlPlane, Wanted: cluster.Wanted{Address: "10.0.0.1", UUID: "u"},
			Configured:   cluster.Configured{ConfigDigest: "d"},
			Installation: cluster.Installation{TalosVersion: talos, AllowDowngrade: true}}}}

		steps, _ := cluster.Forecast(spec, stored.Assume(spec), cluster.DefaultPolicy())
		if len(steps) == 0 || steps[0].String() != want {
			t.Errorf("%s: %v, want first %q", talos, steps, want)
		}
	}
}

func TestMinor_ofTheImageInAConfiguration(t *testing.T) {
	t.Parallel()

	for image, want := range map[string]string{
		"registry.k8s.io/etcd:v3.6.12": "3.6", "gcr.io/etcd-development/etcd:v3.5.21": "3.5", "registry:5000/etcd:3.7.1-0": "3.7",
		"registry.k8s.io/etcd:v3.6.12@sha256:00": "3.6", "registry:5000/etcd": "", "registry.k8s.io/etcd:latest": "",
	} {
		config := "version: v1alpha1\ncluster:\n    etcd:\n        image: " + image + "\n---\nkind: KubeletConfig\n"
		if got := etcdMinor([]byte(config)); got != want {
			t.Errorf("%s: %q, want %q", image, got, want)
		}
	}

	for _, config := range []string{"", "cluster: {etcd: {ca: {}}}\n", "not: [yaml", "kind: KubeletConfig\n"} {
		if got := etcdMinor([]byte(config)); got != "" {
			t.Errorf("%q: %q, want none", config, got)
		}
	}
}
