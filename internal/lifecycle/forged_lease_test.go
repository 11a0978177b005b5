package lifecycle_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// A run that ends while it waits for the lock names the Lease, its holder and its age.
func TestConverge_namesTheHolderOfTheLease(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 1, sim.Options{})
	s.create()

	_, release, err := s.runnerIn(&process{conns: map[net.Conn]bool{}}).Lock.Acquire(bounded(t), nil)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(release)
	s.reconfigure(needsReboot)

	ctx, cancel := context.WithTimeout(bounded(t), 3*time.Second)
	defer cancel()

	_, err = s.runner().Converge(ctx, s.want)
	if err == nil {
		t.Fatal("it went on without the lock")
	}

	for _, text := range []string{"Lease kube-system/talosop", t.Name() + "@", "renewed at ", "unchanged for "} {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q does not say %q", err, text)
		}
	}
}
