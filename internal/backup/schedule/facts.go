package schedule

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Facts are the cluster's facts about a schedule's runs, those on demand included.
type Facts struct {
	// LastRun is when the last run was due or began, LastSuccess when the last good one ended; zero for never.
	LastRun, LastSuccess time.Time
	// LastFailure is of the Jobs that are still there.
	LastFailure Failure
	// Active counts the runs that have not ended.
	Active int64
}

// Failure is a run that did not succeed.
type Failure struct {
	At          time.Time
	Job, Reason string
}

// String returns a text such as "2026-01-02T03:04:05Z Job nightly-29123: BackoffLimitExceeded", and empty for none.
func (f Failure) String() string {
	if f.Job == "" {
		return ""
	}

	return fmt.Sprintf("%s Job %s: %s", f.At.UTC().Format(time.RFC3339), f.Job, f.Reason)
}

// FactsOf reads the facts of a CronJob, nil for one that is missing, and its Jobs, as the API has them.
func FactsOf(cronJob map[string]any, jobs []map[string]any) (Facts, error) {
	c, err := typed[batchv1.CronJob](cronJob)
	if err != nil {
		return Facts{}, err
	}

	facts := Facts{LastRun: timeOf(c.Status.LastScheduleTime), LastSuccess: timeOf(c.Status.LastSuccessfulTime)}

	for _, job := range jobs {
		done, end, err := EndOf(job)
		if err != nil {
			return Facts{}, err
		}

		created := (&unstructured.Unstructured{Object: job}).GetCreationTimestamp()
		if begun := created.UTC(); begun.After(facts.LastRun) {
			facts.LastRun = begun
		}

		switch {
		case !done:
			facts.Active++
		case end.Reason == "" && end.At.After(facts.LastSuccess):
			facts.LastSuccess = end.At
		case end.Reason != "" && !end.At.Before(facts.LastFailure.At):
			facts.LastFailure = end
		}
	}

	return facts, nil
}

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}

	return t.UTC()
}

// EndOf reads whether a Job ended, and how. One that succeeded has no reason of a failure.
func EndOf(o map[string]any) (done bool, end Failure, err error) {
	job, err := typed[batchv1.Job](o)

	for _, c := range job.Status.Conditions {
		end = Failure{At: c.LastTransitionTime.UTC(), Job: job.Name}

		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == batchv1.JobComplete:
			return true, end, err
		case c.Type == batchv1.JobFailed:
			end.Reason = cmp.Or(strings.Trim(c.Reason+": "+c.Message, ": "), "failed")

			return true, end, err
		}
	}

	return false, Failure{}, err
}

func typed[T any](o map[string]any) (out T, err error) {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o, &out); err != nil {
		return out, fmt.Errorf("decode a Kubernetes object: %w", err)
	}

	return out, nil
}

// Refusal is why Talos gives no credentials to a ServiceAccount, as the API has it; empty when Talos says nothing.
func Refusal(account map[string]any) string {
	reason, _, _ := unstructured.NestedString(account, "status", "failureReason")

	return reason
}

// ExpressionOf is the cron expression of a CronJob, as the API has it.
func ExpressionOf(cronJob map[string]any) string {
	expression, _, _ := unstructured.NestedString(cronJob, "spec", "schedule")

	return expression
}
