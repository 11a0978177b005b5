package sim_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

func TestBootstrap_twiceBeforeDataStopsEtcdForGood(t *testing.T) {
	delays := timing.TestDelays()
	delays.EtcdStart = time.Hour // data would be written after half of it

	simulator := sim.ForTest(t, sim.Options{Delays: &delays})
	m := addMachines(t, simulator, "cp", 1)[0]
	cluster := newTestCluster(t, simulator)
	cluster.apply(m, machinetype.TypeControlPlane)
	cluster.bootstrap(m)

	talos := cluster.secure(m)

	// As long as the image is pulled, another one succeeds, too.
	eventually(t, "etcd to start", func(ctx context.Context) error {
		err := talos.Bootstrap(ctx, &machine.BootstrapRequest{})
		if status.Code(err) != codes.Unknown {
			return fmt.Errorf("got %w, want %s", err, codes.Unknown)
		}

		return nil
	})

	for _, want := range []codes.Code{codes.AlreadyExists, codes.AlreadyExists} {
		err := talos.Bootstrap(t.Context(), &machine.BootstrapRequest{})
		if status.Code(err) != want || !strings.Contains(err.Error(), "etcd data directory is not empty") {
			t.Errorf("got %v, want %s", err, want)
		}
	}

	services, err := talos.ServiceInfo(t.Context(), "etcd")
	check(t, err)

	if got := services[0].Service.GetState(); got != "Finished" {
		t.Errorf("etcd is %s, want Finished", got)
	}
}

func TestEtcd_dataDirectoryIsListed(t *testing.T) {
	simulator := sim.ForTest(t, sim.Options{})
	m := addMachines(t, simulator, "cp", 1)[0]
	cluster := newTestCluster(t, simulator)
	cluster.apply(m, machinetype.TypeControlPlane)

	entries := func() (names []string, err error) {
		stream, err := cluster.secure(m).MachineClient.List(within(t, time.Minute),
			&machine.ListRequest{Root: "/var/lib/etcd/"})
		if err != nil {
			return nil, err
		}

		for {
			entry, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return names, nil
			}

			if err != nil {
				return nil, err
			}

			names = append(names, entry.GetRelativeName())
		}
	}

	eventually(t, "an empty data directory", func(context.Context) error {
		names, err := entries()
		if err == nil && !slices.Equal(names, []string{"."}) {
			t.Errorf("before the bootstrap there is %v", names)
		}

		return err
	})
	cluster.bootstrap(m)
	eventually(t, "data", func(context.Context) error {
		names, err := entries()
		if err == nil && !slices.Equal(names, []string{".", "member"}) {
			err = fmt.Errorf("there is %v", names)
		}

		return err
	})
}

func TestEtcd_givesUpWithoutABootstrap(t *testing.T) {
	delays := timing.TestDelays()
	delays.EtcdGiveUp = 10 * time.Millisecond

	simulator := sim.ForTest(t, sim.Options{Delays: &delays})
	m := addMachines(t, simulator, "cp", 1)[0]
	cluster := newTestCluster(t, simulator)
	cluster.apply(m, machinetype.TypeControlPlane)

	eventually(t, "a failed etcd", func(context.Context) error {
		services, err := cluster.secure(m).ServiceInfo(t.Context(), "etcd")
		if err == nil && (len(services) == 0 || services[0].Service.GetState() != "Failed") {
			err = fmt.Errorf("etcd is %v", services)
		}

		return err
	})

	cluster.bootstrap(m)
	check(t, m.AwaitReady(within(t, time.Minute)))
}

func TestBootstrap_isRecordedInTheEvents(t *testing.T) {
	simulator := sim.ForTest(t, sim.Options{})
	m := addMachines(t, simulator, "cp", 1)[0]
	cluster := newTestCluster(t, simulator)
	cluster.create([]*sim.Machine{m}, nil)

	ctx, cancel := context.WithCancel(within(t, time.Minute))
	defer cancel()

	events := make(chan client.EventResult)
	check(t, cluster.secure(m).EventsWatchV2(ctx, events, client.WithTailEvents(-1)))

	for {
		ev := <-events
		check(t, ev.Error)

		msg, ok := ev.Event.Payload.(*machine.ServiceStateEvent)
		if ok && msg.GetService() == "etcd" && msg.GetAction() == machine.ServiceStateEvent_FINISHED &&
			msg.GetMessage() == "Bootstrap requested" {
			return
		}
	}
}

func TestBootstrap_ofASecondMachineMakesASecondCluster(t *testing.T) {
	delays := timing.TestDelays()
	delays.EtcdJoin = time.Hour

	simulator := sim.ForTest(t, sim.Options{Delays: &delays})
	cps := addMachines(t, simulator, "cp", 2)
	cluster := newTestCluster(t, simulator)

	for _, m := range cps {
		cluster.apply(m, machinetype.TypeControlPlane)
	}

	for _, m := range cps {
		cluster.bootstrap(m)
	}

	eventually(t, "two etcd clusters", func(context.Context) error {
		if n := simulator.EtcdClusters(); n != 2 {
			return errors.New("not yet")
		}

		return nil
	})
}

func TestEtcd_keepsItsQuorum(t *testing.T) {
	simulator := sim.ForTest(t, sim.Options{})
	cps := addMachines(t, simulator, "cp", 3)
	cluster := newTestCluster(t, simulator)
	cluster.create(cps, nil)

	ids := memberIDs(t, cluster.secure(cps[0]))
	talos := cluster.secure(cps[2])

	err := second(talos.EtcdForfeitLeadership(t.Context(), &machine.EtcdForfeitLeadershipRequest{}))
	check(t, err)

	unknown := talos.EtcdRemoveMemberByID(t.Context(), &machine.EtcdRemoveMemberByIDRequest{MemberId: 42})
	if status.Code(unknown) != codes.NotFound {
		t.Errorf("remove of an unknown member: %v", unknown)
	}

	// With one of three down no other member may go, but the dead one may.
	cps[0].PowerOff()
	err = talos.EtcdRemoveMemberByID(t.Context(),
		&machine.EtcdRemoveMemberByIDRequest{MemberId: ids[cps[1].Address().String()]})

	if status.Code(err) != codes.Unknown || !strings.Contains(err.Error(), "etcdserver: unhealthy cluster") {
		t.Errorf("remove of a live member next to a dead one: %v", err)
	}

	check(t, talos.EtcdRemoveMemberByID(t.Context(),
		&machine.EtcdRemoveMemberByIDRequest{MemberId: ids[cps[0].Address().String()]}))

	// Two left: the loss of one is the loss of the quorum, and status still answers.
	cps[1].PowerOff()

	err = second(talos.EtcdMemberList(t.Context(), &machine.EtcdMemberListRequest{}))
	if status.Code(err) != codes.Unknown || !strings.Contains(err.Error(), "etcdserver: no leader") {
		t.Errorf("member list without quorum: %v", err)
	}

	st, err := talos.EtcdStatus(t.Context())
	check(t, err)

	if got := st.GetMessages()[0].GetMemberStatus(); got.GetLeader() != 0 || len(got.GetErrors()) == 0 {
		t.Errorf("status without quorum: %v", got)
	}

	cps[1].PowerOn()
	check(t, cps[1].AwaitReady(within(t, time.Minute)))
	check(t, talos.EtcdLeaveCluster(t.Context(), &machine.EtcdLeaveClusterRequest{}))

	last := cluster.secure(cps[1]).EtcdLeaveCluster(t.Context(), &machine.EtcdLeaveClusterRequest{})
	if status.Code(last) != codes.Unknown || !strings.Contains(last.Error(), "not enough started members") {
		t.Errorf("leave of the last member: %v", last)
	}
}

func memberIDs(t *testing.T, talos *client.Client) map[string]uint64 {
	t.Helper()

	resp, err := talos.EtcdMemberList(t.Context(), &machine.EtcdMemberListRequest{})
	check(t, err)

	ids := map[string]uint64{}
	for _, m := range resp.GetMessages()[0].GetMembers() {
		host := strings.TrimSuffix(strings.TrimPrefix(m.GetPeerUrls()[0], "https://"), ":2380")
		ids[host] = m.GetId()
	}

	return ids
}

func TestReset_failedGracefulOneRebootsUnwiped(t *testing.T) {
	simulator := sim.ForTest(t, sim.Options{})
	m := addMachines(t, simulator, "cp", 1)[0]
	cluster := newTestCluster(t, simulator)
	cluster.create([]*sim.Machine{m}, nil)

	before := m.BootID()
	cluster.reset(m, true)
	eventually(t, "reboot", func(context.Context) error {
		if id := m.BootID(); id == "" || id == before {
			return errors.New("not yet")
		}

		return nil
	})
	check(t, m.AwaitReady(within(t, time.Minute)))

	if members, err := simulator.EtcdMembers(t.Context()); err != nil || len(members) != 1 {
		t.Errorf("etcd after a refused leave: %v, %v", members, err)
	}
}

func TestSnapshot_hasPagesAndTheirChecksum(t *testing.T) {
	simulator := sim.ForTest(t, sim.Options{})
	m := addMachines(t, simulator, "cp", 1)[0]
	cluster := newTestCluster(t, simulator)
	cluster.create([]*sim.Machine{m}, nil)

	stream, err := cluster.secure(m).EtcdSnapshot(t.Context(), &machine.EtcdSnapshotRequest{})
	check(t, err)

	data, err := io.ReadAll(stream)
	check(t, err)

	pages, sum := data[:len(data)-sha256.Size], data[len(data)-sha256.Size:]
	want := sha256.Sum256(pages)

	if len(pages)%512 != 0 || !slices.Equal(want[:], sum) {
		t.Errorf("snapshot of %d bytes is not whole pages and their SHA-256", len(data))
	}
}

func TestSequences_onlyAllowedOnesTakeOver(t *testing.T) {
	delays := timing.TestDelays()
	delays.Reset = 5 * time.Second // the second reset has to come before the first one ends

	simulator := sim.ForTest(t, sim.Options{Delays: &delays})
	m := addMachines(t, simulator, "cp", 1)[0]
	cluster := newTestCluster(t, simulator)
	cluster.create([]*sim.Machine{m}, nil)

	talos := cluster.secure(m)
	cluster.reset(m, false)
	check(t, m.AwaitStage(within(t, time.Minute), sim.StageResetting))

	// A second reset answers OK and does nothing; only the events say so.
	ctx, cancel := context.WithCancel(within(t, time.Minute))
	defer cancel()

	events := make(chan client.EventResult)
	check(t, talos.EventsWatchV2(ctx, events, client.WithTailEvents(-1)))
	cluster.reset(m, false)

	var locked *machine.SequenceEvent

	for locked == nil {
		ev := <-events
		check(t, ev.Error)

		if msg, ok := ev.Event.Payload.(*machine.SequenceEvent); ok && msg.GetAction() == machine.SequenceEvent_NOOP {
			locked = msg
		}
	}

	if diff := cmp.Diff("sequence not started: locked", locked.GetError().GetMessage()); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}

	check(t, m.AwaitStage(within(t, time.Minute), sim.StageMaintenance))
}

// TestBootstrap_withoutEtcd: Talos 1.14 takes a control plane whose configuration has no etcd, and refuses to begin one.
func TestBootstrap_withoutEtcd(t *testing.T) {
	t.Parallel()

	simulator := sim.ForTest(t, sim.Options{TalosVersion: "v1.14.1"})
	m := addMachines(t, simulator, "cp", 1)[0]
	cluster := newTestCluster(t, simulator)

	provider, err := cluster.input.Config(machinetype.TypeControlPlane)
	check(t, err)

	provider.RawV1Alpha1().ClusterConfig.EtcdConfig = nil

	data, err := provider.EncodeBytes()
	check(t, err)

	_, err = insecure(t, m).ApplyConfiguration(t.Context(), &machine.ApplyConfigurationRequest{Data: data})
	check(t, err)

	talos := cluster.secure(m)

	eventually(t, "a refused bootstrap", func(ctx context.Context) error {
		err := talos.Bootstrap(ctx, &machine.BootstrapRequest{})
		if client.StatusCode(err) != codes.InvalidArgument {
			return fmt.Errorf("bootstrap: %w", err)
		}

		return nil
	})

	if services, err := talos.ServiceInfo(t.Context(), "etcd"); err != nil || len(services) > 0 {
		t.Errorf("etcd is %v (%v)", services, err)
	}
}

// TestEtcd_portOfHTTP: from Talos 1.14 on, etcd serves all but gRPC on a separate port.
func TestEtcd_portOfHTTP(t *testing.T) {
	t.Parallel()

	folder := filepath.Dir(asset(t, "etcd"))

	for version, split := range map[string]bool{"v1.13.6": false, "v1.14.1": true} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()

			_, cps := upgradeSite(t, 1, sim.Options{Assets: folder, OnlyEtcd: true, TalosVersion: version})

			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp4", net.JoinHostPort(cps[0].Address().String(), "2383"))
			if (err == nil) != split {
				t.Errorf("port 2383: %v", err)
			}

			if err == nil {
				check(t, conn.Close())
			}
		})
	}
}
