package sim

import (
	"context"
	"net"
	"net/netip"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"k8s.io/client-go/rest"
)

// kubeSite is what API servers know of the machines that they run for.
type kubeSite struct {
	ctx      context.Context //nolint:containedctx // the lifetime of the site
	logf     func(format string, args ...any)
	machines kubeMachines
	config   config.Provider // of the machine whose API server starts first
	address  netip.Addr      // of that machine
}

// kubeMachines are the machines of a cluster.
type kubeMachines interface {
	// awaitKubelet returns nil once the kubelet of a node runs.
	awaitKubelet(ctx context.Context, node string) error
	// repeatReports lets the kubelet of a node make its mirror pods again.
	repeatReports(node string)
	// sansAt are what the machine at an address is to be called besides, and the address
	// that others know it by.
	sansAt(host string) []string
	// addresses are those of all machines of the site.
	addresses() []netip.Addr
	// advertised is what others know an address by.
	advertised(addr netip.Addr) netip.Addr
}

// kubeBackend is what the kube-apiservers of one etcd cluster share: the objects.
//
// Every control-plane machine runs a kube-apiserver of its own, whose version is the tag
// of cluster.apiServer.image in that machine's active configuration. So the API servers of
// one cluster may have different versions at the same time, and they all serve the same
// objects.
type kubeBackend interface {
	// serve starts a machine's kube-apiserver of a version such as "v1.36.2" and returns
	// at once; apiServer.ready says when it answers. It listens on l, which is the
	// machine's own address and belongs to the server from then on, also after an error.
	// An implementation may let several of them share one process per minor version, as
	// long as each answers /version with what runs behind it. An error means that there
	// is no such kube-apiserver; the static pod crashes then.
	serve(l net.Listener, version string) (apiServer, error)
	close() error
}

// apiServer is the kube-apiserver of one machine.
type apiServer interface {
	// also answers on another listener, which is the cluster endpoint's address while the
	// machine holds it, until stop is called, which closes l and cuts its connections.
	also(l net.Listener) (stop func())
	// ready says whether the server answers: what its /readyz says.
	ready(ctx context.Context) error
	// config is the way to this very server for the simulator itself, with all rights.
	// The caller may change what it gets.
	config() *rest.Config
	// stop closes the machine's listener and cuts its connections. The server is not
	// used again.
	stop()
}

// mastersGroup may do everything.
const mastersGroup = "system:masters"
