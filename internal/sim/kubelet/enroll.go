package kubelet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/sim/kube"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// errUnauthorized is what an API server answers to a bootstrap token that it does not know.
var errUnauthorized = errors.New("Unauthorized")

// Enrolled reports whether the kubelet has a client certificate. It is on EPHEMERAL.
func (kl *Kubelet) Enrolled() bool {
	kl.World.Lock()
	defer kl.World.Unlock()

	return kl.Disk.Enrolled
}

// forgetCertificate removes a client certificate of an authority that the machine does not accept any more, when its
// kubelet starts (Talos 1.13, k8s/kubelet_service.go refreshKubeletCerts).
func (kl *Kubelet) forgetCertificate() {
	cluster := kl.Config().K8sAPIServerCAConfig()
	accepted := [][]byte{}

	for _, ca := range cluster.AcceptedCAs() {
		accepted = append(accepted, ca.Crt)
	}

	kl.World.Update(func() {
		if !slices.ContainsFunc(accepted, func(ca []byte) bool {
			return bytes.Equal(bytes.TrimSpace(ca), bytes.TrimSpace(kl.Disk.EnrolledBy))
		}) {
			kl.Disk.Enrolled, kl.Disk.EnrolledBy = false, nil
		}
	})
}

// enroll gets the kubelet its client certificate, once in the life of EPHEMERAL. It sends a request with the
// bootstrap token of the configuration to a reachable API server, and a controller manager approves and signs it
// (Talos 1.13, k8s/kubelet_service.go writePKI and k8stemplates/csr.go). It retries until ctx ends.
func (kl *Kubelet) enroll(ctx context.Context) error {
	for {
		k, err := kl.host.Kubernetes(ctx)
		if err != nil {
			return err
		}

		if kl.Enrolled() {
			return nil
		}

		if err = kl.knownToken(ctx, k); err == nil {
			if err := kl.World.Await(ctx, func() bool { return kl.host.Signed() }); err != nil {
				return err
			}

			kl.World.Update(func() { kl.Disk.Enrolled, kl.Disk.EnrolledBy = true, kl.host.Signer() })

			return nil
		}

		if err := timing.Pause(ctx, kube.KubeletRetry); err != nil {
			return err
		}
	}
}

// knownToken reports whether the API server accepts the machine's bootstrap token.
func (kl *Kubelet) knownToken(ctx context.Context, k *kube.Client) error {
	token := kl.Config().Cluster().Token()

	secret, err := k.Typed.CoreV1().Secrets(metav1.NamespaceSystem).Get(ctx, "bootstrap-token-"+token.ID(),
		metav1.GetOptions{})

	switch {
	case err != nil:
		return fmt.Errorf("find bootstrap token: %w", err)
	case string(secret.Data["token-secret"]) != token.Secret():
		return errUnauthorized
	default:
		return nil
	}
}
