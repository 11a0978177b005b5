package cluster_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// Without consent no etcd is bootstrapped, in any state of the machines. If no etcd answers, no machine gets its
// configuration either. With consent, the decision is that of a spec that needs none.
func TestPlan_bootstrapsOnlyWithConsent(t *testing.T) {
	const clusters = randomClusters / 4

	refused, joined := 0, 0

	for seed := range uint64(clusters) {
		random := rand.New(rand.NewPCG(seed, 1))
		want := randomSpec(random)
		have := randomSnapshot(random, want)

		want.Bootstrapped, want.RestoreFrom = false, ""
		allowed := cluster.Plan(want, have, cluster.DefaultPolicy())
		want.NeedsConsent = true
		decision := cluster.Plan(want, have, cluster.DefaultPolicy())

		if slices.ContainsFunc(decision.Steps, step.BeginsEtcd) {
			t.Fatalf("seed %d: it bootstraps without consent\n%+v\n%s", seed, have, render(decision))
		}

		switch answers := cluster.EtcdAnswers(want, have); {
		case want.OwnsBootstrap() && !answers && len(decision.Steps) > 0:
			t.Fatalf("seed %d: it does something while no etcd answers\n%+v\n%s", seed, have, render(decision))
		case want.OwnsBootstrap() && !answers:
			refused++
		case render(allowed) != render(decision):
			t.Fatalf("seed %d: consent matters where there is an etcd\n%s\n%s", seed, render(allowed), render(decision))
		default:
			joined++
		}
	}

	if least := clusters / 100; refused < least || joined < least {
		t.Errorf("%d were refused and %d joined", refused, joined)
	}
}
