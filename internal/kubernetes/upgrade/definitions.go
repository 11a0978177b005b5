package upgrade

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
)

// definition is what is needed of a CustomResourceDefinition.
type definition struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		PreserveUnknownFields bool `json:"preserveUnknownFields"`
		Conversion            struct {
			Strategy string `json:"strategy"`
			Webhook  struct {
				ClientConfig clientConfig `json:"clientConfig"`
			} `json:"webhook"`
		} `json:"conversion"`
		Versions []struct {
			Name    string `json:"name"`
			Storage bool   `json:"storage"`
			Schema  struct {
				OpenAPI fieldSchema `json:"openAPIV3Schema"`
			} `json:"schema"`
		} `json:"versions"`
	} `json:"spec"`
	Status struct {
		StoredVersions []string `json:"storedVersions"`
	} `json:"status"`
}

// fieldSchema is the part of a schema that decides which fields are kept.
type fieldSchema struct {
	Properties map[string]fieldSchema `json:"properties"`
	Preserve   bool                   `json:"x-kubernetes-preserve-unknown-fields"`
}

func (d definition) object() string { return objects.DefinitionKind + " " + d.Name }

func (u *Upgrade) definitions(ctx context.Context) ([]definition, error) {
	return every[definition](ctx, u,
		objects.Reference{APIVersion: "apiextensions.k8s.io/v1", Kind: objects.DefinitionKind})
}

// lossyDefinitions finds definitions whose objects may be stored in an older version with fields that the present one
// lacks, and that no webhook converts. The API server only replaces apiVersion then, and prunes these fields when it
// reads the objects (Kubernetes 1.36, apiextensions-apiserver conversion/nop_converter.go).
func (u *Upgrade) lossyDefinitions(ctx context.Context) ([]Problem, error) {
	defined, err := u.definitions(ctx)

	var problems []Problem

	for _, d := range defined {
		if d.Spec.Conversion.Strategy == "Webhook" || d.Spec.PreserveUnknownFields {
			continue
		}

		schemas, current := map[string]fieldSchema{}, ""

		for _, v := range d.Spec.Versions {
			schemas[v.Name] = v.Schema.OpenAPI

			if v.Storage {
				current = v.Name
			}
		}

		for _, stored := range d.Status.StoredVersions {
			if lost := schemas[stored].missing(schemas[current]); len(lost) > 0 {
				problems = append(problems, Problem{ConversionCode, d.object(), fmt.Sprintf(
					"objects may be stored as %s, and no webhook converts them to %s, which lacks %s", stored, current,
					some(lost))})
			}
		}
	}

	return problems, err
}

// missing are the paths of fields that another schema does not keep.
func (s fieldSchema) missing(in fieldSchema) []string {
	var lost []string

	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		other, kept := in.Properties[name]

		switch {
		case !kept && !in.Preserve:
			lost = append(lost, name)
		case kept:
			for _, field := range s.Properties[name].missing(other) {
				lost = append(lost, strings.Join([]string{name, field}, "."))
			}
		}
	}

	return lost
}
