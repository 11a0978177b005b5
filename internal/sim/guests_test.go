package sim_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// TestCNI_installedLater holds what an addon with the pod network needs: the node becomes Ready when it
// runs, and after a reboot without it.
func TestCNI_installedLater(t *testing.T) {
	simulator := sim.ForTest(t, sim.Options{})
	m := addMachines(t, simulator, "cp", 1)[0]
	cluster := newTestCluster(t, simulator)
	cluster.cni = constants.NoneCNI

	cluster.apply(m, machinetype.TypeControlPlane)
	cluster.bootstrap(m)
	check(t, m.AwaitStage(within(t, time.Minute), sim.StageRunning))

	eventually(t, "node", func(ctx context.Context) error {
		return second(cluster.kubernetes(m).CoreV1().Nodes().Get(ctx, m.Hostname(), metav1.GetOptions{}))
	})

	if ready, _ := m.Ready(); ready {
		t.Fatal("the machine is ready without a CNI")
	}

	m.InstallCNI()
	m.InstallCNI()
	check(t, m.AwaitReady(within(t, time.Minute)))

	m.PowerOff()
	m.PowerOn()
	check(t, m.AwaitReady(within(t, time.Minute)))
}

// TestWorkloads_runBySomethingElse: the simulator does not report running workloads when a guest does.
func TestWorkloads_runBySomethingElse(t *testing.T) {
	simulator := sim.ForTest(t, sim.Options{})
	simulator.HandOverWorkloads()

	cps := addMachines(t, simulator, "cp", 1)
	cluster := newTestCluster(t, simulator)
	cluster.create(cps, nil)

	kube := cluster.kubernetes(cps[0])
	addWorkloads(t, kube, template("registry.example/x:1"))

	// Longer than the simulator would take.
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()

	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()

	for ; ctx.Err() == nil; <-again.C {
		d, err := kube.AppsV1().Deployments("kube-system").Get(t.Context(), "x", metav1.GetOptions{})
		check(t, err)

		if d.Status.ObservedGeneration != 0 {
			t.Fatalf("status %+v", d.Status)
		}
	}
}

func TestGuests_needRealParts(t *testing.T) {
	if _, err := sim.ForTest(t, sim.Options{}).StartGuest("true", "/bin/true"); err == nil {
		t.Error("a guest started in a site without real parts")
	}
}

func TestGuests_startAndEnd(t *testing.T) {
	simulator := sim.ForTest(t, sim.Options{Assets: filepath.Dir(asset(t, "kube-apiserver"))})

	short, err := simulator.StartGuest("true", "/bin/true")
	check(t, err)

	select {
	case <-short.Gone():
	case <-within(t, time.Minute).Done():
		t.Error(errors.New("its end is not noticed"))
	}

	long, err := simulator.StartGuest("sleep", "/bin/sleep", "3600")
	check(t, err)
	long.Stop()
	<-long.Gone()
}
