package machines

import (
	"net/netip"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// A refresh learns the addresses of machines that it observes for the first time, and of those that were blank. For
// all others it is known whether they have one.
func TestPeerAddress_isRecorded(t *testing.T) {
	t.Parallel()

	report := hostReport{peers: map[string]netip.Addr{}}

	for _, name := range []string{"new", "blank", "back", "moved", "gone", "runs", "known", "silent"} {
		report.peers[name] = netip.MustParseAddr("10.96.0.9")
	}

	last := record.Machines{
		"blank": {Stage: "maintenance"}, "back": {Stage: record.StageGone},
		"moved": {Stage: record.StageGone, PeerAddress: "10.96.0.1"}, "gone": {Stage: "running", PeerAddress: "10.96.0.1"},
		"runs": {Stage: "running"}, "known": {Stage: "maintenance", PeerAddress: "10.96.0.1"}, "silent": {Stage: "unknown"},
	}
	seen := last.Clone()
	seen["new"] = record.Machine{Stage: "running"}
	// A machine that is gone has no address, whatever it had before.
	seen["gone"] = seenMachine(cluster.Machine{Name: "gone"}, step.MachineState{Access: step.Gone}, cluster.Snapshot{},
		last["gone"])
	seen["back"], seen["moved"] = record.Machine{Stage: "maintenance"},
		record.Machine{Stage: "maintenance", PeerAddress: "10.96.0.1"}

	report.recordPeers(seen, last)

	for name, want := range map[string]string{
		"new": "10.96.0.9", "blank": "10.96.0.9", "back": "10.96.0.9", "moved": "10.96.0.9", "gone": "", "runs": "",
		"known": "10.96.0.1", "silent": "",
	} {
		if got := seen[name].PeerAddress; got != want {
			t.Errorf("%s is at %q, want %q", name, got, want)
		}
	}
}
