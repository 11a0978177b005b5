package kubernetes

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgo "k8s.io/client-go/kubernetes"
)

const (
	// troublesBound is how long all looks together may take, and troublesAtOnce how many there are
	// at a time.
	troublesBound  = 30 * time.Second
	troublesAtOnce = 4
)

// Troubles says of each of the objects that is not ready why, one text for each: of Deployments,
// StatefulSets, DaemonSets, ReplicaSets and Jobs with the pod that is nearest to the cause, its last
// event and, where a container ended or does not get ready, the last lines of its log; without such a
// pod, with the last event about who makes the pods, such as a quota that is used up. Other kinds that
// are looked at are Pods, PersistentVolumeClaims, Services of type LoadBalancer, APIServices and
// CustomResourceDefinitions; all others are taken for ready. An object that is not there, and one that
// cannot be looked at, is one of the troubles.
//
// It only reads, and takes 30 s at most. What the Secrets contain that a pod is given is taken out.
func (c *Client) Troubles(ctx context.Context, refs []Reference) []string {
	ctx, cancel := context.WithTimeoutCause(ctx, troublesBound, fmt.Errorf("not within %s", troublesBound))
	defer cancel()

	texts := make([]string, len(refs))

	var looks errgroup.Group

	looks.SetLimit(troublesAtOnce)

	for i, ref := range refs {
		looks.Go(func() error {
			texts[i] = c.trouble(ctx, ref)

			return nil
		})
	}

	// No look has an error that is not in its text.
	_ = looks.Wait()

	var troubles []string

	for i, text := range texts {
		if text != "" {
			troubles = append(troubles, fmt.Sprintf("%s: %s", refs[i], text))
		}
	}

	return troubles
}

// trouble is why an object is not ready, empty when it is.
func (c *Client) trouble(ctx context.Context, ref Reference) string {
	shortfallOf := shortfalls[schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()]
	if shortfallOf == nil {
		return ""
	}

	object, err := c.GetObject(ctx, ref)

	switch {
	case err != nil:
		return "it cannot be looked at: " + oneLine(err)
	case object == nil:
		return "it does not exist"
	}

	lacks, err := shortfallOf(object)

	switch {
	case err != nil:
		return "it cannot be read: " + oneLine(err)
	case lacks.unmet == "":
		return ""
	case lacks.pod != nil:
		return c.reportOn(ctx, lacks.pod, troubleOf(lacks.pod))
	case lacks.pods != nil:
		return lacks.unmet + "; " + c.culprit(ctx, ref, lacks)
	case ref.Namespace != "":
		return lacks.unmet + "; last event: " + c.lastEvent(ctx, ref.Namespace, ref.Kind, ref.Name)
	default:
		return lacks.unmet
	}
}

// culprit says what is the matter with the pod of a workload that is nearest to the cause, or else with
// who makes its pods.
func (c *Client) culprit(ctx context.Context, ref Reference, lacks shortfall) string {
	pods, err := c.podsOf(ctx, ref.Namespace, lacks.pods)
	if err != nil {
		return oneLine(err)
	}

	if pod, trouble := worst(pods); pod != nil {
		return fmt.Sprintf("pod %s: %s", pod.Name, c.reportOn(ctx, pod, trouble))
	}

	maker := ref

	if ref.Kind == deploymentKind {
		set, err := c.newestReplicas(ctx, ref, lacks)

		switch {
		case err != nil:
			return oneLine(err)
		case set != "":
			maker.Kind, maker.Name = replicaSetKind, set
		}
	}

	what := "no pod of it has a trouble"
	if len(pods) == 0 {
		what = "it has no pod"
	}

	return fmt.Sprintf("%s; last event about %s %s: %s", what, maker.Kind, maker.Name, c.lastEvent(ctx, maker.Namespace, maker.Kind, maker.Name))
}

// newestReplicas is the name of the ReplicaSet of a Deployment's present template: it, and not the
// Deployment, has the events about pods that cannot be made. Empty when there is none yet.
func (c *Client) newestReplicas(ctx context.Context, ref Reference, lacks shortfall) (name string, err error) {
	var list *appsv1.ReplicaSetList

	err = c.do(ctx, func(ctx context.Context, api clientgo.Interface) (err error) {
		list, err = api.AppsV1().ReplicaSets(ref.Namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(lacks.pods)})

		return err
	})
	if err != nil {
		return "", fmt.Errorf("list its ReplicaSets: %w", err)
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
