package kubelet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/sim/kube"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// CordonAndDrain is the task of upgrades, resets and shutdowns: it waits until the node is
// cordoned, a minute at most. A machine whose kubelet never had a certificate has no node
// to cordon (Talos 1.13, CordonAndDrainNode).
func (kl *Kubelet) CordonAndDrain(ctx context.Context) error {
	if !kl.Enrolled() {
		return nil
	}

	limited, cancel := context.WithTimeout(ctx, kl.host.CordonTimeout())
	defer cancel()

	for {
		err := kl.cordonNode(limited)
		if err == nil {
			return nil
		}

		if timing.Pause(limited, kube.KubeletRetry) != nil {
			return fmt.Errorf("wait for node %s to be cordoned: %w", kl.NodeName, errors.Join(limited.Err(), err))
		}
	}
}

// BeginCordon marks the node unschedulable if its API answers right now, as machined does
// in the stages resetting, upgrading and shutting down. That is a separate controller, which no sequence waits for
// (Talos 1.13, k8s.NodeApplyController): an API server whose etcd has no majority lets it wait for a minute.
func (kl *Kubelet) BeginCordon(ctx context.Context) {
	if kl.NodeName == "" {
		return
	}

	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()

	if err := kl.cordonNode(ctx); err != nil {
		kl.World.Logf("%s: cordon: %v", kl.Name(), err)
	}
}

func (kl *Kubelet) cordonNode(ctx context.Context) error {
	k := kl.host.AnyKubernetes()
	if k == nil {
		return ErrNoServer
	}

	node, err := k.GetNode(ctx, kl.NodeName)
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

	return k.UpdateNode(ctx, node)
}

// cordonedAnnotation marks a node that Talos itself cordoned; it uncordons only those.
const cordonedAnnotation = "talos.dev/cordoned"
