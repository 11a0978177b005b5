package machines_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/record"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// A host that restarts gives all pods other addresses at once. The etcd in the control planes recovers by itself,
// without user action. A control plane that is replaced keeps the address by which its etcd is known.
func TestContainer_outlivesARestartOfItsHost(t *testing.T) {
	testenv.BeforeRelease(t, "TestPeerAddress_isRecorded", "TestDrift_peerAddressesStay")
	t.Parallel()

	s := newHostSite(t)
	d := s.drive(t, "talosop_cluster")
	config := s.cluster("restarted", tftest.NewBundle(t), 3, 0)

	d.Ready(t, config)
	d.ExpectEmpty(t, "after the create", config)

	pods, peers := s.addresses(t), s.peerServices(t, d, 3)

	for name := range pods {
		tftest.Must(t, s.KillPod(t.Context(), s.namespace, name))
	}

	s.awaitOtherAddresses(t, pods)
	s.expectEtcd(t, "restarted", 3)

	d.Refresh(t).Must(t)
	d.ExpectEmpty(t, "after the restart", config)

	if now := s.peerServices(t, d, 3); !slices.Equal(now, peers) {
		t.Errorf("etcd was known at %v, and is at %v", peers, now)
	}

	// A deleted Service is created again with its address.
	tftest.Must(t, s.API().CoreV1().Services(s.namespace).Delete(t.Context(), "restarted-cp-1-peer",
		metav1.DeleteOptions{}))
	d.Refresh(t).Must(t)
	d.Ready(t, config)
	d.ExpectEmpty(t, "after the repair", config)

	if now := s.peerServices(t, d, 3); !slices.Equal(now, peers) {
		t.Errorf("etcd was known at %v, and is at %v after its Service was deleted", peers, now)
	}

	s.destroy(t, d, "restarted")
}

// addresses of all pods, by their names.
func (s *hostSite) addresses(t *testing.T) map[string]string {
	t.Helper()

	list, err := s.API().CoreV1().Pods(s.namespace).List(t.Context(), metav1.ListOptions{})
	tftest.Must(t, err)

	found := map[string]string{}
	for _, pod := range list.Items {
		found[pod.Name] = pod.Status.PodIP
	}

	return found
}

// awaitOtherAddresses waits until the pods have other addresses.
func (s *hostSite) awaitOtherAddresses(t *testing.T, former map[string]string) {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	tftest.Must(t, wait.Until(ctx, 50*time.Millisecond, func(context.Context) error {
		for name, address := range s.addresses(t) {
			if address == "" || address == former[name] {
				return fmt.Errorf("pod %s is at %q", name, address)
			}
		}

		return nil
	}))
}

// peerServices are the addresses of the Services for the peers of control planes, in order. They have to match the
// state and the addresses by which etcd knows its members.
func (s *hostSite) peerServices(t *testing.T, d *tftest.Driven, planes int) []string {
	t.Helper()

	var addresses, urls []string

	for i := range planes {
		service, err := s.API().CoreV1().Services(s.namespace).Get(t.Context(), fmt.Sprintf("restarted-cp-%d-peer", i),
			metav1.GetOptions{})
		tftest.Must(t, err)

		address := service.Spec.ClusterIP
		addresses, urls = append(addresses, address), append(urls, "https://"+address+":2380")

		if recorded := tftest.Remembered(t, d.State)[fmt.Sprintf("cp-%d", i)].PeerAddress; recorded != address {
			t.Errorf("cp-%d is recorded at %s, and its Service has %s", i, recorded, address)
		}
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	slices.Sort(urls)
	tftest.Must(t, wait.Until(ctx, 50*time.Millisecond, func(ctx context.Context) error {
		got, err := s.Sim().EtcdPeers(ctx, s.Machine(s.namespace, "restarted-cp-0-0"))
		if !slices.Equal(got, urls) {
			return errors.Join(err, fmt.Errorf("etcd knows its members at %v, want %v", got, urls))
		}

		return nil
	}))

	return addresses
}

// A machine gets an address for its peers with its first configuration or not at all.
func TestPeerAddress_onlyForNewMachines(t *testing.T) {
	t.Parallel()

	planes, workers := &machineset.Group{Role: step.ControlPlane}, &machineset.Group{Role: step.Worker}
	p := machineset.Set{Machines: map[string]machineset.Machine{"cp-0": {Group: planes}, "cp-1": {Group: planes},
		"cp-2": {Group: planes}, "cp-3": {Group: planes}, "worker-0": {Group: workers}}}
	recorded := machineset.Record{
		Machines: map[string]step.MachineState{
			"cp-0": {Access: step.Member}, "cp-1": {Access: step.Maintenance}, "cp-3": {Access: step.Member},
		},
		Seen: record.Machines{"cp-3": {PeerAddress: "10.96.0.3"}, "worker-0": {PeerAddress: "10.96.0.4"}},
	}

	addressed := p.WithPeers(recorded.Peers())

	if got := addressed.Unaddressed(recorded); !slices.Equal(got, []string{"cp-1", "cp-2"}) {
		t.Errorf("an address is given to %v", got)
	}

	if got := addressed.Peers(); len(got) != 1 || got["cp-3"] != "10.96.0.3" || len(p.Peers()) > 0 {
		t.Errorf("the addresses are %v, before %v", got, p.Peers())
	}
}

// The recorded address of a machine that is gone is not requested again: another host may have its name by now.
func TestPeerAddress_ofMachinesThatAreGone(t *testing.T) {
	t.Parallel()

	recorded := machineset.Record{Seen: record.Machines{"cp-0": {Stage: "running", PeerAddress: "10.96.0.1"},
		"cp-1": {Stage: record.StageGone, PeerAddress: "10.96.0.1"}}}
	planes := &machineset.Group{Role: step.ControlPlane}
	p := machineset.Set{Machines: map[string]machineset.Machine{"cp-0": {Group: planes}, "cp-1": {Group: planes}}}

	if peers := p.WithPeers(recorded.Peers()).Peers(); len(peers) != 1 || peers["cp-0"] == "" {
		t.Errorf("the addresses are %v", peers)
	}

	if names := p.WithPeers(recorded.Peers()).Unaddressed(recorded); !slices.Equal(names, []string{"cp-1"}) {
		t.Errorf("an address is given to %v", names)
	}
}

// An address that Talos takes for one of its own cluster is not announced.
func TestPeerAddress_inNetworksOfTheCluster(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		Settings machineconfig.Cluster
		peer     string
		says     []string
	}{
		"outside":             {peer: "10.96.0.9"},
		"default of pods":     {peer: "10.245.0.9", says: []string{"pod_cidrs", "10.245.0.0/16", "10.245.0.9", "cp-1"}},
		"default of services": {peer: "10.112.0.9", says: []string{"service_cidrs", "10.112.0.0/12"}},
		"pods": {Settings: machineconfig.Cluster{PodCIDRs: []string{"10.200.0.0/16", "fd00::/56"}},
			peer: "fd00::9", says: []string{"pod_cidrs", "fd00::/56"}},
		"services": {Settings: machineconfig.Cluster{ServiceCIDRs: []string{"10.96.0.0/12"}}, peer: "10.96.0.9",
			says: []string{"service_cidrs", "10.96.0.0/12"}},
		"other services": {Settings: machineconfig.Cluster{ServiceCIDRs: []string{"10.96.0.0/12"}}, peer: "10.112.0.9"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			err := machineset.Set{Settings: test.Settings, Host: &machineset.Host{}}.RefuseInnerPeers(
				map[string]netip.Addr{"cp-1": netip.MustParseAddr(test.peer)})
			if (err != nil) != (len(test.says) > 0) || err != nil && !wait.IsPermanent(err) {
				t.Fatal(err)
			}

			for _, word := range test.says {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q is not in %v", word, err)
				}
			}
		})
	}
}
