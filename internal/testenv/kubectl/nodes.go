// Package kubectl does to clusters of tests what people do with kubectl.
package kubectl

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

// PatchNode merges a patch into a node of the cluster with these secrets and this endpoint, as kubectl patch does.
func PatchNode(t testing.TB, bundle *pki.Bundle, endpoint, node, patch string) {
	t.Helper()

	api := clientOf(t, bundle, endpoint)

	if _, err := api.Nodes().Patch(t.Context(), node, types.StrategicMergePatchType, []byte(patch),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Annotation reads an annotation of a node.
func Annotation(t testing.TB, bundle *pki.Bundle, endpoint, node, name string) string {
	t.Helper()

	found, err := clientOf(t, bundle, endpoint).Nodes().Get(t.Context(), node, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}

	return found.Annotations[name]
}

func clientOf(t testing.TB, bundle *pki.Bundle, endpoint string) *typedcore.CoreV1Client {
	t.Helper()

	credentials, err := bundle.KubernetesClient("kubectl", []string{"system:masters"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}

	api, err := typedcore.NewForConfig(&rest.Config{
		Host: endpoint,
		TLSClientConfig: rest.TLSClientConfig{CAData: credentials.CA, CertData: credentials.Certificate,
			KeyData: credentials.Key},
	})
	if err != nil {
		t.Fatal(err)
	}

	return api
}
