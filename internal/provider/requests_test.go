package provider

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// waiting is a server whose applies end some time after their context.
type waiting struct {
	served

	delay time.Duration
	cause chan error
}

func (w waiting) ApplyResourceChange(
	ctx context.Context, _ *tfprotov6.ApplyResourceChangeRequest,
) (*tfprotov6.ApplyResourceChangeResponse, error) {
	<-ctx.Done()
	w.cause <- context.Cause(ctx)

	<-time.After(w.delay)

	return &tfprotov6.ApplyResourceChangeResponse{}, nil
}

// The end of all requests cancels an apply, and waits until it has released what it holds, at most for the grace
// period.
func TestRequests_End(t *testing.T) {
	t.Parallel()

	const grace = 10 * time.Second

	for name, test := range map[string]struct{ delay, took time.Duration }{
		"releases in time": {2 * time.Second, 2 * time.Second}, "hangs": {time.Hour, grace},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			synctest.Test(t, func(t *testing.T) {
				requests := NewRequests()
				server := guarded{waiting{delay: test.delay, cause: make(chan error, 1)}, requests}
				ended := make(chan struct{})

				go func() {
					defer close(ended)

					if _, err := server.ApplyResourceChange(t.Context(), &tfprotov6.ApplyResourceChangeRequest{}); err != nil {
						t.Error(err)
					}
				}()

				synctest.Wait()

				begun := time.Now()
				requests.endAll(grace)

				if took := time.Since(begun); took != test.took {
					t.Errorf("it took %s, want %s", took, test.took)
				}

				served, _ := server.served.(waiting)
				if cause := <-served.cause; !errors.Is(cause, errCLIGone) {
					t.Errorf("the apply ended for %v", cause)
				}

				<-ended
			})
		})
	}
}

// A process without requests ends at once.
func TestRequests_EndOfNone(t *testing.T) {
	t.Parallel()

	requests := NewRequests()
	_, done := requests.begin(t.Context())
	done()
	requests.endAll(time.Hour)
}
