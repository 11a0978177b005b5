package execute

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/talosop/terraform-provider-talosop/internal/hook"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
)

// jobLabel names the hook of a job and of its pods.
const jobLabel = "talosop.dev/hook"

// labelOf distinguishes the jobs of hooks. Names of machines need not be valid in a label.
func labelOf(h hook.Started) string {
	const enough = 5

	sum := sha256.Sum256([]byte(h.Key))

	return h.Name + "-" + hex.EncodeToString(sum[:enough])
}

// clearJobs removes the jobs of a hook that an interrupted run left, and returns an error while their pods still run: a
// job that starts late must not redo what `after` undid. A pod that outlives its grace period is on a node that is
// down.
func (e *Executor) clearJobs(ctx context.Context, h hook.Started) error {
	if h.Before != nil && h.Before.Job == "" && (h.After == nil || h.After.Job == "") {
		return nil
	}

	selector := jobLabel + "=" + labelOf(h)

	jobs, err := e.Cluster.ListObjects(ctx, objects.Reference{APIVersion: "batch/v1", Kind: "Job"}, selector)
	if err != nil {
		return err
	}

	for _, job := range jobs {
		if err := e.Cluster.RequestDeletion(ctx, objects.ReferenceTo(job), objects.UIDOf(job)); err != nil {
			return err
		}
	}

	pods, err := e.Cluster.ListObjects(ctx, objects.Reference{APIVersion: "v1", Kind: "Pod"}, selector)
	if err != nil {
		return err
	}

	for _, pod := range pods {
		u := unstructured.Unstructured{Object: pod}
		phase, _, _ := unstructured.NestedString(pod, "status", "phase")
		ends := u.GetDeletionTimestamp()

		if phase != "Succeeded" && phase != "Failed" && (ends == nil || time.Now().Before(ends.Time)) {
			return fmt.Errorf("%s of an earlier job still runs", objects.ReferenceTo(pod))
		}
	}

	return nil
}
