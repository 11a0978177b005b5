package providerdata

import (
	"context"
	"errors"

	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// CausesOf lists why a run on machines stopped, the decisive reason first. ranOut is the timeout that ended it, or
// nil.
func CausesOf(err error, ranOut *tf.RanOutError) []string {
	var stopped *lifecycle.IncompleteError
	if !errors.As(err, &stopped) {
		return []string{err.Error()}
	}

	causes := []string{causeOf(stopped.Err, ranOut)}

	var refused *lifecycle.RefusedError
	if errors.As(stopped.Err, &refused) {
		causes = nil
		for _, refusal := range refused.Refusals {
			causes = append(causes, refusal.String())
		}
	}

	for _, hold := range stopped.Holds {
		causes = append(causes, hold.String())
	}

	return causes
}

func causeOf(err error, ranOut *tf.RanOutError) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded) && ranOut != nil:
		return ranOut.Error() + ". What it waited for follows"
	case errors.Is(err, context.DeadlineExceeded):
		return "the time of this operation ran out (see timeouts) while waiting for what follows"
	case errors.Is(err, context.Canceled):
		return "the run was interrupted while waiting for what follows"
	default:
		return err.Error()
	}
}
