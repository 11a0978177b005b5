package clusterhandle

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/types"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// ValidateHost checks the known part of `host` of a resource.
func ValidateHost(at finding.Path, host types.Object) finding.List {
	var diags finding.List

	if host.IsNull() || host.IsUnknown() {
		return nil
	}

	h := tf.Fields{Reader: &tf.Reader{}, Attributes: host}

	ValidateConnection(at, h, &diags)

	if namespace, ok := h.Value("namespace"); ok && len(validation.IsDNS1123Label(namespace)) > 0 {
		diags.Append(finding.Invalid(at.AtName("namespace"), "namespace", "found "+finding.Quote(namespace),
			"allowed are up to 63 lower-case letters, digits and dashes, beginning and ending with a "+
				"letter or digit", "choose such a name"))
	}

	if domain, ok := h.Value("dns_domain"); ok && len(validation.IsDNS1123Subdomain(strings.ToLower(domain))) > 0 {
		diags.Append(finding.Invalid(at.AtName("dns_domain"), "dns_domain", "found "+finding.Quote(domain),
			"allowed is a DNS name", "leave it out for "+DefaultHostDomain))
	}

	if image, ok := h.Value("image"); ok {
		validateHostImage(at.AtName("image"), image, &diags)
	}

	validateMarks(at, h, true, &diags)
	validateService(at.AtName("service"), h.Nested("service"), &diags)

	if pod, ok := host.Attributes()["pod"].(types.Object); ok {
		diags.Append(ValidatePod(at.AtName("pod"), pod)...)
	}

	return diags
}

// ValidateConnection checks how a host cluster is reached. It shows nothing of a kubeconfig.
func ValidateConnection(at finding.Path, h tf.Fields, diags *finding.List) {
	in, _ := h.Attributes.Attributes()["in_cluster"].(types.Bool)

	var ways []string

	for _, name := range []string{"kubeconfig_path", h.NameOf("kubeconfig")} {
		text, ok := h.Value(name)

		switch {
		case ok && strings.TrimSpace(text) == "":
			diags.Append(finding.Invalid(at.AtName(name), name, "found an empty value", "allowed is a kubeconfig, or nothing",
				"leave it out where the provider has one"))
		case !h.Absent(name):
			ways = append(ways, name)
		}

		if name != "kubeconfig_path" && ok && strings.TrimSpace(text) != "" {
			validateKubeconfig(at.AtName(name), h, text, diags)
		}
	}

	if in.ValueBool() {
		ways = append(ways, "in_cluster")
	}

	if len(ways) > 1 {
		diags.Append(finding.Invalid(at.AtName(ways[1]), ways[1], "found it together with "+ways[0],
			"allowed is one way to the host cluster", "remove one of them"))
	}

	if in.ValueBool() && !h.Absent("context") {
		diags.Append(finding.Invalid(at.AtName("context"), "context", "found it together with in_cluster",
			"it is the context of a kubeconfig", "remove one of them"))
	}
}

func validateKubeconfig(at finding.Path, h tf.Fields, text string, diags *finding.List) {
	named, _ := h.Value("context")
	if v, ok := h.Attributes.Attributes()["context"].(types.String); ok && v.IsUnknown() {
		return
	}

	if _, err := (api.Kubeconfig{Content: []byte(text), Context: named}).Facts(); err != nil {
		diags.Append(finding.Invalid(at, "kubeconfig", err.Error(),
			"allowed is a kubeconfig, in YAML or JSON, that reaches the host cluster",
			`write file("kubeconfig") for the content of a file`))
	}
}

var imageRepository = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9.-]*(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+$`)

func validateHostImage(at finding.Path, image string, diags *finding.List) {
	last := image[strings.LastIndexByte(image, '/')+1:]

	switch {
	case strings.Contains(last, "@"):
		diags.Append(finding.Invalid(at, "image", "found "+finding.Quote(image)+", with a digest",
			"allowed is an image without one: its tag is talos_version, which a digest would hide", "remove what begins with @"))
	case strings.Contains(last, ":"):
		diags.Append(finding.Invalid(at, "image", "found "+finding.Quote(image)+", with a tag",
			"allowed is an image without one: its tag is talos_version", "remove what begins with the last colon"))
	case !imageRepository.MatchString(image):
		diags.Append(finding.Invalid(at, "image", "found "+finding.Quote(image),
			"allowed is the name of an image with its registry, such as "+DefaultHostImage, "write it as container runtimes do"))
	}
}

// validateMarks checks labels and annotations. own says that talosop sets some in the same place.
func validateMarks(at finding.Path, h tf.Fields, own bool, diags *finding.List) {
	for _, name := range []string{"labels", "annotations"} {
		marks, _ := h.Attributes.Attributes()[name].(types.Map)

		for key, element := range marks.Elements() {
			at := at.AtName(name).AtMapKey(key)
			text, _ := element.(types.String)

			switch {
			case len(validation.IsQualifiedName(key)) > 0:
				diags.Append(finding.Invalid(at, name, "found "+finding.Quote(key)+placed(at),
					"allowed are names such as team or example.org/team", "correct the name"))
			case own && (strings.HasPrefix(key, "talosop.dev/") || name == "labels" &&
				(key == workload.LabelManagedBy || key == workload.LabelName)):
				diags.Append(finding.Invalid(at, name, "found "+finding.Quote(key)+placed(at),
					"talosop has it itself, and finds its objects by it", "choose another name"))
			case name == "labels" && !text.IsUnknown() && len(validation.IsValidLabelValue(text.ValueString())) > 0:
				diags.Append(finding.Invalid(at, name, "found "+finding.Quote(text.ValueString())+placed(at),
					"allowed are up to 63 letters, digits, dots, dashes and underscores",
					"correct the value, or make it an annotation"))
			}
		}
	}
}

func validateService(at finding.Path, service tf.Fields, diags *finding.List) {
	validateMarks(at, service, true, diags)

	typ, _ := service.Attributes.Attributes()["type"].(types.String)
	if !service.Absent("load_balancer_class") && !typ.IsUnknown() && typ.ValueString() != ServiceLoadBalancer {
		diags.Append(finding.Invalid(at.AtName("load_balancer_class"), "load_balancer_class",
			"found it without a load balancer", "it is for type "+ServiceLoadBalancer,
			`set type = "`+ServiceLoadBalancer+`", or remove it`))
	}

	open, _ := service.Attributes.Attributes()["talos_api"].(types.Bool)
	if open.ValueBool() && !typ.IsUnknown() && (typ.IsNull() || typ.ValueString() == ServiceClusterIP) {
		diags.Append(finding.Invalid(at.AtName("talos_api"), "talos_api", "found it for a Service of type "+ServiceClusterIP,
			"it opens ports of a Service for the outside", `set type = "`+ServiceLoadBalancer+`" or "`+serviceNodePort+
				`", or remove it`))
	}
}

// ValidatePod checks the known part of `pod` of a group or of a host.
func ValidatePod(at finding.Path, pod types.Object) finding.List {
	var diags finding.List

	if pod.IsNull() || pod.IsUnknown() {
		return nil
	}

	p := tf.Fields{Reader: &tf.Reader{}, Attributes: pod}
	resources, storage := p.Nested("resources"), p.Nested("storage")

	for _, name := range []string{"requests", "limits"} {
		amounts, _ := resources.Attributes.Attributes()[name].(types.Map)

		for _, key := range slices.Sorted(maps.Keys(amounts.Elements())) {
			if text, ok := amounts.Elements()[key].(types.String); ok && !text.IsUnknown() {
				checkQuantity(at.AtName("resources").AtName(name).AtMapKey(key), key, text.ValueString(), "500m or 2Gi", &diags)
			}
		}
	}

	for _, name := range []string{"state", "var", "other"} {
		if text, ok := storage.Value(name); ok {
			checkQuantity(at.AtName("storage").AtName(name), name, text, "20Gi", &diags)
		}
	}

	if text, ok := storage.Value("class"); ok && len(validation.IsDNS1123Subdomain(text)) > 0 {
		at := at.AtName("storage").AtName("class")
		diags.Append(finding.Invalid(at, "class", "found "+finding.Quote(text)+placed(at),
			"allowed is the name of a storage class", "leave it out for the default of the host cluster"))
	}

	validateMarks(at, p, true, &diags)
	validateTolerations(at.AtName("tolerations"), p, &diags)

	return diags
}

// placed says where a value is that has others of its kind beside it: CLIs show the line, but not its pool.
func placed(at finding.Path) string { return " in " + at.String() }

// checkQuantity refuses a text that is no quantity above zero.
func checkQuantity(at finding.Path, what, text, example string, diags *finding.List) {
	if q, err := resource.ParseQuantity(text); err != nil || q.Sign() <= 0 {
		diags.Append(finding.Invalid(at, what, "found "+finding.Quote(text)+placed(at),
			"allowed is a quantity of Kubernetes above zero, such as "+example, "write a number with a unit"))
	}
}

func validateTolerations(at finding.Path, p tf.Fields, diags *finding.List) {
	list, _ := p.Attributes.Attributes()["tolerations"].(types.List)

	for i, element := range list.Elements() {
		object, ok := element.(types.Object)
		if !ok || object.IsUnknown() {
			continue
		}

		t, at := tf.Fields{Reader: &tf.Reader{}, Attributes: object}, at.AtListIndex(i)
		operator, _ := t.Value("operator")
		unknown := object.Attributes()["operator"].IsUnknown() || object.Attributes()["effect"].IsUnknown()
		effect, _ := t.Value("effect")

		switch {
		case unknown:
		case operator == "Exists" && !t.Absent("value"):
			diags.Append(finding.Invalid(at.AtName("value"), "value", `found it with operator "Exists"`+placed(at),
				"it is for operator Equal", "remove one of them"))
		case operator != "Exists" && t.Absent("key"):
			diags.Append(finding.Invalid(at.AtName("key"), "key", "found none"+placed(at),
				"allowed is that with operator Exists only", "write the key of the taint"))
		case effect != "NoExecute" && !t.Absent("toleration_seconds"):
			diags.Append(finding.Invalid(at.AtName("toleration_seconds"), "toleration_seconds",
				"found it without effect NoExecute"+placed(at), "pods are only evicted by that effect",
				`set effect = "NoExecute", or remove it`))
		}
	}
}
