package workload

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/talosop/terraform-provider-talosop/internal/panics"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

const (
	// machinesAtOnce are worked on at a time.
	machinesAtOnce = 8
	// lookEvery is the pause between two checks for an object that is being deleted, or that a controller has to
	// see.
	lookEvery = 250 * time.Millisecond
)

// Inventory has our objects of a namespace, by name.
type Inventory struct {
	Sets     map[string]*appsv1.StatefulSet
	Pods     map[string]*corev1.Pod
	Claims   map[string]*corev1.PersistentVolumeClaim
	Services map[string]*corev1.Service
	// Budgets are nil when the credentials may not read them, and for a Spec that has none.
	Budgets map[string]*policyv1.PodDisruptionBudget
	// Policies are nil when the credentials may not read them.
	Policies map[string]*networkingv1.NetworkPolicy
}

// Ensure creates the missing objects of a Spec's machines on the host, and repairs what other clients changed:
// labels, Services, the number of replicas, the size of claims. It does not change the template of an existing
// StatefulSet, since that is a disruption ([Client.Replace]), unless the pod matches and only the template
// differs. It recreates a missing StatefulSet, which takes the existing claims. While the StatefulSet proves that
// a machine's claim with data existed, Ensure does not recreate that claim beside the others
// ([MachineState.VolumesLost]). It disrupts no machine and is idempotent: it does not write what matches. It
// finishes an interrupted wipe of a machine.
//
// A foreign object with the name of one of ours is an error that names its owner, and is left alone. So is what
// cannot be changed: a claim that should shrink or move to another class. Such errors are final
// (wait.IsPermanent). Ensure works on all machines before it returns errors.
func (h *Client) Ensure(ctx context.Context, s Spec) error {
	found, err := h.Inventory(ctx, s, s.Selector())
	if err != nil {
		return err
	}

	if err := found.conflicts(s); err != nil {
		return err
	}

	if err := h.ensureNamespace(ctx, s); err != nil {
		return err
	}

	if err := h.ensureEndpoint(ctx, s, found); err != nil {
		return err
	}

	if err := h.ensureBudget(ctx, s, found); err != nil {
		return err
	}

	return h.eachMachine(s, func(m Machine) error { return h.ensureMachine(ctx, s, m, found) })
}

// eachMachine works on several machines at a time, and on all of them.
func (h *Client) eachMachine(s Spec, work func(Machine) error) error {
	var group panics.Group

	group.SetLimit(machinesAtOnce)

	errs := make([]error, len(s.Machines))

	for i, m := range s.Machines {
		group.Go(func() error {
			errs[i] = work(m)

			return nil
		})
	}

	_ = group.Wait() // each has its own error

	return errors.Join(errs...)
}

// ensureMachine makes the claims and the Services first: the pod needs them.
func (h *Client) ensureMachine(ctx context.Context, s Spec, m Machine, found *Inventory) error {
	live := found.Sets[s.HostName(m)]
	if live != nil && live.Annotations[wipeAnnotation] != "" {
		h.progress(fmt.Sprintf("The interrupted wipe of %s continues", m.Name))

		return h.wipe(ctx, s, m, live)
	}

	if err := h.ensureBeside(ctx, s, m, found); err != nil {
		return err
	}

	// A template that only the set has is made what the pod was made from.
	repair := s.stays(m, live, found.Pods[s.PodName(m)])
	if repair {
		var err error
		if live, err = h.dropAdditions(ctx, live, s.StatefulSet(m).Spec.Template); err != nil {
			return err
		}
	}

	_, err := h.ensureSet(ctx, s, m, live, repair)

	return err
}

// ensureBeside makes a machine's objects beside its StatefulSet.
func (h *Client) ensureBeside(ctx context.Context, s Spec, m Machine, found *Inventory) error {
	if err := h.ensureClaims(ctx, s, m, found, func(*corev1.PersistentVolumeClaim) bool { return true }); err != nil {
		return err
	}

	if err := h.ensureIsolation(ctx, s, m, found); err != nil {
		return err
	}

	for _, service := range s.Services(m) {
		if err := h.ensureService(ctx, s, service, found.Services[service.Name]); err != nil {
			return err
		}
	}

	return nil
}

// ensureSet makes or repairs the StatefulSet of a machine, with the wanted template or with the one that it has.
func (h *Client) ensureSet(
	ctx context.Context, s Spec, m Machine, live *appsv1.StatefulSet, template bool,
) (*appsv1.StatefulSet, error) {
	wanted, err := fieldsOf(SetKind, s.StatefulSet(m))
	if err != nil {
		return nil, err
	}

	became, err := h.ensure(ctx, s, SetKind, wanted, OrNil(live),
		func(live Object) (fields, error) { return setBody(live, wanted, template) })
	if err != nil {
		return nil, err
	}

	set, ok := became.(*appsv1.StatefulSet)
	if !ok {
		return nil, wait.Permanent(fmt.Errorf("the host returned %T instead of a StatefulSet", became))
	}

	return set, nil
}

// setBody is what to apply to an existing StatefulSet. Immutable fields keep their values, and so do our fields of
// the template, unless requested.
func setBody(live Object, wanted fields, template bool) (fields, error) {
	owned, err := ownedFields(SetKind, live)
	if err != nil {
		return nil, err
	}

	spec := map[string]any{}

	for _, field := range []string{"replicas", "updateStrategy"} {
		spec[field] = wanted.part("spec")[field]
	}

	if template {
		spec["template"] = wanted.part("spec")["template"]
	}

	return owned.with(wanted.part("metadata"), spec), nil
}

// ensure creates an object that does not exist and repairs one that differs; body returns what to apply to an
// existing one. It waits for an object that is being deleted and recreates it. A foreign object is an error.
func (h *Client) ensure(
	ctx context.Context, s Spec, k *Kind, wanted fields, live Object, body func(Object) (fields, error),
) (Object, error) {
	if live == nil {
		// It was not found by its labels. The name may be taken nevertheless.
		found, err := h.get(ctx, k, s.Namespace, wanted.name())
		if err != nil {
			return nil, err
		}

		if found != nil && found.GetDeletionTimestamp() == nil && !s.Ours(found) {
			return nil, wait.Permanent(foreign(s, k, found, h))
		}

		live = found
	}

	if live != nil && live.GetDeletionTimestamp() != nil {
		if err := h.awaitGone(ctx, k, live); err != nil {
			return nil, err
		}

		live = nil
	}

	if live == nil {
		return h.make(ctx, k, s.Namespace, wanted)
	}

	wants, err := body(live)
	if err != nil {
		return nil, err
	}

	return h.change(ctx, k, live, wants)
}

// make creates an object without force: if another client creates one of the same name meanwhile, the result is a
// conflict.
func (h *Client) make(ctx context.Context, k *Kind, namespace string, wanted fields) (Object, error) {
	made, err := h.apply(ctx, k, namespace, wanted, applyMode{})

	switch {
	case apierrors.IsNotFound(err):
		return nil, wait.Permanent(fmt.Errorf(
			"create %s on %s: namespace %s does not exist; create it, or set create_namespace",
			k.title(namespace, wanted.name()), h, namespace))
	case err != nil:
		return nil, final(fmt.Errorf("create %s on %s: %w", k.title(namespace, wanted.name()), h, err))
	}

	return made, nil
}

// change applies what differs to an object of ours. It writes nothing when nothing does.
func (h *Client) change(ctx context.Context, k *Kind, live Object, body fields) (Object, error) {
	may, err := differs(k, live, body)
	if err != nil || !may {
		return live, err
	}

	became, err := h.apply(ctx, k, live.GetNamespace(), body.only(live), applyMode{force: true})
	if err != nil {
		return nil, final(fmt.Errorf("change %s on %s: %w", k.Of(live), h, err))
	}

	return became, nil
}

// final marks an error that a retry cannot fix: the host read the request and refused it. A used-up quota and a
// namespace that is being deleted are transient refusals.
func final(err error) error {
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		return wait.Permanent(err)
	}

	return err
}

// awaitGone returns when an object is gone, or another one has its name.
func (h *Client) awaitGone(ctx context.Context, k *Kind, o Object) error {
	err := wait.Until(ctx, lookEvery, func(ctx context.Context) error {
		found, err := h.get(ctx, k, o.GetNamespace(), o.GetName())

		switch {
		case err != nil:
			return err
		case found == nil || found.GetUID() != o.GetUID():
			return nil
		default:
			return fmt.Errorf("it still exists%s", held(found))
		}
	})
	if err != nil {
		return fmt.Errorf("wait for the deletion of %s on %s: %w", k.Of(o), h, err)
	}

	return nil
}

// OrNil is a nil interface for a nil pointer.
func OrNil[T any, P interface {
	*T
	Object
}](p P) Object {
	if p == nil {
		return nil
	}

	return p
}
