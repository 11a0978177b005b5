package schedule

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Facts are what the cluster tells of a schedule's runs, those on demand included.
type Facts struct {
	// LastRun is when the last run was due or began, LastSuccess when the last good one ended;
	// zero for never, as far as the cluster still knows.
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

// String is such as "2026-01-02T03:04:05Z Job nightly-29123: BackoffLimitExceeded", and empty
// for none.
func (f Failure) String() string {
	if f.Job == "" {
		return ""
	}

	return fmt.Sprintf("%s Job %s: %s", f.At.UTC().Format(time.RFC3339), f.Job, f.Reason)
}

// FactsOf reads the facts of a CronJob and its Jobs, as the API has them.
func FactsOf(cronJob map[string]any, jobs []map[string]any) (Facts, error) {
	var facts Facts

	if cronJob != nil {
		c, err := typed[batchv1.CronJob](cronJob)
		if err != nil {
			return Facts{}, err
		}

		if c.Status.LastScheduleTime != nil {
			facts.LastRun = c.Status.LastScheduleTime.UTC()
		}

		if c.Status.LastSuccessfulTime != nil {
			facts.LastSuccess = c.Status.LastSuccessfulTime.UTC()
		}
	}

	for _, o := range jobs {
		job, err := typed[batchv1.Job](o)
		if err != nil {
			return Facts{}, err
		}

		facts.count(job)
	}

	return facts, nil
}

func (f *Facts) count(job batchv1.Job) {
	if begun := job.CreationTimestamp.UTC(); begun.After(f.LastRun) {
		f.LastRun = begun
	}

	end := endOf(job)

	switch {
	case !end.Done:
		f.Active++
	case end.Failure == "":
		if end.At.After(f.LastSuccess) {
			f.LastSuccess = end.At
		}
	default:
		if !end.At.Before(f.LastFailure.At) {
			f.LastFailure = Failure{At: end.At, Job: job.Name, Reason: end.Failure}
		}
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
	if err != nil {
		return End{}, err
	}

	return endOf(j), nil
}

func endOf(job batchv1.Job) End {
	for _, c := range job.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}

		switch c.Type {
		case batchv1.JobComplete:
			return End{Done: true, At: c.LastTransitionTime.UTC()}
		case batchv1.JobFailed:
			return End{Done: true, At: c.LastTransitionTime.UTC(),
				Failure: cmp.Or(strings.Trim(c.Reason+": "+c.Message, ": "), "it failed")}
		default:
		}
	}

	return End{}
}

// Refusal is why Talos gives no credentials to a ServiceAccount, as the API has it; empty when
// Talos says nothing.
func Refusal(account map[string]any) string {
	reason, _ := nested(account, "status")["failureReason"].(string)

	return reason
}

// Altered says what somebody changed in the content of the schedule's Secret, as the API has
// it; empty for nothing. No value is in it.
func Altered(secret map[string]any) string {
	content := map[string]string{}

	for key, value := range nested(secret, "data") {
		content[key], _ = value.(string)
	}

	if nested(secret, "metadata", "annotations")[contentAnnotation] != digest(content) {
		return "data is another one"
	}

	return ""
}

// ExpressionOf is the cron expression of a CronJob, as the API has it.
func ExpressionOf(cronJob map[string]any) string {
	expression, _ := nested(cronJob, "spec")["schedule"].(string)

	return expression
}

func typed[T any](o map[string]any) (out T, err error) {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o, &out); err != nil {
		return out, fmt.Errorf("read an object of the Kubernetes API: %w", err)
	}

	return out, nil
}
