package sim

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/sim/kube"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// errUnauthorized is what an API server answers to a bootstrap token that it does not know.
var errUnauthorized = errors.New("Unauthorized")

// Enrolled says whether the kubelet has a client certificate. It is on EPHEMERAL.
func (b *boot) Enrolled() bool {
	b.World.Lock()
	defer b.World.Unlock()

	return b.m.Disk.Enrolled
}

// enrol gets the kubelet its client certificate, once in the life of EPHEMERAL: with the
// bootstrap token of the configuration it asks the API server that it reaches, and a
// controller manager approves and signs (Talos 1.13, k8s/kubelet_service.go writePKI and
// k8stemplates/csr.go). It tries until ctx ends.
func (b *boot) enrol(ctx context.Context) error {
	for {
		k, err := b.kubernetes(ctx)
		if err != nil {
			return err
		}

		if b.Enrolled() {
			return nil
		}

		if err = b.knownToken(ctx, k); err == nil {
			if err := b.World.Await(ctx, func() bool { return b.cluster.signs() }); err != nil {
				return err
			}

			b.World.Update(func() { b.m.Disk.Enrolled = true })

			return nil
		}

		if err := timing.Pause(ctx, kube.KubeletRetry); err != nil {
			return err
		}
	}
}

// knownToken says whether the API server takes the machine's bootstrap token.
func (b *boot) knownToken(ctx context.Context, k *kubeClient) error {
	token := b.Config().Cluster().Token()

	secret, err := k.typed.CoreV1().Secrets(metav1.NamespaceSystem).Get(ctx, "bootstrap-token-"+token.ID(), metav1.GetOptions{})

	switch {
	case err != nil:
		return fmt.Errorf("find bootstrap token: %w", err)
	case string(secret.Data["token-secret"]) != token.Secret():
		return errUnauthorized
	default:
		return nil
	}
}

// signs says whether a controller manager of the cluster runs; world is held.
func (c *cluster) signs() bool {
	for _, b := range c.boots {
		if run := b.staticPods["kube-controller-manager"]; run != nil && run.shown.ready {
			return true
		}
	}

	return false
}
