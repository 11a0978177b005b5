package hostcluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/portforward"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/preflight"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
)

// Options of a [Host]. Either Kubeconfig or InCluster is given.
type Options struct {
	// Kubeconfig of the host cluster.
	Kubeconfig api.Kubeconfig
	// InCluster takes the service account of the pod that talosop itself runs in.
	InCluster bool
	// Reach makes TCP connections to everything else: nodes, load balancers, pods, and addresses outside of the
	// host.
	Reach func(ctx context.Context, network, address string) (net.Conn, error)
	// Progress receives events that are not errors. It may be nil, and several goroutines may call it.
	Progress func(message string)
}

// String hides the credentials.
func (o Options) String() string {
	if o.InCluster {
		return "the cluster where talosop runs"
	}

	return "the host cluster of " + o.Kubeconfig.String()
}

// GoString hides the credentials from %#v.
func (o Options) GoString() string { return o.String() }

// Format hides the credentials from every verb.
func (o Options) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, o.String()) }

// Host is a Kubernetes cluster that machines run on. It is safe for concurrent use.
type Host struct {
	*workload.Client

	closeIdle func()
	forwards  *portforward.Forwarder
	pods      *podLists
	reach     func(ctx context.Context, network, address string) (net.Conn, error)
}

const (
	// requests a second, and at once: 50 machines of eight objects are made in a few seconds.
	requestRate, requestBurst = 100, 200
	// connectTime bounds TCP and TLS.
	connectTime = 5 * time.Second
	// userAgent is what the host's audit log shows.
	userAgent = "talosop"
)

// Open prepares the connection to a host cluster. Files are read and checked, the host is not asked. No error has
// credentials in it.
func Open(o Options) (*Host, error) {
	config, connection, err := o.config()
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", o, err)
	}

	if o.Reach == nil {
		o.Reach = (&net.Dialer{Timeout: connectTime}).DialContext
	}

	if o.Progress == nil {
		o.Progress = func(string) {}
	}

	base, transport, closeIdle, err := newTransport(config)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", o, err)
	}

	forwards, err := portforward.New(config)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", o, err)
	}

	client, err := workload.NewClient(&rest.Config{
		Host: base, Transport: retrying{transport}, WarningHandler: rest.NoWarnings{}, UserAgent: userAgent,
		RateLimiter: flowcontrol.NewTokenBucketRateLimiter(requestRate, requestBurst),
	}, connection, o.Progress)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", o, err)
	}

	return &Host{Client: client, closeIdle: closeIdle, forwards: forwards, pods: newPodLists(client.API()),
		reach: o.Reach}, nil
}

// config is what client-go needs, and the connection as Identity describes it.
func (o Options) config() (config *rest.Config, connection string, err error) {
	given := o.Kubeconfig.Path != "" || len(o.Kubeconfig.Content) > 0

	switch {
	case o.InCluster && given:
		return nil, "", errors.New("give a kubeconfig or in_cluster, not both")
	case !o.InCluster:
		config, name, err := o.Kubeconfig.Config()

		return config, "context " + name, err
	}

	config, err = rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, "", errors.New("in_cluster requires that talosop runs in a pod of the host cluster " +
			"(KUBERNETES_SERVICE_HOST is not set); give a kubeconfig instead")
	}

	if err != nil {
		return nil, "", fmt.Errorf("read the service account of this pod (requires automountServiceAccountToken): %w", err)
	}

	config.Proxy, config.UserAgent = noProxy, userAgent

	return config, "in_cluster", nil
}

// Close ends the connections of the host, with all that goes through them. The host must not be used afterwards.
func (h *Host) Close() {
	h.forwards.Close()
	h.closeIdle()
}

// Check looks for all that would keep the machines of a Spec from being made, see [preflight.Check].
func (h *Host) Check(ctx context.Context, s workload.Spec) ([]preflight.Finding, error) {
	return preflight.Check(ctx, h.Client, s)
}
