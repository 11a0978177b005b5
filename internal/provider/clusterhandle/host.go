package clusterhandle

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/network"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// ErrNoConnection says that there is no connection to a host cluster.
var ErrNoConnection = errors.New("no connection is configured; set kubeconfig_path, kubeconfig or in_cluster in " +
	"host of the provider or of the resource")

// Overlay reads attributes of several objects that may set the same value: the first object with a value has
// precedence.
type Overlay []tf.Fields

func (o Overlay) with(name string) tf.Fields {
	for _, f := range o {
		if v, ok := f.Attributes.Attributes()[name]; ok && !v.IsNull() {
			return f
		}
	}

	return tf.Fields{Reader: &tf.Reader{}, Attributes: types.Object{}}
}

// Text reads a text; fallback when it is null or unknown.
func (o Overlay) Text(name, fallback string) string {
	f := o.with(name)
	if f.Absent(name) {
		return fallback
	}

	return f.Text(name)
}

// Truth reads a boolean; fallback when it is null or unknown.
func (o Overlay) Truth(name string) bool { return o.with(name).Truth(name, false) }

// Texts reads a map of strings.
func (o Overlay) Texts(name string) map[string]string {
	f := o.with(name)

	v, _ := f.Attributes.Attributes()[name].(types.Map)
	f.Unknown = f.Unknown || v.IsUnknown()

	var out map[string]string

	for key, element := range v.Elements() {
		if text, ok := element.(types.String); ok && !text.IsNull() {
			if out == nil {
				out = map[string]string{}
			}

			out[key] = f.Reader.Text(text)
		}
	}

	return out
}

func (o Overlay) list(name string) types.List {
	v, _ := o.with(name).Attributes.Attributes()[name].(types.List)

	return v
}

// Nested reads the attributes of a nested object.
func (o Overlay) Nested(name string) Overlay {
	var inner Overlay
	for _, f := range o {
		inner = append(inner, f.Nested(name))
	}

	return inner
}

// HostOf reads the host cluster of machines: the resource has precedence over the handle. It is nil when the
// machines are not in containers. named reads the names of the machines, and those in the plan of a create. planes
// is whether there are control planes among the machines, and replicas how many are in containers, by group.
func HostOf(
	named, settings *tf.Reader, handle AccessModel, own types.Object, planes bool, replicas ...types.Int64,
) *machineset.Host {
	if !InContainers(handle.Mode, replicas...) {
		return nil
	}

	placed := Overlay{{Reader: named, Attributes: own}, {Reader: named, Attributes: handle.Host}}
	rest := Overlay{{Reader: settings, Attributes: own}, {Reader: settings, Attributes: handle.Host}}

	named.Unknown = named.Unknown || own.IsUnknown() || handle.Host.IsUnknown()

	h := &machineset.Host{
		Connection: ConnectionIn(
			Overlay{{Reader: &tf.Reader{}, Attributes: own}, {Reader: &tf.Reader{}, Attributes: handle.Host}}),
		Namespace:       placed.Text("namespace", ""),
		Domain:          network.CanonicalDomain(placed.Text("dns_domain", DefaultHostDomain)),
		CreateNamespace: placed.Truth("create_namespace"),
		Access:          workload.Access(rest.Text("access", DefaultHostReachable)),
		Image:           rest.Text("image", DefaultHostImage),
		PullSecrets:     settings.Texts(rest.list("image_pull_secrets")),
		Labels:          rest.Texts("labels"),
		Annotations:     rest.Texts("annotations"),
	}
	h.Missing = own.IsNull() && handle.Host.IsNull()

	if planes {
		service := rest.Nested("service")
		h.Endpoint = &workload.EndpointService{
			Type:              corev1.ServiceType(placed.Nested("service").Text("type", ServiceClusterIP)),
			TalosAPI:          service.Truth("talos_api"),
			Annotations:       service.Texts("annotations"),
			LoadBalancerClass: service.Text("load_balancer_class", ""),
		}
	}

	return h
}

// InContainers reports whether machines are in containers. While the mode is unknown, the other arguments decide.
func InContainers(mode types.String, replicas ...types.Int64) bool {
	if !mode.IsUnknown() {
		return mode.ValueString() == ContainerMode
	}

	for _, count := range replicas {
		if !count.IsNull() {
			return true
		}
	}

	return false
}

// ConnectionIn reads a connection. Kinds of connection exclude each other, so that of a resource hides that of its
// handle.
func ConnectionIn(from Overlay) machineset.HostConnection {
	for _, f := range from {
		c := machineset.HostConnection{
			Path: f.Text("kubeconfig_path"), Content: []byte(f.Secret("kubeconfig")), Context: f.Text("context"),
			InCluster: f.Truth("in_cluster", false), Unknown: f.Unknown || f.Attributes.IsUnknown(),
		}

		if c.Given() || c.Unknown {
			return c
		}
	}

	return machineset.HostConnection{Context: from.Text("context", "")}
}

// PodOf reads the settings of pods; the first object with a value has precedence. It leaves out sizes and resources
// that are no quantities: they are refused where a user can still correct them.
func PodOf(ctx context.Context, r *tf.Reader, of ...types.Object) workload.PodSpec {
	var pod Overlay

	for _, object := range of {
		r.Unknown = r.Unknown || object.IsUnknown()
		pod = append(pod, tf.Fields{Reader: r, Attributes: object})
	}

	resources, storage := pod.Nested("resources"), pod.Nested("storage")

	return workload.PodSpec{
		Resources: corev1.ResourceRequirements{Requests: Quantities(resources.Texts("requests")),
			Limits: Quantities(resources.Texts("limits"))},
		Storage: workload.Storage{
			Class: storage.Text("class", ""), Ephemeral: storage.Truth("ephemeral"),
			State: QuantityOr(storage.Text("state", DefaultStorageState), DefaultStorageState),
			Var:   QuantityOr(storage.Text("var", DefaultStorageVar), DefaultStorageVar),
			Other: QuantityOr(storage.Text("other", DefaultStorageOther), DefaultStorageOther),
		},
		NodeSelector: pod.Texts("node_selector"), PriorityClass: pod.Text("priority_class", ""),
		Annotations: pod.Texts("annotations"),
		Tolerations: TolerationsOf(ctx, r, pod.list("tolerations")),
	}
}

// Quantities are amounts of resources; invalid ones are refused where a user can correct them.
func Quantities(texts map[string]string) corev1.ResourceList {
	var out corev1.ResourceList

	for name, text := range texts {
		if q, err := resource.ParseQuantity(text); err == nil {
			if out == nil {
				out = corev1.ResourceList{}
			}

			out[corev1.ResourceName(name)] = q
		}
	}

	return out
}

// QuantityOr is an amount, or the fallback for an empty text.
func QuantityOr(text, fallback string) resource.Quantity {
	if q, err := resource.ParseQuantity(text); err == nil {
		return q
	}

	return resource.MustParse(fallback)
}

// TolerationsOf reads tolerations of pods.
func TolerationsOf(ctx context.Context, r *tf.Reader, list types.List) []corev1.Toleration {
	var out []corev1.Toleration

	for _, t := range tf.Listed[tf.TolerationModel](ctx, r, list) {
		r.Unknown = r.Unknown || t.Seconds.IsUnknown()
		out = append(out, corev1.Toleration{
			Key: r.Text(t.Key), Operator: corev1.TolerationOperator(r.Text(t.Operator)), Value: r.Text(t.Value),
			Effect:            corev1.TaintEffect(r.Text(t.Effect)),
			TolerationSeconds: t.Seconds.ValueInt64Pointer(),
		})
	}

	return out
}

// HostForHandle is the part of a resource's host cluster for its handle: all except secrets, and what is of the
// resource alone.
func HostForHandle(own types.Object) types.Object { return partOf(own, HandleHostType()) }

// partOf is the part of an object with a narrower type.
func partOf(whole types.Object, kinds map[string]attr.Type) types.Object {
	switch {
	case whole.IsUnknown():
		return types.ObjectUnknown(kinds)
	case whole.IsNull():
		return types.ObjectNull(kinds)
	}

	values := map[string]attr.Value{}
	for name := range kinds {
		values[name] = whole.Attributes()[name]
	}

	return types.ObjectValueMust(kinds, values)
}

// HandleHostType is the type of host in a cluster handle.
func HandleHostType() map[string]attr.Type {
	return tf.ObjectOf(HandleHost().Attributes).AttrTypes
}

// HostType is the type of host in a resource that makes a cluster.
func HostType() map[string]attr.Type {
	return tf.ObjectOf(HostAttribute().Attributes).AttrTypes
}

// WorkerHostType is the type of host in a resource that joins a cluster.
func WorkerHostType() map[string]attr.Type {
	return tf.ObjectOf(WorkerHostAttribute().Attributes).AttrTypes
}
