package providerdata_test

import (
	"context"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/upgrade"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
)

// The plan of an upgrade of Kubernetes warns of objects that obstruct it, once in a cluster: with its control planes.
func TestWarnOfRemovals_problems(t *testing.T) {
	t.Parallel()

	m := providerdata.NewProviderData()
	m.Removals = func(context.Context, *providerdata.ProviderData, machineset.Set, machineset.UpgradeOf) (
		providerdata.UpgradeObstacles, error) {
		return providerdata.UpgradeObstacles{Obstacles: upgrade.Obstacles{Problems: []upgrade.Problem{
			{Code: upgrade.EvictionCode, Object: "PodDisruptionBudget shop/web", Reason: "none can be evicted"}}}}, nil
	}

	from, err := machineconfig.ParseKubernetesVersion("v1.35.4")
	if err != nil {
		t.Fatal(err)
	}

	to, err := machineconfig.ParseKubernetesVersion("v1.36.3")
	if err != nil {
		t.Fatal(err)
	}

	change := machineset.UpgradeOf{Path: machineset.KubernetesPath{Lowest: from, To: to},
		Machines: []cluster.Machine{{Name: "m-1"}}}

	for role, want := range map[step.Role]int{step.ControlPlane: 1, step.Worker: 0} {
		found := m.WarnOfRemovals(t.Context(), machineset.Set{Groups: []*machineset.Group{{Role: role}}}, change)
		if len(found) != want {
			t.Errorf("with %v it warns of %v, want %d warnings", role, found, want)
		}

		for _, f := range found {
			if f.Code != "upgrade_obstructed" || !strings.Contains(f.Detail,
				"PodDisruptionBudget shop/web: none can be evicted") {
				t.Errorf("it warns of %s: %s", f.Code, f.Detail)
			}
		}
	}
}
