package discovery

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
)

// A machine at two addresses is one machine. Another server is reported where it was named, and where it may be
// Talos; a silent address of a network is not.
func TestScan_tellsMachinesFromOthers(t *testing.T) {
	t.Parallel()

	site := sim.ForTest(t, sim.Options{})

	added, err := site.AddMachines(t.Context(), "m", 1, sim.MachineOptions{})
	if err != nil {
		t.Fatal(err)
	}

	first := added[0].Address().String()

	plain := serving(t, func(conn net.Conn) { _, _ = conn.Write([]byte("220 ready\r\n")) })
	closing := serving(t, func(net.Conn) {})

	behind := map[string]string{
		"10.0.0.1:50000": net.JoinHostPort(first, "50000"), "10.0.0.2:50000": net.JoinHostPort(first, "50000"),
		"10.0.0.3:50000": plain, "10.0.0.4:50000": closing,
	}

	s := scan{atOnce: 2, options: talos.Options{Timeouts: talos.Timeouts{Connect: 10 * time.Second},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			to, listens := behind[address]
			if !listens {
				return nil, &net.OpError{Op: "dial", Err: context.DeadlineExceeded}
			}

			return (&net.Dialer{}).DialContext(ctx, network, to)
		}}}

	for _, named := range []bool{false, true} {
		var targets []target
		for address := netip.MustParseAddr("10.0.0.1"); address.Compare(netip.MustParseAddr("10.0.0.5")) <= 0; address = address.Next() {
			targets = append(targets, target{address.String(), named})
		}

		found, unanswered, err := s.run(t.Context(), targets)
		if err != nil {
			t.Fatal(err)
		}

		if len(found) != 1 || found[0].address != "10.0.0.1" || !slices.Equal(found[0].also, []string{"10.0.0.2"}) ||
			found[0].Access != step.Maintenance || !strings.HasSuffix(found[0].String(), ", also at 10.0.0.2") {
			t.Errorf("it found %+v", found)
		}

		var silent []string
		for _, one := range unanswered {
			silent = append(silent, one.address)
		}

		want := []string{"10.0.0.4"}
		if named {
			want = []string{"10.0.0.3", "10.0.0.4", "10.0.0.5"}
		}

		if !slices.Equal(silent, want) {
			t.Errorf("named %v: %v are reported, want %v", named, unanswered, want)
		}
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	if _, _, err := s.run(ctx, []target{{address: "10.0.0.1"}}); err == nil {
		t.Error("a scan that was interrupted is complete")
	}
}

// serving answers connections until the test ends, and closes each.
func serving(t *testing.T, answer func(net.Conn)) string {
	t.Helper()

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = listener.Close() })

	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}

			// Read the request first, so that a reset does not lose the answer.
			_, _ = conn.Read(make([]byte, 4096))
			answer(conn)
			_ = conn.Close()
		}
	}()

	return listener.Addr().String()
}

// Machines without a host name are named after their address, with characters that names allow.
func TestMachine_name(t *testing.T) {
	t.Parallel()

	for want, m := range map[string]machine{
		"cp-1.example.org": {Info: talos.Info{Hostname: "cp-1.example.org"}, address: "10.0.0.1"},
		"10.0.0.1":         {address: "10.0.0.1"},
		"fd00-11":          {address: "fd00::11"},
		"1":                {address: "::1"},
	} {
		if got := m.name(); got != want {
			t.Errorf("%s is called %s, want %s", m.address, got, want)
		}
	}
}
