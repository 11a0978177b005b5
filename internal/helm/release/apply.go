package release

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/helm/chart"
	"github.com/talosop/terraform-provider-talosop/internal/helm/client"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
)

// Apply brings a release into the wanted state, from any history, and does nothing where it already is. It holds
// the Lease of the release meanwhile. It may be called again after any error, and after its process was killed: it
// continues from the existing state.
//
// The error is a [FailedError] when a change of the release began, and another error of this package when it did
// not. It is [kubernetes.ErrNoAnswer] when the cluster could not be reached for [Cluster.UnreachableTimeout]. The
// outcome is useful in every case. When ctx ends, Helm's record of the current revision is marked failed within
// [Cluster.Grace], and nothing continues.
func (c *Cluster) Apply(ctx context.Context, spec Spec, chart *chart.Package, intent Intent) (Outcome, error) {
	r := &run{
		cluster: c, spec: spec, chart: chart, outcome: Outcome{Unseen: true},
		want: Wanted{Name: spec.Name, Inputs: Inputs(spec, chart.Digest), Intent: intent, Held: true,
			Timeout: spec.Options.Timeout},
	}

	// The request for the Lease would be retried until ctx ends.
	before, err := c.observeRetrying(ctx, spec.Name)
	if err == nil {
		err = c.holding(ctx, spec.Name, func(ctx context.Context) error { return r.converge(ctx, before) })
	}

	if err != nil && !r.outcome.Unseen {
		r.listLeftovers(ctx)
	}

	return r.outcome, redactError(err, spec.Secrets.Redact)
}

// run is one apply.
type run struct {
	cluster *Cluster
	spec    Spec
	chart   *chart.Package
	want    Wanted
	outcome Outcome
	// created are objects that the apply may have made, and that no removal of the release removes.
	created []createdObject
}

// converge observes, decides and takes the first step, until none is left. The release was observed before.
func (r *run) converge(ctx context.Context, earlier Observation) error {
	var before []Decision

	have, err := r.cluster.observeHeld(ctx, r.spec.Name, earlier)

	for ; ; have, err = r.cluster.observeRetrying(ctx, r.spec.Name) {
		if errors.Is(err, api.ErrNoAnswer) {
			have, err = r.cluster.observeRetrying(ctx, r.spec.Name)
		}

		if err != nil {
			return err
		}

		r.outcome.Now, r.outcome.Unseen = have, false

		d := Decide(r.want, have, time.Now())

		switch {
		case d.Step == Nothing:
			r.sweepUp(ctx, have)

			return nil
		case d.Step == Refuse:
			return d.Error()
		case slices.Contains(before, d):
			// A step that was taken leaves another history behind: this would be a spin.
			return fmt.Errorf("release %s did not change after its last step (%s, revision %d): "+
				"another client changes it too", r.spec.Name, d.Step, d.Revision)
		}

		before = append(before, d)

		if err := r.take(ctx, d, have); err != nil {
			r.observeAfterFailure(ctx)

			return err
		}
	}
}

// take does one step.
func (r *run) take(ctx context.Context, d Decision, have Observation) error {
	s, err := r.cluster.open(ctx, r.spec.Name, r.spec.Secrets.Redact)
	if err != nil {
		return err
	}
	defer s.Close()

	if d.Step == MarkFailed {
		return r.markFailed(s, d)
	}

	return r.deploy(ctx, s, d, have)
}

// done records a finished action.
func (r *run) done(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.outcome.Done = append(r.outcome.Done, text)
	r.cluster.tell(r.spec.Name, text)
}

// sweepUp removes leftovers of a release that is as it should be: that some stay makes no failure of it.
func (r *run) sweepUp(ctx context.Context, have Observation) {
	if err := r.sweep(ctx, have); err != nil {
		text := r.spec.Secrets.Redact(fmt.Sprintf("release %s is deployed, but objects of failed revisions remain: %v",
			r.spec.Name, err))
		r.outcome.Notices = append(r.outcome.Notices, text)
		r.cluster.tell(r.spec.Name, text)
	}
}

// observeAfterFailure reads what an apply that failed has left, as far as that is possible. An apply that was
// interrupted asks once, every other one for as long as something may be done afterwards.
func (r *run) observeAfterFailure(ctx context.Context) {
	observe := r.cluster.observeRetrying
	if ctx.Err() != nil {
		observe = r.cluster.Observe
	}

	ctx, cancel := r.cluster.afterwards(ctx)
	defer cancel()

	if now, err := observe(ctx, r.spec.Name); err == nil {
		r.outcome.Now = now
	} else {
		r.outcome.Unseen = true
		r.cluster.tell(r.spec.Name, r.spec.Secrets.Redact("the state of the release is unknown: "+err.Error()))
	}
}

// deploy installs or upgrades, and what belongs to it.
func (r *run) deploy(ctx context.Context, s *client.Session, d Decision, have Observation) error {
	a, err := r.attempt(s, d, have)
	if err != nil {
		return err
	}

	if err := r.prepare(ctx, a, have); err != nil {
		return fmt.Errorf("prepare the %s of release %s: %w", a.noun(), r.spec.Name, err)
	}

	r.guard(ctx, a, have)

	if err := s.Work(a.run); err != nil {
		return r.failed(ctx, s, a, have, err)
	}

	if err := s.RecordError(); err != nil {
		return &FailedError{
			Name: r.spec.Name, Verb: a.verb(), Cause: err,
			Next: "The objects of the release are up to date, but Helm could not record that. Apply again to repair the " +
				"record.",
		}
	}

	r.done("%s revision %d", map[Step]string{Install: "installed", InstallOver: "installed",
		Upgrade: "upgraded to"}[d.Step], a.marks.made)
	r.want.Intent.Repair = false

	for _, text := range s.Foreign() {
		r.done("left %s", text)
	}

	return nil
}

// redactError removes secrets from the text of an error.
func redactError(err error, redact func(string) string) error {
	if err == nil {
		return nil
	}

	redact = redactWithoutObjects(redact)

	var failed *FailedError
	if errors.As(err, &failed) {
		clean := *failed
		clean.Cause = redactError(failed.Cause, redact)
		clean.Next = redact(failed.Next)
		clean.Diagnosis = make([]string, len(failed.Diagnosis))

		for i, line := range failed.Diagnosis {
			clean.Diagnosis[i] = redact(line)
		}

		return &clean
	}

	return client.Redacted(err, redact)
}
