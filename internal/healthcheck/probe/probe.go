// Package probe asks the health checks of users: objects of the cluster by a condition, CEL or JSONPath, URLs, jobs.
package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/healthcheck"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/diagnose"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
	"github.com/talosop/terraform-provider-talosop/internal/panics"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// Cluster is the Kubernetes API as checks need it.
type Cluster interface {
	// GetObject reads an object, nil when there is none.
	GetObject(ctx context.Context, ref objects.Reference) (map[string]any, error)
	// ListObjects lists those of a kind; a namespace is one, or all.
	ListObjects(ctx context.Context, ref objects.Reference, selector string) ([]map[string]any, error)
	// CreateObject creates an object that must not exist.
	CreateObject(ctx context.Context, object map[string]any) (map[string]any, error)
	// RequestDeletion removes an object with what depends on it, and does not wait until it is gone.
	RequestDeletion(ctx context.Context, ref objects.Reference, uid string) error
	// Job diagnoses the pods of a job that do not run, or the job if it has none.
	Job(ctx context.Context, namespace, job string) ([]diagnose.NotReady, error)
}

// Prober asks checks. It is safe for concurrent use.
type Prober struct {
	Checks  []healthcheck.Check
	Cluster Cluster
	// Interval between two questions of one check; 5 s by default.
	Interval time.Duration
}

// FailedError is a check that did not pass in time.
type FailedError struct {
	Check  string
	Within time.Duration
	// Cause is why it did not pass last.
	Cause error
}

func (e *FailedError) Error() string {
	return fmt.Sprintf("health check %q did not pass within %s: %s", e.Check, e.Within, e.Cause)
}

// Unwrap is the cause.
func (e *FailedError) Unwrap() error { return e.Cause }

// Pass returns once every check passes, and asks them side by side; see lifecycle.Checks.
func (p *Prober) Pass(ctx context.Context, waiting func(reason string)) error {
	var (
		all        sync.WaitGroup
		errs, left = make([]error, len(p.Checks)), make([]error, len(p.Checks))
	)

	for i, check := range p.Checks {
		all.Go(func() { errs[i] = panics.Do(func() error { return p.pass(ctx, check, waiting, &left[i]) }) })
	}

	all.Wait()

	if err := context.Cause(ctx); err != nil {
		return errors.Join(append(left, err)...)
	}

	return errors.Join(errs...)
}

// pass asks one check until it passes. left is why a job could not be cleared away that was cut off.
func (p *Prober) pass(
	ctx context.Context, check healthcheck.Check, waiting func(reason string), left *error,
) error {
	timeout := cmp.Or(check.Timeout, healthcheck.DefaultTimeout)

	cause, err := Repeat(ctx, timeout, p.Interval, func(ctx context.Context, notYet func(error)) error {
		return p.ask(ctx, check, notYet, left)
	}, func(reason string) { waiting(fmt.Sprintf("for the health check %q: %s", check.Name, reason)) })
	if cause != nil {
		return &FailedError{check.Name, timeout, cause}
	}

	return err
}

// Repeat does something until it succeeds, at an interval (5 s by default), and reports why it did not yet. An attempt
// that takes long reports it by notYet. cause is why it did not succeed within its timeout. err is that ctx ended
// before, or cause.
func Repeat(
	ctx context.Context, timeout, interval time.Duration, do func(ctx context.Context, notYet func(error)) error,
	waiting func(reason string),
) (cause, err error) {
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	cause = errors.New("no response")
	failed := false // the cause is that of an attempt

	notYet := func(err error) {
		if waiting(oneLine(err)); !failed {
			cause = errors.New(oneLine(err))
		}
	}

	err = wait.Until(within, cmp.Or(interval, 5*time.Second), func(ctx context.Context) error {
		err := do(ctx, notYet)
		if err == nil || wait.Over(ctx) {
			return err // what was cut off says less than the answer before it
		}

		cause, failed = errors.New(oneLine(err)), true
		waiting(cause.Error())

		return err
	})

	switch {
	case err == nil:
		return nil, nil
	case ctx.Err() != nil:
		return nil, err
	case wait.IsPermanent(err):
		cause = err
	}

	return cause, cause
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// attemptTime bounds one question, but for a job, which takes its time.
const attemptTime = 15 * time.Second

func (p *Prober) ask(ctx context.Context, check healthcheck.Check, notYet func(error), left *error) error {
	if check.Job != nil {
		return RunJob(ctx, p.Cluster, jobOf(check), notYet, left)
	}

	ctx, cancel := context.WithTimeoutCause(ctx, attemptTime, fmt.Errorf("no response within %s", attemptTime))
	defer cancel()

	if check.HTTP != nil {
		return Request(ctx, *check.HTTP)
	}

	return p.askObject(ctx, *check.Object)
}
