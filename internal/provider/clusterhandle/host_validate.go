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
		diags.Append(invalidNamespace.At(at.AtName("namespace"), finding.Args{"value": namespace}))
	}

	if domain, ok := h.Value("dns_domain"); ok && len(validation.IsDNS1123Subdomain(strings.ToLower(domain))) > 0 {
		diags.Append(invalidHostDomain.At(at.AtName("dns_domain"), finding.Args{"value": domain}))
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

	var connections []string

	for _, name := range []string{"kubeconfig_path", h.NameOf("kubeconfig")} {
		text, ok := h.Value(name)

		switch {
		case ok && strings.TrimSpace(text) == "":
			diags.Append(emptyKubeconfig.At(at.AtName(name), nil))
		case !h.Absent(name):
			connections = append(connections, name)
		}

		if name != "kubeconfig_path" && ok && strings.TrimSpace(text) != "" {
			validateKubeconfig(at.AtName(name), h, text, diags)
		}
	}

	if in.ValueBool() {
		connections = append(connections, "in_cluster")
	}

	if len(connections) > 1 {
		diags.Append(severalHostConnections.At(at.AtName(connections[1]), finding.Args{"other": connections[0]}))
	}

	if in.ValueBool() && !h.Absent("context") {
		diags.Append(contextInCluster.At(at.AtName("context"), nil))
	}
}

func validateKubeconfig(at finding.Path, h tf.Fields, text string, diags *finding.List) {
	named, _ := h.Value("context")
	if v, ok := h.Attributes.Attributes()["context"].(types.String); ok && v.IsUnknown() {
		return
	}

	if _, err := (api.Kubeconfig{Content: []byte(text), Context: named}).Facts(); err != nil {
		diags.Append(invalidHostKubeconfig.At(at, finding.Args{"cause": err.Error()}))
	}
}

var imageRepository = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9.-]*(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+$`)

func validateHostImage(at finding.Path, image string, diags *finding.List) {
	last := image[strings.LastIndexByte(image, '/')+1:]

	switch {
	case strings.Contains(last, "@"):
		diags.Append(hostImageTag.At(at, finding.Args{"image": image, "digest": true}))
	case strings.Contains(last, ":"):
		diags.Append(hostImageTag.At(at, finding.Args{"image": image, "digest": false}))
	case !imageRepository.MatchString(image):
		diags.Append(invalidHostImage.At(at, finding.Args{"image": image}))
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
				diags.Append(invalidLabelName.At(at, finding.Args{"name": key}))
			case own && (strings.HasPrefix(key, "talosop.dev/") || name == "labels" &&
				(key == workload.LabelManagedBy || key == workload.LabelName)):
				diags.Append(reservedLabelName.At(at, finding.Args{"name": key}))
			case name == "labels" && !text.IsUnknown() && len(validation.IsValidLabelValue(text.ValueString())) > 0:
				diags.Append(invalidLabelValue.At(at, finding.Args{"value": text.ValueString()}))
			}
		}
	}
}

func validateService(at finding.Path, service tf.Fields, diags *finding.List) {
	validateMarks(at, service, true, diags)

	typ, _ := service.Attributes.Attributes()["type"].(types.String)
	if !service.Absent("load_balancer_class") && !typ.IsUnknown() && typ.ValueString() != ServiceLoadBalancer {
		diags.Append(loadBalancerClassUnused.At(at.AtName("load_balancer_class"), nil))
	}

	open, _ := service.Attributes.Attributes()["talos_api"].(types.Bool)
	if open.ValueBool() && !typ.IsUnknown() && (typ.IsNull() || typ.ValueString() == ServiceClusterIP) {
		diags.Append(talosAPINotExposed.At(at.AtName("talos_api"), nil))
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
				checkQuantity(at.AtName("resources").AtName(name).AtMapKey(key), text.ValueString(), "500m or 2Gi", &diags)
			}
		}
	}

	for _, name := range []string{"state", "var", "other"} {
		if text, ok := storage.Value(name); ok {
			checkQuantity(at.AtName("storage").AtName(name), text, "20Gi", &diags)
		}
	}

	if text, ok := storage.Value("class"); ok && len(validation.IsDNS1123Subdomain(text)) > 0 {
		diags.Append(invalidStorageClass.At(at.AtName("storage").AtName("class"), finding.Args{"value": text}))
	}

	validateMarks(at, p, true, &diags)
	validateTolerations(at.AtName("tolerations"), p, &diags)

	return diags
}

// checkQuantity refuses a text that is no quantity above zero.
func checkQuantity(at finding.Path, text, example string, diags *finding.List) {
	if q, err := resource.ParseQuantity(text); err != nil || q.Sign() <= 0 {
		diags.Append(invalidQuantity.At(at, finding.Args{"value": text, "example": example}))
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
			diags.Append(tolerationValue.At(at.AtName("value"), nil))
		case operator != "Exists" && t.Absent("key"):
			diags.Append(tolerationKey.At(at.AtName("key"), nil))
		case effect != "NoExecute" && !t.Absent("toleration_seconds"):
			diags.Append(tolerationSeconds.At(at.AtName("toleration_seconds"), nil))
		}
	}
}
