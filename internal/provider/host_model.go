package provider

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
)

// hostConnection is how a host cluster is reached.
type hostConnection struct {
	kubernetes.Kubeconfig

	inCluster bool
	// unknown is true when any of it is not known yet.
	unknown bool
}

// given is whether it says where the host cluster is.
func (c hostConnection) given() bool { return c.inCluster || c.Path != "" || len(c.Content) > 0 }

// under completes a connection of a resource or a handle with that of the provider, which a way of its own excludes.
func (c hostConnection) under(own hostConnection) hostConnection {
	if own.given() {
		return own
	}

	completed := c
	completed.unknown = completed.unknown || own.unknown

	if own.Context != "" {
		completed.Context = own.Context
	}

	return completed
}

var errNoConnection = errors.New("nothing says how the host cluster is reached: set kubeconfig_path, kubeconfig or in_cluster in the host of the provider, or in that of the resource")

// hostSettings is the host cluster of the machines of a pool, in plain values. Values that are not known yet are their zero.
type hostSettings struct {
	connection      hostConnection
	namespace       string
	createNamespace bool
	domain          string
	access          workload.Access
	// endpoint is the Service in front of the control planes; nil in pools that have none.
	endpoint *workload.EndpointService
	// image has no tag.
	image               string
	pullSecrets         []string
	labels, annotations map[string]string
	// missing is true when nothing at all is said of the host cluster.
	missing bool
	// pod is the one of all machines; those of groups go before it.
	pod types.Object
}

// nameOf is the host name of a machine, and what its objects are called; empty when it is not known yet.
func (h *hostSettings) nameOf(clusterName string, m workload.Machine) string {
	if clusterName == "" || m.Pool == "" {
		return ""
	}

	return workload.Spec{Cluster: clusterName}.HostName(m)
}

// addressOf is the name of a machine in the DNS of the host cluster; empty when it is not known yet.
func (h *hostSettings) addressOf(clusterName string, m workload.Machine) string {
	if clusterName == "" || m.Pool == "" || h.namespace == "" || h.domain == "" {
		return ""
	}

	return workload.Spec{Cluster: clusterName, Namespace: h.namespace, Domain: h.domain}.Address(m)
}

// overlay reads attributes of several objects that may say the same: the first that says something has the word.
type overlay []fields

func (o overlay) with(name string) fields {
	for _, f := range o {
		if v, ok := f.attributes.Attributes()[name]; ok && !v.IsNull() {
			return f
		}
	}

	return fields{&reader{}, types.Object{}}
}

func (o overlay) text(name, fallback string) string {
	f := o.with(name)
	if f.absent(name) {
		return fallback
	}

	return f.text(name)
}

func (o overlay) truth(name string) bool { return o.with(name).truth(name, false) }

// texts reads a map of strings.
func (o overlay) texts(name string) map[string]string {
	f := o.with(name)

	v, _ := f.attributes.Attributes()[name].(types.Map)
	f.unknown = f.unknown || v.IsUnknown()

	var out map[string]string

	for key, element := range v.Elements() {
		if text, ok := element.(types.String); ok && !text.IsNull() {
			if out == nil {
				out = map[string]string{}
			}

			out[key] = f.reader.text(text)
		}
	}

	return out
}

func (o overlay) list(name string) types.List {
	v, _ := o.with(name).attributes.Attributes()[name].(types.List)

	return v
}

func (o overlay) nested(name string) overlay {
	var inner overlay
	for _, f := range o {
		inner = append(inner, f.nested(name))
	}

	return inner
}

// hostOf reads the host cluster of machines: what the resource itself says goes before what the handle says. It is nil
// when the machines are not in containers. named reads what machines are called by, and what the plan of a create names.
func hostOf(named, settings *reader, handle handleModel, own types.Object, groups []*group) *hostSettings {
	if !inContainers(handle.Mode, groups) {
		return nil
	}

	placed := overlay{{named, own}, {named, handle.Host}}
	rest := overlay{{settings, own}, {settings, handle.Host}}

	named.unknown = named.unknown || own.IsUnknown() || handle.Host.IsUnknown()

	h := &hostSettings{
		connection:      connectionIn(overlay{{&reader{}, own}, {&reader{}, handle.Host}}),
		namespace:       placed.text("namespace", ""),
		domain:          placed.text("dns_domain", defaultHostDomain),
		createNamespace: placed.truth("create_namespace"),
		access:          workload.Access(rest.text("access", defaultHostReachable)),
		image:           rest.text("image", defaultHostImage),
		pullSecrets:     settings.texts(rest.list("image_pull_secrets")),
		labels:          rest.texts("labels"),
		annotations:     rest.texts("annotations"),
	}
	h.missing = own.IsNull() && handle.Host.IsNull()
	h.pod, _ = own.Attributes()["pod"].(types.Object)

	if hasControlPlane(groups) {
		service := rest.nested("service")
		h.endpoint = &workload.EndpointService{
			Type: corev1.ServiceType(placed.nested("service").text("type", serviceClusterIP)), Annotations: service.texts("annotations"),
			LoadBalancerClass: service.text("load_balancer_class", ""),
		}
	}

	return h
}

// inContainers is whether machines are in containers. While the mode is not known, what is said of them tells.
func inContainers(mode types.String, groups []*group) bool {
	if !mode.IsUnknown() {
		return mode.ValueString() == containerMode
	}

	for _, g := range groups {
		if !g.Replicas.IsNull() {
			return true
		}
	}

	return false
}

func hasControlPlane(groups []*group) bool { return pool{groups: groups}.ownsControlPlane() }

// connectionIn reads a connection. One way excludes the others, so that the way of a resource hides that of its handle.
func connectionIn(from overlay) hostConnection {
	for _, f := range from {
		c := hostConnection{
			Kubeconfig: kubernetes.Kubeconfig{Path: f.text("kubeconfig_path"), Content: []byte(f.text("kubeconfig")), Context: f.text("context")},
			inCluster:  f.truth("in_cluster", false), unknown: f.unknown || f.attributes.IsUnknown(),
		}

		if c.given() || c.unknown {
			return c
		}
	}

	return hostConnection{Kubeconfig: kubernetes.Kubeconfig{Context: from.text("context", "")}}
}

// hostConnection reads the connection of the provider's configuration.
func (m providerModel) hostConnection() hostConnection {
	return connectionIn(overlay{{&reader{}, m.Host}})
}

// reach takes over from a configuration the kubeconfig of the host cluster: it is write-only, and so in no plan.
func (p *pool) reach(ctx context.Context, config tfsdk.Config) diag.Diagnostics {
	if p.host == nil {
		return nil
	}

	var content types.String

	diags := config.GetAttribute(ctx, path.Root("host").AtName("kubeconfig"), &content)

	if content.ValueString() != "" {
		p.host.connection.Content = []byte(content.ValueString())
	}

	p.host.connection.unknown = p.host.connection.unknown || content.IsUnknown()

	return diags
}

// podOf reads what is said of pods; the first object that says something has the word, and sizes and resources that
// are no quantities are left out: they are refused where a user can still correct them.
func podOf(ctx context.Context, r *reader, of ...types.Object) workload.PodSpec {
	var pod overlay

	for _, object := range of {
		r.unknown = r.unknown || object.IsUnknown()
		pod = append(pod, fields{r, object})
	}

	resources, storage := pod.nested("resources"), pod.nested("storage")

	return workload.PodSpec{
		Resources: corev1.ResourceRequirements{Requests: quantities(resources.texts("requests")), Limits: quantities(resources.texts("limits"))},
		Storage: workload.Storage{
			Class: storage.text("class", ""), Ephemeral: storage.truth("ephemeral"),
			State: quantityOr(storage.text("state", defaultStorageState), defaultStorageState),
			Var:   quantityOr(storage.text("var", defaultStorageVar), defaultStorageVar),
			Other: quantityOr(storage.text("other", defaultStorageOther), defaultStorageOther),
		},
		NodeSelector: pod.texts("node_selector"), PriorityClass: pod.text("priority_class", ""), Annotations: pod.texts("annotations"),
		Tolerations: tolerationsOf(ctx, r, pod.list("tolerations")),
	}
}

func quantities(texts map[string]string) corev1.ResourceList {
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

func quantityOr(text, fallback string) resource.Quantity {
	if q, err := resource.ParseQuantity(text); err == nil {
		return q
	}

	return resource.MustParse(fallback)
}

func tolerationsOf(ctx context.Context, r *reader, list types.List) []corev1.Toleration {
	var out []corev1.Toleration

	for _, t := range listed[tolerationModel](ctx, r, list) {
		r.unknown = r.unknown || t.Seconds.IsUnknown()
		out = append(out, corev1.Toleration{
			Key: r.text(t.Key), Operator: corev1.TolerationOperator(r.text(t.Operator)), Value: r.text(t.Value), Effect: corev1.TaintEffect(r.text(t.Effect)),
			TolerationSeconds: t.Seconds.ValueInt64Pointer(),
		})
	}

	return out
}

// hostForHandle is what a handle has of the host cluster of a resource: all but what is secret, and what is of the
// resource alone.
func hostForHandle(own types.Object) types.Object {
	kinds := handleHostType()

	switch {
	case own.IsUnknown():
		return types.ObjectUnknown(kinds)
	case own.IsNull():
		return types.ObjectNull(kinds)
	}

	values := map[string]attr.Value{}
	for name := range kinds {
		values[name] = own.Attributes()[name]
	}

	return types.ObjectValueMust(kinds, values)
}

func handleHostType() map[string]attr.Type { return objectOf(handleHost().Attributes).AttrTypes }

func hostType() map[string]attr.Type { return objectOf(hostAttribute().Attributes).AttrTypes }

func workerHostType() map[string]attr.Type {
	return objectOf(workerHostAttribute().Attributes).AttrTypes
}
