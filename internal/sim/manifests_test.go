package sim_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/constants"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Talos creates the objects of its manifests at bootstrap and records them.
func TestBootstrapManifests_areCreated(t *testing.T) {
	_, _, kube := oneNode(t)

	eventually(t, "inventory", func(ctx context.Context) error {
		inventory, err := kube.CoreV1().ConfigMaps(constants.KubernetesInventoryNamespace).
			Get(ctx, constants.KubernetesBootstrapManifestsInventoryName, metav1.GetOptions{})
		if err != nil {
			return err
		}

		for _, id := range []string{"kube-system_kube-proxy_apps_DaemonSet", "kube-system_coredns_apps_Deployment"} {
			if _, found := inventory.Data[id]; !found {
				return fmt.Errorf("%s is not among %d", id, len(inventory.Data))
			}
		}

		return nil
	})

	proxy, err := kube.AppsV1().DaemonSets("kube-system").Get(t.Context(), "kube-proxy", metav1.GetOptions{})
	check(t, err)

	if image := proxy.Spec.Template.Spec.Containers[0].Image; image != proxyImage+":v1.35.2" {
		t.Errorf("kube-proxy has image %s", image)
	}

	if owner := proxy.Annotations["config.k8s.io/owning-inventory"]; owner != constants.KubernetesBootstrapManifestsInventoryName {
		t.Errorf("kube-proxy belongs to inventory %q", owner)
	}
}

// Server-side apply of the stand-in removes what an applier leaves out, tells appliers
// apart, and writes nothing in a dry run.
func TestStandIn_appliesOnTheServer(t *testing.T) {
	_, _, kube := oneNode(t)
	maps := kube.CoreV1().ConfigMaps("default")

	apply := func(manager, data string, options metav1.PatchOptions) (*corev1.ConfigMap, error) {
		options.FieldManager = manager
		body := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"default"},"data":%s}`,
			data)

		return maps.Patch(t.Context(), "x", types.ApplyPatchType, []byte(body), options)
	}

	if _, err := apply("one", `{"a":"1"}`, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Fatalf("dry run of a create: %v", err)
	}

	if _, err := maps.Get(t.Context(), "x", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after a dry run: %v", err)
	}

	check(t, second(apply("one", `{"a":"1","b":"2"}`, metav1.PatchOptions{})))
	check(t, second(apply("two", `{"c":"3"}`, metav1.PatchOptions{})))

	if _, err := apply("two", `{"b":"9","c":"3"}`, metav1.PatchOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("apply of another's field: %v", err)
	}

	got, err := apply("one", `{"a":"5"}`, metav1.PatchOptions{})
	check(t, err)

	if got.Data["a"] != "5" || got.Data["c"] != "3" || len(got.Data) != 2 {
		t.Errorf("applied %v", got.Data)
	}

	check(t, second(apply("one", `{"c":"4"}`, metav1.PatchOptions{Force: new(true)})))

	got, err = maps.Get(t.Context(), "x", metav1.GetOptions{})
	check(t, err)

	if got.Data["c"] != "4" || len(got.Data) != 1 {
		t.Errorf("after a forced apply: %v", got.Data)
	}
}
