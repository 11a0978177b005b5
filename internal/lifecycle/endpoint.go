package lifecycle

import (
	"context"
	"errors"

	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// awaitEndpoint asks the endpoint of a cluster whose machines are Ready, and waits for it at most as long as the
// policy says. It asks once even if the run has no time left, so that the result is recorded.
func (r *Runner) awaitEndpoint(ctx context.Context) kubestate.Endpoint {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastObservation)
	defer cancel()

	seen := r.Kubernetes.AskEndpoint(last)
	if !seen.Silent() {
		return seen
	}

	r.tell(Event{State: Waiting, Reason: "the endpoint " + seen.URL + " does not respond: " + seen.Cause})

	ctx, stop := context.WithTimeout(ctx, r.Policy.EndpointTimeout)
	defer stop()

	// The result is in seen. A request that the end of the wait cuts off does not count.
	_ = wait.Until(ctx, r.interval(), func(ctx context.Context) error {
		if now := r.Kubernetes.AskEndpoint(ctx); now.Asked {
			seen = now
		}

		if seen.Silent() {
			return errors.New(seen.Cause)
		}

		return nil
	})

	return seen
}
