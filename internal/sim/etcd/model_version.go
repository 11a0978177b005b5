package etcd

import (
	"context"
	"slices"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
	"github.com/talosop/terraform-provider-talosop/internal/versions"
)

// agreedVersion is what the members agree on: the minor version of the cluster, and the target of a requested
// downgrade. Both change as etcd's own do (etcd 3.6 and 3.7, server/etcdserver/version: Manager and Monitor; tried
// with 3.7.1 beside 3.6.8).
type agreedVersion struct {
	cluster, target string
	follow          time.Duration
	// since is when the next change became due.
	since time.Time
}

// due is the version that the leader brings the cluster to; the world is locked.
func (c *ModelCluster) due() string {
	lowest := ""

	for _, m := range c.members {
		if !m.running {
			return c.version.cluster // a member that does not answer may run anything
		}

		if minor := etcdstate.MinorOf(m.server); lowest == "" || versions.Older(minor, lowest) {
			lowest = minor
		}
	}

	switch {
	case c.Leader == nil:
		return c.version.cluster
	case c.version.target != "" && lowest != c.version.target:
		return c.version.target
	case c.version.cluster == "" || versions.Older(c.version.cluster, lowest):
		return lowest
	default:
		return c.version.cluster
	}
}

// followVersions applies the changes that are due by now; the world is locked.
func (c *ModelCluster) followVersions() {
	due := c.due()
	ended := c.version.target != "" && c.version.cluster == c.version.target && c.allRun(c.version.target)

	switch {
	case due == c.version.cluster && !ended:
		c.version.since = time.Time{}
	case c.version.cluster != "" && c.version.since.IsZero():
		c.version.since = time.Now()
	}

	if c.version.cluster == "" || !c.version.since.IsZero() && time.Since(c.version.since) >= c.version.follow {
		c.version.cluster, c.version.since = due, time.Time{}

		if ended {
			c.version.target = "" // CancelDowngradeIfNeeded
		}
	}

	for _, m := range c.members {
		if m.running && c.Leader != nil {
			m.data = c.version.cluster
		}
	}
}

func (c *ModelCluster) allRun(minor string) bool {
	return !slices.ContainsFunc(c.members, func(m *modelMember) bool {
		return !m.running || etcdstate.MinorOf(m.server) != minor
	})
}

// awaitVersion is an etcd that starts over and over again, for as long as its version keeps it from serving: it panics
// on newer data (MustDetectDowngrade), and joins no cluster of a newer version, nor one that goes back
// (isCompatibleWithCluster).
func (m *modelMember) awaitVersion(ctx context.Context) error {
	for !m.fits() {
		if err := timing.Pause(ctx, restarts); err != nil {
			return err
		}
	}

	return nil
}

// restarts replaces the five seconds between two starts of a service that fails.
const restarts = 5 * time.Millisecond

func (m *modelMember) fits() bool {
	m.world.Lock()
	defer m.world.Unlock()

	m.c.followVersions()

	own := etcdstate.MinorOf(m.server)
	if m.started {
		return !versions.Older(own, m.data)
	}

	return m.c.version.target == "" && !versions.Older(own, m.c.version.cluster)
}

// Downgrade implements [Node].
func (m *modelMember) Downgrade(_ context.Context, action, version string) (string, error) {
	m.world.Lock()
	defer m.world.Unlock()

	if err := m.serving(); err != nil {
		return "", err
	}

	m.c.followVersions()

	if action == "CANCEL" {
		m.c.version.target, m.c.version.since = "", time.Time{}
		m.world.Notify()

		return m.c.version.cluster, nil // also where there is nothing to cancel
	}

	switch {
	case etcdstate.Before(m.c.version.cluster) != version:
		return "", errInvalidTarget
	case m.c.version.target != "":
		return "", errDowngradeActive
	case action == "ENABLE":
		m.c.version.target = version
		m.world.Notify()
	}

	return m.c.version.cluster, nil
}
