package machineinfo_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/containers"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/machineinfo"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

var errDialledThroughHost = errors.New("dialled through the host cluster")

// countingHost is a host cluster through which nothing is reached, and that tells so.
type countingHost struct {
	containers.Host

	closed *bool
}

func (countingHost) Dial(workload.Spec) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) { return nil, errDialledThroughHost }
}

func (h countingHost) Close() { *h.closed = true }

// A machine in a container is asked through its host cluster, which is let go of afterwards.
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

	d := &machineinfo.DataSource{ConfiguredDataSource: providerdata.ConfiguredDataSource{ProviderData: m}}

	options, leave, diags := d.OptionsFor(t.Context(), machineinfo.Model{Cluster: object},
		"dev-cp-0.talos.svc.cluster.local")
	if diags.HasError() {
		t.Fatal(diags)
	}

	if _, err := options.Dial(t.Context(), "tcp", "dev-cp-0.talos.svc.cluster.local:50000"); !errors.Is(err,
		errDialledThroughHost) {
		t.Errorf("the machine is dialled otherwise: %v", err)
	}

	leave()

	if !closed {
		t.Error("the host cluster is still held")
	}

	m.Host = machineset.HostConnection{}

	if _, _, diags := d.OptionsFor(t.Context(), machineinfo.Model{Cluster: object},
		"dev-cp-0.talos.svc.cluster.local"); !diags.HasError() {
		t.Error("a container is asked without a host cluster")
	}
}
