package hostcluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// checkQuotas compares what all machines to be made need with what the quotas of the namespace leave; the host itself
// looks at one object at a time. It says whether any is short. The pods are as the host fills them in, by shape.
func (c *checking) checkQuotas(ctx context.Context, filled map[string]*corev1.Pod) (short bool, err error) {
	quotas, err := c.host.client().CoreV1().ResourceQuotas(c.spec.Namespace).List(ctx, metav1.ListOptions{})
	if c.unseenIf(err, "the resource quotas of the namespace") {
		return false, nil
	}

	if err != nil {
		return false, fmt.Errorf("list the resource quotas of namespace %s: %w", c.spec.Namespace, err)
	}

	for i := range quotas.Items {
		quota := &quotas.Items[i]
		needed := c.needed(quota, filled)

		for _, name := range slices.Sorted(maps.Keys(quota.Spec.Hard)) {
			hard, used, need := quota.Spec.Hard[name], quota.Status.Used[name], needed[name]

			left := hard.DeepCopy()
			left.Sub(used)

			if need.IsZero() || left.Cmp(need) >= 0 {
				continue
			}

			short = true

			c.await(quotaAttribute(name), "The machines to be made need %s of %s, and ResourceQuota %s/%s leaves %s of %s.",
				"Let them need less, have the quota raised, or choose another namespace.",
				need.String(), name, quota.Namespace, quota.Name, left.String(), hard.String())
		}
	}

	return short, nil
}

// needed is what a quota will count of the objects that are to be made.
func (c *checking) needed(quota *corev1.ResourceQuota, filled map[string]*corev1.Pod) corev1.ResourceList {
	sum := corev1.ResourceList{}
	scoped := len(quota.Spec.Scopes) > 0 || quota.Spec.ScopeSelector != nil && len(quota.Spec.ScopeSelector.MatchExpressions) > 0

	for _, m := range c.spec.Machines {
		pod := filled[c.shape(m)]
		if pod == nil {
			pod = &corev1.Pod{Spec: c.spec.podSpec(m)}
		}

		if c.found.pods[c.spec.podName(m)] == nil && inScope(quota, pod) {
			add(sum, usageOfPod(pod))
		}

		if scoped {
			continue // Kubernetes 1.36, quota/v1/evaluator/core: only pods have scopes, but for classes of volume attributes
		}

		if c.found.sets[c.spec.HostName(m)] == nil {
			add(sum, corev1.ResourceList{countOf("statefulsets.apps"): one})
		}

		for _, service := range c.spec.services(m) {
			if c.found.services[service.Name] == nil {
				add(sum, usageOfService(service))
			}
		}

		for _, claim := range c.spec.claims(m) {
			if c.found.claims[claim.Name] == nil {
				add(sum, c.usageOfClaim(claim))
			}
		}
	}

	if service := c.spec.endpointService(); service != nil && !scoped && c.found.services[service.Name] == nil {
		add(sum, usageOfService(service))
	}

	return sum
}

var one = *resource.NewQuantity(1, resource.DecimalSI)

func countOf(what string) corev1.ResourceName { return corev1.ResourceName("count/" + what) }

func add(sum, more corev1.ResourceList) {
	for name, quantity := range more {
		total := sum[name].DeepCopy()
		total.Add(quantity)
		sum[name] = total
	}
}

// usageOfPod is as in Kubernetes 1.36, quota/v1/evaluator/core/pods.go podComputeUsageHelper.
func usageOfPod(pod *corev1.Pod) corev1.ResourceList {
	usage := corev1.ResourceList{corev1.ResourcePods: one, countOf("pods"): one}

	for i := range pod.Spec.Containers {
		resources := pod.Spec.Containers[i].Resources

		for name, quantity := range requestsOf(resources) {
			add(usage, corev1.ResourceList{"requests." + name: quantity})

			if !strings.Contains(string(name), "/") {
				add(usage, corev1.ResourceList{name: quantity})
			}
		}

		for name, quantity := range resources.Limits {
			add(usage, corev1.ResourceList{"limits." + name: quantity})
		}
	}

	return usage
}

// requestsOf are those that a container has: what is limited and not requested is requested.
func requestsOf(resources corev1.ResourceRequirements) corev1.ResourceList {
	requests := corev1.ResourceList{}
	maps.Copy(requests, resources.Limits)
	maps.Copy(requests, resources.Requests)

	return requests
}

// usageOfService is as in Kubernetes 1.36, quota/v1/evaluator/core/services.go Usage.
func usageOfService(service *corev1.Service) corev1.ResourceList {
	usage := corev1.ResourceList{corev1.ResourceServices: one, countOf("services"): one}
	ports := *resource.NewQuantity(int64(len(service.Spec.Ports)), resource.DecimalSI)

	switch service.Spec.Type {
	case corev1.ServiceTypeNodePort:
		usage[corev1.ResourceServicesNodePorts] = ports
	case corev1.ServiceTypeLoadBalancer:
		usage[corev1.ResourceServicesNodePorts], usage[corev1.ResourceServicesLoadBalancers] = ports, one
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName:
	}

	return usage
}

// usageOfClaim is as in Kubernetes 1.36, quota/v1/evaluator/core/persistent_volume_claims.go Usage.
func (c *checking) usageOfClaim(claim *corev1.PersistentVolumeClaim) corev1.ResourceList {
	storage := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	usage := corev1.ResourceList{
		corev1.ResourcePersistentVolumeClaims: one, countOf("persistentvolumeclaims"): one, corev1.ResourceRequestsStorage: storage,
	}

	class := c.defaultClass
	if claim.Spec.StorageClassName != nil {
		class = *claim.Spec.StorageClassName
	}

	if class != "" {
		prefix := corev1.ResourceName(class + ".storageclass.storage.k8s.io/")
		usage[prefix+"requests.storage"], usage[prefix+"persistentvolumeclaims"] = storage, one
	}

	return usage
}

// inScope says whether a quota counts a pod.
func inScope(quota *corev1.ResourceQuota, pod *corev1.Pod) bool {
	for _, scope := range quota.Spec.Scopes {
		if !matches(corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists}, pod) {
			return false
		}
	}

	if quota.Spec.ScopeSelector == nil {
		return true
	}

	return !slices.ContainsFunc(quota.Spec.ScopeSelector.MatchExpressions, func(r corev1.ScopedResourceSelectorRequirement) bool {
		return !matches(r, pod)
	})
}

// matches is as in Kubernetes 1.36, quota/v1/evaluator/core/pods.go podMatchesScopeFunc, for pods without a deadline and without
// affinities.
func matches(r corev1.ScopedResourceSelectorRequirement, pod *corev1.Pod) bool {
	requests := usageOfPod(pod)
	delete(requests, corev1.ResourcePods)
	delete(requests, countOf("pods"))

	switch r.ScopeName {
	case corev1.ResourceQuotaScopeNotTerminating:
		return true
	case corev1.ResourceQuotaScopeBestEffort:
		return len(requests) == 0
	case corev1.ResourceQuotaScopeNotBestEffort:
		return len(requests) > 0
	case corev1.ResourceQuotaScopePriorityClass:
		class := pod.Spec.PriorityClassName

		switch r.Operator {
		case corev1.ScopeSelectorOpIn:
			return slices.Contains(r.Values, class)
		case corev1.ScopeSelectorOpNotIn:
			return !slices.Contains(r.Values, class)
		case corev1.ScopeSelectorOpDoesNotExist:
			return class == ""
		default:
			return class != ""
		}
	default:
		return false
	}
}

// quotaAttribute is the one that a quota's resource depends on.
func quotaAttribute(name corev1.ResourceName) string {
	switch text := string(name); {
	case strings.HasSuffix(text, "requests.storage"), strings.HasSuffix(text, "persistentvolumeclaims"):
		return attributeStorage
	case name == corev1.ResourceServicesNodePorts, name == corev1.ResourceServicesLoadBalancers:
		return attributeAccess
	case name == corev1.ResourcePods, name == corev1.ResourceServices, strings.HasPrefix(text, "count/"):
		return attributeNamespace
	default:
		return attributeResources
	}
}
