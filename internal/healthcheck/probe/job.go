package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/talosop/terraform-provider-talosop/internal/expansion"
	"github.com/talosop/terraform-provider-talosop/internal/healthcheck"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

const (
	// jobLabel names the check of a job.
	jobLabel = "talosop.dev/health-check"
	// cleared is how long it may take to ask for a job, or for its removal.
	cleared = 15 * time.Second
	// keptJob is after how many seconds Kubernetes removes a job of which talosop was killed.
	keptJob = int64(600)
)

// ParseJob reads the manifest of a job.
func ParseJob(manifest string) (map[string]any, error) {
	if err := expansion.CheckYAML([]byte(manifest)); err != nil {
		return nil, err
	}

	var object map[string]any
	if err := yaml.UnmarshalStrict([]byte(manifest), &object); err != nil {
		return nil, err
	}

	u := unstructured.Unstructured{Object: object}
	if u.GetAPIVersion() != "batch/v1" || u.GetKind() != "Job" {
		return nil, fmt.Errorf("expected a Job of batch/v1, found %s %s", u.GetAPIVersion(), u.GetKind())
	}

	containers, found, err := unstructured.NestedSlice(object, "spec", "template", "spec", "containers")
	if err != nil || !found || len(containers) == 0 {
		return nil, errors.New("spec.template.spec.containers is empty")
	}

	return object, nil
}

// RunJob runs a job of [JobOf] once, and is nil when it succeeds. It reports to notYet while the job runs. left is why
// the job could not be cleared away.
func RunJob(
	ctx context.Context, cluster Cluster, job map[string]any, notYet func(error), left *error,
) (err error) {
	created, err := create(ctx, cluster, job)
	if err != nil {
		return err
	}

	ref := objects.ReferenceTo(created)
	uid := string((&unstructured.Unstructured{Object: created}).GetUID())

	defer func() {
		// An interrupted run deletes it, too.
		clearing, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleared)
		defer cancel()

		*left = cluster.RequestDeletion(clearing, ref, uid)
		err = errors.Join(err, *left)
	}()

	var failed error

	err = wait.Backoff(ctx, 100*time.Millisecond, 5*time.Second, func(ctx context.Context) error {
		job, err := cluster.GetObject(ctx, ref)

		switch {
		case err != nil:
			return err
		case job == nil:
			failed = fmt.Errorf("%s was deleted", ref)
		case conditionIsTrue(job, "Complete") == nil:
		case conditionIsTrue(job, "Failed") == nil:
			failed = fmt.Errorf("%s failed%s", ref, whyFailed(job))
		default:
			running := whyRunning(ctx, cluster, ref)
			if !wait.Over(ctx) {
				notYet(running)
			}

			return running
		}

		return nil
	})

	return errors.Join(err, failed)
}

// whyRunning is why a job has not finished, with what its pods wait for.
func whyRunning(ctx context.Context, cluster Cluster, ref objects.Reference) error {
	text := ref.String() + " has not finished"

	found, err := cluster.Job(ctx, ref.Namespace, ref.Name)
	if err != nil {
		return fmt.Errorf("%s; %w", text, err)
	}

	for _, n := range found {
		text += "; " + n.Why()
	}

	return errors.New(text)
}

// create makes a job. An interrupt does not cancel it: a job whose creation is unconfirmed would never be removed.
func create(ctx context.Context, cluster Cluster, job map[string]any) (map[string]any, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleared)
	defer cancel()

	return cluster.CreateObject(ctx, job)
}

func whyFailed(job map[string]any) string {
	conditions, _, _ := unstructured.NestedSlice(job, "status", "conditions") // it has those, since one of them was true

	for _, element := range conditions {
		condition, _ := element.(map[string]any)
		if message, _ := condition["message"].(string); condition["type"] == "Failed" && message != "" {
			return ": " + message
		}
	}

	return ""
}

func jobOf(check healthcheck.Check) map[string]any {
	return JobOf(check.Job.Manifest, check.Name, jobLabel, check.Name)
}

// JobOf is a job for one run of a manifest, under a separate name. It and its pods have a label. name is the beginning
// of its name if the manifest has none.
func JobOf(manifest map[string]any, name, label, value string) map[string]any {
	u := unstructured.Unstructured{Object: runtime.DeepCopyJSON(manifest)}

	name = cmp.Or(u.GetName(), name)

	u.SetName("")
	u.SetGenerateName(name + "-")

	if u.GetNamespace() == "" {
		u.SetNamespace("default")
	}

	labels := maps.Clone(u.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}

	labels[label] = value
	u.SetLabels(labels)

	// spec and its template are maps, or ParseJob had refused them.
	_ = unstructured.SetNestedField(u.Object, value, "spec", "template", "metadata", "labels", label)

	if _, found, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "ttlSecondsAfterFinished"); !found {
		_ = unstructured.SetNestedField(u.Object, keptJob, "spec", "ttlSecondsAfterFinished")
	}

	return u.Object
}
