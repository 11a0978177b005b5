package workload

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// Replace gives a machine's StatefulSet the wanted template, and deletes its pod when another template made it.
// This is how a machine gets another version of Talos. It returns when that pod is gone; the host makes the next
// one. The pod shuts down as Talos requires, within its grace period. Disruptive, and idempotent: a matching pod
// stays, and the next call finishes what was interrupted. Claims are kept. Errors are final (wait.IsPermanent) for
// what [Client.Ensure] refuses, and for a machine that the Spec does not have. They are also final for a machine
// with deleted claims: only its pod keeps them, so it stays.
func (h *Client) Replace(ctx context.Context, s Spec, machine string) error {
	m, found, err := h.lookAt(ctx, s, machine)
	if err != nil {
		return err
	}

	s.Machines = []Machine{m}
	if err := found.conflicts(s); err != nil {
		return err
	}

	if live := found.Sets[s.HostName(m)]; live != nil && live.Annotations[wipeAnnotation] != "" {
		return h.wipe(ctx, s, m, live) // the machine comes back with the wanted template anyhow
	}

	if err := h.keptBy(ctx, s, m, found); err != nil {
		return err
	}

	if err := h.ensureBeside(ctx, s, m, found); err != nil {
		return err
	}

	live := found.Sets[s.HostName(m)]
	if live != nil && live.DeletionTimestamp == nil {
		if live, err = h.dropAdditions(ctx, live, s.StatefulSet(m).Spec.Template); err != nil {
			return err
		}
	}

	set, err := h.ensureSet(ctx, s, m, live, true)
	if err != nil {
		return err
	}

	// A pod that is deleted before the controller has seen the template may be recreated from the old one.
	if set, err = h.awaitTaken(ctx, set); err != nil {
		return err
	}

	return h.endPod(ctx, s, m, func(pod *corev1.Pod) bool { return otherTemplate(set, pod) })
}

// Restart deletes the pod of a machine, gracefully, and returns when it is gone; the host makes the next one from the
// template that the StatefulSet has. Disruptive. A machine without a pod is left to the host. That of a machine whose
// claims were deleted stays, as with [Client.Replace].
func (h *Client) Restart(ctx context.Context, s Spec, machine string) error {
	m, _, err := h.lookAt(ctx, s, machine)
	if err != nil {
		return err
	}

	return h.endPod(ctx, s, m, func(*corev1.Pod) bool { return true })
}

// RestartPod does so for a machine that the Spec does not have, by its label. Without the machine's settings, it
// recreates no claims: a pod whose data would go with it stays, and the error is final.
func (h *Client) RestartPod(ctx context.Context, s Spec, label string) error {
	o, err := h.get(ctx, PodKind, s.Namespace, s.Cluster+"-"+label+podSuffix)
	if err != nil {
		return err
	}

	pod, ok := o.(*corev1.Pod)

	switch {
	case !ok:
		return nil
	case !s.OwnPod(pod):
		return wait.Permanent(foreign(s, PodKind, pod, h))
	case pod.DeletionTimestamp == nil:
		if err := h.keepsData(ctx, pod); err != nil {
			return err
		}

		if err := h.remove(ctx, PodKind, pod); err != nil {
			return err
		}
	}

	return h.awaitPodGone(ctx, s, pod)
}

// keepsData returns why the pod that follows would not have the data of a pod.
func (h *Client) keepsData(ctx context.Context, pod *corev1.Pod) error {
	claims := 0

	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim == nil {
			continue
		}

		claims++

		claim, err := h.get(ctx, ClaimKind, pod.Namespace, volume.PersistentVolumeClaim.ClaimName)
		if err != nil {
			return err
		}

		if claim == nil || claim.GetDeletionTimestamp() != nil {
			return wait.Permanent(fmt.Errorf("%s still uses the deleted claim %s, whose data is lost when the pod is "+
				"replaced, so the pod was kept", PodKind.Of(pod), volume.PersistentVolumeClaim.ClaimName))
		}
	}

	if claims == 0 {
		return wait.Permanent(fmt.Errorf("%s has no volumes (storage.ephemeral), and another pod would lose its data, so "+
			"the pod was kept", PodKind.Of(pod)))
	}

	return nil
}

// Wipe deletes the claims of a machine with its pod and recreates both, so that the machine comes back blank, as
// after a reset on metal. It returns when the old claims are gone and the new ones are made. Destructive: all data
// of the machine is lost. From its first change on, the StatefulSet records that the machine has to be wiped. So
// the next Wipe, Replace or Ensure finishes an interrupted wipe, and a machine never comes back with only some of
// its volumes.
func (h *Client) Wipe(ctx context.Context, s Spec, machine string) error {
	m, found, err := h.lookAt(ctx, s, machine)
	if err != nil {
		return err
	}

	return h.wipe(ctx, s, m, found.Sets[s.HostName(m)])
}

func (h *Client) wipe(ctx context.Context, s Spec, m Machine, live *appsv1.StatefulSet) error {
	if live != nil && live.DeletionTimestamp == nil {
		if err := h.beginWipe(ctx, s, m, live); err != nil {
			return err
		}
	}

	if err := h.clear(ctx, s, s.MachineSelector(m), PodKind, ClaimKind); err != nil {
		return fmt.Errorf("wipe %s: %w", m.Name, err)
	}

	if err := h.ensureBeside(ctx, s, m, &Inventory{}); err != nil {
		return err
	}

	// As it is, read again: what is there of the template is kept, and the mark is taken off.
	found, err := h.get(ctx, SetKind, s.Namespace, s.HostName(m))
	if err != nil {
		return err
	}

	if set, ok := found.(*appsv1.StatefulSet); ok && s.Ours(set) {
		live = set
	} else {
		live = nil
	}

	_, err = h.ensureSet(ctx, s, m, live, false)

	return err
}

// beginWipe marks the StatefulSet and scales it to zero: a pod that is made while the claims are deleted would
// hold them.
func (h *Client) beginWipe(ctx context.Context, s Spec, m Machine, live *appsv1.StatefulSet) error {
	marked := s.StatefulSet(m)
	marked.Annotations = merged(marked.Annotations, map[string]string{wipeAnnotation: "true"})
	*marked.Spec.Replicas = 0

	wanted, err := fieldsOf(SetKind, marked)
	if err != nil {
		return err
	}

	body, err := setBody(live, wanted, false)
	if err != nil {
		return err
	}

	_, err = h.change(ctx, SetKind, live, body)

	return err
}

// lookAt finds a machine of the Spec and its objects.
func (h *Client) lookAt(ctx context.Context, s Spec, machine string) (Machine, *Inventory, error) {
	m, ok := s.Machine(machine)
	if !ok {
		return Machine{}, nil, wait.Permanent(fmt.Errorf("cluster %s has no machine %s", s.Cluster, machine))
	}

	found, err := h.Inventory(ctx, s, s.MachineSelector(m))

	return m, found, err
}

// awaitTaken returns the StatefulSet once its controller has seen it as it is.
func (h *Client) awaitTaken(ctx context.Context, set *appsv1.StatefulSet) (*appsv1.StatefulSet, error) {
	uid := set.UID

	err := wait.Until(ctx, lookEvery, func(ctx context.Context) error {
		if taken(set) {
			return nil
		}

		found, err := h.get(ctx, SetKind, set.Namespace, set.Name)
		if err != nil {
			return err
		}

		now, ok := found.(*appsv1.StatefulSet)
		if !ok || now.UID != uid {
			return wait.Permanent(errors.New("it was deleted meanwhile; apply again"))
		}

		if set = now; !taken(set) {
			return fmt.Errorf("generation %d is not observed yet (observed: %d); check the controller manager of the host",
				set.Generation, set.Status.ObservedGeneration)
		}

		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("wait for the controller of %s on %s: %w", SetKind.Of(set), h, err)
	}

	return set, nil
}

// endPod deletes the pod of a machine when goes says so, and waits for one that is being deleted anyway. Claims that
// went with it are recreated where an empty one is enough: the next pod waits for them.
func (h *Client) endPod(ctx context.Context, s Spec, m Machine, goes func(*corev1.Pod) bool) error {
	o, err := h.get(ctx, PodKind, s.Namespace, s.PodName(m))
	if err != nil {
		return err
	}

	pod, ok := o.(*corev1.Pod)
	if !ok || pod.DeletionTimestamp == nil && s.Ours(pod) && !goes(pod) {
		return nil
	}

	if !s.Ours(pod) {
		return wait.Permanent(foreign(s, PodKind, pod, h))
	}

	// At the last moment: what was deleted before the pod is not to go with it.
	found, err := h.Inventory(ctx, s, s.MachineSelector(m))
	if err != nil {
		return err
	}

	if pod.DeletionTimestamp == nil {
		if err := h.keptBy(ctx, s, m, found); err != nil {
			return err
		}

		if err := h.remove(ctx, PodKind, pod); err != nil {
			return err
		}
	}

	if err := h.awaitPodGone(ctx, s, pod); err != nil {
		return err
	}

	return h.renewClaims(ctx, s, m)
}

// renewClaims makes the claims of a machine again that went with its pod and had no data.
func (h *Client) renewClaims(ctx context.Context, s Spec, m Machine) error {
	found, err := h.Inventory(ctx, s, s.MachineSelector(m))
	if err != nil {
		return err
	}

	return h.ensureClaims(ctx, s, m, found,
		func(live *corev1.PersistentVolumeClaim) bool { return live == nil || live.DeletionTimestamp != nil })
}

// awaitPodGone returns why a pod does not go, which is its node as a rule.
func (h *Client) awaitPodGone(ctx context.Context, s Spec, pod *corev1.Pod) error {
	err := h.awaitGone(ctx, PodKind, pod)
	if err == nil || ctx.Err() == nil {
		return err
	}

	// The deadline has passed, and the reason is what helps.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), diagnosisTimeout)
	defer cancel()

	node, reason := h.newSurroundings(ctx, s).diagnoseNode(pod)
	if reason != nil || node == "" {
		return err // the node is of no help
	}

	return fmt.Errorf("%w; %s", err, node)
}
