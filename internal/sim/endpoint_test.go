package sim_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// asked waits for some more answers, good or bad ones.
func asked(t *testing.T, p *sim.Poller, failed bool) {
	t.Helper()

	requests, failures := p.Count()
	good := requests - len(failures)

	eventually(t, "more answers", func(context.Context) error {
		now, bad := p.Count()
		if failed && len(bad) < len(failures)+3 || !failed && now-len(bad) < good+3 {
			return errors.New("too few")
		}

		return nil
	})
}

// A load balancer forwards to any server that answers: clients notice nothing while the API servers of a cluster
// are replaced one by one.
func TestEndpoint_loadBalancerAlwaysAnswers(t *testing.T) {
	simulator := sim.ForTest(t, sim.Options{Log: t.Logf})
	cps := addMachines(t, simulator, "cp", 3)
	cluster := newTestCluster(t, simulator)

	endpoint, err := simulator.LoadBalancer()
	check(t, err)

	cluster.input.ControlPlaneEndpoint = endpoint
	cluster.create(cps, nil)
	kube := cluster.kubernetes(cps[0])

	for _, m := range cps {
		eventually(t, "API server", func(context.Context) error { return serves(cluster.apiOf(m), "v1.35.2") })
	}

	poller, err := sim.Poll(t.Context(), cluster.restConfig(cps[0]), 2*time.Millisecond, 10*time.Second)
	check(t, err)
	t.Cleanup(poller.Stop)

	for _, m := range cps {
		cluster.setImage(m, apiServerImage, "v1.36.0")
		eventually(t, "new API server", func(context.Context) error { return serves(cluster.apiOf(m), "v1.36.0") })
		cluster.settled(kube, m, k8s.APIServerID, apiServerImage+":v1.36.0")
	}

	asked(t, poller, false)

	if requests, failures := poller.Count(); len(failures) > 0 {
		t.Errorf("%d of %d requests failed, the first with %v", len(failures), requests, failures[0])
	}

	check(t, simulator.DropEndpoint(endpoint))
	asked(t, poller, true)
	check(t, simulator.RestoreEndpoint(endpoint))
	asked(t, poller, false)
}

// A virtual IP stays where it is while the API server behind it is broken, and moves
// with its holder's kubelet.
func TestEndpoint_virtualIPMovesWithTheKubelet(t *testing.T) {
	simulator := sim.ForTest(t, sim.Options{Log: t.Logf})
	cps := addMachines(t, simulator, "cp", 3)
	cluster := newTestCluster(t, simulator)
	endpoint := cluster.input.ControlPlaneEndpoint
	cluster.create(cps, nil)

	for _, m := range cps {
		eventually(t, "API server", func(context.Context) error { return serves(cluster.apiOf(m), "v1.35.2") })
	}

	poller, err := sim.Poll(t.Context(), cluster.restConfig(cps[0]), 2*time.Millisecond, 10*time.Second)
	check(t, err)
	t.Cleanup(poller.Stop)
	asked(t, poller, false)

	for _, m := range cps {
		m.BreakComponent(k8s.APIServerID, "v1.35.2")

		if simulator.EndpointHolder(endpoint) == m {
			break
		}

		m.RepairComponent(k8s.APIServerID, "v1.35.2")
	}

	holder := simulator.EndpointHolder(endpoint)
	asked(t, poller, true)

	if now := simulator.EndpointHolder(endpoint); now != holder {
		t.Errorf("the virtual IP moved from %s to %s", holder.Name(), now.Name())
	}

	cluster.setImage(holder, kubeletImage, "v1.36.0")
	asked(t, poller, false)

	if simulator.EndpointHolder(endpoint) == holder {
		t.Errorf("the virtual IP is still at %s", holder.Name())
	}

	holder.RepairComponent(k8s.APIServerID, "v1.35.2") // it may get the address again
	check(t, simulator.DropEndpoint(endpoint))
	asked(t, poller, true)
	check(t, simulator.RestoreEndpoint(endpoint))
	asked(t, poller, false)
}
