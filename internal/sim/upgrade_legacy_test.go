package sim_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/meta"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/images"
)

func TestLegacyUpgrade_checksEtcd(t *testing.T) {
	cluster, cps := upgradeSite(t, 2, sim.Options{})
	ctx, talos := within(t, time.Minute), cluster.secure(cps[0])

	_, err := legacyUpgrade(ctx, talos, &machine.UpgradeRequest{Image: installer + newVersion})
	if status.Code(err) != codes.Unknown || !strings.Contains(err.Error(), "etcd member count(2) is insufficient") {
		t.Errorf("upgrade of one of two members: %v", err)
	}

	boot := cps[0].BootID()
	resp, err := legacyUpgrade(ctx, talos, &machine.UpgradeRequest{Image: installer + newVersion, Force: true})
	check(t, err)

	if resp.GetMessages()[0].GetAck() != "Upgrade request received" || resp.GetMessages()[0].GetActorId() == "" {
		t.Errorf("answer %v", resp)
	}

	awaitBoot(t, cps[0], boot)

	if got := cluster.reported(cps[0]); got != newVersion {
		t.Errorf("version %s, want %s", got, newVersion)
	}
}

func TestLegacyUpgrade_needsEveryMember(t *testing.T) {
	cluster, cps := upgradeSite(t, 3, sim.Options{})
	cps[2].PowerOff()

	_, err := legacyUpgrade(within(t, time.Minute), cluster.secure(cps[0]),
		&machine.UpgradeRequest{Image: installer + newVersion})
	if status.Code(err) != codes.Unknown || !strings.Contains(err.Error(), "is not healthy; all members must be healthy") {
		t.Errorf("upgrade while a member is off: %v", err)
	}
}

func TestLegacyUpgrade_refusedByTheInstaller(t *testing.T) {
	cluster, cps := upgradeSite(t, 1, sim.Options{})
	cp, talos := cps[0], cluster.secure(cps[0])
	ctx := within(t, time.Minute)

	check(t, cluster.sim.SetImage(installer+"v1.13.1", images.Image{Missing: true}))

	for _, reference := range []string{installer + "v1.13.1", "registry.k8s.io/pause:3.10"} {
		_, err := legacyUpgrade(ctx, talos, &machine.UpgradeRequest{Image: reference})
		if status.Code(err) != codes.Unknown ||
			!strings.Contains(err.Error(), fmt.Sprintf("error validating installer image %q", reference)) {
			t.Errorf("upgrade to %s: %v", reference, err)
		}
	}

	boot := cp.BootID()
	_, err := legacyUpgrade(ctx, talos, &machine.UpgradeRequest{Image: installer + "v1.16.0"})
	check(t, err)
	awaitBoot(t, cp, boot)

	if got := cluster.reported(cp); got != oldVersion {
		t.Errorf("version %s after a refused upgrade, want %s", got, oldVersion)
	}
}

func TestLegacyUpgrade_stagedRunsAtTheNextBoot(t *testing.T) {
	cluster, cps := upgradeSite(t, 1, sim.Options{})
	cp := cps[0]

	boot, boots := cp.BootID(), cp.Boots()
	_, err := legacyUpgrade(within(t, time.Minute), cluster.secure(cp),
		&machine.UpgradeRequest{Image: installer + newVersion, Stage: true})
	check(t, err)
	awaitBoot(t, cp, boot)

	if got := cluster.reported(cp); got != newVersion || cp.Boots()-boots != 2 {
		t.Errorf("version %s after %d boots, want %s after two", got, cp.Boots()-boots, newVersion)
	}

	if _, ok := cp.Meta()[meta.StagedUpgradeImageRef]; ok {
		t.Error("META still has the staged upgrade")
	}
}

// TestLegacyUpgrade_cordonsItsNode holds the machine between its two boots: Talos
// cordons before it goes, and uncordons afterwards only what it cordoned itself.
func TestLegacyUpgrade_cordonsItsNode(t *testing.T) {
	for name, byHand := range map[string]bool{"by Talos": false, "by another client": true} {
		t.Run(name, func(t *testing.T) {
			simulator := sim.ForTest(t, sim.Options{Log: t.Logf})
			cp, worker := addMachines(t, simulator, "cp", 1)[0], addMachines(t, simulator, "worker", 1)[0]
			cluster := newTestCluster(t, simulator)
			cluster.create([]*sim.Machine{cp}, []*sim.Machine{worker})
			nodes := cluster.kubernetes(cp).CoreV1().Nodes()

			node, err := nodes.Get(t.Context(), worker.Hostname(), metav1.GetOptions{})
			check(t, err)

			node.Spec.Unschedulable = byHand
			_, err = nodes.Update(t.Context(), node, metav1.UpdateOptions{})
			check(t, err)

			name, boots := node.Name, worker.Boots()
			worker.HangNextReboot()

			_, err = legacyUpgrade(t.Context(), cluster.secure(worker), &machine.UpgradeRequest{Image: installer + newVersion})
			check(t, err)

			eventually(t, "machine gone", func(context.Context) error {
				if id := worker.BootID(); id != "" {
					return fmt.Errorf("still in boot %s", id)
				}

				return nil
			})

			node, err = nodes.Get(t.Context(), name, metav1.GetOptions{})
			check(t, err)

			if !node.Spec.Unschedulable || (node.Annotations["talos.dev/cordoned"] == "true") == byHand {
				t.Errorf("during the upgrade: unschedulable %v, annotations %v", node.Spec.Unschedulable, node.Annotations)
			}

			worker.PowerOff()
			worker.PowerOn()
			check(t, worker.AwaitReady(within(t, time.Minute)))

			node, err = nodes.Get(t.Context(), name, metav1.GetOptions{})
			check(t, err)

			if node.Spec.Unschedulable != byHand || worker.Boots() != boots+1 || worker.TalosVersion() != newVersion {
				t.Errorf("after the upgrade: unschedulable %v, %d boots, %s", node.Spec.Unschedulable, worker.Boots()-boots,
					worker.TalosVersion())
			}
		})
	}
}
