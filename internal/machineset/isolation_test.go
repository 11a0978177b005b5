package machineset

import (
	"net/netip"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/secretstest"
)

// An isolated set must not use the address of a member in its snapshot.
func TestIsolated_hasNoAddressOfTheOtherCluster(t *testing.T) {
	t.Parallel()

	base := func() Set {
		return Set{
			Settings: machineconfig.Cluster{Endpoint: "https://10.0.9.10:6443", CertSANs: []string{"api.rehearsal"},
				Isolated: true},
			Machines: map[string]Machine{"cp-1": {Group: &Group{}, Key: "cp-1", Wanted: cluster.Wanted{Address: "10.0.9.11"},
				Facts: &machineconfig.Facts{CertSANs: []string{"patched.rehearsal"},
					VirtualIPs: []netip.Addr{netip.MustParseAddr("10.0.9.20")}}}},
		}
	}

	for name, test := range map[string]struct {
		members []string
		want    string
	}{
		"others":         {members: []string{"10.0.0.11", "10.0.0.12"}},
		"none":           {},
		"a machine":      {members: []string{"10.0.0.11", "10.0.9.11"}, want: "the address of cp-1 is 10.0.9.11"},
		"the endpoint":   {members: []string{"10.0.9.10"}, want: "the host of endpoint is 10.0.9.10"},
		"a certificate":  {members: []string{"API.rehearsal"}, want: "cert_sans[0] is api.rehearsal"},
		"a SAN by patch": {members: []string{"patched.rehearsal"}, want: "a certificate SAN of cp-1 is patched.rehearsal"},
		"a virtual IP":   {members: []string{"10.0.9.20"}, want: "a virtual IP of cp-1 is 10.0.9.20"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := ""
			if found := base().RefuseAddressesOf(test.members); found != nil {
				got = found.Reason
			}

			want := test.want
			if want != "" {
				want += ", and in the snapshot a member of its cluster has that address"
			}

			if got != want {
				t.Errorf("found %q, want %q", got, want)
			}
		})
	}
}

// In one process, an isolated cluster and one with the same secrets are two clusters.
func TestIsolated_isAnotherCluster(t *testing.T) {
	t.Parallel()

	bundle, err := secretstest.Generate()
	if err != nil {
		t.Fatal(err)
	}

	running := Set{Settings: machineconfig.Cluster{Endpoint: "https://10.0.0.10:6443"}}
	again := Set{Settings: machineconfig.Cluster{Endpoint: "https://api.prod:6443"}}
	isolated := Set{Settings: machineconfig.Cluster{Endpoint: "https://10.0.9.10:6443", Isolated: true}}

	if running.Identity(bundle) != again.Identity(bundle) || isolated.Identity(bundle) == running.Identity(bundle) {
		t.Errorf("identities are %q, %q and isolated %q", running.Identity(bundle), again.Identity(bundle),
			isolated.Identity(bundle))
	}
}
