package sim_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

func TestMove_toAnotherAddress(t *testing.T) {
	cluster, cps := upgradeSite(t, 3, sim.Options{})
	moves(t, cluster, cps[1], cps[0])
}

func TestMove_withRealParts(t *testing.T) {
	t.Parallel()
	testenv.BeforeRelease(t, "TestCluster_withRealEtcdAndKubernetes")

	folder := filepath.Dir(asset(t, "kube-apiserver"))
	cluster, cps := upgradeSite(t, 1, sim.Options{Assets: folder})
	moves(t, cluster, cps[0], cps[0])
}

// moves checks a control-plane machine's change of address through another one (which
// may be the same).
func moves(t *testing.T, cluster *testCluster, m, via *sim.Machine) {
	t.Helper()

	old, uuid, hostname, boot := m.Address(), m.UUID(), m.Hostname(), m.BootID()
	id := etcdStatus(t, cluster.secure(m)).GetMemberId()

	check(t, m.Move(netip.Addr{}))
	awaitBoot(t, m, boot)

	if m.Address() == old || m.UUID() != uuid || m.Hostname() != hostname {
		t.Fatalf("at %s (before: %s), UUID %s, hostname %s", m.Address(), old, m.UUID(), m.Hostname())
	}

	conn, err := (&net.Dialer{}).DialContext(within(t, time.Minute), "tcp4", net.JoinHostPort(old.String(), "50000"))
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial of the old address: %v, %v", conn, err)
	}

	// The new address is in the machine's certificate, else this fails.
	if got := etcdStatus(t, cluster.secure(m)).GetMemberId(); got != id {
		t.Errorf("etcd member %x after the move, %x before", got, id)
	}

	eventually(t, "member list with the new address", func(ctx context.Context) error {
		resp, err := cluster.secure(via).EtcdMemberList(ctx, &machine.EtcdMemberListRequest{})
		if err != nil {
			return err
		}

		members := resp.GetMessages()[0].GetMembers()

		i := slices.IndexFunc(members, func(member *machine.EtcdMember) bool { return member.GetId() == id })
		if i < 0 {
			return fmt.Errorf("no member %x in %v", id, members)
		}

		urls := append(members[i].GetPeerUrls(), members[i].GetClientUrls()...)
		if len(urls) != 2 || !strings.Contains(urls[0], m.Address().String()) ||
			!strings.Contains(urls[1], m.Address().String()) {
			return fmt.Errorf("member's URLs %v, want those of %s", urls, m.Address())
		}

		return nil
	})

	eventually(t, "node with the new address", func(ctx context.Context) error {
		node, err := cluster.kubernetes(via).CoreV1().Nodes().Get(ctx, hostname, metav1.GetOptions{})
		if err != nil {
			return err
		}

		want := corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: m.Address().String()}
		if !slices.Contains(node.Status.Addresses, want) {
			return fmt.Errorf("node's addresses %v lack %s", node.Status.Addresses, m.Address())
		}

		return nil
	})
}

func TestMove_freesTheFormerAddress(t *testing.T) {
	simulator := sim.ForTest(t, sim.Options{})
	machines := addMachines(t, simulator, "cp", 2)
	old := machines[0].Address()

	if err := machines[0].Move(machines[1].Address()); err == nil {
		t.Error("machine moved to an address that is taken")
	}

	check(t, machines[0].Move(netip.Addr{}))
	check(t, machines[1].Move(old))
	check(t, machines[1].AwaitStage(within(t, time.Minute), sim.StageMaintenance))

	_, err := insecure(t, machines[1]).Version(within(t, time.Minute))
	check(t, err)

	if machines[1].Address() != old {
		t.Errorf("at %s, want %s", machines[1].Address(), old)
	}
}
