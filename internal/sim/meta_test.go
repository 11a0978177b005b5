package sim_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/resources/hardware"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc/codes"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
)

// metaOf reads META through the API.
func metaOf(t *testing.T, c *client.Client) map[string]string {
	t.Helper()

	items, err := safe.ReaderListAll[*runtime.MetaKey](t.Context(), c.COSI)
	check(t, err)

	held := map[string]string{}
	for item := range items.All() {
		held[item.Metadata().ID()] = item.TypedSpec().Value
	}

	return held
}

func uuidOf(t *testing.T, c *client.Client) string {
	t.Helper()

	info, err := safe.ReaderGetByID[*hardware.SystemInformation](t.Context(), c.COSI, hardware.SystemInformationID)
	check(t, err)

	return info.TypedSpec().UUID
}

func TestMeta_readAndWritten(t *testing.T) {
	t.Parallel()

	simulator := sim.ForTest(t, sim.Options{})
	c := newTestCluster(t, simulator)
	m, err := simulator.AddMachine(t.Context(), sim.MachineOptions{})
	check(t, err)

	m.SetMeta(0x0d, "before")

	blank := insecure(t, m)
	if got := metaOf(t, blank); !maps.Equal(got, map[string]string{"0x0d": "before"}) {
		t.Errorf("META in maintenance mode: %v", got)
	}

	if err := blank.MetaWrite(t.Context(), 0x0c, []byte("x")); client.StatusCode(err) != codes.PermissionDenied {
		t.Errorf("write in maintenance mode: %v", err)
	}

	c.apply(m, machinetype.TypeControlPlane)
	c.bootstrap(m)
	check(t, m.AwaitReady(within(t, time.Minute)))

	writer := c.secure(m, role.MetaWriter)
	check(t, writer.MetaWrite(t.Context(), 0x0c, []byte("rack-1")))
	check(t, writer.MetaWrite(t.Context(), 0x0f, []byte("11111111-2222-3333-4444-555555555555")))
	check(t, writer.MetaDelete(t.Context(), 0x0d))

	for what, err := range map[string]error{
		"PermissionDenied":  c.secure(m, role.Operator).MetaWrite(t.Context(), 0x0c, nil),
		"NotFound":          writer.MetaDelete(t.Context(), 0x0d),
		"ResourceExhausted": writer.MetaWrite(t.Context(), 0x0d, []byte(strings.Repeat("x", 256*1024))),
		"InvalidArgument":   wide(t, c.secure(m)),
	} {
		if got := client.StatusCode(err).String(); got != what {
			t.Errorf("%v is %s, want %s", err, got, what)
		}
	}

	admin := c.secure(m)
	want := map[string]string{"0x0c": "rack-1", "0x0f": "11111111-2222-3333-4444-555555555555"}

	if got := metaOf(t, admin); !maps.Equal(got, want) || uuidOf(t, admin) != want["0x0f"] {
		t.Errorf("META %v, UUID %s", got, uuidOf(t, admin))
	}

	// META stays when STATE and EPHEMERAL are wiped.
	_, err = admin.ResetGenericWithResponse(t.Context(), &machine.ResetRequest{
		Reboot: true, SystemPartitionsToWipe: []*machine.ResetPartitionSpec{{Label: "STATE", Wipe: true},
			{Label: "EPHEMERAL", Wipe: true}},
	})
	check(t, err)
	check(t, m.AwaitStage(within(t, time.Minute), sim.StageMaintenance))

	if got := metaOf(t, insecure(t, m)); !maps.Equal(got, want) {
		t.Errorf("META after a reset: %v", got)
	}

	m.Wipe()

	if got := m.Meta(); len(got) != 0 {
		t.Errorf("META of a new disk: %v", got)
	}
}

// TestMeta_keysOfTalos: clients may write them up to Talos 1.13.9, and not from 1.13.10 on.
func TestMeta_keysOfTalos(t *testing.T) {
	t.Parallel()

	for version, want := range map[string]codes.Code{
		"v1.12.12": codes.OK, "v1.13.9": codes.OK, "v1.13.10": codes.PermissionDenied, "v1.14.1": codes.PermissionDenied,
	} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()

			c, cps := upgradeSite(t, 1, sim.Options{TalosVersion: version})
			writer := c.secure(cps[0], role.MetaWriter)

			for _, key := range []uint8{0, 6, 7, 8, 9, 17} {
				written := client.StatusCode(writer.MetaWrite(t.Context(), key, []byte("x")))
				deleted := client.StatusCode(writer.MetaDelete(t.Context(), key))

				if written != want || deleted != want {
					t.Errorf("key %d: written %s, deleted %s, want %s", key, written, deleted, want)
				}
			}

			for _, key := range []uint8{10, 11, 12, 16, 18, 255} {
				if err := writer.MetaWrite(t.Context(), key, []byte("a: b")); err != nil {
					t.Errorf("key %d: %v", key, err)
				}
			}
		})
	}
}

// wide writes a key that does not fit into a byte.
func wide(t *testing.T, c *client.Client) error {
	t.Helper()

	_, err := c.MachineClient.MetaWrite(t.Context(), &machine.MetaWriteRequest{Key: 256})

	return err
}

func TestMeta_inAContainer(t *testing.T) {
	t.Parallel()

	simulator := sim.ForTest(t, sim.Options{})
	c := newTestCluster(t, simulator)
	m, err := simulator.AddMachine(t.Context(), sim.MachineOptions{Platform: machined.Container})
	check(t, err)

	c.apply(m, machinetype.TypeControlPlane)
	c.bootstrap(m)

	admin := c.secure(m)
	for _, err := range []error{admin.MetaWrite(t.Context(), 0x0c, nil), admin.MetaDelete(t.Context(), 0x0c)} {
		if client.StatusCode(err) != codes.FailedPrecondition {
			t.Errorf("in a container: %v", err)
		}
	}

	if got := metaOf(t, admin); len(got) != 0 {
		t.Errorf("META of a container: %v", got)
	}
}
