package workload

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	networkapply "k8s.io/client-go/applyconfigurations/networking/v1"
	policyapply "k8s.io/client-go/applyconfigurations/policy/v1"
	clientgo "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// FieldManager owns the fields that talosop sets.
const FieldManager = "talosop"

// Object is one of the host cluster.
type Object interface {
	metav1.Object
	runtime.Object
}

// Kind is how objects of one kind are asked for and changed.
type Kind struct {
	name, APIVersion, Resource string
	Cluster                    bool // not in a namespace
	Client                     func(clientgo.Interface) rest.Interface
	// derived objects are made and removed by the host's own controllers.
	derived bool
	// optional objects are skipped without the right to see them.
	optional bool
	empty    func() Object
	list     func() runtime.Object
	// owned returns the fields that talosop set and no other client changed since.
	owned func(Object) (any, error)
}

func coreClient(api clientgo.Interface) rest.Interface { return api.CoreV1().RESTClient() }
func appsClient(api clientgo.Interface) rest.Interface { return api.AppsV1().RESTClient() }

func discoveryClient(api clientgo.Interface) rest.Interface { return api.DiscoveryV1().RESTClient() }

func networkClient(api clientgo.Interface) rest.Interface { return api.NetworkingV1().RESTClient() }

func policyClient(api clientgo.Interface) rest.Interface { return api.PolicyV1().RESTClient() }

var (
	namespaceKind = &Kind{
		name: "Namespace", APIVersion: "v1", Resource: "namespaces", Cluster: true, Client: coreClient,
		empty: func() Object { return &corev1.Namespace{} }, owned: ownedBy(coreapply.ExtractNamespace),
	}
	// ServiceKind is that of Services.
	ServiceKind = &Kind{
		name: "Service", APIVersion: "v1", Resource: "services", Client: coreClient,
		empty: func() Object { return &corev1.Service{} }, list: func() runtime.Object { return &corev1.ServiceList{} },
		owned: ownedBy(coreapply.ExtractService),
	}
	// ClaimKind is that of the claims of volumes.
	ClaimKind = &Kind{
		name: "PersistentVolumeClaim", APIVersion: "v1", Resource: "persistentvolumeclaims", Client: coreClient,
		empty: func() Object { return &corev1.PersistentVolumeClaim{} },
		list:  func() runtime.Object { return &corev1.PersistentVolumeClaimList{} },
		owned: ownedBy(coreapply.ExtractPersistentVolumeClaim),
	}
	// SetKind is that of StatefulSets.
	SetKind = &Kind{
		name: "StatefulSet", APIVersion: "apps/v1", Resource: "statefulsets", Client: appsClient,
		empty: func() Object { return &appsv1.StatefulSet{} },
		list:  func() runtime.Object { return &appsv1.StatefulSetList{} },
		owned: ownedBy(appsapply.ExtractStatefulSet),
	}
	// BudgetKind is that of disruption budgets.
	BudgetKind = &Kind{
		name: "PodDisruptionBudget", APIVersion: "policy/v1", Resource: "poddisruptionbudgets", Client: policyClient,
		optional: true,
		empty:    func() Object { return &policyv1.PodDisruptionBudget{} },
		list:     func() runtime.Object { return &policyv1.PodDisruptionBudgetList{} },
		owned:    ownedBy(policyapply.ExtractPodDisruptionBudget),
	}
	// PolicyKind is that of policies of the network.
	PolicyKind = &Kind{
		name: "NetworkPolicy", APIVersion: "networking.k8s.io/v1", Resource: "networkpolicies", Client: networkClient,
		optional: true,
		empty:    func() Object { return &networkingv1.NetworkPolicy{} },
		list:     func() runtime.Object { return &networkingv1.NetworkPolicyList{} },
		owned:    ownedBy(networkapply.ExtractNetworkPolicy),
	}
	// PodKind is that of pods. Of them and of what controllers make, nothing is applied.
	PodKind = &Kind{
		name: "Pod", APIVersion: "v1", Resource: "pods", Client: coreClient,
		empty: func() Object { return &corev1.Pod{} }, list: func() runtime.Object { return &corev1.PodList{} },
	}
	// The history of a StatefulSet and what is behind a Service have the labels of what they are of, and go with it.
	revisionKind = &Kind{
		name: "ControllerRevision", APIVersion: "apps/v1", Resource: "controllerrevisions", Client: appsClient, derived: true,
		empty: func() Object { return &appsv1.ControllerRevision{} },
		list:  func() runtime.Object { return &appsv1.ControllerRevisionList{} },
	}
	sliceKind = &Kind{
		name: "EndpointSlice", APIVersion: "discovery.k8s.io/v1", Resource: "endpointslices", Client: discoveryClient,
		derived: true,
		empty:   func() Object { return &discoveryv1.EndpointSlice{} },
		list:    func() runtime.Object { return &discoveryv1.EndpointSliceList{} },
	}
)

// ownedBy gives the extraction of client-go for one type the shape of all.
func ownedBy[T, A any](extract func(*T, string) (*A, error)) func(Object) (any, error) {
	return func(o Object) (any, error) {
		typed, ok := any(o).(*T)
		if !ok {
			return nil, fmt.Errorf("read the owned fields of %T", o)
		}

		return extract(typed, FieldManager)
	}
}

// Of names an object in messages.
func (k *Kind) Of(o metav1.Object) string { return k.title(o.GetNamespace(), o.GetName()) }

func (k *Kind) title(namespace, name string) string {
	if k.Cluster || namespace == "" {
		return k.name + " " + name
	}

	return k.name + " " + namespace + "/" + name
}

// get reads an object; nil when there is none.
func (h *Client) get(ctx context.Context, k *Kind, namespace, name string) (Object, error) {
	found := k.empty()

	err := k.Client(h.API()).Get().NamespaceIfScoped(namespace,
		!k.Cluster).Resource(k.Resource).Name(name).Do(ctx).Into(found)

	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // there is none
	case err != nil:
		return nil, fmt.Errorf("read %s on %s: %w", k.title(namespace, name), h, err)
	}

	return found, nil
}

// applyMode limits the effect of an apply.
type applyMode struct {
	// force takes fields from their owners.
	force, dryRun bool
}

// apply makes an object have the fields of body, and no others that talosop set before. The object that it returns is
// what it became, or would become.
func (h *Client) apply(ctx context.Context, k *Kind, namespace string, body fields, mode applyMode) (Object, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}

	options := &metav1.PatchOptions{FieldManager: FieldManager, Force: &mode.force}
	if mode.dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}

	became := k.empty()
	err = k.Client(h.API()).Patch(types.ApplyPatchType).NamespaceIfScoped(namespace, !k.Cluster).Resource(k.Resource).
		Name(body.name()).VersionedParams(options, scheme.ParameterCodec).Body(data).Do(ctx).Into(became)

	return became, err
}

// remove deletes one object, and no later one of the same name. A missing object is fine. The host deletes
// dependents in the background.
func (h *Client) remove(ctx context.Context, k *Kind, o metav1.Object) error {
	uid, background := o.GetUID(), metav1.DeletePropagationBackground

	err := k.Client(h.API()).Delete().NamespaceIfScoped(o.GetNamespace(),
		!k.Cluster).Resource(k.Resource).Name(o.GetName()).
		Body(&metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background}).Do(
		ctx).Error()

	switch {
	// A conflict is that of the UID: the object is gone, and there is another one.
	case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err), k.derived && apierrors.IsForbidden(err):
		return nil
	default:
		return fmt.Errorf("delete %s on %s: %w", k.Of(o), h, err)
	}
}

// elements are those of a list.
func elements(list runtime.Object) ([]Object, error) {
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}

	objects := make([]Object, 0, len(items))

	for _, item := range items {
		o, ok := item.(Object)
		if !ok {
			return nil, fmt.Errorf("a list contains %T", item)
		}

		objects = append(objects, o)
	}

	return objects, nil
}
