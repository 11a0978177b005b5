package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/panics"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// fetch gets the snapshot for a new etcd once in a run: before its first step, and at the latest before the restore.
// It takes as long as a download, so earlier observations are old afterward.
func (w *work) fetch(ctx context.Context, d cluster.Decision, have cluster.Snapshot) (fetched bool, err error) {
	if w.fetched || !step.Restores(d.Steps) && (len(d.Steps) == 0 || !cluster.AwaitsRestore(w.want, have)) {
		return false, nil
	}

	if w.runner.Restoration == nil {
		return false, wait.Permanent(errors.New("there is no snapshot to restore"))
	}

	w.runner.tell(Event{State: Note, Reason: "fetching the snapshot to restore: " + w.want.RestoreFrom})

	if err := w.runner.Restoration.Fetch(ctx); err != nil {
		return false, fmt.Errorf("fetch %s: %w", w.want.RestoreFrom, err)
	}

	if refusals := cluster.RefuseLivingMembers(w.want, have, w.ask(ctx, have)); len(refusals) > 0 {
		return false, &RefusedError{refusals}
	}

	w.fetched = true

	return true, nil
}

// ask observes the control planes in the snapshot by their hosts, because another endpoint does not show whether they
// still run. Machines of the run are already observed.
func (w *work) ask(ctx context.Context, have cluster.Snapshot) map[string]step.MachineState {
	var (
		mu    sync.Mutex
		found = map[string]step.MachineState{}
	)

	asking, ctx := panics.WithContext(ctx)

	for _, host := range cluster.HostsToAsk(w.want, have, w.runner.Restoration.Members()) {
		asking.Go(func() error {
			state := w.runner.Fleet.Machine(cluster.MachineAt(host, step.ControlPlane, host)).Observe(ctx)

			mu.Lock()
			defer mu.Unlock()

			found[host] = state

			return nil
		})
	}

	if err := asking.Wait(); err != nil {
		w.runner.tell(Event{State: Note, Reason: "could not check the members in the snapshot: " + err.Error()})
	}

	return found
}
