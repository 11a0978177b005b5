package machineinfo_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/containers"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/machineinfo"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

var errDialedThroughHost = errors.New("dialed through the host cluster")

// countingHost is a host cluster whose connections fail with a specific error, and which records its close.
type countingHost struct {
	containers.Host

	closed *bool
}

func (countingHost) Dial(workload.Spec) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) { return nil, errDialedThroughHost }
}

func (h countingHost) Close() { *h.closed = true }

// A machine in a container is asked through its host cluster, and the connection is closed afterwards.
func TestMachineInfo_ofAContainer(t *testing.T) {
	t.Parallel()

	var closed bool

	m := providerdata.NewProviderData()
	m.Host = machineset.HostConnection{Path: "kubeconfig"}
	m.Hosts.Open = func(hostcluster.Options) (containers.Host, error) { return countingHost{closed: &closed}, nil }

	access := clusterhandle.UnknownAccess()
	access.Name, access.Mode, access.Secrets = types.StringValue("dev"), types.StringValue(clusterhandle.ContainerMode),
		types.StringValue(tftest.Bundle())
	access.Host = types.ObjectNull(nil)

	object, diags := access.Object(t.Context())
	if diags.HasError() {
		t.Fatal(diags)
	}

	options, leave, diags := machineinfo.OptionsFor(t.Context(), m, machineinfo.Model{Cluster: object},
		"dev-cp-0.talos.svc.cluster.local")
	if diags.HasError() {
		t.Fatal(diags)
	}

	if _, err := options.Dial(t.Context(), "tcp", "dev-cp-0.talos.svc.cluster.local:50000"); !errors.Is(err,
		errDialedThroughHost) {
		t.Errorf("the machine is dialed otherwise: %v", err)
	}

	leave()

	if !closed {
		t.Error("the host cluster is still held")
	}

	m.Host = machineset.HostConnection{}

	if _, _, diags := machineinfo.OptionsFor(t.Context(), m, machineinfo.Model{Cluster: object},
		"dev-cp-0.talos.svc.cluster.local"); !diags.HasError() {
		t.Error("a container is asked without a host cluster")
	}
}

// The data source reads the same machine in maintenance mode and as a member.
func TestMachineInfo_inMaintenanceAndAsMember(t *testing.T) {
	t.Parallel()

	s := sitetest.New(t, 1, 0)
	m := s.ControlPlane[0]
	address := m.Address().String()
	waiting := tftest.Config{"address": address}
	refused := func(config tftest.Config) {
		t.Helper()

		_, diagnostics := tftest.ReadData(t, "talosop_machine_info", config)
		if shown := tftest.Show(diagnostics); !strings.Contains(shown, "[machine_not_read]") {
			t.Errorf("the data source says %q", shown)
		}
	}
	shows := func(config tftest.Config, want map[string]any) {
		t.Helper()

		state, diagnostics := tftest.ReadData(t, "talosop_machine_info", config)
		if len(diagnostics) > 0 {
			t.Fatal(tftest.Show(diagnostics))
		}

		got, _ := tftest.Plain(t, state).(tftest.Config)
		for name, value := range want {
			if got[name] != value {
				t.Errorf("%s is %v, want %v", name, got[name], value)
			}
		}

		if addresses, _ := got["addresses"].([]any); len(addresses) == 0 || addresses[0] != any(address) {
			t.Errorf("the addresses are %v", addresses)
		}

		if disks, _ := got["disks"].([]any); len(disks) == 0 || disks[0].(tftest.Config)["path"] != "/dev/sda" {
			t.Errorf("the disks are %v", disks)
		}

		if got["certificate_fingerprint"] == nil {
			t.Error("there is no fingerprint")
		}
	}

	shows(waiting, map[string]any{"maintenance": true, "uuid": m.UUID(), "talos_version": "v1.13.0"})
	refused(tftest.Config{"address": address, "fingerprint": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="})

	plane := tftest.BaseControlPlane()
	plane["name"], plane["endpoint"], plane["kubernetes_version"] = "test", s.URL, "v1.36.2"
	plane["machines"] = tftest.Config{m.Name(): waiting}

	d := tftest.Drive(t, "talosop_control_plane", nil)
	d.Ready(t, plane)

	handle := tftest.AttributeOf(t, d.State, "cluster")
	shows(tftest.Config{"address": address, "cluster": handle},
		map[string]any{"maintenance": false, "stage": "running", "uuid": m.UUID()})
	refused(waiting)
}
