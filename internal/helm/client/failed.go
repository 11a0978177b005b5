package client

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
	"github.com/talosop/terraform-provider-talosop/internal/panics"
)

// diagnosisTimeout is how long the reasons of a wait that failed are asked for, which may be after
// the context ended.
const diagnosisTimeout = 10 * time.Second

// failed makes the error of a wait and remembers it. What is wrong with the objects is asked of the
// cluster, unless the operation was interrupted.
func (w *waiting) failed(cause error) error {
	s := w.c.s
	lines := make([]string, len(w.pending))

	for i, o := range w.pending {
		lines[i] = reference(o.info).String() + ": " + o.because()
	}

	if !errors.Is(cause, context.Canceled) {
		w.explain(lines)
	}

	objects := make([]NotReady, len(lines))
	for i, o := range w.pending {
		objects[i] = NotReady{Object: reference(o.info), Text: s.o.Redact(lines[i])}
	}

	failure := &NotReadyError{Objects: objects, Cause: Redacted(cause, s.o.Redact), Hook: w.hook}

	s.mu.Lock()
	defer s.mu.Unlock()

	s.failure = failure

	return failure
}

func (o *object) because() string {
	return cmp.Or(o.reason, "the Kubernetes API reported no status yet")
}

// explain replaces the reasons by better ones where the cluster has some.
func (w *waiting) explain(lines []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.c.s.ctx), diagnosisTimeout)
	defer cancel()

	var group panics.Group

	group.SetLimit(atOnce)

	for i, o := range w.pending {
		group.Go(func() error {
			for _, n := range w.c.s.api.NotReady(ctx, []objects.Reference{reference(o.info)}) {
				lines[i] = n.String()
			}

			return nil
		})
	}

	_ = group.Wait()
}

// redactedError is an error whose text shows no secrets.
type redactedError struct {
	error

	text string
}

func (e *redactedError) Error() string { return e.text }
func (e *redactedError) Unwrap() error { return e.error }

// Redacted is an error whose text was passed through redact.
func Redacted(err error, redact func(string) string) error {
	if text := redact(err.Error()); text != err.Error() {
		return &redactedError{err, text}
	}

	return err
}
