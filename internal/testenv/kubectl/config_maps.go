package kubectl

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

// ApplyConfigMap gives a ConfigMap of the namespace default one value, as kubectl apply does.
func ApplyConfigMap(t testing.TB, bundle *pki.Bundle, endpoint, name, value string) {
	t.Helper()

	body := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"value":%q}}`, name, value)

	if _, err := clientOf(t, bundle, endpoint).ConfigMaps(metav1.NamespaceDefault).Patch(t.Context(), name,
		types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: "kubectl"}); err != nil {
		t.Fatal(err)
	}
}

// ConfigMap reads a ConfigMap of the namespace default.
func ConfigMap(t testing.TB, bundle *pki.Bundle, endpoint, name string) *corev1.ConfigMap {
	t.Helper()

	maps := clientOf(t, bundle, endpoint).ConfigMaps(metav1.NamespaceDefault)

	found, err := maps.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}

	return found
}

// ListUnverified lists the ConfigMaps of the namespace default, and returns the error. It does not verify the server,
// which has to refuse former secrets by itself.
func ListUnverified(t testing.TB, bundle *pki.Bundle, endpoint string) error {
	t.Helper()

	credentials, err := bundle.KubernetesClient("kubectl", []string{pki.GroupAdmin}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}

	api, err := typedcore.NewForConfig(&rest.Config{
		Host: endpoint, Timeout: 10 * time.Second,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true, CertData: credentials.Certificate, KeyData: credentials.Key},
	})
	if err != nil {
		t.Fatal(err)
	}

	_, err = api.ConfigMaps(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})

	return err
}
