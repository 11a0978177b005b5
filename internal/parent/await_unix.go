//go:build !windows

package parent

import (
	"context"
	"os"
	"time"
)

// interval is how often the parent is looked at.
const interval = 500 * time.Millisecond

// first is the process that started this one, read before anything of this process runs: after the end of the parent it
// would be another one.
var first = os.Getppid()

// Await returns when the process that started this one has ended, or with the context. The kernel gives an orphaned
// process another parent. (PR_SET_PDEATHSIG of Linux fires when the thread ends that started the process, and a CLI in
// Go ends threads while it runs.)
func Await(ctx context.Context) {
	for ticker := time.NewTicker(interval); ; {
		select {
		case <-ctx.Done():
			ticker.Stop()

			return
		case <-ticker.C:
			if os.Getppid() != first {
				ticker.Stop()

				return
			}
		}
	}
}
