package upgrade

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
)

// The codes of problems. Users compare them.
const (
	RemovedSettingCode  = "removed_setting"
	RemovedResourceCode = "removed_resource"
	RemovedRequestCode  = "removed_request"
	WebhookCode         = "webhook_unavailable"
	ConversionCode      = "conversion_missing"
	AggregatedCode      = "api_unavailable"
	EndpointCode        = "service_not_ready"
	EvictionCode        = "eviction_blocked"
	CertificateCode     = "certificate_expired"
	ExtensionCode       = "extension_missing"
	PodCode             = "pod_not_ready"
	ChartCode           = "chart_incompatible"
	ComponentCode       = "component_not_ready"
)

// Problem is an object that blocks a change of the cluster, or that the change breaks.
type Problem struct {
	Code string
	// Object is a text such as "PodDisruptionBudget shop/web".
	Object, Reason string
}

// String is a line for a person.
func (p Problem) String() string { return p.Object + ": " + p.Reason }

// AllProblems are the obstacles as problems, those of the new version first.
func (o Obstacles) AllProblems() []Problem {
	var all []Problem

	for _, s := range o.Settings {
		all = append(all, Problem{RemovedSettingCode, s.Component + " on " + strings.Join(s.Nodes, ", "), s.String()})
	}

	for _, r := range o.Resources {
		all = append(all, Problem{RemovedResourceCode, r.Resource, r.String()})
	}

	for _, r := range o.Requests {
		all = append(all, Problem{RemovedRequestCode, r.name(), r.String()})
	}

	return append(all, o.Problems...)
}

// ProblemLines are the problems of any version, each a line for a person.
func (o Obstacles) ProblemLines() []string {
	var lines []string
	for _, p := range o.Problems {
		lines = append(lines, p.String())
	}

	return lines
}

// standing are the sources of problems that no version causes. None reads Secrets, because plans ask them.
func (u *Upgrade) standing() []func(context.Context) ([]Problem, error) {
	return []func(context.Context) ([]Problem, error){u.servicesBehind, u.blockedEvictions, u.lossyDefinitions}
}

// bounded asks a source within the time of a call.
func (u *Upgrade) bounded(ctx context.Context, source func(context.Context) ([]Problem, error)) (Obstacles, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, u.api.Options.Call, fmt.Errorf("no response within %s",
		u.api.Options.Call))
	defer cancel()

	problems, err := source(ctx)

	return Obstacles{Problems: problems}, err
}

// every decodes all objects of a kind. There are none of a kind that the API does not serve.
func every[T any](ctx context.Context, u *Upgrade, ref objects.Reference) ([]T, error) {
	list, err := u.objects.ListObjects(ctx, ref, "")
	if err != nil {
		return nil, served(err)
	}

	all := make([]T, len(list))

	for i, object := range list {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &all[i]); err != nil {
			return nil, fmt.Errorf("decode %s: %w", objects.ReferenceTo(object), err)
		}
	}

	return all, nil
}

// served is nil for an error of a kind that the API does not serve.
func served(err error) error {
	if noMatch := new(meta.NoKindMatchError); errors.As(err, &noMatch) || apierrors.IsNotFound(err) {
		return nil
	}

	return err
}
