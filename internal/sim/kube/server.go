package kube

import (
	"context"
	"net"
	"net/netip"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"k8s.io/client-go/rest"
)

// Site is what API servers know of the machines that they run for.
type Site struct {
	Ctx      context.Context //nolint:containedctx // the lifetime of the site
	Logf     func(format string, args ...any)
	Machines Machines
	Config   config.Provider // of the machine whose API server starts first
	Address  netip.Addr      // of that machine
}

// Machines are the machines of a cluster.
type Machines interface {
	// AwaitKubelet returns nil once the kubelet of a node runs.
	AwaitKubelet(ctx context.Context, node string) error
	// RepeatReports lets the kubelet of a node make its mirror pods again.
	RepeatReports(node string)
	// SansAt are additional names of the machine at an address, and the address that others know it by.
	SansAt(host string) []string
	// UnreadyAt are the readiness checks that fail at the API server of the machine at an address.
	UnreadyAt(host string) []string
	// Addresses are those of all machines of the site.
	Addresses() []netip.Addr
	// Advertised is the address under which others know an address.
	Advertised(addr netip.Addr) netip.Addr
}

// Backend is what the kube-apiservers of one etcd cluster share: the objects.
//
// Every control-plane machine runs a kube-apiserver of its own, whose version is the tag
// of cluster.Server.image in that machine's active configuration. So the API servers of
// one cluster may have different versions at the same time, and they all serve the same
// objects.
type Backend interface {
	// serve starts a machine's kube-apiserver of a version such as "v1.36.2" and returns
	// at once; Server.ready says when it answers. It listens on l, which is the
	// machine's own address and belongs to the server from then on, also after an error.
	// An implementation may let several of them share one process per minor version, as
	// long as each answers /version with what runs behind it. An error means that there
	// is no such kube-apiserver; the static pod crashes then.
	//
	// cfg is the configuration of the machine: the server has a certificate of the authority of Kubernetes that it issues
	// with, and takes those of clients of every one that it accepts. Real processes are shared and keep what the first
	// machine has.
	Serve(l net.Listener, version string, cfg config.Provider) (Server, error)
	Close() error
}

// Server is the kube-apiserver of one machine.
type Server interface {
	// Also answers on another listener, which is the cluster endpoint's address while the machine holds it. A call
	// of stop ends that, closes l and cuts its connections.
	Also(l net.Listener) (stop func())
	// Ready reports whether the server answers, by its /readyz.
	Ready(ctx context.Context) error
	// Config is a configuration for this very server, with all rights, for the simulator itself. The caller may
	// change it.
	Config() *rest.Config
	// stop closes the machine's listener and cuts its connections. The server is not
	// used again.
	Stop()
}

// mastersGroup may do everything.
const mastersGroup = "system:masters"
