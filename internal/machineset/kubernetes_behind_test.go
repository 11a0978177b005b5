package machineset

import (
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
)

// A plan reports once that kubelets may wait for other resources, and a run names each one.
func TestKubeletsBehind_areNamed(t *testing.T) {
	t.Parallel()

	op := step.UpgradeComponent{Machine: "cp-1", Role: step.ControlPlane, Component: kubenames.Kubelet,
		From: "kubelet:v1.35.2", Image: "kubelet:v1.36.0", Awaits: true}
	other := op
	other.Machine = "cp-2"

	lines := Set{}.OperationsOf([]step.Step{op, other}, nil, nil)
	if want := []string{
		"kubelets change once no API server of the cluster is older, those of other resources included; else in a later apply",
		"upgrade kubelet on cp-1 and cp-2: v1.35.2 -> v1.36.0",
	}; !slices.Equal(lines, want) {
		t.Errorf("operations are %q", lines)
	}

	var f MachineForecast

	f.Add(op)

	if want := []step.Field{step.FieldKubernetesVersion}; !slices.Equal(f.Open, want) {
		t.Errorf("the plan leaves %v open, want %v", f.Open, want)
	}

	found := WarnOfBehind([]step.Kept{{Step: op, Reason: "kube-apiserver of node cp-2 runs v1.35.2, and no kubelet may be newer"}})
	if len(found) != 1 || !strings.Contains(found[0].Detail, "upgrade kubelet on cp-1: v1.35.2 -> v1.36.0: kube-apiserver of node cp-2 runs v1.35.2") {
		t.Errorf("the warning is %v", found)
	}

	if found := WarnOfBehind(nil); len(found) > 0 {
		t.Errorf("warned of nothing: %v", found)
	}
}
