package cluster_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
)

func TestImageAt_replacesTheVersion(t *testing.T) {
	for _, c := range []struct{ image, want string }{
		{"registry.k8s.io/kube-apiserver:v1.36.3", "registry.k8s.io/kube-apiserver:v1.35.4"},
		{"my.reg:5000/a/b/kubelet:v1.36.3-slim", "my.reg:5000/a/b/kubelet:v1.35.4-slim"},
		{"my.reg/kubelet:v1.36.3+patched", "my.reg/kubelet:v1.35.4+patched"},
		{"my.reg/kubelet:v1.36.3_fat", "my.reg/kubelet:v1.35.4_fat"},
		{"my.reg/kubelet:v1.36.30", "my.reg/kubelet:v1.36.30"},                   // another version
		{"my.reg/kubelet:v1.36.2", "my.reg/kubelet:v1.36.2"},                     // a version chosen by the user
		{"my.reg/kubelet:ours", "my.reg/kubelet:ours"},                           // no version
		{"my.reg:5000/kubelet", "my.reg:5000/kubelet"},                           // no tag
		{"my.reg/kubelet:v1.36.3@sha256:aa", "my.reg/kubelet:v1.36.3@sha256:aa"}, // pinned
		{"my.reg/kubelet@sha256:aa", "my.reg/kubelet@sha256:aa"},                 // pinned, without a tag
		{"my.reg/v1.36.3/kubelet:v1.36.3", "my.reg/v1.36.3/kubelet:v1.35.4"},     // also in the path
		{"", ""},
	} {
		if got := kubenames.ImageAt(c.image, "v1.36.3", "v1.35.4"); got != c.want {
			t.Errorf("kubenames.ImageAt(%q) = %q, want %q", c.image, got, c.want)
		}
	}
}

func TestImageVersion_ofReferences(t *testing.T) {
	for _, c := range []struct {
		image, version string
		ok             bool
	}{
		{"registry.k8s.io/kube-apiserver:v1.36.3", "v1.36.3", true},
		{"my.reg:5000/kubelet:v1.36.3-slim", "v1.36.3", true},
		{"my.reg/kubelet:v1.36.3@sha256:aa", "v1.36.3", true},
		{"my.reg/kubelet:ours", "", false},
		{"my.reg:5000/kubelet", "", false},
		{"my.reg/kubelet@sha256:aa", "", false},
		{"", "", false},
	} {
		if got, ok := kubenames.ImageVersion(c.image); got != c.version || ok != c.ok {
			t.Errorf("kubenames.ImageVersion(%q) = %q, %v, want %q, %v", c.image, got, ok, c.version, c.ok)
		}
	}
}

// workersOf is a pool of two workers on Kubernetes v1.34.2 that wants v1.36.3, in a cluster whose only API server
// runs another version.
func workersOf(t *testing.T, api string) (cluster.Spec, cluster.Snapshot) {
	t.Helper()

	policy := cluster.DefaultPolicy()
	want := parseSpec(t, `
bootstrapped
kubernetes v1.36.3 via=v1.35.4
w-1 worker 10.0.0.11 kubelet=my.reg:5000/k8s/kubelet:v1.36.3-slim
w-2 worker 10.0.0.12`, &policy)

	return want, parseSnapshot(t, want, `
nodes cp-1(controlplane) w-1 w-2
w-1 member stage=running ready pulled=v1.35.4
w-2 member stage=running ready pulled=v1.35.4
runs v1.34.2 w-2
runs w-1 kubelet=my.reg:5000/k8s/kubelet:v1.34.2-slim
runs `+api+` cp-1`)
}

// TestImages_areKept: registry, repository and suffix stay at every version on the path.
func TestImages_areKept(t *testing.T) {
	want, have := workersOf(t, "v1.36.3")

	steps, last := cluster.Forecast(want, have, cluster.DefaultPolicy())
	if !last.Done() {
		t.Fatal(render(last))
	}

	var got []string

	for _, op := range steps {
		if up, ok := op.(step.UpgradeComponent); ok {
			got = append(got, up.From+" "+up.Image)
		}
	}

	slices.Sort(got)

	if diff := cmp.Diff([]string{
		"my.reg:5000/k8s/kubelet:v1.34.2-slim my.reg:5000/k8s/kubelet:v1.35.4-slim",
		"my.reg:5000/k8s/kubelet:v1.35.4-slim my.reg:5000/k8s/kubelet:v1.36.3-slim",
		"registry.k8s.io/kubelet:v1.34.2 registry.k8s.io/kubelet:v1.35.4",
		"registry.k8s.io/kubelet:v1.35.4 registry.k8s.io/kubelet:v1.36.3",
	}, got); diff != "" {
		t.Errorf("images differ (-want +got):\n%s", diff)
	}
}

// TestPlan_yieldsToTheAPIServers: a run that waits for the API servers of another resource releases the lock for it.
// A run that waits for its own machines does not.
func TestPlan_yieldsToTheAPIServers(t *testing.T) {
	want, have := workersOf(t, "v1.34.2")
	if d := cluster.Plan(want, have, cluster.DefaultPolicy()); !d.Yields || len(d.Steps) > 0 || len(d.Holds) != 2 {
		t.Errorf("yields=%v\n%s", d.Yields, render(d))
	}

	want, have = workersOf(t, "v1.35.4")
	if d := cluster.Plan(want, have, cluster.DefaultPolicy()); d.Yields || len(d.Steps) != 1 {
		t.Errorf("yields=%v\n%s", d.Yields, render(d))
	}
}
