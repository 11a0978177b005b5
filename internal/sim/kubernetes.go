package sim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/talosop/terraform-provider-talosop/internal/sim/kube"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// kubernetes returns a client of the cluster's API, and waits for one.
func (b *boot) kubernetes(ctx context.Context) (*kube.Client, error) {
	var k *kube.Client

	err := b.World.Await(ctx, func() bool {
		k = b.servedKubernetes()

		return k != nil
	})

	return k, err
}

// anyKubernetes returns a client of the cluster's API, nil if there is none right now.
func (b *boot) anyKubernetes() *kube.Client {
	b.World.Lock()
	defer b.World.Unlock()

	return b.servedKubernetes()
}

// servedKubernetes is anyKubernetes for callers that hold world. It is the API server
// that the machine's kubelet and machined reach: with KubePrism any that answers, their
// own first; without it a control plane's own and nothing else (Talos 1.13,
// secrets/kubelet.go and secrets/root.go). Workers then use the cluster's endpoint, and
// KubePrism itself knows nothing else without discovery.
func (b *boot) servedKubernetes() *kube.Client {
	if b.cluster == nil {
		return nil
	}

	prism := b.Config().K8sKubePrismConfig() != nil

	switch {
	case b.kubeUp != nil && b.knows(b) || b.ControlPlane() && !prism:
		return b.kubeUp
	case !prism || !b.Discovery():
		return b.behindEndpoint()
	}

	for _, other := range b.cluster.boots {
		if other.kubeUp != nil && b.knows(other) {
			return other.kubeUp
		}
	}

	return nil
}

// serveKubernetes runs the machine's kube-apiserver of a version until ctx ends. An error
// says that it could not run.
func (b *boot) serveKubernetes(ctx context.Context, version string) error {
	node := b.etcd.Node()
	if node == nil {
		return errors.New("no etcd member")
	}

	k, err := b.joined().kubeOf(b, node.Group())
	if err != nil {
		return err
	}

	cfg := b.Config()
	port := cfg.K8sAPIServerConfig().APIPort()

	own, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", net.JoinHostPort(b.m.Address().String(), strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("listen for Kubernetes: %w", err)
	}

	server, err := k.Serve(own, version, cfg)
	if err != nil {
		return err
	}
	defer server.Stop()

	client, err := kube.NewClient(server)
	if err != nil {
		return err
	}

	if awaitReady(ctx, server) != nil {
		return nil // it is not wanted any more
	}

	b.World.Update(func() { b.kubeUp, b.kubeTrust = client, trustIn(cfg) })
	b.World.Logf("%s: Kubernetes API %s on %s", b.m.Name(), version, own.Addr())

	<-ctx.Done()
	b.World.Update(func() { b.kubeUp = nil })

	return nil
}

func awaitReady(ctx context.Context, server kube.Server) error {
	for server.Ready(ctx) != nil {
		if err := timing.Pause(ctx, kube.JoinRetry); err != nil {
			return err
		}
	}

	return ctx.Err()
}
