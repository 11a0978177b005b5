package lifecycle

import (
	"context"
	"errors"
	"fmt"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// fetch gets the snapshot that etcd has yet to begin with, once in a run: before its first
// step, and at the latest before it is restored. It takes as long as a download does: what was
// observed before is old then.
func (w *work) fetch(ctx context.Context, d cluster.Decision, have cluster.Snapshot) (fetched bool, err error) {
	if w.fetched || !cluster.Restores(d.Steps) && (len(d.Steps) == 0 || !cluster.AwaitsRestore(w.want, have)) {
		return false, nil
	}

	if w.runner.Restoration == nil {
		return false, wait.Permanent(errors.New("there is no snapshot to restore"))
	}

	w.runner.tell(Event{State: Note, Reason: "fetching the snapshot to restore: " + w.want.RestoreFrom})

	if err := w.runner.Restoration.Fetch(ctx); err != nil {
		return false, fmt.Errorf("fetch %s: %w", w.want.RestoreFrom, err)
	}

	w.fetched = true

	return true, nil
}
