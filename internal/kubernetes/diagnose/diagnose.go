package diagnose

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
	"github.com/talosop/terraform-provider-talosop/internal/panics"
)

const (
	// timeout of a diagnosis of several objects, and how many of them are diagnosed at a time.
	timeout = 30 * time.Second
	atOnce  = 4
)

// Diagnosis finds out why objects of one cluster are not ready. It only reads, and is safe for concurrent use.
type Diagnosis struct {
	api     *api.Client
	objects *objects.Objects
}

// podProblem is why a pod is not ready, or did not do its work.
type podProblem struct {
	weight weight
	text   string
	// container whose log says more, empty when none does, and whether that is the log of its last
	// run.
	container string
	previous  bool
}

// New is for the cluster of a client; it does no I/O.
func New(c *api.Client, o *objects.Objects) *Diagnosis { return &Diagnosis{c, o} }

// NotReady is an object that is not ready, and why. Its text is made by [NotReady.String] alone.
type NotReady struct {
	Object objects.Reference
	// Reason by the status of the object; empty for a Pod, which has a Pod.
	Reason string
	// Unknown is why there is no reason, or nothing more than the reason.
	Unknown error
	// Pod is the pod nearest to the cause, nil when there is none.
	Pod *Pod
	// Events is the subject of the last event when no pod is the cause: the object or the controller of its pods.
	Events objects.Reference
	// NoPods is that there is no pod at all.
	NoPods bool
	// Event is the last one.
	Event string
}

// NotReady diagnoses the objects that are not ready. Deployments, StatefulSets, DaemonSets, ReplicaSets and Jobs
// come with the pod nearest to the cause and its last event. If a container ended or does not get ready, the last
// lines of its log are added. Without such a pod, the last event about the pods' controller is added, such as an
// exceeded quota. Other diagnosed kinds are Pods, PersistentVolumeClaims, Services of type LoadBalancer,
// APIServices and CustomResourceDefinitions; all others count as ready. A missing or unreadable object is not
// ready.
//
// It only reads, and takes 30 s at most. The content of Secrets that a pod gets is redacted.
func (d *Diagnosis) NotReady(ctx context.Context, refs []objects.Reference) []NotReady {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("timed out after %s", timeout))
	defer cancel()

	all := make([]*NotReady, len(refs))

	var running panics.Group

	running.SetLimit(atOnce)

	for i, ref := range refs {
		running.Go(func() error {
			all[i] = d.object(ctx, ref)

			return nil
		})
	}

	_ = running.Wait() // what goes wrong is in the diagnosis

	var found []NotReady

	for _, n := range all {
		if n != nil {
			found = append(found, *n)
		}
	}

	return found
}

// object returns nil for a ready object.
func (d *Diagnosis) object(ctx context.Context, ref objects.Reference) *NotReady {
	statusOf := statusOf(ref)
	if statusOf == nil {
		return nil
	}

	object, err := d.objects.GetObject(ctx, ref)

	switch {
	case err != nil:
		return &NotReady{Object: ref, Reason: "cannot read it: " + api.OneLine(err)}
	case object == nil:
		return &NotReady{Object: ref, Reason: "not found"}
	}

	is, err := statusOf(object)

	switch {
	case err != nil:
		return &NotReady{Object: ref, Reason: "cannot read its status: " + api.OneLine(err)}
	case is.pod != nil:
		problem := problemOf(is.pod)
		if problem.weight == fine {
			return nil
		}

		return &NotReady{Object: ref, Pod: d.pod(ctx, is.pod, problem)}
	case is.reason == "":
		return nil
	}

	n := &NotReady{Object: ref, Reason: is.reason}

	switch {
	case is.pods != nil:
		d.blame(ctx, n, is.pods)
	case ref.Namespace != "":
		n.Event = d.LastEvent(ctx, ref.Namespace, ref.Kind, ref.Name)
	}

	return n
}

// blame adds the workload's pod nearest to the cause, or else the controller of its pods.
func (d *Diagnosis) blame(ctx context.Context, n *NotReady, selector *metav1.LabelSelector) {
	pods, err := d.PodsOf(ctx, n.Object.Namespace, selector)
	if err != nil {
		n.Unknown = err

		return
	}

	if pod, problem := worst(pods); pod != nil {
		n.Pod = d.pod(ctx, pod, problem)

		return
	}

	n.Events, n.NoPods = n.Object, len(pods) == 0

	if n.Object.Kind == deploymentKind {
		set, err := d.newestReplicas(ctx, n.Object, selector)
		if err != nil {
			n.Unknown = err

			return
		}

		if set != "" {
			n.Events.Kind, n.Events.Name = replicaSetKind, set
		}
	}

	n.Event = d.LastEvent(ctx, n.Events.Namespace, n.Events.Kind, n.Events.Name)
}

// PodsOf are the pods that a workload selects; it has to select some (Kubernetes 1.36,
// apis/apps/validation).
func (d *Diagnosis) PodsOf(
	ctx context.Context, namespace string, selector *metav1.LabelSelector,
) ([]corev1.Pod, error) {
	list, err := d.api.CoreV1().Pods(namespace).List(ctx,
		metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(selector)})
	if err != nil {
		return nil, fmt.Errorf("list its pods: %w", api.WithoutURL(err))
	}

	return list.Items, nil
}

// newestReplicas is the name of the ReplicaSet of a Deployment's present template: it, and not the
// Deployment, has the events about pods that cannot be made. Empty when there is none yet.
func (d *Diagnosis) newestReplicas(
	ctx context.Context, ref objects.Reference, selector *metav1.LabelSelector,
) (name string, err error) {
	list, err := d.api.AppsV1().ReplicaSets(ref.Namespace).List(ctx,
		metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(selector)})
	if err != nil {
		return "", fmt.Errorf("list its ReplicaSets: %w", api.WithoutURL(err))
	}

	newest := int64(-1)

	for i := range list.Items {
		of := &list.Items[i]
		owner := metav1.GetControllerOf(of)

		// Kubernetes 1.36, pkg/controller/deployment/util RevisionAnnotation.
		revision, err := strconv.ParseInt(of.Annotations["deployment.kubernetes.io/revision"], 10, 64)
		if err != nil {
			revision = 0
		}

		if owner != nil && owner.Name == ref.Name && revision > newest {
			newest, name = revision, of.Name
		}
	}

	return name, nil
}

// Job diagnoses each pod of a Job that does not run, and has not succeeded. A Job without pods has the last
// event about itself.
func (d *Diagnosis) Job(ctx context.Context, namespace, job string) ([]NotReady, error) {
	// The label is the Job controller's (Kubernetes 1.27 and newer, batch/v1 JobNameLabel).
	list, err := d.api.CoreV1().Pods(namespace).List(ctx,
		metav1.ListOptions{LabelSelector: "batch.kubernetes.io/job-name=" + job})
	if err != nil {
		return nil, fmt.Errorf("list the pods of Job %s/%s: %w", namespace, job, api.WithoutURL(err))
	}

	ref := objects.Reference{APIVersion: "batch/v1", Kind: jobKind, Namespace: namespace, Name: job}
	if len(list.Items) == 0 {
		return []NotReady{{Object: ref, NoPods: true, Events: ref, Event: d.LastEvent(ctx, namespace, jobKind, job)}}, nil
	}

	var found []NotReady

	for i := range list.Items {
		if problem := problemOf(&list.Items[i]); problem.weight != fine {
			found = append(found, NotReady{Object: ref, Pod: d.pod(ctx, &list.Items[i], problem)})
		}
	}

	return found, nil
}

// Pod is why a pod is not ready, or did not do its work, without what its Secrets contain.
type Pod struct {
	Name string
	// Reason of the container, or of the pod, that is nearest to the cause.
	Reason string
	Event  string
	// Log is the end of that of the container, if one tells more; nil when none does.
	Log *string
	// Unknown is why there is no log, or nothing at all.
	Unknown error
}

// errSecret withholds a reason because it may have parts of a Secret.
var errSecret = errors.New("the reason is hidden, because it may contain parts of a Secret")

// pod adds the last event to the problem of a pod, and the end of the log of the container that is the cause.
// What the Secrets contain that the pod is given is taken out, because programs log what they were given.
func (d *Diagnosis) pod(ctx context.Context, pod *corev1.Pod, problem podProblem) *Pod {
	p := &Pod{Name: pod.Name}

	mask, err := d.maskOf(ctx, pod)
	if err != nil {
		p.Unknown = fmt.Errorf("%w: %w", errSecret, err)

		return p
	}

	p.Reason = lastLines(mask(problem.text))
	p.Event = mask(d.LastEvent(ctx, pod.Namespace, podKind, pod.Name))

	if problem.container != "" {
		log, err := d.logOf(ctx, pod, problem)
		log, p.Unknown = mask(log), err
		p.Log = &log
	}

	return p
}
