package kubernetes

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const podKind, replicaSetKind, statefulSetKind = "Pod", "ReplicaSet", "StatefulSet"

// shortfall is what an object lacks to be ready, by its status.
type shortfall struct {
	// unmet says it in words, empty for an object that is ready.
	unmet string
	// pods are the ones to look at, nil for an object that makes none.
	pods *metav1.LabelSelector
	// pod is the object itself.
	pod *corev1.Pod
}

// shortfalls are the kinds whose status says whether they are ready.
var shortfalls = map[schema.GroupKind]func(object map[string]any) (shortfall, error){
	{Group: appsv1.GroupName, Kind: deploymentKind}:       ofWorkload(rolloutOfDeployment),
	{Group: appsv1.GroupName, Kind: daemonSetKind}:        ofWorkload(rolloutOfSet),
	{Group: appsv1.GroupName, Kind: statefulSetKind}:      ofWorkload(rolloutOfStatefulSet),
	{Group: appsv1.GroupName, Kind: replicaSetKind}:       ofWorkload(rolloutOfReplicaSet),
	{Group: batchv1.GroupName, Kind: "Job"}:               read(shortfallOfJob),
	{Kind: podKind}:                                       read(shortfallOfPod),
	{Kind: "PersistentVolumeClaim"}:                       read(shortfallOfClaim),
	{Kind: "Service"}:                                     read(shortfallOfService),
	{Group: "apiregistration.k8s.io", Kind: "APIService"}: ofCondition("Available"),
	{Group: "apiextensions.k8s.io", Kind: definitionKind}: ofCondition("Established"),
}

// read decodes an object for a look at it.
func read[T any](look func(*T) shortfall) func(map[string]any) (shortfall, error) {
	return func(object map[string]any) (shortfall, error) {
		var typed T
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &typed); err != nil {
			return shortfall{}, err
		}

		return look(&typed), nil
	}
}

func ofWorkload[T any](look func(workload, *T) *rollout) func(map[string]any) (shortfall, error) {
	return read(func(typed *T) shortfall {
		r := look(workload{}, typed)

		return shortfall{unmet: r.unmet, pods: r.selector}
	})
}

// ofCondition is for kinds that are ready when they say so.
func ofCondition(kind string) func(map[string]any) (shortfall, error) {
	return func(object map[string]any) (shortfall, error) {
		is := conditionIn(object, kind)

		switch {
		case is == nil:
			return shortfall{unmet: "it is not " + strings.ToLower(kind)}, nil
		case is.status != "True":
			return shortfall{unmet: "it is not " + strings.ToLower(kind) + because(is.reason, is.message)}, nil
		default:
			return shortfall{}, nil
		}
	}
}

func shortfallOfJob(job *batchv1.Job) shortfall {
	s := shortfall{pods: job.Spec.Selector}

	for _, c := range job.Status.Conditions {
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == batchv1.JobComplete:
			return shortfall{}
		case c.Type == batchv1.JobFailed:
			s.unmet = "it failed" + because(c.Reason, c.Message)
		case c.Type == batchv1.JobSuspended && s.unmet == "":
			s.unmet = "it is suspended"
		}
	}

	if s.unmet == "" {
		s.unmet = fmt.Sprintf("it is not complete: %d pods active, %d succeeded, %d failed", job.Status.Active, job.Status.Succeeded, job.Status.Failed)
	}

	return s
}

func shortfallOfPod(pod *corev1.Pod) shortfall {
	return shortfall{unmet: troubleOf(pod).text, pod: pod}
}

func shortfallOfClaim(claim *corev1.PersistentVolumeClaim) shortfall {
	if claim.Status.Phase == corev1.ClaimBound {
		return shortfall{}
	}

	return shortfall{unmet: fmt.Sprintf("it is not bound to a volume (%s)", claim.Status.Phase)}
}

func shortfallOfService(service *corev1.Service) shortfall {
	if service.Spec.Type != corev1.ServiceTypeLoadBalancer || len(service.Status.LoadBalancer.Ingress)+len(service.Spec.ExternalIPs) > 0 {
		return shortfall{}
	}

	return shortfall{unmet: "no load balancer has an address for it"}
}
