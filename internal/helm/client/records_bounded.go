package client

import (
	"bytes"
	"context"
	"encoding/base64"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/talosop/terraform-provider-talosop/internal/expansion"
)

// LargestRecord in bytes is what the record of a release may have once it is decompressed. A Secret holds 1 MiB of it
// compressed, and charts and manifests become a tenth to a twentieth.
const LargestRecord = 64 << 20

// boundedRecords are the Secrets of Helm's records. Helm decompresses each that it reads, however large it becomes
// (Helm 3.21, storage/driver/util.go, decodeRelease): a writer of Secrets in the namespace could take all memory.
type boundedRecords struct{ corev1client.SecretInterface }

// Get implements corev1client.SecretInterface.
func (b boundedRecords) Get(ctx context.Context, name string, o metav1.GetOptions) (*corev1.Secret, error) {
	secret, err := b.SecretInterface.Get(ctx, name, o)
	if err == nil {
		withhold(secret)
	}

	return secret, err
}

// List implements corev1client.SecretInterface.
func (b boundedRecords) List(ctx context.Context, o metav1.ListOptions) (*corev1.SecretList, error) {
	secrets, err := b.SecretInterface.List(ctx, o)
	if err == nil {
		for i := range secrets.Items {
			withhold(&secrets.Items[i])
		}
	}

	return secrets, err
}

// withhold takes a record away that is too large, which Helm then cannot read.
func withhold(secret *corev1.Secret) {
	if content, err := base64.StdEncoding.DecodeString(string(secret.Data["release"])); err == nil &&
		bytes.HasPrefix(content, []byte{0x1f, 0x8b}) && expansion.CheckGzip(content, LargestRecord) != nil {
		secret.Data = nil
	}
}
