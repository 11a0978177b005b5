package diagnose

import (
	"fmt"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
)

const deploymentKind, podKind, replicaSetKind, jobKind = "Deployment", "Pod", "ReplicaSet", "Job"

// statusFound is the result from the status of an object.
type statusFound struct {
	// reason why it is not ready, empty for an object that is.
	reason string
	// pods are the ones to blame, nil for an object that makes none.
	pods *metav1.LabelSelector
	// pod is the object itself.
	pod *corev1.Pod
}

type statusFunc func(object map[string]any) (statusFound, error)

// statusOf is nil for kinds whose status does not show whether they are ready. kstatus knows no APIService, and
// accepts a running Job and a Service without a load balancer. For a Pod it reports neither the container nor how
// it ended.
func statusOf(ref objects.Reference) statusFunc {
	return map[schema.GroupKind]statusFunc{
		{Group: appsv1.GroupName, Kind: deploymentKind}:               ofWorkload,
		{Group: appsv1.GroupName, Kind: "DaemonSet"}:                  ofWorkload,
		{Group: appsv1.GroupName, Kind: "StatefulSet"}:                ofWorkload,
		{Group: appsv1.GroupName, Kind: replicaSetKind}:               ofWorkload,
		{Kind: "PersistentVolumeClaim"}:                               computed,
		{Group: "apiextensions.k8s.io", Kind: objects.DefinitionKind}: computed,
		{Group: batchv1.GroupName, Kind: jobKind}:                     read(ofJob),
		{Kind: podKind}:   read(func(pod *corev1.Pod) statusFound { return statusFound{pod: pod} }),
		{Kind: "Service"}: read(ofService),
		{Group: "apiregistration.k8s.io", Kind: "APIService"}: ofAPIService,
	}[schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()]
}

// computed is the result of kstatus for an object.
func computed(object map[string]any) (found statusFound, err error) {
	is, err := status.Compute(&unstructured.Unstructured{Object: object})
	if err == nil && is.Status != status.CurrentStatus {
		found.reason = is.Message
	}

	return found, err
}

// ofWorkload is for kinds with a selector of pods.
func ofWorkload(object map[string]any) (statusFound, error) {
	found, err := computed(replacedByOthers(object))
	if err != nil {
		return found, err
	}

	selector, _, err := unstructured.NestedMap(object, "spec", "selector")
	if err != nil {
		return found, err
	}

	found.pods = &metav1.LabelSelector{}

	return found, runtime.DefaultUnstructuredConverter.FromUnstructured(selector, found.pods)
}

// replacedByOthers treats pods of the strategy OnDelete as updated: another client replaces them at some time.
// Otherwise kstatus reports such a DaemonSet as not ready until then, and such a StatefulSet always.
func replacedByOthers(object map[string]any) map[string]any {
	if strategy, _, _ := unstructured.NestedString(object, "spec", "updateStrategy", "type"); strategy != "OnDelete" {
		return object
	}

	u := (&unstructured.Unstructured{Object: object}).DeepCopy()
	replicas, _, _ := unstructured.NestedInt64(object, "spec", "replicas")
	_ = unstructured.SetNestedMap(u.Object, map[string]any{"rollingUpdate": map[string]any{"partition": replicas}}, "spec",
		"updateStrategy")

	if wanted, known, _ := unstructured.NestedInt64(object, "status", "desiredNumberScheduled"); known {
		_ = unstructured.SetNestedField(u.Object, wanted, "status", "updatedNumberScheduled")
	}

	return u.Object
}

// read decodes an object.
func read[T any](of func(*T) statusFound) statusFunc {
	return func(object map[string]any) (statusFound, error) {
		var typed T
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &typed); err != nil {
			return statusFound{}, err
		}

		return of(&typed), nil
	}
}

func ofJob(job *batchv1.Job) statusFound {
	found := statusFound{pods: job.Spec.Selector}

	for _, c := range job.Status.Conditions {
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == batchv1.JobComplete:
			return statusFound{}
		case c.Type == batchv1.JobFailed:
			found.reason = "failed" + Because(c.Reason, c.Message)
		case c.Type == batchv1.JobSuspended && found.reason == "":
			found.reason = "suspended"
		}
	}

	if found.reason == "" {
		found.reason = fmt.Sprintf("not complete: %d pods active, %d succeeded, %d failed",
			job.Status.Active, job.Status.Succeeded, job.Status.Failed)
	}

	return found
}

func ofService(service *corev1.Service) statusFound {
	if service.Spec.Type != corev1.ServiceTypeLoadBalancer ||
		len(service.Status.LoadBalancer.Ingress)+len(service.Spec.ExternalIPs) > 0 {
		return statusFound{}
	}

	return statusFound{reason: "no load balancer address assigned"}
}

func ofAPIService(object map[string]any) (statusFound, error) {
	conditions, err := status.GetObjectWithConditions(object)
	if err != nil {
		return statusFound{}, err
	}

	for _, c := range conditions.Status.Conditions {
		if c.Type == "Available" && c.Status == corev1.ConditionTrue {
			return statusFound{}, nil
		} else if c.Type == "Available" {
			return statusFound{reason: "not available" + Because(c.Reason, strings.TrimSpace(c.Message))}, nil
		}
	}

	return statusFound{reason: "not available"}, nil
}

// Because appends Kubernetes' reason to a sentence.
func Because(reason, message string) string {
	switch {
	case reason == "" && message == "":
		return ""
	case message == "":
		return ": " + reason
	case reason == "":
		return ": " + message
	default:
		return fmt.Sprintf(": %s (%s)", reason, message)
	}
}
