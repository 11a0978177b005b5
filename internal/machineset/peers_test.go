package machineset

import (
	"net/netip"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// Control planes in containers are configured with their recorded peer addresses.
func TestWithPeers(t *testing.T) {
	t.Parallel()

	first := netip.MustParseAddr("10.96.0.10")
	r := Record{Seen: record.Machines{"cp-0": {PeerAddress: "10.96.0.10"}, "batch/0": {PeerAddress: "10.96.0.11"}, "cp-9": {PeerAddress: "10.96.0.12"},
		"cp-1": {PeerAddress: "10.96.0.13", Stage: record.StageGone}, "cp-2": {PeerAddress: "no"}}}
	base := aSet(t, pods(2, 1))

	p := base.WithPeers(r.Peers())
	same(t, "peers", p.Peers(), map[string]string{"cp-0": "10.96.0.10"})
	same(t, "the set itself", base.Peers(), map[string]string{})
	same(t, "no endpoint by address", p.Machines["batch/0"].Config.EndpointAddress, netip.Addr{})
	same(t, "without an address", p.Unaddressed(Record{}), []string{"cp-1"})
	same(t, "without an address, as members", p.Unaddressed(Record{Machines: map[string]step.MachineState{"cp-1": {Access: step.Member}}}), nil)

	base.Settings.Isolated = true
	same(t, "isolated", base.WithPeers(r.Peers()).Machines["batch/0"].Config.EndpointAddress, first)
	same(t, "isolated, the first unknown", base.WithPeers(map[string]netip.Addr{"cp-1": first}).Machines["batch/0"].Config.EndpointAddress, netip.Addr{})
	same(t, "nothing known", len(base.WithPeers(nil).Peers()), 0)
}

func TestRefuseInnerPeers(t *testing.T) {
	t.Parallel()

	p := aSet(t, pods(1, 0), func(p *Set) {
		p.Settings.PodCIDRs, p.Settings.ServiceCIDRs = []string{"10.1.0.0/16"}, []string{"10.2.0.0/16"}
	})

	for address, want := range map[string]string{"10.3.0.1": "", "10.1.2.3": "pod_cidrs: the pod network 10.1.0.0/16", "10.2.2.3": "service_cidrs: the service network 10.2.0.0/16"} {
		err := p.RefuseInnerPeers(map[string]netip.Addr{"cp-0": netip.MustParseAddr(address)})
		if (err == nil) != (want == "") || err != nil && (!contains(err.Error(), want) || !contains(err.Error(), "cp-0")) {
			t.Errorf("%s: %v", address, err)
		}
	}
}
