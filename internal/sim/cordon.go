package sim

import (
	"context"
	"errors"
	"fmt"

	"github.com/talosop/terraform-provider-talosop/internal/sim/kube"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// cordonAndDrain is the task of upgrades, resets and shutdowns: it waits until the node is
// cordoned, a minute at most. A machine whose kubelet never had a certificate has no node
// to cordon (Talos 1.13, CordonAndDrainNode).
func (b *boot) cordonAndDrain(ctx context.Context) error {
	if !b.Enrolled() {
		return nil
	}

	limited, cancel := context.WithTimeout(ctx, b.atLeast(b.m.Delays.Cordon, realCordon))
	defer cancel()

	for {
		err := b.cordonNode(limited)
		if err == nil {
			return nil
		}

		if timing.Pause(limited, kube.KubeletRetry) != nil {
			return fmt.Errorf("wait for node %s to be cordoned: %w", b.NodeName, errors.Join(limited.Err(), err))
		}
	}
}

// beginCordon marks the node unschedulable if its API answers right now, as machined does
// in the stages resetting, upgrading and shutting down.
func (b *boot) beginCordon(ctx context.Context) {
	if b.NodeName == "" {
		return
	}

	if err := b.cordonNode(ctx); err != nil {
		b.World.Logf("%s: cordon: %v", b.m.Name(), err)
	}
}

func (b *boot) cordonNode(ctx context.Context) error {
	k := b.anyKubernetes()
	if k == nil {
		return errNoServer
	}

	node, err := k.getNode(ctx, b.NodeName)
	if err != nil {
		return err
	}

	if node.Spec.Unschedulable {
		return nil
	}

	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}

	node.Annotations[cordonedAnnotation] = "true"
	node.Spec.Unschedulable = true

	return k.updateNode(ctx, node)
}

// cordonedAnnotation marks a node that Talos itself cordoned; it uncordons only those.
const cordonedAnnotation = "talos.dev/cordoned"
