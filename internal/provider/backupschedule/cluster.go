package backupschedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/backup/schedule"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// Scheduler keeps the objects of one schedule in its cluster.
type Scheduler struct {
	API  *kubernetes.Client
	Spec schedule.Spec
	// Timeout limits what Talos does by itself: serving its kind, and issuing credentials. A refusal counts after
	// gracePeriod, because it may be from before the configuration of Talos was changed.
	Timeout, gracePeriod, Pause time.Duration
}

// observed is a schedule as its cluster has it.
type observed struct {
	schedule.Facts

	// gone reports whether nothing of it exists.
	gone bool
	// drift is what differs from the last apply.
	drift []string
	// refused is why Talos issues no credentials, empty when it does.
	refused string
}

// ErrTalosAccess says that Talos lets no pod of the namespace take snapshots.
var ErrTalosAccess = errors.New("Talos gives pods of the namespace no access") //nolint:staticcheck // a name

// errForeign says that an object with a name of the schedule has another owner.
var errForeign = errors.New("that this resource did not make")

// objects are those that only the schedule uses. The Secret is without its credentials.
func (s *Scheduler) objects() []map[string]any {
	return []map[string]any{s.Spec.TalosAccount(), s.Spec.CronJob(), s.Spec.Secret(schedule.Credentials{})}
}

// observe reads everything and changes nothing. A cluster that does not answer is kubernetes.ErrNoAnswer.
func (s *Scheduler) observe(ctx context.Context) (seen observed, err error) {
	found := map[string]map[string]any{}

	for _, o := range s.objects() {
		live, drift, err := s.compare(ctx, o)
		if err != nil {
			return observed{}, err
		}

		if live != nil {
			found[objects.ReferenceTo(o).Kind] = live
		}

		seen.drift = append(seen.drift, drift...)
	}

	if seen.gone = len(found) == 0; seen.gone {
		return seen, nil
	}

	jobs, err := s.jobs(ctx)
	if err == nil {
		seen.Facts, err = schedule.FactsOf(found["CronJob"], jobs)
	}

	if account := found[schedule.TalosKind]; account != nil && err == nil {
		seen.refused, err = s.refusal(ctx, account)
	}

	return seen, err
}

// compare reads an object, nil for none, and returns how it differs from the last apply.
func (s *Scheduler) compare(ctx context.Context, o map[string]any) (live map[string]any, drift []string, err error) {
	ref := objects.ReferenceTo(o)

	if ref.Kind == "Secret" { // no state has its content
		if live, err = s.API.GetObject(ctx, ref); live != nil && schedule.Altered(live) != "" {
			drift = []string{ref.String() + ": " + schedule.Altered(live)}
		}
	} else {
		var differences []objects.Difference

		live, differences, err = s.API.CompareObject(ctx, o)
		for _, d := range differences {
			drift = append(drift, fmt.Sprintf("%s: %s", ref, d))
		}
	}

	if live == nil {
		drift = []string{ref.String() + " is missing"}
	}

	return live, drift, err
}

func (s *Scheduler) jobs(ctx context.Context) ([]map[string]any, error) {
	return s.API.ListObjects(ctx, objects.Reference{APIVersion: "batch/v1", Kind: "Job", Namespace: s.Spec.Namespace},
		s.Spec.Selector())
}

// refusal is why a Talos ServiceAccount has no credentials, empty when it has.
func (s *Scheduler) refusal(ctx context.Context, account map[string]any) (string, error) {
	if reason := schedule.Refusal(account); reason != "" {
		return "Talos says: " + reason, nil
	}

	// Talos gives its Secret the name of the ServiceAccount.
	ref := objects.ReferenceTo(account)
	ref.APIVersion, ref.Kind = "v1", "Secret"

	secret, err := s.API.GetObject(ctx, ref)
	if data, _ := secret["data"].(map[string]any); err == nil && data[schedule.TalosConfigKey] == nil {
		return "Talos made no " + ref.String(), nil
	}

	return "", err
}

// own reads an object of the schedule, nil for none. An object of another owner is errForeign.
func (s *Scheduler) own(ctx context.Context, o map[string]any) (live map[string]any, err error) {
	ref := objects.ReferenceTo(o)

	live, err = s.API.GetObject(ctx, ref)
	if live != nil && !schedule.Owned(live, s.Spec.Name) {
		return nil, fmt.Errorf("there is a %s %w", ref, errForeign)
	}

	return live, err
}

// refuseForeign is an error when objects with names of the schedule have another owner.
func (s *Scheduler) refuseForeign(ctx context.Context) error {
	var foreign []error

	for _, o := range s.objects() {
		_, err := s.own(ctx, o)
		if err != nil && !errors.Is(err, errForeign) {
			return err
		}

		foreign = append(foreign, err)
	}

	return errors.Join(foreign...)
}

// Establish makes all objects match the schedule; the first time none of them may have another owner. It is
// idempotent. begun is false until something was changed.
func (s *Scheduler) Establish(
	ctx context.Context, credentials schedule.Credentials, first, makeNamespace bool,
) (begun bool, err error) {
	if err := s.awaitTalos(ctx, s.served); err != nil {
		return false, err
	}

	if first {
		if err := s.refuseForeign(ctx); err != nil {
			return false, err
		}
	}

	if begun, err = s.makeNamespace(ctx, makeNamespace); err != nil {
		return begun, err
	}

	if _, err := s.API.ApplyObject(ctx, s.Spec.TalosAccount()); err != nil {
		return true, err
	}

	believed := time.Now().Add(s.gracePeriod)
	if err := s.awaitTalos(ctx, func(ctx context.Context) error { return s.granted(ctx, believed) }); err != nil {
		return true, err
	}

	for _, o := range []map[string]any{s.Spec.Secret(credentials), s.Spec.CronJob()} {
		if _, err := s.API.ApplyObject(ctx, o); err != nil {
			return true, err
		}
	}

	return true, nil
}

// awaitTalos waits for what Talos does by itself.
func (s *Scheduler) awaitTalos(ctx context.Context, done func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.Timeout, fmt.Errorf("not within %s", s.Timeout))
	defer cancel()

	return wait.Until(ctx, s.Pause, done)
}

// served is nil when the API has the kind that Talos defines once the feature is on, and answers for it.
func (s *Scheduler) served(ctx context.Context) error {
	served, err := s.API.ServesKind(ctx, schedule.TalosAPI, schedule.TalosKind)

	switch {
	case err != nil:
		return objects.Final(err)
	case !served:
		return fmt.Errorf("%w: the API has no kind %s of %s", ErrTalosAccess, schedule.TalosKind, schedule.TalosAPI)
	}

	// A new kind is listed before it answers.
	_, err = s.API.GetObject(ctx, objects.ReferenceTo(s.Spec.TalosAccount()))

	return objects.Final(err)
}

func (s *Scheduler) makeNamespace(ctx context.Context, create bool) (begun bool, err error) {
	live, err := s.API.AwaitNamespace(ctx, s.Spec.Namespace)

	switch {
	case err != nil:
		return false, err
	case live != nil && !schedule.Made(live):
		return false, nil
	case live == nil && !create:
		return false, fmt.Errorf("there is no namespace %s, and create_namespace is false", s.Spec.Namespace)
	}

	_, err = s.API.ApplyObject(ctx, s.Spec.NamespaceObject())

	return true, err
}

// granted is nil when Talos has issued credentials. A refusal counts only from the time believed on.
func (s *Scheduler) granted(ctx context.Context, believed time.Time) error {
	account, err := s.API.GetObject(ctx, objects.ReferenceTo(s.Spec.TalosAccount()))
	if err != nil {
		return err
	}

	refused, err := s.refusal(ctx, account)
	if err != nil || refused == "" {
		return err
	}

	err = fmt.Errorf("%w: %s", ErrTalosAccess, refused)
	if schedule.Refusal(account) != "" && time.Now().After(believed) {
		return wait.Permanent(err)
	}

	return err
}

// Remove removes everything that Establish and the CronJob made, and nothing else. It is idempotent. stays is what
// keeps a namespace that was made for schedules.
func (s *Scheduler) Remove(ctx context.Context) (stays []string, err error) {
	if err := s.removeOwn(ctx, s.Spec.CronJob()); err != nil {
		return nil, err
	}

	jobs, err := s.jobs(ctx)
	if err != nil {
		return nil, err
	}

	for _, job := range jobs {
		if err := s.API.DeleteObject(ctx, objects.ReferenceTo(job), objects.UIDOf(job)); err != nil {
			return nil, err
		}
	}

	for _, o := range []map[string]any{s.Spec.TalosAccount(), s.Spec.Secret(schedule.Credentials{})} {
		if err := s.removeOwn(ctx, o); err != nil {
			return nil, err
		}
	}

	return s.removeNamespace(ctx)
}

func (s *Scheduler) removeOwn(ctx context.Context, o map[string]any) error {
	live, err := s.own(ctx, o)

	switch {
	case errors.Is(err, errForeign):
		return nil
	case err != nil || live == nil:
		return err
	}

	return s.API.DeleteObject(ctx, objects.ReferenceTo(o), objects.UIDOf(live))
}

func (s *Scheduler) removeNamespace(ctx context.Context) (stays []string, err error) {
	ref := objects.ReferenceTo(s.Spec.NamespaceObject())

	live, err := s.API.GetObject(ctx, ref)
	if err != nil || live == nil || !schedule.Made(live) {
		return nil, err
	}

	contents, err := s.API.ContentsOf(ctx, ref.Name)
	for _, c := range contents {
		stays = append(stays, c.String())
	}

	if err != nil || len(stays) > 0 {
		return slices.Compact(stays), err
	}

	return nil, s.API.RequestDeletion(ctx, ref, objects.UIDOf(live))
}

// runNow makes a Job from the CronJob and waits for it. After a killed process it waits for the running Job of the
// same wish.
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

	// A timeout may be the reason of the failure, so no time is left.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.gracePeriod)
	defer cancel()

	pods, unknown := s.API.Job(ctx, ref.Namespace, ref.Name)
	reasons := []error{fmt.Errorf("run %s: %w", ref, err), unknown}

	for _, pod := range pods {
		reasons = append(reasons, errors.New(strings.ReplaceAll(pod.Why(), "\n", " | ")))
	}

	return errors.Join(reasons...)
}

// begin makes a Job unless one is still running.
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

// ended is nil when a Job succeeded, and a permanent error when it failed for good.
func (s *Scheduler) ended(ctx context.Context, ref objects.Reference) error {
	live, err := s.API.GetObject(ctx, ref)

	switch {
	case err != nil:
		return objects.Final(err)
	case live == nil:
		return wait.Permanent(errors.New("it was deleted"))
	}

	done, end, err := schedule.EndOf(live)
	if end.Reason != "" {
		err = errors.New(end.Reason)
	}

	if err == nil && !done {
		return errors.New("it has not ended, and goes on")
	}

	return wait.Permanent(err)
}
