package removals

import (
	"fmt"
	"slices"
	"testing"

	"github.com/siderolabs/go-kubernetes/kubernetes/upgrade"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
)

func TestOf(t *testing.T) {
	t.Parallel()

	server := Arguments(map[string][]string{
		"feature-gates":            {"HonorPVReclaimPolicy=true", "Other=true"},
		"enable-admission-plugins": {"NodeRestriction,PodSecurityPolicy"},
		"runtime-config": {"api/all=false,v1=true,apps/v1=true,scheduling.k8s.io/v1alpha1/workloads=true",
			"scheduling.k8s.io/v1alpha2=false,resource.k8s.io/v1beta2=true,none.example.com/v1=true"},
	})

	for _, test := range []struct {
		component kubenames.Component
		arguments []string
		minor     uint64
		want      []string
	}{
		{kubenames.KubeAPIServer, server, 35, []string{
			"admission plugin PodSecurityPolicy of kube-apiserver: v1.24 and older",
			"API version scheduling.k8s.io/v1alpha2 of kube-apiserver: v1.36",
			"API version none.example.com/v1 of kube-apiserver: no version",
		}},
		{kubenames.KubeAPIServer, server, 36, []string{
			"admission plugin PodSecurityPolicy of kube-apiserver: v1.24 and older",
			"feature gate HonorPVReclaimPolicy of kube-apiserver: v1.35 and older",
			"API version scheduling.k8s.io/v1alpha1 of kube-apiserver: v1.35 and older",
			"API version none.example.com/v1 of kube-apiserver: no version",
		}},
		{kubenames.KubeAPIServer, []string{"--runtime-config=resource.k8s.io/v1beta2=true"}, 32,
			[]string{"API version resource.k8s.io/v1beta2 of kube-apiserver: v1.33 and newer"}},
		{kubenames.KubeAPIServer, []string{"--runtime-config=storagemigration.k8s.io/v1alpha1=true"}, 35,
			[]string{"API version storagemigration.k8s.io/v1alpha1 of kube-apiserver: v1.30 to v1.34"}},
		// What a newer Kubernetes has is unknown.
		{kubenames.KubeAPIServer, []string{"--runtime-config=apps/v9=true"}, newest + 1, nil},
		{kubenames.KubeScheduler, server[1:2], 36,
			[]string{"feature gate HonorPVReclaimPolicy of kube-scheduler: v1.35 and older"}},
		{kubenames.Kubelet, []string{"--pod-infra-container-image=a", "--max-pods=200"}, 37,
			[]string{"flag --pod-infra-container-image of kubelet: v1.34 and older"}},
		{kubenames.Kubelet, nil, 37, nil},
	} {
		found, err := Of(test.component, test.arguments, test.minor)
		if err != nil {
			t.Fatal(err)
		}

		var got []string
		for _, s := range found {
			got = append(got, fmt.Sprint(s, ": ", s.Versions()))
		}

		if !slices.Equal(got, test.want) {
			t.Errorf("%s in 1.%d: %q, want %q", test.component, test.minor, got, test.want)
		}
	}
}

// The table knows every version that a cluster can be upgraded to.
func TestTable_isComplete(t *testing.T) {
	t.Parallel()

	for minor, want := range map[uint64]bool{newest: true, newest + 1: false} {
		version := fmt.Sprintf("1.%d.0", minor)

		path, err := upgrade.NewPath(version, version)
		if err != nil || path.IsSupported() != want {
			t.Errorf("go-kubernetes knows Kubernetes %s: %v (%v); raise newest in tools/groupversions", version, !want, err)
		}
	}
}

func TestGroupVersions(t *testing.T) {
	t.Parallel()

	got := GroupVersions(36)
	slices.Sort(got)

	want := []string{"autoscaling/v2beta1", "autoscaling/v2beta2", "scheduling.k8s.io/v1alpha1"}
	if !slices.Equal(got, want) || len(GroupVersions(newest+1)) > 0 {
		t.Errorf("removed in 1.36: %q, want %q", got, want)
	}
}
