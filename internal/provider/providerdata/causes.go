package providerdata

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
)

// Stop is why a run on machines stopped.
type Stop struct {
	// Causes are the reasons, each once with all its machines. The decisive one is the first.
	Causes []string
	// Remedy is what the user has to do before another run can help, as sentences; empty if another run can help as it
	// is.
	Remedy string
}

// StopOf describes the error of a run. ranOut is the timeout that ended it, or nil.
func StopOf(err error, ranOut *tf.RanOutError) Stop {
	var stopped *lifecycle.IncompleteError
	if !errors.As(err, &stopped) {
		return Stop{Causes: []string{err.Error()}, Remedy: finding.Sentences(correctIt)}
	}

	var (
		refused  *lifecycle.RefusedError
		failed   *lifecycle.StepError
		all      = slices.Clone(stopped.Failed)
		reasons  finding.Alike[string]
		remedies []string
	)

	switch {
	case errors.As(stopped.Err, &refused):
		for _, refusal := range refused.Refusals {
			reasons.Add(refusal.Reason, refusal.Machine)

			if !slices.Contains(remedies, refusal.Remedy) {
				remedies = append(remedies, refusal.Remedy)
			}
		}
	case errors.As(stopped.Err, &failed):
		all, remedies = append([]*lifecycle.StepError{failed}, all...), []string{remedyOf(failed)}
	}

	causes := missingImages(all)

	for _, e := range all {
		switch {
		case errors.As(e, new(*talos.MissingImageError)):
		case e == failed:
			causes = append(causes, e.Error())
		default:
			reasons.Add("last error: "+e.Err.Error(), e.Step.On())
		}
	}

	for _, hold := range stopped.Holds {
		reasons.Add(hold.Reason, hold.Machine)
	}

	causes = append(causes, lines(reasons)...)
	if refused == nil && failed == nil {
		causes = append([]string{ended(stopped.Err, ranOut, len(causes) > 0)}, causes...)
	}

	return Stop{Causes: causes, Remedy: finding.Sentences(remedies...)}
}

const (
	correctIt    = "Correct the cause, then apply again"
	correctImage = "Correct the version or the image, or add the image to the registry mirror of the machines. Then " +
		"apply again"
)

// remedyOf is what helps against an error that another run would meet again.
func remedyOf(failed *lifecycle.StepError) string {
	if errors.As(failed, new(*talos.MissingImageError)) {
		return correctImage
	}

	return correctIt
}

// missingImages names each image that registries lack, with the machines that need it.
func missingImages(failed []*lifecycle.StepError) []string {
	var images finding.Alike[string]

	for _, e := range slices.SortedFunc(slices.Values(failed), func(a, b *lifecycle.StepError) int {
		return strings.Compare(a.Step.On(), b.Step.On())
	}) {
		var missing *talos.MissingImageError
		if errors.As(e, &missing) {
			images.Add("the registry has no image "+missing.Image, e.Step.On())
		}
	}

	return lines(images)
}

// lines are reasons with their machines.
func lines(reasons finding.Alike[string]) []string {
	var lines []string

	for reason, machines := range reasons.All() {
		if named := finding.NonEmpty(machines...); len(named) > 0 {
			reason = finding.Describe(named) + ": " + reason
		}

		lines = append(lines, reason)
	}

	return lines
}

// ended is why a run ended that nothing refused: by its timeout, an interrupt, or an error of its own.
func ended(err error, ranOut *tf.RanOutError, waited bool) string {
	what := ""

	switch {
	case errors.Is(err, context.DeadlineExceeded) && ranOut != nil:
		what = ranOut.Error()
	case errors.Is(err, context.DeadlineExceeded):
		what = "timed out (see `timeouts`)"
	case errors.Is(err, context.Canceled):
		what = "interrupted"
	default:
		return err.Error()
	}

	if waited {
		what += ", waiting for:"
	}

	return what
}
