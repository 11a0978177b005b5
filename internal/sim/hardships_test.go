package sim_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"google.golang.org/grpc/codes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/etcd"
	"github.com/talosop/terraform-provider-talosop/internal/sim/images"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// idle waits while nothing may happen.
func idle(t *testing.T, d time.Duration) {
	t.Helper()

	select {
	case <-t.Context().Done():
	case <-time.After(d):
	}
}

// memberOf is a machine's own member, and the list as etcd gives it.
func memberOf(t *testing.T, c *testCluster, m *sim.Machine) (uint64, []*machine.EtcdMember) {
	t.Helper()

	status, err := c.secure(m).EtcdStatus(t.Context())
	check(t, err)

	list, err := c.secure(m).EtcdMemberList(t.Context(), &machine.EtcdMemberListRequest{})
	check(t, err)

	return status.GetMessages()[0].GetMemberStatus().GetMemberId(), list.GetMessages()[0].GetMembers()
}

// Talos hands the leadership to the first other member of the list, and etcd waits for one
// that does not run until the request ends.
func TestForfeitLeadership_firstOtherMemberDead(t *testing.T) {
	t.Parallel()

	simulator := sim.ForTest(t, sim.Options{})
	c := newTestCluster(t, simulator)
	cps := addMachines(t, simulator, "cp", 3)
	c.create(cps, nil)

	var leader *sim.Machine

	for _, m := range cps {
		status, err := c.secure(m).EtcdStatus(t.Context())
		check(t, err)

		if s := status.GetMessages()[0].GetMemberStatus(); s.GetLeader() == s.GetMemberId() {
			leader = m
		}
	}

	own, members := memberOf(t, c, leader)
	first := members[slices.IndexFunc(members, func(m *machine.EtcdMember) bool { return m.GetId() != own })]
	named := simulator.Machines()[slices.IndexFunc(cps,
		func(m *sim.Machine) bool { return m.Hostname() == first.GetHostname() })]
	named.PowerOff()

	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()

	if _, err := c.secure(leader).EtcdForfeitLeadership(ctx,
		&machine.EtcdForfeitLeadershipRequest{}); client.StatusCode(err) != codes.DeadlineExceeded {
		t.Errorf("forfeit to a dead member: %v", err)
	}

	if now, _ := memberOf(t, c, leader); now != own {
		t.Errorf("member %x became %x", own, now)
	}
}

// A legacy upgrade is given up, and the machine reboots into what it ran, when its node
// cannot be cordoned.
func TestLegacyUpgrade_cordonFails(t *testing.T) {
	t.Parallel()

	simulator := sim.ForTest(t, sim.Options{})
	c := newTestCluster(t, simulator)
	cps, workers := addMachines(t, simulator, "cp", 1), addMachines(t, simulator, "worker", 1)
	c.create(cps, workers)

	node := workers[0].Hostname()
	check(t, c.kubernetes(cps[0]).CoreV1().Nodes().Delete(t.Context(), node, metav1.DeleteOptions{}))

	boots := workers[0].Boots()
	_, err := c.secure(workers[0]).MachineClient.Upgrade(
		t.Context(), &machine.UpgradeRequest{Image: installer + "v1.13.3"})
	check(t, err)

	eventually(t, "reboot", func(context.Context) error {
		if workers[0].Boots() == boots || workers[0].Stage() != sim.StageRunning {
			return errors.New("it has not rebooted")
		}

		return nil
	})

	if got := workers[0].TalosVersion(); got != sim.DefaultTalosVersion {
		t.Errorf("runs %s after an upgrade whose drain failed", got)
	}
}

// The images of etcd and the kubelet are pulled at the first start, and the boot waits.
func TestBoot_imageMissing(t *testing.T) {
	t.Parallel()

	for _, service := range []string{"etcd", "kubelet"} {
		t.Run(service, func(t *testing.T) {
			t.Parallel()

			simulator := sim.ForTest(t, sim.Options{})
			c := newTestCluster(t, simulator)
			cps := addMachines(t, simulator, "cp", 1)

			image := constants.KubeletImage + ":v1.35.2"
			if service == "etcd" {
				image = "registry.k8s.io/etcd:v3.6.12" // that of Talos 1.13
			}

			check(t, simulator.SetImage(image, images.Image{Missing: true}))
			c.apply(cps[0], machinetype.TypeControlPlane)

			eventually(t, service+" to fail", func(ctx context.Context) error {
				list, err := c.secure(cps[0]).ServiceList(ctx)
				if err != nil {
					return err
				}

				for _, s := range list.GetMessages()[0].GetServices() {
					if s.GetId() == service && s.GetState() == "Failed" {
						return nil
					}
				}

				return errors.New("it has not failed")
			})

			if got := cps[0].Stage(); got != sim.StageBooting {
				t.Errorf("stage %s, want booting", got)
			}
		})
	}
}

// Leaving takes the member's id from a resource that an unhealthy etcd has not got.
func TestEtcdLeaveCluster_unhealthy(t *testing.T) {
	t.Parallel()

	simulator := sim.ForTest(t, sim.Options{})
	c := newTestCluster(t, simulator)
	cps := addMachines(t, simulator, "cp", 3)
	c.create(cps, nil)

	cps[1].PowerOff()
	cps[2].PowerOff()
	eventually(t, "health to follow", func(context.Context) error {
		if ready, _ := cps[0].Ready(); ready {
			return errors.New("still ready")
		}

		return nil
	})

	began := time.Now()
	err := c.secure(cps[0]).EtcdLeaveCluster(t.Context(), &machine.EtcdLeaveClusterRequest{})

	if err == nil || !strings.Contains(err.Error(), "failed to get local etcd member ID") {
		t.Errorf("left: %v", err)
	}

	if took := time.Since(began); took < timing.TestDelays().EtcdMember {
		t.Errorf("gave up after %s", took)
	}
}

// What machined says about etcd is as old as its last check.
func TestEtcdHealth_isOld(t *testing.T) {
	t.Parallel()

	delays := timing.TestDelays()
	delays.EtcdHealth = time.Minute

	simulator := sim.ForTest(t, sim.Options{Delays: &delays})
	c := newTestCluster(t, simulator)
	m := addMachines(t, simulator, "cp", 1)[0]
	c.create([]*sim.Machine{m}, nil)

	check(t, m.RaiseEtcdAlarm(t.Context(), etcd.Corrupt))

	idle(t, 5*timing.TestDelays().EtcdHealth)

	if ready, unmet := m.Ready(); !ready {
		t.Errorf("not ready before the next check: %v", unmet)
	}
}

// A worker's kubelet gets its certificate through the endpoint.
func TestKubelet_enrollment(t *testing.T) {
	t.Parallel()

	simulator := sim.ForTest(t, sim.Options{})
	c := newTestCluster(t, simulator)
	cps, workers := addMachines(t, simulator, "cp", 1), addMachines(t, simulator, "worker", 1)
	c.create(cps, nil)

	nodes := c.kubernetes(cps[0]).CoreV1().Nodes()
	secrets := c.kubernetes(cps[0]).CoreV1().Secrets(metav1.NamespaceSystem)
	name := "bootstrap-token-" + c.bundle.Secrets.BootstrapToken[:strings.Index(c.bundle.Secrets.BootstrapToken, ".")]

	token, err := secrets.Get(t.Context(), name, metav1.GetOptions{})
	check(t, err)
	check(t, secrets.Delete(t.Context(), name, metav1.DeleteOptions{}))

	c.apply(workers[0], machinetype.TypeWorker)
	check(t, workers[0].AwaitStage(within(t, time.Minute), sim.StageRunning))
	idle(t, 100*time.Millisecond)

	if list, err := nodes.List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 1 {
		t.Errorf("nodes without a bootstrap token: %v, %v", list, err)
	}

	token.ResourceVersion, token.UID = "", ""
	_, err = secrets.Create(t.Context(), token, metav1.CreateOptions{})
	check(t, err)
	check(t, workers[0].AwaitReady(within(t, time.Minute)))
}

// A worker whose machine token is not the control plane's gets no certificate.
func TestTrustd_otherToken(t *testing.T) {
	t.Parallel()

	simulator := sim.ForTest(t, sim.Options{})
	c := newTestCluster(t, simulator)
	cps, workers := addMachines(t, simulator, "cp", 1), addMachines(t, simulator, "worker", 1)
	c.create(cps, nil)

	right := c.bundle.TrustdInfo.Token
	c.bundle.TrustdInfo.Token = "wrong1.0123456789abcdef"
	c.apply(workers[0], machinetype.TypeWorker)
	c.bundle.TrustdInfo.Token = right

	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()

	if _, err := c.secure(workers[0]).Version(ctx); err == nil {
		t.Error("a worker with another machine token answers")
	}
}

// Talos 1.13.0 takes another configuration while it reboots for one.
func TestApplyConfiguration_guard(t *testing.T) {
	t.Parallel()

	for version, want := range map[string]codes.Code{"v1.13.0": codes.OK, "v1.13.6": codes.FailedPrecondition} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()

			delays := timing.TestDelays()
			delays.Shutdown = 2 * time.Second

			simulator := sim.ForTest(t, sim.Options{Delays: &delays, TalosVersion: version})
			c := newTestCluster(t, simulator)
			m := addMachines(t, simulator, "cp", 1)[0]
			c.create([]*sim.Machine{m}, nil)

			talos := c.secure(m)
			req := &machine.ApplyConfigurationRequest{Data: c.config(machinetype.TypeControlPlane),
				Mode: machine.ApplyConfigurationRequest_REBOOT}

			_, err := talos.ApplyConfiguration(t.Context(), req)
			check(t, err)

			if _, err := talos.ApplyConfiguration(t.Context(), req); client.StatusCode(err) != want {
				t.Errorf("second apply: %v, want %s", err, want)
			}
		})
	}
}

// Without the time a machine neither bootstraps nor starts its kubelet.
func TestBootstrap_timeNotInSync(t *testing.T) {
	t.Parallel()

	simulator := sim.ForTest(t, sim.Options{})
	c := newTestCluster(t, simulator)
	m := addMachines(t, simulator, "cp", 1)[0]
	m.LoseTime()
	c.apply(m, machinetype.TypeControlPlane)

	eventually(t, "the time to be missed", func(ctx context.Context) error {
		err := c.secure(m).Bootstrap(ctx, &machine.BootstrapRequest{})
		if err == nil {
			t.Fatal("bootstrapped without the time")
		}

		if !strings.Contains(err.Error(), "time is not in sync yet") {
			return err
		}

		return nil
	})

	if _, unmet := m.Ready(); !slices.Contains(unmet, "time: time is not synced") {
		t.Errorf("not ready because of %v", unmet)
	}

	m.FindTime()
	c.bootstrap(m)
	check(t, m.AwaitReady(within(t, time.Minute)))
}

// A machine that dies between the addition of its member and the start of etcd leaves a member without a name.
// Nothing removes that member, and it blocks the machine itself.
func TestEtcdJoin_memberWithoutName(t *testing.T) {
	t.Parallel()

	simulator := sim.ForTest(t, sim.Options{})
	c := newTestCluster(t, simulator)
	cps := addMachines(t, simulator, "cp", 2)
	c.create(cps[:1], nil)

	cps[1].CrashOnJoin()
	c.apply(cps[1], machinetype.TypeControlPlane)

	var nameless *machine.EtcdMember

	eventually(t, "a member without a name", func(context.Context) error {
		_, members := memberOf(t, c, cps[0])

		for _, m := range members {
			if m.GetHostname() == "" {
				nameless = m

				return nil
			}
		}

		return errors.New("there is none")
	})

	check(t, cps[1].AwaitStage(within(t, time.Minute), sim.StageUnknown))
	cps[1].PowerOn()
	idle(t, 200*time.Millisecond)

	if _, members := memberOf(t, c, cps[0]); len(members) != 2 ||
		!slices.ContainsFunc(members, func(m *machine.EtcdMember) bool { return m.GetHostname() == "" }) {
		t.Errorf("members %v", members)
	}

	check(t, c.secure(cps[0]).EtcdRemoveMemberByID(t.Context(),
		&machine.EtcdRemoveMemberByIDRequest{MemberId: nameless.GetId()}))
	check(t, cps[1].AwaitReady(within(t, time.Minute)))
}
