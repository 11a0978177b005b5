package machines_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// What operations cost in counts that do not depend on the computer. A change that makes one of them more expensive
// has to say why; docs/guides/performance.md has their time.

// cost is the average number of requests of an operation to a machine.
type cost struct{ calls, connections float64 }

// measured runs an operation and fails when it exceeds the maximum.
func measured(t *testing.T, s *sitetest.Site, name string, most cost, run func()) {
	t.Helper()
	s.ForgetCalls()
	run()

	machines := float64(len(s.Machines()))
	got := cost{float64(len(s.Calls())) / machines, float64(s.Connections()) / machines}
	t.Logf("%s: %.2f calls and %.2f connections a machine", name, got.calls, got.connections)

	if got.calls > most.calls || got.connections > most.connections {
		t.Errorf("%s costs %.2f calls and %.2f connections a machine, allowed are %.2f and %.2f",
			name, got.calls, got.connections, most.calls, most.connections)
	}
}

// clusterOf is a talosop_cluster on all machines of a site.
func clusterOf(s *sitetest.Site) tftest.Config {
	machines := func(all []*sim.Machine) tftest.Config {
		out := tftest.Config{}
		for _, m := range all {
			out[m.Name()] = tftest.Config{"address": m.Address().String()}
		}

		return out
	}

	install := tftest.Config{"disk": "/dev/sda"}
	config := tftest.BaseCluster()
	config["name"], config["endpoint"], config["deletion_protection"] = "test", s.URL, false
	config["control_plane"] = tftest.Config{"install": install, "machines": machines(s.ControlPlane)}
	config["workers"] = tftest.Config{"all": tftest.Config{
		"install": install, "max_unavailable": "50%", "machines": machines(s.Workers),
	}}

	return config
}

// The lifecycle of a cluster at the pace of a provider in use. A busy machine takes a few more observations and
// connections, and the limits allow for that.
func TestCosts_ofACluster(t *testing.T) {
	t.Parallel()

	s := sitetest.New(t, 3, 17)
	config := clusterOf(s)
	cluster := tftest.Drive(t, "talosop_cluster", nil)
	cluster.Server = tftest.ServeWith(t, tftest.NewProviderData(), nil)

	apply := func(config tftest.Config) func() { return func() { cluster.Apply(t, config).Must(t) } }

	pprof.Do(t.Context(), pprof.Labels("test", t.Name()), func(context.Context) {
		measured(t, s, "create", cost{60, 7}, apply(config))
		measured(t, s, "empty plan", cost{6, 2.5}, func() {
			cluster.Refresh(t).Must(t)
			cluster.Plan(t, config).Must(t)
		})

		config = tftest.With(config, []any{`machine: {sysctls: {net.core.somaxconn: "2"}}`}, "cluster_config_patches")
		measured(t, s, "another sysctl", cost{30, 3}, apply(config))

		config = tftest.With(config, "v1.13.2", "talos_version")
		measured(t, s, "upgrade of Talos", cost{160, 12}, apply(config))
		measured(t, s, "destroy", cost{50, 7}, apply(nil))
	})

	expectNoGoroutines(t, s)
}

// expectNoGoroutines waits for the end of all goroutines of the test, by their label.
func expectNoGoroutines(t *testing.T, s *sitetest.Site) {
	t.Helper()

	err := wait.Until(t.Context(), 50*time.Millisecond, func(context.Context) error {
		var profile bytes.Buffer
		if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
			return err
		}

		for _, one := range strings.Split(profile.String(), "\n\n") {
			if strings.Contains(one, fmt.Sprintf("%q", t.Name())) {
				return fmt.Errorf("goroutines stay: %s", one)
			}
		}

		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Plans of a hundred machines, and their state.
func TestCosts_ofAPlan(t *testing.T) {
	const (
		machines = 100
		// The maximum of bytes of state for each machine.
		mostBytes = 850
	)

	workers := tftest.Config{}
	for i := range machines - 3 {
		workers[fmt.Sprintf("w-%d", i)] = tftest.Config{"address": fmt.Sprintf("10.0.1.%d", i)}
	}

	config := tftest.BaseCluster()
	config["workers"] = tftest.Config{"all": tftest.Config{
		"install": tftest.Config{"disk": "/dev/sda"}, "machines": workers,
	}}

	prior := settledState(t, "talosop_cluster", config)
	if size := len(tftest.Dynamic(t, prior).MsgPack) / machines; size > mostBytes {
		t.Errorf("a state takes %d bytes a machine, allowed are %d", size, mostBytes)
	}

	other := tftest.With(tftest.BaseCluster(), config["workers"], "workers")
	other = tftest.With(other, []any{`machine: {sysctls: {net.core.somaxconn: "2"}}`}, "cluster_config_patches")

	// The maximum of allocations for each machine. A plan through the framework takes more than 30,000.
	for _, plan := range []struct {
		name   string
		prior  *tftypes.Value
		config tftest.Config
		most   float64
	}{
		{"empty plan", &prior, config, 9_000}, {"plan of another sysctl", &prior, other, 9_000},
		{"plan of a create", nil, config, 5_500},
	} {
		got := testing.AllocsPerRun(1, func() { planOf(t, "talosop_cluster", plan.prior, plan.config) }) / machines
		t.Logf("%s: %.0f allocations a machine", plan.name, got)

		if got > plan.most {
			t.Errorf("%s takes %.0f allocations a machine, allowed are %.0f", plan.name, got, plan.most)
		}
	}
}
