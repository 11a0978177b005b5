package workload

import (
	"context"
	"fmt"
	"net/netip"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/panics"
)

// Inventory lists what a selector matches: one request for each kind, whatever the number of machines.
func (h *Client) Inventory(ctx context.Context, s Spec, selector string) (*Inventory, error) {
	var (
		sets     *appsv1.StatefulSetList
		pods     *corev1.PodList
		claims   *corev1.PersistentVolumeClaimList
		services *corev1.ServiceList
		budgets  map[string]*policyv1.PodDisruptionBudget
		policies map[string]*networkingv1.NetworkPolicy
	)

	options := metav1.ListOptions{LabelSelector: selector}
	group, ctx := panics.WithContext(ctx)
	list := func(k *Kind, ask func() error) {
		group.Go(func() error {
			if err := ask(); err != nil {
				return fmt.Errorf("list the %ss of %s in namespace %s on %s: %w", k.name, s.Cluster, s.Namespace, h, err)
			}

			return nil
		})
	}

	list(SetKind, func() (err error) {
		sets, err = h.API().AppsV1().StatefulSets(s.Namespace).List(ctx, options)
		return err
	})
	list(PodKind, func() (err error) { pods, err = h.API().CoreV1().Pods(s.Namespace).List(ctx, options); return err })
	list(ClaimKind, func() (err error) {
		claims, err = h.API().CoreV1().PersistentVolumeClaims(s.Namespace).List(ctx, options)

		return err
	})
	list(ServiceKind, func() (err error) {
		services, err = h.API().CoreV1().Services(s.Namespace).List(ctx, options)
		return err
	})

	list(PolicyKind, func() (err error) { policies, err = h.policies(ctx, s, options); return err })

	if s.Budget() != nil {
		list(BudgetKind, func() (err error) { budgets, err = h.budgets(ctx, s, options); return err })
	}

	if err := group.Wait(); err != nil {
		return nil, err
	}

	return &Inventory{
		Sets: byNames(sets.Items), Pods: byNames(pods.Items), Claims: byNames(claims.Items),
		Services: byNames(services.Items),
		Budgets:  budgets, Policies: policies,
	}, nil
}

// policies returns nil without the right to read them.
func (h *Client) policies(
	ctx context.Context, s Spec, options metav1.ListOptions,
) (map[string]*networkingv1.NetworkPolicy, error) {
	found, err := h.API().NetworkingV1().NetworkPolicies(s.Namespace).List(ctx, options)
	if err != nil {
		return nil, unlessForbidden(err)
	}

	return byNames(found.Items), nil
}

// budgets returns nil without the right to read them.
func (h *Client) budgets(
	ctx context.Context, s Spec, options metav1.ListOptions,
) (map[string]*policyv1.PodDisruptionBudget, error) {
	found, err := h.API().PolicyV1().PodDisruptionBudgets(s.Namespace).List(ctx, options)
	if err != nil {
		return nil, unlessForbidden(err)
	}

	return byNames(found.Items), nil
}

// Observe says what the host has for the machines of a Spec. It changes nothing. Some few lists do for all machines;
// more is asked only about what is not as it should be. What the credentials do not let it read beyond the namespace,
// such as nodes, is left out of the observation. An error means that the host did not answer: nothing follows from
// that.
func (h *Client) Observe(ctx context.Context, s Spec) (Observation, error) {
	found, err := h.Inventory(ctx, s, s.Selector())
	if err != nil {
		return Observation{}, err
	}

	observation := Observation{Machines: make(map[string]MachineState, len(s.Machines)), Orphans: found.orphans(s)}
	if err := h.observeShared(ctx, s, found, &observation); err != nil {
		return Observation{}, err
	}

	about := h.newSurroundings(ctx, s)
	states := make([]MachineState, len(s.Machines))

	var group panics.Group

	group.SetLimit(machinesAtOnce)

	for i, m := range s.Machines {
		group.Go(func() (err error) {
			states[i], err = h.observeMachine(ctx, s, m, found, about)

			return err
		})
	}

	if err := group.Wait(); err != nil {
		return Observation{}, err
	}

	for i, m := range s.Machines {
		observation.Machines[m.Name] = states[i]
	}

	return observation, nil
}

// observeShared is about the namespace, and the budget and the Service of the control planes.
func (h *Client) observeShared(ctx context.Context, s Spec, found *Inventory, o *Observation) error {
	if s.CreateNamespace {
		live, err := h.get(ctx, namespaceKind, "", s.Namespace)

		switch {
		case apierrors.IsForbidden(err):
			// Then it exists: credentials with rights in a namespace may lack the right to read it.
		case err != nil:
			return err
		case live == nil:
			o.Missing = append(o.Missing, Difference{Object: namespaceKind.refTo("", s.Namespace), Cause: Missing})
		case live.GetLabels()[LabelManagedBy] == managedBy:
			body, err := namespaceBody(live, s)
			if err != nil {
				return err
			}

			_, drift, err := h.differences(ctx, namespaceKind, live, body)
			if err != nil {
				return err
			}

			o.Drift = append(o.Drift, drift...)
		}
	}

	if err := h.observeBudget(ctx, s, found, o); err != nil {
		return err
	}

	for _, wanted := range s.EndpointServices() {
		drift, exists, err := h.serviceDrift(ctx, wanted, found.Services[wanted.Name])
		if err != nil {
			return err
		}

		if !exists {
			o.Missing = append(o.Missing, drift...)
		} else {
			o.Drift = append(o.Drift, drift...)
		}
	}

	if left := s.leftOutside(found); left != nil {
		o.Drift = append(o.Drift, Difference{Object: ServiceKind.ref(left), Cause: Unwanted})
	}

	return nil
}

// serviceDrift is what differs of a Service, or that it is not there.
func (h *Client) serviceDrift(
	ctx context.Context, wanted, live *corev1.Service,
) (drift []Difference, exists bool, err error) {
	turns, err := convertible(live, wanted)

	switch {
	case err != nil:
		return nil, true, err
	case live == nil:
		return []Difference{{Object: ServiceKind.ref(wanted), Cause: Missing}}, false, nil
	case live.DeletionTimestamp != nil:
		return []Difference{{Object: ServiceKind.ref(wanted), Cause: Deleting}}, false, nil
	case !turns:
		has := fmt.Sprintf("type %s, cluster IP %q", live.Spec.Type, live.Spec.ClusterIP)

		return []Difference{{Object: ServiceKind.ref(live), Cause: Readdressed, Before: has}}, true, nil
	}

	wants, err := fieldsOf(ServiceKind, wanted)
	if err != nil {
		return nil, true, err
	}

	body, err := serviceBody(live, wants)
	if err != nil {
		return nil, true, err
	}

	_, drift, err = h.differences(ctx, ServiceKind, live, body)

	return drift, true, err
}

// observeMachine combines all observations of a machine.
func (h *Client) observeMachine(
	ctx context.Context, s Spec, m Machine, found *Inventory, about *surroundings,
) (MachineState, error) {
	set, pod := found.Sets[s.HostName(m)], found.Pods[s.PodName(m)]
	state := MachineState{Exists: set != nil || pod != nil, Complete: true}

	if pod != nil {
		state.describe(pod)
	}

	vanished, err := h.vanished(ctx, s, m, found)
	if err != nil {
		return MachineState{}, err
	}

	steps := []func() error{
		func() error { return h.observeSet(ctx, s, m, set, pod, &state) },
		func() error { return h.observeClaims(ctx, s, m, found, vanished, &state) },
		func() error { return h.observeServices(ctx, s, m, found, &state) },
		func() error {
			drift, err := h.observeIsolation(ctx, s, m, found)
			state.Drift = append(state.Drift, drift...)

			return err
		},
		func() error { return about.explain(ctx, s, m, found, vanished, &state) },
	}

	for _, step := range steps {
		if err := step(); err != nil {
			return MachineState{}, err
		}
	}

	return state, nil
}

// observeServices compares the Services of a machine.
func (h *Client) observeServices(ctx context.Context, s Spec, m Machine, found *Inventory, state *MachineState) error {
	for _, service := range s.Services(m) {
		drift, exists, err := h.serviceDrift(ctx, service, found.Services[service.Name])
		if err != nil {
			return err
		}

		state.Drift = append(state.Drift, drift...)
		state.Complete = state.Complete && exists
	}

	if live := found.Services[s.HostName(m)+peerSuffix]; live != nil && live.DeletionTimestamp == nil &&
		m.Role == ControlPlane {
		// Before the host assigns an address, and after another client removed it, there is none.
		state.PeerAddress, _ = netip.ParseAddr(live.Spec.ClusterIP)
	}

	return nil
}

// ContainerOf identifies the run of Talos in a pod; empty while none runs.
func ContainerOf(pod *corev1.Pod) string {
	if status := talosStatus(pod); status != nil && status.State.Running != nil {
		return status.ContainerID
	}

	return ""
}

// describe copies the state from a pod.
func (state *MachineState) describe(pod *corev1.Pod) {
	state.Pod, state.PodUID, state.Node = pod.Name, string(pod.UID), pod.Spec.NodeName

	for _, address := range pod.Status.PodIPs {
		state.PodIPs = append(state.PodIPs, address.IP)
	}

	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; c.Name == ContainerName {
			state.Image = c.Image
		}
	}

	state.Container = ContainerOf(pod)

	if ready := podCondition(pod, corev1.PodReady); ready != nil {
		state.Ready = ready.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
	}
}

// observeSet compares the StatefulSet to what is wanted, and the pod to the StatefulSet.
func (h *Client) observeSet(
	ctx context.Context, s Spec, m Machine, live *appsv1.StatefulSet, pod *corev1.Pod, state *MachineState,
) error {
	switch {
	case live == nil:
		state.Complete = false
		state.Drift = append(state.Drift, Difference{Object: SetKind.refTo(s.Namespace, s.HostName(m)), Cause: Missing})

		return nil
	case live.DeletionTimestamp != nil:
		state.Complete = false
		state.Drift = append(state.Drift, Difference{Object: SetKind.ref(live), Cause: Deleting})

		return nil
	case live.Annotations[wipeAnnotation] != "":
		state.Drift = append(state.Drift, Difference{Object: SetKind.ref(live), Cause: Wiping})

		return nil
	}

	if err := h.compareSet(ctx, s.StatefulSet(m), live, state); err != nil {
		return err
	}

	if len(state.Outdated) > 0 && s.stays(m, live, pod) {
		state.Drift, state.Outdated = append(state.Drift, state.Outdated...), nil

		return nil
	}

	if pod != nil && pod.DeletionTimestamp == nil && otherTemplate(live, pod) {
		state.Outdated = append(state.Outdated, Difference{
			Object: PodKind.ref(pod), Cause: OtherTemplate, Of: SetKind.Of(live),
			Before: pod.Labels[appsv1.StatefulSetRevisionLabel], After: live.Status.UpdateRevision,
		})
	}

	return nil
}

// compareSet compares a StatefulSet to what is wanted, and its template apart from the rest.
func (h *Client) compareSet(ctx context.Context, set, live *appsv1.StatefulSet, state *MachineState) error {
	wanted, err := fieldsOf(SetKind, set)
	if err != nil {
		return err
	}

	makers, err := addedBy(live)
	if err != nil {
		return err
	}

	body, err := setBody(live, wanted, len(makers) == 0)
	if err != nil {
		return err
	}

	template, others, err := h.differences(ctx, SetKind, live, body)
	if err != nil {
		return err
	}

	if len(makers) > 0 {
		if template, err = h.templateDrift(ctx, live, set.Spec.Template, makers); err != nil {
			return err
		}
	}

	state.Outdated, state.Drift = append(state.Outdated, template...), append(state.Drift, others...)

	return nil
}

// otherTemplate reports whether a pod was made from another template than its StatefulSet has. The template is
// known only once the controller has seen it; until then the result is false.
func otherTemplate(set *appsv1.StatefulSet, pod *corev1.Pod) bool {
	return taken(set) && pod.Labels[appsv1.StatefulSetRevisionLabel] != set.Status.UpdateRevision
}

// taken reports whether the controller of StatefulSets has seen the set as it is.
func taken(set *appsv1.StatefulSet) bool {
	return set.Status.ObservedGeneration >= set.Generation && set.Status.UpdateRevision != ""
}
