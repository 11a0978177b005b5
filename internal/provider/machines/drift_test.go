package machines

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// After a failed update, operations are what the next apply has to do: without what was done, and no more than the
// plan said.
func TestOperations_remainingAfterAFailedUpdate(t *testing.T) {
	t.Parallel()

	p := listing(map[string]string{"batch/w-1": "10.0.0.11", "batch/w-2": "10.0.0.12"})

	tagged := p.Machines["batch/w-2"]
	tagged.Meta.Values = map[string]string{"0x0c": "tag"} // not written yet
	p.Machines["batch/w-2"] = tagged

	want := p.Spec(machineset.PriorState{Record: machineset.Record{Phase: cluster.Ready}},
		machineset.Rendered{Machines: map[string]cluster.Configured{"batch/w-1": {ConfigDigest: "new"}, "batch/w-2": {ConfigDigest: "new"}}})

	for i := range want.Machines {
		want.Machines[i].TalosVersion, want.Machines[i].Installer = "v1.13.2", "installer"
	}

	states := map[string]step.MachineState{}
	for name, version := range map[string]string{"batch/w-1": "v1.13.2", "batch/w-2": "v1.13.0"} {
		states[name] = step.MachineState{
			Access: step.Member, Role: step.Worker, Stage: step.StageRunning, Ready: true, UUID: hardwareOf(name),
			TalosVersion: version, NodeName: name, ConfigDigest: "new",
		}
	}

	have := snapshotOf(states)
	have.Kubernetes = kubestate.State{Reachable: true,
		Nodes: []kubestate.Node{{Name: "batch/w-1", Ready: true}, {Name: "batch/w-2", Ready: true}}}

	m := providerdata.NewProviderData()
	done := run{began: true, want: want, err: errors.Join(errStopped), result: lifecycle.Result{Snapshot: have}}
	state := CommonModel{observations: noObservations(), lifecycleModel: lifecycleModel{Phase: types.StringValue("Ready"),
		Operations: tf.TextList([]string{"old"})}}

	remains, diags := remaining(t.Context(), m, p, done, state)
	if diags.HasError() {
		t.Fatal(diags)
	}

	if texts, _ := tf.KnownStrings(remains.operations); len(texts) == 0 || !slices.Contains(texts, "write META 0x0c of batch/w-2") ||
		!strings.HasPrefix(texts[0], "upgrade Talos on batch/w-2: v1.13.0 -> v1.13.2") ||
		slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, "w-1") }) {
		t.Errorf("what remains is %q", texts)
	}

	done.remains = remains

	stored := state
	stored.settle(done, state, state)

	if !stored.Operations.Equal(remains.operations) {
		t.Errorf("stored is %s", stored.Operations)
	}
}

// A configuration that this build cannot read prevents neither the observation of a machine nor a plan: the run asks
// Talos.
func TestRebootFor_unreadableConfiguration(t *testing.T) {
	t.Parallel()

	const newer = "version: v1alpha1\nmachine:\n  type: worker\n  future: 1\ncluster: {}\n"

	known := []byte("version: v1alpha1\nmachine:\n  type: worker\ncluster: {}\n")
	hook := providerdata.NewProviderData().WithConfigurations(
		machineset.Rendered{Configs: map[string][]byte{"w-1": known}}).Talos.RebootFor

	if fields, err := hook("w-1", "v1.13.0", []byte(newer)); err != nil || len(fields) > 0 {
		t.Errorf("a machine that runs it reboots for %q (%v)", fields, err)
	}

	// Talos 1.14 would not report that a reboot is missing.
	if fields, err := hook("w-1", "v1.14.1", []byte(newer)); err != nil || len(fields) != 1 {
		t.Errorf("a machine of Talos 1.14 that runs it reboots for %q (%v)", fields, err)
	}

	if _, err := hook("w-1", "v1.13.0", []byte("machine: [")); err == nil {
		t.Error("what is no configuration at all is compared")
	}
}

// withoutDrift is a control plane cp-1 and a worker w-1 without drift.
func withoutDrift() (cluster.Spec, cluster.Snapshot) {
	want := cluster.Spec{Machines: []cluster.Machine{
		{Name: "cp-1", Role: step.ControlPlane, Wanted: cluster.Wanted{Address: "10.0.0.1"}, Installation: cluster.Installation{TalosVersion: "v1.13.0"}},
		{Name: "w-1", Role: step.Worker, Wanted: cluster.Wanted{Address: "10.0.0.11"}, Installation: cluster.Installation{TalosVersion: "v1.13.0"}},
	}}
	have := snapshotOf(map[string]step.MachineState{
		"cp-1": {Access: step.Member, TalosVersion: "v1.13.0", NodeName: "cp-1"},
		"w-1":  {Access: step.Member, TalosVersion: "v1.13.0", NodeName: "w-1"},
	})
	have.Etcd = etcdstate.State{Known: true, Members: []etcdstate.Member{{ID: "1", Name: "cp-1"}}}
	have.Kubernetes = kubestate.State{Reachable: true, Nodes: []kubestate.Node{{Name: "cp-1"}, {Name: "w-1"}}}

	return want, have
}

// listing is a pool of workers and control planes (cp-…) by name: an address and, after a space, a UUID.
func listing(machines map[string]string) machineset.Set {
	planes := &machineset.Group{Role: step.ControlPlane, At: finding.Root("control_plane")}
	workers := &machineset.Group{Role: step.Worker, At: finding.Root("workers").AtMapKey("batch"), Prefix: "batch/",
		Pool: "batch"}
	p := machineset.Set{Groups: []*machineset.Group{planes, workers}, Machines: map[string]machineset.Machine{}}

	for name, text := range machines {
		address, uuid, _ := strings.Cut(text, " ")
		m := machineset.Machine{Group: planes, Key: name, Wanted: cluster.Wanted{Address: address, UUID: uuid}}

		if key, worker := strings.CutPrefix(name, "batch/"); worker {
			m.Group, m.Key = workers, key
		}

		p.Machines[name] = m
	}

	return p
}
