package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/action"

	"github.com/talosop/terraform-provider-talosop/internal/helm/client"
	"github.com/talosop/terraform-provider-talosop/internal/helm/diff"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
)

// failed reports why a step failed, and cleans up as requested.
func (r *run) failed(ctx context.Context, s *client.Session, a *attempt, have Observation, cause error) error {
	if a.marks.made == 0 {
		return r.refused(ctx, a, have, cause)
	}

	failure := &FailedError{Name: r.spec.Name, Verb: a.verb(), Cause: a.cause(ctx, s, cause),
		Diagnosis: r.diagnose(ctx, s, a)}

	switch {
	case ctx.Err() != nil:
		failure.Next = fmt.Sprintf("It was interrupted and is recorded as revision %d. Apply again to continue.",
			a.marks.made)
	case r.spec.Options.RollbackOnFailure:
		failure.Next = r.undo(ctx, a, have)
	default:
		failure.Next = fmt.Sprintf("Revision %d stays for inspection. Apply again to retry.",
			a.marks.made)
	}

	if hook := s.Failure(); hook != nil && hook.Hook {
		failure.Next += withoutHooks
	}

	if ctx.Err() == nil {
		r.tidy(ctx)
	}

	return failure
}

// withoutHooks is the way out where a hook fails or hangs each time, such as one that a repair of drift runs once more.
const withoutHooks = " If that hook cannot succeed and the release works without it, set disable_hooks = true and " +
	"apply: then no hook of the chart runs, also not during an uninstall."

// refused is about a step before which Helm shied away: nothing was changed.
func (r *run) refused(ctx context.Context, a *attempt, have Observation, cause error) error {
	if a.rendered.manifest != "" && a.rendered.refusal == nil && !r.spec.Options.TakeOwnership {
		brings, err := a.rendered.objects()
		if err == nil {
			err = r.foreignObjects(ctx, a, have, brings)
		}

		if errors.Is(err, ErrOwned) {
			return err
		}
	}

	return a.rejection(ctx, cause)
}

// foreignObjects names those of the objects that Helm would not take over, which it does in words only.
func (r *run) foreignObjects(ctx context.Context, a *attempt, have Observation, brings []diff.Object) error {
	if from, ok := have.revision(a.from); ok && a.step == Upgrade {
		_, brings = shared(brings, from.Objects)
	}

	beforehand := a.beforehand()
	brings = slices.DeleteFunc(brings, func(o diff.Object) bool { return beforehand[o.Key()] })

	return r.cluster.conflicts(ctx, r.spec.Name, brings)
}

// cause is Helm's reason, with the failed wait, of which Helm keeps only the text.
func (a *attempt) cause(ctx context.Context, s *client.Session, cause error) error {
	if failure := s.Failure(); failure != nil {
		if before, found := strings.CutSuffix(cause.Error(), failure.Error()); found {
			cause = fmt.Errorf("%s%w", before, failure.Cause)
		}
	}

	if ended := context.Cause(ctx); ended != nil && !errors.Is(cause, ended) {
		return fmt.Errorf("%w: %w", ended, cause)
	}

	return cause
}

// diagnose lists the objects that were waited for in vain, and all others of the release that are not
// as they should be.
func (r *run) diagnose(ctx context.Context, s *client.Session, a *attempt) []string {
	var (
		found  []string
		waited []client.NotReady
	)

	if failure := s.Failure(); failure != nil {
		waited = failure.Objects
	}

	for _, o := range waited {
		found = append(found, o.Text)
	}

	all, err := a.rendered.objects()
	if err != nil || ctx.Err() != nil {
		// After an interruption no more is asked; a manifest that was installed can be read.
		return found
	}

	var refs []objects.Reference

	for _, o := range all {
		ref := referenceTo(o)
		if !slices.ContainsFunc(waited, func(n client.NotReady) bool {
			return n.Object.Kind == ref.Kind && n.Object.Namespace == ref.Namespace && n.Object.Name == ref.Name
		}) {
			refs = append(refs, ref)
		}
	}

	ctx, cancel := r.cluster.afterwards(ctx)
	defer cancel()

	for _, n := range r.cluster.API.NotReady(ctx, refs) {
		found = append(found, n.String())
	}

	return found
}

// undo rolls a failed upgrade back to the deployed revision, and removes a failed installation, unless that would
// delete earlier objects. It returns the state of the release.
func (r *run) undo(ctx context.Context, a *attempt, have Observation) string {
	const left = "It was not rolled back: %s. Apply again to retry."

	s, err := r.cluster.open(ctx, r.spec.Name, r.spec.Secrets.Redact)
	if err != nil {
		return err.Error()
	}
	defer s.Close()

	// Helm removes old revisions when it makes one.
	kept, err := r.cluster.Observe(ctx, r.spec.Name)
	if err != nil {
		return fmt.Sprintf(left, err.Error())
	}

	to, found := rollbackTarget(kept)

	switch {
	case a.step == Upgrade && found:
		err = s.Work(func() error { return r.rollBack(s, a.marks.made, to) })
	case a.step == Upgrade:
		return fmt.Sprintf(left, "the history has no deployed revision")
	case len(a.before) > 0:
		return fmt.Sprintf(left, strings.Join(a.before, ", ")+" existed before and would be removed with it")
	default:
		last, _ := kept.Last()
		r.recordKept(ctx, a, last.Made)
		err = s.Work(func() error { return uninstall(s, r.spec.Name, r.removal(keptBefore(have))) })
	}

	switch {
	case err != nil:
		r.endPending(ctx)

		return fmt.Sprintf("The rollback failed, too: %v. Apply again to continue.", err)
	case a.step == Upgrade:
		r.done("rolled back to revision %d", to.Number)

		return fmt.Sprintf("It was rolled back to revision %d.", to.Number)
	default:
		r.done("uninstalled what revision %d had brought", a.marks.made)

		return "It was uninstalled."
	}
}

// rollbackTarget is the revision that a failed upgrade is rolled back to: the deployed one, or else the one
// before, as in Helm (Helm 3.21, action/upgrade.go, failRelease).
func rollbackTarget(have Observation) (former Revision, found bool) {
	if former, found = have.Deployed(); found {
		return former, true
	}

	for _, r := range slices.Backward(have.History) {
		if wasDeployed(r) {
			return r, true
		}

		if begins(r) {
			break
		}
	}

	return Revision{}, false
}

// keptBefore reports whether a history has records worth keeping. Records of installations that failed before do
// not count, because nothing else removes them.
func keptBefore(have Observation) bool {
	return slices.ContainsFunc(have.History, func(r Revision) bool { return r.Status == Uninstalled })
}

// removal is how a failed first installation is taken away.
func (r *run) removal(keepHistory bool) RemoveOptions {
	o := r.spec.Options

	return RemoveOptions{KeepHistory: keepHistory, DisableHooks: o.DisableHooks, Wait: o.Wait, Timeout: o.Timeout}
}

// rollBack takes a revision that failed back to another one.
func (r *run) rollBack(s *client.Session, failed int, to Revision) error {
	cfg, o := s.Configuration(), r.spec.Options

	inputs := cmp.Or(to.Inputs, InputsOfAnother)

	cfg.Releases.Driver = &rollingBack{marking: &marking{Driver: cfg.Releases.Driver, inputs: inputs}, failed: failed}

	merged, err := newMerging(cfg.KubeClient, Observation{})
	if err != nil {
		return err
	}

	cfg.KubeClient = &regaining{merging: merged, name: r.spec.Name}

	back := action.NewRollback(cfg)
	back.Version, back.Timeout, back.Wait, back.WaitForJobs = to.Number, o.timeout(), o.Wait, o.WaitForJobs
	back.DisableHooks, back.Force, back.CleanupOnFail, back.MaxHistory = o.DisableHooks, o.Force, o.CleanupOnFail,
		o.MaxHistory

	return errors.Join(back.Run(r.spec.Name.Name), s.RecordError())
}

// endPending makes a rollback failed that Helm left pending, which it does when a hook of it fails
// (Helm 3.21, action/rollback.go, performRollback).
func (r *run) endPending(ctx context.Context) {
	ctx, cancel := r.cluster.afterwards(ctx)
	defer cancel()

	err := func() error {
		have, err := r.cluster.Observe(ctx, r.spec.Name)
		if err != nil {
			return err
		}

		last, exists := have.Last()
		if !exists || last.Status != PendingRollback || last.Inputs == "" {
			return nil
		}

		s, err := r.cluster.open(ctx, r.spec.Name, r.spec.Secrets.Redact)
		if err != nil {
			return err
		}
		defer s.Close()

		return endRevision(s, r.spec.Name, Decision{Revision: last.Number, Status: last.Status})
	}()
	if err != nil {
		// The next apply does it.
		r.cluster.tell(r.spec.Name, r.spec.Secrets.Redact("the rollback stays pending: "+err.Error()))
	}
}

// endRevision marks a revision failed whose process is gone.
func endRevision(s *client.Session, name Name, d Decision) error {
	records := s.Configuration().Releases

	record, err := records.Get(name.Name, d.Revision)
	if err != nil {
		return fmt.Errorf("recover revision %d of %s: %w", d.Revision, name, err)
	}

	end(record)

	if err := records.Update(record); err != nil {
		return fmt.Errorf("recover revision %d of %s: %w", d.Revision, name, err)
	}

	return nil
}

// tidy is a sweep after a failure, whose own failure is only reported: the next apply sweeps again.
func (r *run) tidy(ctx context.Context) {
	have, err := r.cluster.Observe(ctx, r.spec.Name)
	if err == nil {
		err = r.sweep(ctx, have)
	}

	if err != nil {
		r.cluster.tell(r.spec.Name, r.spec.Secrets.Redact("objects of failed revisions remain: "+err.Error()))
	}
}

// markFailed marks a revision failed whose process is gone.
func (r *run) markFailed(s *client.Session, d Decision) error {
	if err := endRevision(s, r.spec.Name, d); err != nil {
		return err
	}

	r.done("recovered revision %d: %s", d.Revision, d.Text)

	return nil
}
