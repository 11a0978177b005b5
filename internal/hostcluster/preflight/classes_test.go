package preflight

import (
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kubernetes takes either annotation for the default class, and old installers still write the beta one.
func TestDefaultClass_byEitherAnnotation(t *testing.T) {
	t.Parallel()

	for annotation, want := range map[string]map[string]bool{
		"storageclass.kubernetes.io/is-default-class":      {"true": true, "false": false},
		"storageclass.beta.kubernetes.io/is-default-class": {"true": true, "false": false},
		"example.com/is-default-class":                     {"true": false},
	} {
		for value, isIt := range want {
			class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{annotation: value}}}
			if isDefault(class) != isIt {
				t.Errorf("%s=%s: default is %t", annotation, value, !isIt)
			}
		}
	}
}
