package workload

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// diagnosisTimeout is how long the search for the reason of a failure may take after time is up.
const diagnosisTimeout = 5 * time.Second

// Remove deletes everything that a machine has on the host: StatefulSet, pod, claims with their data, and Services. It
// returns when nothing with the machine's labels is left. Destructive, and idempotent: what is gone is fine, and what
// was interrupted is finished by the next call. Objects of the same names that are not ours are not touched. When one
// of two control planes is removed, the budget becomes that of a single one.
//
// The machine has to be out of its cluster by then: nothing here asks etcd.
func (h *Client) Remove(ctx context.Context, s Spec, machine string) error {
	m, ok := s.Machine(machine)
	if !ok {
		return wait.Permanent(fmt.Errorf("cluster %s has no machine %s", s.Cluster, machine))
	}

	// The StatefulSet first: it would make another pod.
	if err := h.clear(ctx, s, s.MachineSelector(m), SetKind); err != nil {
		return fmt.Errorf("remove %s: %w", machine, err)
	}

	if err := h.clear(ctx, s, s.MachineSelector(m), PodKind, ClaimKind, ServiceKind, PolicyKind, revisionKind,
		sliceKind); err != nil {
		return fmt.Errorf("remove %s: %w", machine, err)
	}

	if m.Role != ControlPlane {
		return nil
	}

	if err := h.easeBudget(ctx, s); err != nil {
		return fmt.Errorf("remove %s: its objects are deleted: %w", machine, err)
	}

	return nil
}

// RemoveShared deletes what the machines of a cluster share: the Service and the budget of the control planes. If
// the Spec asks to make the namespace, talosop made it and nothing else is in it, it deletes the namespace, too.
// It returns when they are gone. A budget that the credentials may not delete stays and is reported. It refuses
// while control planes of the cluster exist, whatever the Spec says. Workers that are left have no cluster. They
// stay, and so does the namespace, and the error is a [WorkersLeftError] after all else is done. Idempotent.
func (h *Client) RemoveShared(ctx context.Context, s Spec) error {
	found, err := h.Inventory(ctx, s, s.Selector())
	if err != nil {
		return err
	}

	planes, workers := found.machines()
	if len(planes) > 0 {
		return fmt.Errorf("remove shared objects of cluster %s in namespace %s on %s: machines still exist: %s",
			s.Cluster, s.Namespace, h, strings.Join(slices.Concat(planes, workers), ", "))
	}

	if err := h.clear(ctx, s, s.Selector()+",!"+LabelMachine, ServiceKind, BudgetKind, revisionKind,
		sliceKind); err != nil {
		return fmt.Errorf("remove shared objects of cluster %s: %w", s.Cluster, err)
	}

	if len(workers) > 0 {
		return &WorkersLeftError{Workers: workers, Namespace: s.Namespace, Selector: s.Selector()}
	}

	if !s.CreateNamespace {
		return nil
	}

	return h.removeNamespace(ctx, s)
}

// WorkersLeftError is that a cluster is removed but for workers, which are of other resources or were to be preserved.
type WorkersLeftError struct {
	// Workers by their names on the host without the cluster's, such as batch-0.
	Workers []string
	// Namespace that they are in, and Selector of the labels of all that they have there.
	Namespace, Selector string
}

func (e *WorkersLeftError) Error() string {
	return fmt.Sprintf("workers still exist in namespace %s: %s", e.Namespace, strings.Join(e.Workers, ", "))
}

// machines are those of which there is anything, by the labels of their objects. What is not certain to be a worker may
// be a control plane.
func (i *Inventory) machines() (planes, workers []string) {
	left := map[string]bool{}

	for _, o := range i.all() {
		if machine := o.GetLabels()[LabelMachine]; machine != "" {
			left[machine] = left[machine] || o.GetLabels()[LabelRole] != string(Worker)
		}
	}

	for _, machine := range slices.Sorted(maps.Keys(left)) {
		if left[machine] {
			planes = append(planes, machine)
		} else {
			workers = append(workers, machine)
		}
	}

	return planes, workers
}

// orphans are the machines of the pools of a Spec that it does not name.
func (i *Inventory) orphans(s Spec) (names []string) {
	pools, named := map[string]bool{}, map[string]bool{}

	for _, m := range s.Machines {
		pools[m.Pool], named[m.Label()] = true, true
	}

	for _, o := range i.all() {
		if labels := o.GetLabels(); pools[labels[LabelPool]] && labels[LabelMachine] != "" && !named[labels[LabelMachine]] {
			names = append(names, labels[LabelMachine])
		}
	}

	slices.Sort(names)

	return slices.Compact(names)
}

func (i *Inventory) all() (objects []Object) {
	for _, o := range i.Sets {
		objects = append(objects, o)
	}

	for _, o := range i.Pods {
		objects = append(objects, o)
	}

	for _, o := range i.Claims {
		objects = append(objects, o)
	}

	for _, o := range i.Services {
		objects = append(objects, o)
	}

	return objects
}

// clear deletes our objects of some kinds that a selector matches, and returns when there are none. It checks
// repeatedly, to delete what a controller makes meanwhile, too. Optional objects without the right to delete them
// stay.
func (h *Client) clear(ctx context.Context, s Spec, selector string, kinds ...*Kind) error {
	var pod *corev1.Pod

	stays := map[types.UID]bool{}

	err := wait.Until(ctx, lookEvery, func(ctx context.Context) error {
		var left []string

		for _, k := range kinds {
			objects, err := h.list(ctx, k, s.Namespace, selector)
			if err != nil {
				return err
			}

			for _, o := range inOrder(s, objects) {
				if stays[o.GetUID()] {
					continue
				}

				if found, ok := o.(*corev1.Pod); ok {
					pod = found
				}

				stays[o.GetUID()], err = h.discard(ctx, k, o)
				if err != nil {
					return err
				}

				if !stays[o.GetUID()] {
					left = append(left, k.Of(o)+held(o))
				}
			}
		}

		if len(left) > 0 {
			return fmt.Errorf("objects still exist: %s", strings.Join(left, ", "))
		}

		return nil
	})
	if err == nil {
		return nil
	}

	if pod != nil && ctx.Err() != nil {
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), diagnosisTimeout)
		defer cancel()

		if node, reason := h.newSurroundings(after, s).diagnoseNode(pod); reason == nil && node != "" {
			return fmt.Errorf("%w; %s: %s", err, PodKind.Of(pod), node)
		}
	}

	return err
}

// discard deletes an object that is not being deleted yet. An optional object stays without the right to delete
// it.
func (h *Client) discard(ctx context.Context, k *Kind, o Object) (stays bool, err error) {
	if o.GetDeletionTimestamp() != nil {
		return false, nil
	}

	err = h.remove(ctx, k, o)
	if k.optional && apierrors.IsForbidden(err) {
		h.progress(fmt.Sprintf("%s stays: %v", k.Of(o), err))

		return true, nil
	}

	return false, err
}

// inOrder returns our objects, the claim of /var first. If the removal stops in the middle and the machine is
// wanted again, its configuration without etcd data is the better remainder. Talos then joins again where the
// others have a quorum (see [Client.vanished]). The data of a removed member without a configuration would not
// help.
func inOrder(s Spec, objects []Object) []Object {
	ours := slices.DeleteFunc(objects, func(o Object) bool { return !s.Ours(o) })
	first := volumeName(varPath) + "-"

	slices.SortStableFunc(ours, func(a, b Object) int {
		switch x, y := strings.HasPrefix(a.GetName(), first), strings.HasPrefix(b.GetName(), first); {
		case x == y:
			return strings.Compare(a.GetName(), b.GetName())
		case x:
			return -1
		default:
			return 1
		}
	})

	return ours
}

// list returns the objects of a kind that a selector matches. It skips unreadable objects that only the host's own
// controllers make, because they remove them, and objects that are not made without the right to read them.
func (h *Client) list(ctx context.Context, k *Kind, namespace, selector string) ([]Object, error) {
	list := k.list()

	err := k.Client(h.API()).Get().NamespaceIfScoped(namespace, !k.Cluster).Resource(k.Resource).
		VersionedParams(&metav1.ListOptions{LabelSelector: selector}, scheme.ParameterCodec).Do(ctx).Into(list)

	switch {
	case (k.derived || k.optional) && apierrors.IsForbidden(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("list the %ss in namespace %s on %s: %w", k.name, namespace, h, err)
	}

	return elements(list)
}
