package upgrade

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
)

// serviceName is a reference to a Service in a configuration of the API server.
type serviceName struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// clientConfig is where the API server finds a webhook (Kubernetes 1.36, admissionregistration/v1 and
// apiextensions/v1 WebhookClientConfig). A webhook with a URL has no Service.
type clientConfig struct {
	Service  *serviceName `json:"service"`
	CABundle string       `json:"caBundle"`
}

// webhooks is a ValidatingWebhookConfiguration or a MutatingWebhookConfiguration.
type webhooks struct {
	metav1.ObjectMeta `json:"metadata"`

	Webhooks []webhook `json:"webhooks"`
}

// webhook is one of them. Those of both kinds have these fields.
type webhook struct {
	Name              string                                       `json:"name"`
	FailurePolicy     admissionregistrationv1.FailurePolicyType    `json:"failurePolicy"`
	ClientConfig      clientConfig                                 `json:"clientConfig"`
	Rules             []admissionregistrationv1.RuleWithOperations `json:"rules"`
	NamespaceSelector *metav1.LabelSelector                        `json:"namespaceSelector"`
	ObjectSelector    *metav1.LabelSelector                        `json:"objectSelector"`
	MatchConditions   []admissionregistrationv1.MatchCondition     `json:"matchConditions"`
}

// forAnyPod reports whether a webhook is called for each new pod of the namespaces that it selects.
func (w webhook) forAnyPod() bool {
	if s := w.ObjectSelector; len(w.MatchConditions) > 0 || s != nil && len(s.MatchLabels)+len(s.MatchExpressions) > 0 {
		return false
	}

	return slices.ContainsFunc(w.Rules, func(r admissionregistrationv1.RuleWithOperations) bool {
		return has(r.APIGroups, "") && has(r.Resources, "pods", "*/*") && has(r.Operations, admissionregistrationv1.Create) &&
			(r.Scope == nil || *r.Scope != admissionregistrationv1.ClusterScope)
	})
}

// has reports whether a list of a rule has "*" or one of the values.
func has[T ~string](list []T, values ...T) bool {
	return slices.ContainsFunc(append(values, "*"), func(v T) bool { return slices.Contains(list, v) })
}

// aggregated is an APIService.
type aggregated struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec clientConfig `json:"spec"`
}

// dependency is a Service that requests to the API server need.
type dependency struct {
	code, object string
	clientConfig
	// effect is what the lack of it does beside that requests fail.
	effect string
}

// servicesBehind finds webhooks and aggregated APIs that the API server cannot call: their Service does not exist or
// has no ready endpoint, or their CA has expired. Writes fail then, and so do the upgrade's.
func (u *Upgrade) servicesBehind(ctx context.Context) ([]Problem, error) {
	needed, err := u.dependencies(ctx)
	if err != nil {
		return nil, err
	}

	var problems []Problem

	answers := map[serviceName]answer{}

	for _, d := range needed {
		if expired := expiredBundle(d.CABundle, time.Now()); expired != "" {
			problems = append(problems, Problem{CertificateCode, d.object, "its CA " + expired})
		}

		if d.Service == nil {
			continue
		}

		from, known := answers[*d.Service]
		if !known {
			if from, err = u.answerOf(ctx, *d.Service); err != nil {
				return problems, err
			}

			answers[*d.Service] = from
		}

		switch text := fmt.Sprintf("its Service %s/%s", d.Service.Namespace, d.Service.Name); from {
		case missing:
			problems = append(problems, Problem{d.code, d.object, text + " does not exist" + d.effect})
		case unready:
			problems = append(problems, Problem{EndpointCode, d.object, text + " has no ready endpoint" + d.effect})
		case ready:
		}
	}

	return problems, nil
}

// dependencies are the webhooks whose failure makes requests fail, and the aggregated APIs.
func (u *Upgrade) dependencies(ctx context.Context) ([]dependency, error) {
	all, err := u.blockingWebhooks(ctx)
	if err != nil {
		return nil, err
	}

	defined, err := u.definitions(ctx)
	if err != nil {
		return nil, err
	}

	for _, d := range defined {
		if c := d.Spec.Conversion; c.Strategy == "Webhook" {
			all = append(all, dependency{ConversionCode, d.object(), c.Webhook.ClientConfig, ""})
		}
	}

	apis, err := every[aggregated](ctx, u, objects.Reference{APIVersion: "apiregistration.k8s.io/v1", Kind: "APIService"})
	for _, a := range apis {
		if a.Spec.Service != nil {
			all = append(all, dependency{AggregatedCode, "APIService " + a.Name, a.Spec, ""})
		}
	}

	return all, err
}

// blockingWebhooks are the webhooks whose failure makes requests fail.
func (u *Upgrade) blockingWebhooks(ctx context.Context) ([]dependency, error) {
	var all []dependency

	for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
		found, err := every[webhooks](ctx, u,
			objects.Reference{APIVersion: "admissionregistration.k8s.io/v1", Kind: kind})
		if err != nil {
			return nil, err
		}

		for _, w := range found {
			for _, hook := range w.Webhooks {
				if cmp.Or(hook.FailurePolicy, admissionregistrationv1.Fail) != admissionregistrationv1.Fail {
					continue
				}

				effect, err := u.effectOn(ctx, hook)
				if err != nil {
					return nil, err
				}

				all = append(all,
					dependency{WebhookCode, kind + " " + w.Name + ", webhook " + hook.Name, hook.ClientConfig, effect})
			}
		}
	}

	return all, nil
}

// effectOn is what to say about a webhook that is called for each new pod of kube-system. The kubelets of control
// planes create mirror pods there. Static pods run without, but neither talosop nor kubectl sees that (Kubernetes
// 1.36, pkg/kubelet/pod/mirror_client.go CreateMirrorPod).
func (u *Upgrade) effectOn(ctx context.Context, w webhook) (string, error) {
	if !w.forAnyPod() {
		return "", nil
	}

	system, err := u.api.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read namespace %s: %w", metav1.NamespaceSystem, api.WithoutURL(err))
	}

	selected := labels.Everything()
	if w.NamespaceSelector != nil {
		if selected, err = metav1.LabelSelectorAsSelector(w.NamespaceSelector); err != nil {
			return "", fmt.Errorf("read the namespaceSelector of webhook %s: %w", w.Name, err)
		}
	}

	if !selected.Matches(labels.Set(system.Labels)) {
		return "", nil
	}

	return ", and it is called for new pods of kube-system, so kubelets cannot show that the control plane was " +
		"upgraded", nil
}

// answer is whether anything answers behind a Service.
type answer int

const (
	ready answer = iota
	unready
	missing
)

func (u *Upgrade) answerOf(ctx context.Context, s serviceName) (answer, error) {
	service, err := u.api.CoreV1().Services(s.Namespace).Get(ctx, s.Name, metav1.GetOptions{})

	switch {
	case apierrors.IsNotFound(err):
		return missing, nil
	case err != nil:
		return 0, fmt.Errorf("read Service %s/%s: %w", s.Namespace, s.Name, api.WithoutURL(err))
	case service.Spec.Type == corev1.ServiceTypeExternalName:
		return ready, nil
	}

	found, err := u.api.DiscoveryV1().EndpointSlices(s.Namespace).List(ctx,
		metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + s.Name})
	if err != nil {
		return 0, fmt.Errorf("list the endpoints of Service %s/%s: %w", s.Namespace, s.Name, api.WithoutURL(err))
	}

	for _, slice := range found.Items {
		for _, endpoint := range slice.Endpoints {
			// Endpoints of unknown readiness count as ready (Kubernetes 1.36, discovery/v1 EndpointConditions).
			if is := endpoint.Conditions.Ready; is == nil || *is {
				return ready, nil
			}
		}
	}

	return unready, nil
}
