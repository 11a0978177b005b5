package machines

import (
	"maps"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// Observations of Kubernetes on a machine are recorded and read back. While the API is unreachable, the last
// versions are kept, and the images are those that the machine reports.
func TestRecord_ofKubernetesOfMachines(t *testing.T) {
	t.Parallel()

	want, have := withoutDrift()
	images := kubenames.Images{kubenames.KubeAPIServer: "api@sha256:1", kubenames.Kubelet: "kubelet:v1.36.3"}
	state := have.Machines["cp-1"]
	state.Images = images
	have.Machines["cp-1"] = state
	have.Kubernetes.Nodes[0] = kubestate.Node{Name: "cp-1", KubeletVersion: "v1.36.3",
		StaticPods: map[string]kubestate.StaticPod{
			"kube-apiserver": {Image: "registry.k8s.io/kube-apiserver:v1.36.3", Ready: true},
			"kube-scheduler": {Image: "scheduler@sha256:1"}, "other": {Image: "other:v1.0.0"},
		}}

	seen := observed(want, have, nil)
	running := map[kubenames.Component]string{kubenames.KubeAPIServer: "v1.36.3", kubenames.Kubelet: "v1.36.3"}

	expect := func(when string, seen record.Machines, images kubenames.Images) {
		t.Helper()

		recorded, diags := storedAs(seen).Recorded(t.Context(), machineset.Set{})
		if diags.HasError() {
			t.Fatal(diags)
		}

		if got := recorded.Machines["cp-1"].Images; !maps.Equal(got, images) {
			t.Errorf("%s: the images are %v", when, got)
		}

		if got := recorded.Seen["cp-1"].Running; !maps.Equal(got, running) {
			t.Errorf("%s: what runs is %v", when, got)
		}

		if recorded.Machines["w-1"].Images != nil {
			t.Errorf("%s: a machine that was not asked has images %v", when, recorded.Machines["w-1"].Images)
		}
	}

	expect("seen", seen, images)

	images = kubenames.Images{}
	state.Images = images
	have.Machines["cp-1"] = state
	have.Kubernetes = kubestate.State{}
	expect("without Kubernetes", observed(want, have, seen), images)
}

// The record of bootstrap manifests changes once they are synced: a run that stopped before keeps the previous
// version.
func TestRecord_ofBootstrapManifestsOnceSynced(t *testing.T) {
	t.Parallel()

	planes, _ := withoutDrift()
	planes.Kubernetes.Version = kubernetesAfter

	workers := planes
	workers.Machines = planes.Machines[1:]

	api := step.UpgradeComponent{Machine: "cp-1", Component: kubenames.KubeAPIServer, From: "api:" + kubernetesBefore,
		Image: "api:" + kubernetesAfter}

	for name, test := range map[string]struct {
		want   cluster.Spec
		err    error
		done   []step.Step
		synced string
		before types.String
		after  types.String
	}{
		"created": {want: planes, before: types.StringNull(),
			after: types.StringValue(kubernetesAfter)},
		"create not finished": {want: planes, err: errStopped, before: types.StringNull(),
			after: types.StringValue(kubernetesAfter)},
		"create took over an older one": {want: planes, err: errStopped, done: []step.Step{api},
			before: types.StringNull(), after: types.StringValue(kubernetesBefore)},
		"upgraded": {want: planes, before: types.StringValue(kubernetesBefore),
			after: types.StringValue(kubernetesAfter)},
		"upgrade not finished": {want: planes, err: errStopped, before: types.StringValue("v1.34.1"),
			after: types.StringValue("v1.34.1")},
		"upgrade stopped after one step": {want: planes, err: errStopped, synced: kubernetesBefore,
			before: types.StringValue("v1.34.1"), after: types.StringValue(kubernetesBefore)},
		"workers have none": {want: workers, before: types.StringNull(), after: types.StringNull()},
	} {
		done := run{began: true, want: test.want, err: test.err, result: lifecycle.Result{Done: test.done}}
		done.result.Snapshot.Kubernetes.Manifests = test.synced

		if got := done.manifests(test.before); !got.Equal(test.after) {
			t.Errorf("%s: recorded is %s", name, got)
		}
	}
}

// The versions before and after an upgrade.
const (
	kubernetesBefore = "v1.35.4"
	kubernetesAfter  = "v1.36.3"
)
