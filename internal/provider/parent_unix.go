//go:build !windows

package provider

import (
	"context"
	"os"
	"time"
)

// parentInterval is how often the parent is checked.
const parentInterval = 500 * time.Millisecond

// firstParent is the process that started this one. It is read before main runs, because the parent changes when
// that process ends.
var firstParent = os.Getppid()

// awaitParent returns when the process that started this one has ended, or with the context. The kernel gives an
// orphaned process another parent. (PR_SET_PDEATHSIG of Linux fires when the thread that started the process ends,
// and a CLI in Go ends threads while it runs.)
func awaitParent(ctx context.Context) {
	for ticker := time.NewTicker(parentInterval); ; {
		select {
		case <-ctx.Done():
			ticker.Stop()

			return
		case <-ticker.C:
			if os.Getppid() != firstParent {
				ticker.Stop()

				return
			}
		}
	}
}
