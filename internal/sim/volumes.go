package sim

import (
	"context"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/sim/kube"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// volumePeriod is how often the controller of volumes looks whether a pod still uses one.
const volumePeriod = 50 * time.Millisecond

// AttachVolume waits until the machine is ready, and attaches a volume to its node, for a pod that uses it. After
// the pod has left the node, the volume lingers, and is detached.
func (m *Machine) AttachVolume(ctx context.Context, v kube.Volume) error {
	if err := m.AwaitReady(ctx); err != nil {
		return err
	}

	b := m.current()

	k, err := b.kubernetes(ctx)
	if err != nil {
		return err
	}

	node := b.Nodename()
	if err := k.AttachVolume(ctx, node, v); err != nil {
		return err
	}

	m.World.Update(func() {
		if v.Linger >= 0 && !m.sim.closed {
			m.sim.work.Go(func() { b.cluster.detachVolume(m.sim.ctx, node, v) })
		}
	})

	return nil
}

// detachVolume does the work of the controller of volumes for one of them, until it is detached or ctx ends.
func (c *cluster) detachVolume(ctx context.Context, node string, v kube.Volume) {
	var unused time.Time

	for timing.Pause(ctx, volumePeriod) == nil {
		var client *kube.Client

		if c.world.Await(ctx, func() bool {
			client = c.controllersAPI()

			return client != nil
		}) != nil {
			return
		}

		switch used, err := client.UsesVolume(ctx, node, v); {
		case err != nil || used:
			unused = time.Time{}
		case unused.IsZero():
			unused = time.Now()
		}

		if unused.IsZero() || time.Since(unused) < v.Linger {
			continue
		}

		err := client.DetachVolume(ctx, node, v)
		if err == nil {
			c.world.Logf("volume %s is detached from node %s", v.Name, node)

			return
		}

		c.world.Logf("%v", err) // tried again
	}
}
