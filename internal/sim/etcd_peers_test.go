package sim_test

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
)

// pods is a cluster of three control planes in containers, whose etcd announces addresses of Services, or those of the
// containers.
func pods(t *testing.T, opts sim.Options, services bool) (*testCluster, []*sim.Machine) {
	t.Helper()

	simulator := sim.ForTest(t, opts)
	cluster := newTestCluster(t, simulator, generate.WithHostDNSForwardKubeDNSToHost(true))

	var machines []*sim.Machine

	for n := range 3 {
		m, err := simulator.AddMachine(within(t, time.Minute),
			sim.MachineOptions{Platform: machined.Container, Hostname: fmt.Sprintf("dev-cp-%d-0", n)})
		check(t, err)

		config := cluster.config(machinetype.TypeControlPlane)
		if services {
			config = announcing(t, cluster, fmt.Sprintf("10.96.0.%d/32", n+1))
		}

		_, err = insecure(t, m).ApplyConfiguration(t.Context(),
			&machine.ApplyConfigurationRequest{Data: config, Mode: machine.ApplyConfigurationRequest_AUTO})
		check(t, err)

		machines = append(machines, m)
	}

	cluster.bootstrap(machines[0])

	for _, m := range machines {
		check(t, m.AwaitReady(within(t, time.Minute)))
	}

	awaitMembers(t, simulator, 3)

	return cluster, machines
}

// announcing is the configuration of a control plane whose etcd is known by an address of its loopback interface.
func announcing(t *testing.T, cluster *testCluster, address string) []byte {
	t.Helper()

	provider, err := cluster.input.Config(machinetype.TypeControlPlane)
	check(t, err)

	provider, err = provider.PatchV1Alpha1(func(c *v1alpha1.Config) error {
		c.MachineConfig.MachineNetwork = &v1alpha1.NetworkConfig{
			NetworkInterfaces: []*v1alpha1.Device{{DeviceInterface: "lo", DeviceAddresses: []string{address}}},
		}
		c.ClusterConfig.EtcdConfig.EtcdAdvertisedSubnets = []string{address}
		c.ClusterConfig.EtcdConfig.EtcdListenSubnets = []string{"0.0.0.0/0"}

		return nil
	})
	check(t, err)

	data, err := provider.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
	check(t, err)

	return data
}

func awaitMembers(t *testing.T, simulator *sim.Simulator, n int) {
	t.Helper()

	eventually(t, "members of etcd", func(ctx context.Context) error {
		members, err := simulator.EtcdMembers(ctx)
		if err == nil && len(members) != n {
			err = fmt.Errorf("they are %v", members)
		}

		return err
	})
}

// replace gives machines other containers at other addresses, all at once. The named ones keep their addresses.
func replace(t *testing.T, machines []*sim.Machine, to ...netip.Addr) {
	t.Helper()

	for _, m := range machines {
		m.PowerOff()
		<-m.Off()
	}

	for i, m := range machines {
		var address netip.Addr
		if i < len(to) {
			address = to[i]
		}

		check(t, m.Place(sim.Placement{Address: address}))
	}

	for _, m := range machines {
		m.PowerOn()
	}
}

// TestEtcdPeers_ofPodsReplacedAtOnce holds what was seen of real Talos 1.13 in the pods of a real cluster: etcd finds
// itself again as long as one member is where the others look for it, and never otherwise.
func TestEtcdPeers_ofPodsReplacedAtOnce(t *testing.T) {
	t.Parallel()

	cluster, machines := pods(t, sim.Options{}, false)
	simulator := cluster.sim

	replace(t, machines[:2])
	awaitMembers(t, simulator, 3)

	for _, m := range machines {
		eventually(t, "peer URLs", func(ctx context.Context) error {
			return announced(ctx, cluster, m, m.Address().String())
		})
	}

	former := machines[0].Address()
	replace(t, machines)

	for _, m := range machines {
		eventually(t, "etcd without quorum", func(ctx context.Context) error {
			services, err := cluster.secure(m).ServiceInfo(ctx, "etcd")
			if err != nil {
				return err
			}

			etcd := services[0].Service
			if etcd.GetState() != "Running" || etcd.GetHealth().GetUnknown() || etcd.GetHealth().GetHealthy() {
				return fmt.Errorf("it is %v", etcd)
			}

			return nil
		})
	}

	if members, err := simulator.EtcdMembers(t.Context()); err == nil && len(members) > 0 {
		t.Errorf("members that all moved found each other: %v", members)
	}

	replace(t, machines[:1], former)
	awaitMembers(t, simulator, 3)
}

// TestEtcdPeers_addressesOfPodsStay is the cure.
func TestEtcdPeers_addressesOfPodsStay(t *testing.T) {
	t.Parallel()

	for name, opts := range map[string]sim.Options{"model": {}, "real": {Assets: filepath.Dir(asset(t, "etcd")), OnlyEtcd: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			cluster, machines := pods(t, opts, true)

			for n := range 2 {
				for i, m := range machines {
					eventually(t, "peer URLs", func(ctx context.Context) error {
						return announced(ctx, cluster, m, fmt.Sprintf("10.96.0.%d", i+1))
					})
				}

				if n == 0 {
					replace(t, machines)
					awaitMembers(t, cluster.sim, 3)
				}
			}
		})
	}
}

// announced checks where the cluster looks for the member of a machine.
func announced(ctx context.Context, cluster *testCluster, m *sim.Machine, host string) error {
	resp, err := cluster.secure(m).EtcdMemberList(ctx, &machine.EtcdMemberListRequest{})
	if err != nil {
		return err
	}

	for _, member := range resp.GetMessages()[0].GetMembers() {
		if slices.Equal(member.GetPeerUrls(), []string{"https://" + host + ":2380"}) {
			return nil
		}
	}

	return fmt.Errorf("no member at %s: %v", host, resp.GetMessages()[0].GetMembers())
}
