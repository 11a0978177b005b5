package provider

import (
	"testing"
)

// A cluster of pods is made in one run, is content with what it made, and goes without a trace.
func TestContainerCluster(t *testing.T) {
	t.Parallel()

	s := newHostSite(t)
	d := s.drive(t, "talosop_cluster")
	config := s.cluster("dev", bundleOnce(), 3, 2)

	d.ready(t, config)
	d.expectEmpty(t, "after the create", config)

	if got := s.bootstraps(); got != 1 {
		t.Errorf("etcd was bootstrapped %d times", got)
	}

	s.destroy(t, d, "dev")
}
