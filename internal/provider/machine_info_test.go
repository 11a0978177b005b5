package provider

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
)

var errDialledThroughHost = errors.New("dialled through the host cluster")

// entranceHost is a host cluster through which nothing is reached, and that tells so.
type entranceHost struct {
	host

	closed *bool
}

func (entranceHost) Dial(workload.Spec) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) { return nil, errDialledThroughHost }
}

func (h entranceHost) Close() { *h.closed = true }

// A machine in a container is asked through its host cluster, which is let go of afterwards.
func TestMachineInfoOfContainers(t *testing.T) {
	t.Parallel()

	var closed bool

	m := newMachinery()
	m.host = hostConnection{Kubeconfig: kubernetes.Kubeconfig{Path: "kubeconfig"}}
	m.hosts.open = func(hostcluster.Options) (host, error) { return entranceHost{closed: &closed}, nil }

	handle := unknownHandle()
	handle.Name, handle.Mode, handle.Secrets = types.StringValue("dev"), types.StringValue(containerMode), types.StringValue(bundleOnce())
	handle.Host = types.ObjectNull(handleHostType())

	object, diags := types.ObjectValueFrom(t.Context(), handleType(), handle)
	if diags.HasError() {
		t.Fatal(diags)
	}

	d := &machineInfoDataSource{configuredDataSource{m}}

	options, leave, diags := d.optionsFor(t.Context(), machineInfoModel{Cluster: object}, "dev-cp-0.talos.svc.cluster.local")
	if diags.HasError() {
		t.Fatal(diags)
	}

	if _, err := options.Dial(t.Context(), "tcp", "dev-cp-0.talos.svc.cluster.local:50000"); !errors.Is(err, errDialledThroughHost) {
		t.Errorf("the machine is dialled otherwise: %v", err)
	}

	leave()

	if !closed {
		t.Error("the host cluster is still held")
	}

	m.host = hostConnection{}

	if _, _, diags := d.optionsFor(t.Context(), machineInfoModel{Cluster: object}, "dev-cp-0.talos.svc.cluster.local"); !diags.HasError() {
		t.Error("a container is asked without a host cluster")
	}
}
