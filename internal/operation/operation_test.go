package operation_test

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/operation"
	"github.com/talosop/terraform-provider-talosop/internal/wipe"
)

func TestOperation_effects(t *testing.T) {
	t.Parallel()

	ephemeral, disk := wipe.Select([]string{wipe.Ephemeral}, nil), wipe.Select(nil, []string{"/dev/sdb"})

	for _, test := range []struct {
		operation.Operation

		on                                  string
		reboots, losesEtcd, ofControlPlanes bool
	}{
		{operation.Operation{Kind: operation.Reboot}, "reboot m-1 (drain)", true, false, false},
		{operation.Operation{Kind: operation.Rollback}, "roll back Talos on m-1 (drain)", true, false, false},
		{operation.Operation{Kind: operation.Reset, Wipe: ephemeral}, "wipe EPHEMERAL of m-1 and reboot it (drain)", true, true, false},
		{operation.Operation{Kind: operation.Reset, Wipe: disk}, "wipe /dev/sdb of m-1 and reboot it (drain)", true, false, false},
		{operation.Operation{Kind: operation.Defragment}, "defragment etcd on m-1", false, false, true},
		{operation.Operation{Kind: operation.SyncManifests}, "apply the bootstrap manifests of m-1", false, false, true},
		{operation.Operation{Kind: operation.Collect}, "collect support data from m-1", false, false, false},
		{operation.Operation{Kind: operation.RestartService, Service: "kubelet"}, "restart kubelet on m-1", false, false, false},
		// Only a reset erases what it selects.
		{operation.Operation{Kind: operation.Reboot, Wipe: ephemeral}, "reboot m-1 (drain)", true, false, false},
	} {
		if got := test.On("m-1", "drain"); got != test.on {
			t.Errorf("%q, want %q", got, test.on)
		}

		if test.Reboots() != test.reboots || test.LosesEtcd() != test.losesEtcd || test.OfControlPlanes() != test.ofControlPlanes {
			t.Errorf("%s: reboots %t, loses etcd %t, of control planes %t",
				test.on, test.Reboots(), test.LosesEtcd(), test.OfControlPlanes())
		}
	}

	if got := (operation.Operation{Kind: operation.Reboot}).On("m-1", ""); got != "reboot m-1" {
		t.Errorf("with nothing before: %q", got)
	}
}
