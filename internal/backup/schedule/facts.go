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

// Facts are what the cluster tells of a schedule's runs, those on demand included.
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

// String is such as "2026-01-02T03:04:05Z Job nightly-29123: BackoffLimitExceeded", and empty for none.
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

	for _, o := range jobs {
		job, err := typed[batchv1.Job](o)
		if err != nil {
			return Facts{}, err
		}

		facts.count(job)
	}

	return facts, nil
}

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}

	return t.UTC()
}

func (f *Facts) count(job batchv1.Job) {
	if begun := job.CreationTimestamp.UTC(); begun.After(f.LastRun) {
		f.LastRun = begun
	}

	end := endOf(job)

	switch {
	case !end.Done:
		f.Active++
	case end.Failure == "" && end.At.After(f.LastSuccess):
		f.LastSuccess = end.At
	case end.Failure != "" && !end.At.Before(f.LastFailure.At):
		f.LastFailure = Failure{At: end.At, Job: job.Name, Reason: end.Failure}
	}
}

// End is how a Job ended.
type End struct {
	Done bool
	At   time.Time
	// Failure is empty for a Job that succeeded.
	Failure string
}

// EndOf reads how a Job ended, if it did.
func EndOf(job map[string]any) (End, error) {
	j, err := typed[batchv1.Job](job)

	return endOf(j), err
}

func endOf(job batchv1.Job) End {
	for _, c := range job.Status.Conditions {
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == batchv1.JobComplete:
			return End{Done: true, At: c.LastTransitionTime.UTC()}
		case c.Type == batchv1.JobFailed:
			return End{Done: true, At: c.LastTransitionTime.UTC(),
				Failure: cmp.Or(strings.Trim(c.Reason+": "+c.Message, ": "), "it failed")}
		}
	}

	return End{}
}

func typed[T any](o map[string]any) (out T, err error) {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o, &out); err != nil {
		return out, fmt.Errorf("read an object of the Kubernetes API: %w", err)
	}

	return out, nil
}

// Refusal is why Talos gives no credentials to a ServiceAccount, as the API has it; empty when Talos says nothing.
func Refusal(account map[string]any) string { return textAt(account, "status", "failureReason") }

// ExpressionOf is the cron expression of a CronJob, as the API has it.
func ExpressionOf(cronJob map[string]any) string { return textAt(cronJob, "spec", "schedule") }

// textAt is a text in an object, empty where there is none.
func textAt(o map[string]any, fields ...string) string {
	text, _, err := unstructured.NestedString(o, fields...)
	if err != nil {
		return "" // it is of another type
	}

	return text
}
