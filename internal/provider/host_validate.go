package provider

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
)

// longestHostName is how long names of machines on the host can be: the name of a StatefulSet ends up in a label of its pods, with
// a hash of 10 digits behind it (Kubernetes 1.36, controller-revision-hash).
const longestHostName = 52

// declared is what a user wrote of machines and their host, as it is in the configuration: what talosop fills in is not in it.
type declared struct {
	mode types.String
	// modeAt is where the mode is said.
	modeAt   path.Path
	host     types.Object
	endpoint types.String
	// resource is true where the resource itself makes the cluster.
	resource bool
}

// senseless is whether machines run on something that there is not.
func (g declared) senseless() bool {
	mode := g.mode.ValueString()

	return !g.mode.IsNull() && !g.mode.IsUnknown() && mode != metalMode && mode != containerMode
}

// unplaced is a pool in containers of which it is not known what they are called and where they answer. What a wrong name or
// a missing host leads to is no mistake of its own.
func (p pool) unplaced() pool {
	machines := map[string]poolMachine{}

	for name, m := range p.machines {
		m.address, m.config.Hostname, m.config.CertSANs = "", "", nil
		machines[name] = m
	}

	p.machines, p.unknown = machines, true

	if p.declared.resource {
		p.settings.Endpoint = "" // it is made of the names
	}

	return p
}

// validateMode checks that what is said belongs to what the machines run on.
func (p pool) validateMode(g declared) diag.Diagnostics {
	switch {
	case g.mode.IsUnknown():
		return nil
	case p.single != nil && g.mode.ValueString() == containerMode:
		return diag.Diagnostics{invalid(g.modeAt, "mode", `found a cluster of mode "container"`, "a single machine is for metal: those in containers are made by their number",
			"use replicas of talosop_control_plane or talosop_worker")}
	case p.single != nil:
		return nil
	case g.mode.ValueString() == containerMode:
		return p.validateContainers(g)
	default:
		return p.validateMetal(g)
	}
}

// validateMetal refuses what is for containers.
func (p pool) validateMetal(g declared) diag.Diagnostics {
	var diags diag.Diagnostics

	refuse := func(at path.Path, name string, v attr.Value) {
		if !v.IsNull() {
			diags.Append(invalid(at.AtName(name), name, "found it in a cluster of mode "+quote(metalMode), "it is for machines in containers",
				"remove it, or make a cluster of mode "+quote(containerMode)))
		}
	}

	refuse(path.Empty(), "host", g.host)

	if g.resource && g.endpoint.IsNull() {
		diags.Append(invalid(path.Root("endpoint"), "endpoint", "found none", "allowed is the URL of the Kubernetes API: a load balancer, a virtual IP or a DNS name in front of "+
			"the control planes, or the address of a single one", "write one such as https://10.0.0.10:6443"))
	}

	for _, of := range p.groups {
		refuse(of.at, "replicas", of.Replicas)
		refuse(of.at, "replica_config_patches", of.ReplicaPatches)
		refuse(of.at, "pod", of.Pod)
	}

	return diags
}

// validateContainers checks machines in containers and their host.
func (p pool) validateContainers(g declared) diag.Diagnostics {
	var diags diag.Diagnostics

	if g.resource && g.host.IsNull() {
		diags.Append(invalid(path.Root("host"), "host", "found none", "machines in containers are pods of a host cluster", "set host with the namespace at least"))
	}

	if p.inHandle && p.host != nil && p.host.missing {
		diags.Append(invalid(path.Root("cluster").AtName("host"), "host", "found none in the handle of a cluster of mode "+quote(containerMode),
			"machines in containers are pods of a host cluster", "use the handle that the resource of the control plane exports, or write host with the namespace"))
	}

	diags.Append(validateHost(path.Root("host"), g.host)...)
	diags.Append(p.validateNames()...)

	for _, of := range p.groups {
		diags.Append(of.refuseMetal()...)
		diags.Append(of.validateReplicas()...)
		diags.Append(of.refuseReplicaPatches()...)
		diags.Append(validatePod(of.at.AtName("pod"), of.Pod)...)
	}

	return diags
}

// refuseMetal refuses what is for physical and virtual machines.
func (g *group) refuseMetal() diag.Diagnostics {
	var diags diag.Diagnostics

	for name, v := range map[string]attr.Value{"machines": g.Machines, "install": g.Install, "schematic": g.Schematic, "platform": g.Platform} {
		if v.IsNull() {
			continue
		}

		remedy := "remove it"
		if name == "machines" {
			remedy = "say how many there are in replicas"
		}

		diags.Append(invalid(g.at.AtName(name), name, "found it in a cluster of mode "+quote(containerMode),
			"it is for physical and virtual machines: containers are made by talosop, and nothing is installed in them", remedy))
	}

	slices.SortFunc(diags, func(a, b diag.Diagnostic) int { return strings.Compare(a.Summary(), b.Summary()) })

	return diags
}

// validateReplicas checks how many machines there are.
func (g *group) validateReplicas() diag.Diagnostics {
	at := g.at.AtName("replicas")
	count, known := g.count()

	switch {
	case g.Replicas.IsNull():
		return diag.Diagnostics{invalid(at, "replicas", "found none", "machines in containers are made by their number", "say how many there are")}
	case !known || g.role != cluster.ControlPlane:
		return nil
	case count == 0:
		return diag.Diagnostics{invalid(at, "replicas", "found 0", "a cluster has one control plane or more, and its data with it",
			"use 1, 3 or 5; to give the cluster up, destroy the resource")}
	case count%2 == 0:
		return diag.Diagnostics{evenNumber(at, count)}
	default:
		return nil
	}
}

// validateNames checks what machines are called on the host.
func (p pool) validateNames() diag.Diagnostics {
	var diags diag.Diagnostics

	const allowed = "in containers allowed are lower-case letters, digits and dashes, beginning with a letter and ending with a letter or digit: the objects on the host " +
		"cluster have it in their names"

	name := p.settings.Name
	if name != "" && len(validation.IsDNS1035Label(name)) > 0 {
		diags.Append(invalid(p.clusterPath("name"), "name", "found "+quote(name), allowed, "choose such a name"))

		return diags
	}

	for _, g := range p.groups {
		of, at := g.hostPool(), g.at
		if g.at.Equal(path.Empty()) {
			at = path.Root("name")
		}

		longest := workload.Spec{Cluster: name}.HostName(workload.Machine{Pool: of, Ordinal: max(int(g.Replicas.ValueInt64())-1, 0)})

		switch {
		case of == "" || g.role == cluster.ControlPlane && len(longest) <= longestHostName:
		case g.role == cluster.Worker && of == controlPlanePool:
			diags.Append(invalid(at, "name of a pool", "found "+quote(of), "in containers the name "+controlPlanePool+" is taken by the control planes", "choose another one"))
		case len(validation.IsDNS1123Label(of)) > 0:
			diags.Append(invalid(at, "name of a pool", "found "+quote(of), allowed, "choose such a name"))
		case len(longest) > longestHostName:
			diags.Append(invalid(p.clusterPath("name"), "name", fmt.Sprintf("found %s, with which a machine is called %s on the host cluster", quote(name), longest),
				fmt.Sprintf("allowed are %d characters for names of machines", longestHostName), "choose a shorter name of the cluster or the pool"))

			return diags
		}
	}

	return diags
}

// validateHost checks `host` of a resource as far as it is known.
func validateHost(at path.Path, host types.Object) diag.Diagnostics {
	var diags diag.Diagnostics

	if host.IsNull() || host.IsUnknown() {
		return nil
	}

	h := fields{&reader{}, host}

	validateConnection(at, h, &diags)

	if namespace, ok := h.value("namespace"); ok && len(validation.IsDNS1123Label(namespace)) > 0 {
		diags.Append(invalid(at.AtName("namespace"), "namespace", "found "+quote(namespace), "allowed are up to 63 lower-case letters, digits and dashes, beginning and ending with a "+
			"letter or digit", "choose such a name"))
	}

	if domain, ok := h.value("dns_domain"); ok && len(validation.IsDNS1123Subdomain(domain)) > 0 {
		diags.Append(invalid(at.AtName("dns_domain"), "dns_domain", "found "+quote(domain), "allowed is a DNS name in lower case", "leave it out for "+defaultHostDomain))
	}

	if image, ok := h.value("image"); ok {
		validateHostImage(at.AtName("image"), image, &diags)
	}

	validateMarks(at, h, true, &diags)
	validateService(at.AtName("service"), h.nested("service"), &diags)

	if pod, ok := host.Attributes()["pod"].(types.Object); ok {
		diags.Append(validatePod(at.AtName("pod"), pod)...)
	}

	return diags
}

// validateConnection checks how a host cluster is reached. Nothing of a kubeconfig is shown.
func validateConnection(at path.Path, h fields, diags *diag.Diagnostics) {
	in, _ := h.attributes.Attributes()["in_cluster"].(types.Bool)

	var ways []string

	for _, name := range []string{"kubeconfig_path", "kubeconfig"} {
		text, ok := h.value(name)

		switch {
		case ok && strings.TrimSpace(text) == "":
			diags.Append(invalid(at.AtName(name), name, "found an empty value", "allowed is a kubeconfig, or nothing", "leave it out where the provider has one"))
		case !h.absent(name):
			ways = append(ways, name)
		}

		if name == "kubeconfig" && ok && strings.TrimSpace(text) != "" {
			validateKubeconfig(at.AtName(name), h, text, diags)
		}
	}

	if in.ValueBool() {
		ways = append(ways, "in_cluster")
	}

	if len(ways) > 1 {
		diags.Append(invalid(at.AtName(ways[1]), ways[1], "found it together with "+ways[0], "allowed is one way to the host cluster", "remove one of them"))
	}

	if in.ValueBool() && !h.absent("context") {
		diags.Append(invalid(at.AtName("context"), "context", "found it together with in_cluster", "it is the context of a kubeconfig", "remove one of them"))
	}
}

func validateKubeconfig(at path.Path, h fields, text string, diags *diag.Diagnostics) {
	named, _ := h.value("context")
	if v, ok := h.attributes.Attributes()["context"].(types.String); ok && v.IsUnknown() {
		return
	}

	if _, err := (kubernetes.Kubeconfig{Content: []byte(text), Context: named}).Facts(); err != nil {
		diags.Append(invalid(at, "kubeconfig", err.Error(), "allowed is a kubeconfig, in YAML or JSON, that reaches the host cluster", `write file("kubeconfig") for the content of a file`))
	}
}

var imageRepository = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9.-]*(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+$`)

func validateHostImage(at path.Path, image string, diags *diag.Diagnostics) {
	last := image[strings.LastIndexByte(image, '/')+1:]

	switch {
	case strings.Contains(last, "@"):
		diags.Append(invalid(at, "image", "found "+quote(image)+", with a digest", "allowed is an image without one: its tag is talos_version, which a digest would hide", "remove what begins with @"))
	case strings.Contains(last, ":"):
		diags.Append(invalid(at, "image", "found "+quote(image)+", with a tag", "allowed is an image without one: its tag is talos_version", "remove what begins with the last colon"))
	case !imageRepository.MatchString(image):
		diags.Append(invalid(at, "image", "found "+quote(image), "allowed is the name of an image with its registry, such as "+defaultHostImage, "write it as container runtimes do"))
	}
}

// validateMarks checks labels and annotations. own tells that talosop has some of its own in the same place.
func validateMarks(at path.Path, h fields, own bool, diags *diag.Diagnostics) {
	for _, name := range []string{"labels", "annotations"} {
		marks, _ := h.attributes.Attributes()[name].(types.Map)

		for key, element := range marks.Elements() {
			at := at.AtName(name).AtMapKey(key)
			text, _ := element.(types.String)

			switch {
			case len(validation.IsQualifiedName(key)) > 0:
				diags.Append(invalid(at, name, "found "+quote(key)+placed(at), "allowed are names such as team or example.org/team", "correct the name"))
			case own && (strings.HasPrefix(key, "talosop.dev/") || name == "labels" && (key == workload.LabelManagedBy || key == workload.LabelName)):
				diags.Append(invalid(at, name, "found "+quote(key)+placed(at), "talosop has it itself, and finds its objects by it", "choose another name"))
			case name == "labels" && !text.IsUnknown() && len(validation.IsValidLabelValue(text.ValueString())) > 0:
				diags.Append(invalid(at, name, "found "+quote(text.ValueString())+placed(at), "allowed are up to 63 letters, digits, dots, dashes and underscores", "correct the value, or make it an annotation"))
			}
		}
	}
}

func validateService(at path.Path, service fields, diags *diag.Diagnostics) {
	validateMarks(at, service, true, diags)

	typ, _ := service.attributes.Attributes()["type"].(types.String)
	if !service.absent("load_balancer_class") && !typ.IsUnknown() && typ.ValueString() != serviceLoadBalancer {
		diags.Append(invalid(at.AtName("load_balancer_class"), "load_balancer_class", "found it without a load balancer", "it is for type "+serviceLoadBalancer,
			`set type = "`+serviceLoadBalancer+`", or remove it`))
	}
}

// validatePod checks `pod` of a group or of a host as far as it is known.
func validatePod(at path.Path, pod types.Object) diag.Diagnostics {
	var diags diag.Diagnostics

	if pod.IsNull() || pod.IsUnknown() {
		return nil
	}

	p := fields{&reader{}, pod}
	resources, storage := p.nested("resources"), p.nested("storage")

	for _, name := range []string{"requests", "limits"} {
		amounts, _ := resources.attributes.Attributes()[name].(types.Map)

		for _, key := range sortedNames(amounts.Elements()) {
			if text, ok := amounts.Elements()[key].(types.String); ok && !text.IsUnknown() {
				checkQuantity(at.AtName("resources").AtName(name).AtMapKey(key), key, text.ValueString(), "500m or 2Gi", &diags)
			}
		}
	}

	for _, name := range []string{"state", "var", "other"} {
		if text, ok := storage.value(name); ok {
			checkQuantity(at.AtName("storage").AtName(name), name, text, "20Gi", &diags)
		}
	}

	if text, ok := storage.value("class"); ok && len(validation.IsDNS1123Subdomain(text)) > 0 {
		at := at.AtName("storage").AtName("class")
		diags.Append(invalid(at, "class", "found "+quote(text)+placed(at), "allowed is the name of a storage class", "leave it out for the default of the host cluster"))
	}

	validateMarks(at, p, true, &diags)
	validateTolerations(at.AtName("tolerations"), p, &diags)

	return diags
}

// placed says where a value is that others of its kind are beside: CLIs show the line, and not which pool it is in.
func placed(at path.Path) string { return " in " + at.String() }

// checkQuantity refuses what is no quantity above zero.
func checkQuantity(at path.Path, what, text, example string, diags *diag.Diagnostics) {
	if q, err := resource.ParseQuantity(text); err != nil || q.Sign() <= 0 {
		diags.Append(invalid(at, what, "found "+quote(text)+placed(at), "allowed is a quantity of Kubernetes above zero, such as "+example, "write a number with a unit"))
	}
}

func validateTolerations(at path.Path, p fields, diags *diag.Diagnostics) {
	list, _ := p.attributes.Attributes()["tolerations"].(types.List)

	for i, element := range list.Elements() {
		object, ok := element.(types.Object)
		if !ok || object.IsUnknown() {
			continue
		}

		t, at := fields{&reader{}, object}, at.AtListIndex(i)
		operator, _ := t.value("operator")
		unknown := object.Attributes()["operator"].IsUnknown() || object.Attributes()["effect"].IsUnknown()
		effect, _ := t.value("effect")

		switch {
		case unknown:
		case operator == "Exists" && !t.absent("value"):
			diags.Append(invalid(at.AtName("value"), "value", `found it with operator "Exists"`+placed(at), "it is for operator Equal", "remove one of them"))
		case operator != "Exists" && t.absent("key"):
			diags.Append(invalid(at.AtName("key"), "key", "found none"+placed(at), "allowed is that with operator Exists only", "write the key of the taint"))
		case effect != "NoExecute" && !t.absent("toleration_seconds"):
			diags.Append(invalid(at.AtName("toleration_seconds"), "toleration_seconds", "found it without effect NoExecute"+placed(at), "pods are only evicted by that effect", `set effect = "NoExecute", or remove it`))
		}
	}
}
