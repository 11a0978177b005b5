package objects

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
)

// CompareObject returns the differences between the API's object and the given one: what [Objects.ApplyObject]
// would change. live is nil when there is no such object. Nothing is changed. The API server itself reports what
// the object would become (a dry run). So its defaults, its spelling of quantities, the fields it drops as
// unknown, and fields that other clients added are no differences. Neither are given nulls, status, and the rules
// of a ClusterRole that the controller aggregates from others.
//
// Server-side apply refuses some objects that other clients can make: those with two environment variables of one
// name, and those with fields that the API does not know. An update shows what these would become; there, list
// elements without names are identified by their index.
//
// If the API refuses the object, because a field is immutable or a webhook denies it, the error has the API's
// reasons: that one object cannot be compared. An error is [api.ErrNoAnswer] when nothing is known of the object.
func (o *Objects) CompareObject(
	ctx context.Context, object map[string]any,
) (live map[string]any, differences []Difference, err error) {
	ref := ReferenceTo(object)
	try := &attempt{o, o.api.Faithful(ctx)}

	for n := 1; ; n++ {
		found, err := try.get(ctx, ref)

		switch {
		case apierrors.IsNotFound(err):
			return nil, nil, nil
		case err != nil:
			return nil, nil, fmt.Errorf("read %s: %w", ref, try.Answered(err))
		}

		wanted, err := try.become(ctx, found, desired(object))

		switch {
		case err == nil:
			return found.Object, Differences(found.Object, wanted), nil
		case apierrors.IsConflict(err) && n < compareAttempts:
			// It changed between the two requests.
		default:
			return nil, nil, fmt.Errorf("compare %s: %w", ref, try.Answered(err))
		}
	}
}

// compareAttempts is how often the comparison of a changing object is tried.
const compareAttempts = 3

// become asks what an object would be after it was changed to what is given.
func (a *attempt) become(
	ctx context.Context, live *unstructured.Unstructured, given map[string]any,
) (map[string]any, error) {
	wanted, err := a.apply(ctx, given, true)

	var refusal apierrors.APIStatus
	if err == nil || !errors.As(err, &refusal) || api.CannotAnswer(refusal) {
		return wanted, err
	}

	updated, _ := overlay(live.DeepCopy().Object, given).(map[string]any)

	err = a.on(ctx, ReferenceTo(given), func(resources dynamic.ResourceInterface) error {
		object, err := resources.Update(ctx, &unstructured.Unstructured{Object: updated}, metav1.UpdateOptions{
			FieldManager: objectManager, DryRun: []string{metav1.DryRunAll},
		})
		if err == nil {
			wanted = object.Object
		}

		return err
	})

	return wanted, err
}

// desired is the given object without what cannot be wanted: metadata that the API server keeps, the status, and
// null, which for most kinds is the same as nothing.
func desired(object map[string]any) map[string]any {
	plain, _ := withoutNull(plainObject(object)).(map[string]any)

	// A controller writes them (Kubernetes 1.36, rbac/v1 ClusterRole.AggregationRule), and charts
	// give an empty list.
	if plain["kind"] == "ClusterRole" && plain["aggregationRule"] != nil {
		delete(plain, "rules")
	}

	return plain
}

// withoutNull copies a value without the fields that are null.
func withoutNull(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(value))

		for k, v := range value {
			if v != nil {
				out[k] = withoutNull(v)
			}
		}

		return out
	case []any:
		out := make([]any, len(value))
		for i := range value {
			out[i] = withoutNull(value[i])
		}

		return out
	case int:
		// The one of Go that is none of JSON's decoded ones, with which objects are made.
		return int64(value)
	default:
		return value
	}
}

// overlay merges the given object over the live one: field by field, and lists by the names of their elements or,
// without names and with equal lengths, by index.
func overlay(live, given any) any {
	switch given := given.(type) {
	case map[string]any:
		there, ok := live.(map[string]any)
		if !ok {
			return given
		}

		out := maps.Clone(there)
		for k, v := range given {
			out[k] = overlay(there[k], v)
		}

		return out
	case []any:
		there, ok := live.([]any)
		if !ok {
			return given
		}

		return overlayList(there, given)
	default:
		return given
	}
}

func overlayList(live, given []any) any {
	lives, named := byName(live)
	wants, areNamed := byName(given)

	if !named || !areNamed {
		if len(live) != len(given) {
			return given
		}

		out := make([]any, len(given))
		for i := range given {
			out[i] = overlay(live[i], given[i])
		}

		return out
	}

	out := slices.Clone(live)

	for i, element := range live {
		if wanted, ok := wants[elementName(element)]; ok {
			out[i] = overlay(element, wanted)
		}
	}

	for _, element := range given {
		if _, there := lives[elementName(element)]; !there {
			out = append(out, element)
		}
	}

	return out
}
