package backupschedule

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/backup/schedule"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// runNow makes a Job from the CronJob and waits for it. One of the same wish that still runs, because the process was
// killed meanwhile, is waited for.
func (s *Scheduler) runNow(ctx context.Context, wish string) error {
	cronJob, err := s.API.GetObject(ctx, objects.ReferenceTo(s.Spec.CronJob()))
	if err != nil {
		return err
	}

	job := s.Spec.JobNow(cronJob, wish)
	ref := objects.ReferenceTo(job)

	if err := s.begin(ctx, ref, job); err != nil {
		return err
	}

	err = wait.Until(ctx, s.Pause, func(ctx context.Context) error { return s.ended(ctx, ref) })
	if err == nil {
		return nil
	}

	// There is no time left when that is why it failed.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.gracePeriod)
	defer cancel()

	pods, unknown := s.API.Job(ctx, ref.Namespace, ref.Name)
	reasons := []error{fmt.Errorf("run %s: %w", ref, err), unknown}

	for _, pod := range pods {
		reasons = append(reasons, errors.New(strings.ReplaceAll(pod.Why(), "\n", " | ")))
	}

	return errors.Join(reasons...)
}

// begin makes a Job unless there is one that has not ended.
func (s *Scheduler) begin(ctx context.Context, ref objects.Reference, job map[string]any) error {
	live, err := s.API.GetObject(ctx, ref)
	if err != nil {
		return err
	}

	if live != nil {
		done, _, err := schedule.EndOf(live)
		if err != nil || !done {
			return err
		}

		if err := s.API.DeleteObject(ctx, ref, objects.UIDOf(live)); err != nil {
			return err
		}
	}

	_, err = s.API.CreateObject(ctx, job)

	return err
}

// ended is nil when a Job succeeded, and a permanent error when it never will.
func (s *Scheduler) ended(ctx context.Context, ref objects.Reference) error {
	live, err := s.API.GetObject(ctx, ref)

	switch {
	case err != nil:
		return objects.Final(err)
	case live == nil:
		return wait.Permanent(errors.New("somebody deleted it"))
	}

	done, end, err := schedule.EndOf(live)

	switch {
	case err != nil:
		return wait.Permanent(err)
	case !done:
		return errors.New("it has not ended, and goes on")
	case end.Reason != "":
		return wait.Permanent(errors.New(end.Reason))
	}

	return nil
}
