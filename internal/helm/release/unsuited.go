package release

import (
	"context"
	"fmt"

	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
)

// Unsuited is a deployed release whose chart is for other versions of Kubernetes.
type Unsuited struct {
	Name
	// Chart and Version of it, and the versions of Kubernetes that it allows.
	Chart, Version, Allowed string
}

// Unsuited finds the deployed releases of the cluster whose charts do not allow a version of Kubernetes. Records that
// cannot be read are no releases.
func (c *Cluster) Unsuited(ctx context.Context, kubernetes string) ([]Unsuited, error) {
	secrets, err := c.API.ListObjects(ctx, objects.Reference{APIVersion: "v1", Kind: "Secret"},
		"owner=helm,status=deployed")
	if err != nil {
		return nil, fmt.Errorf("read the deployed releases: %w", err)
	}

	var found []Unsuited

	for _, secret := range secrets {
		object := &unstructured.Unstructured{Object: secret}

		read, err := decodeRecord(object)
		if err != nil {
			continue
		}

		chart := read.Chart.Metadata
		if chart.KubeVersion == "" || chartutil.IsCompatibleRange(chart.KubeVersion, kubernetes) {
			continue
		}

		found = append(found, Unsuited{Name: Name{Namespace: object.GetNamespace(), Name: object.GetLabels()["name"]},
			Chart: chart.Name, Version: chart.Version, Allowed: chart.KubeVersion})
	}

	return found, nil
}
