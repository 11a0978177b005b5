package provider

import (
	"context"
	"os"
)

// awaitParent returns when the process that started this one has ended, or with the context.
func awaitParent(ctx context.Context) {
	ended := make(chan struct{})

	go func() {
		defer close(ended)

		// A parent that cannot be opened has ended already.
		if process, err := os.FindProcess(os.Getppid()); err == nil {
			_, _ = process.Wait() // the status is not needed
		}
	}()

	select {
	case <-ctx.Done():
	case <-ended:
	}
}
