package clusterhandle

import "github.com/talosop/terraform-provider-talosop/internal/finding"

// Messages are about the cluster handle and the host cluster of machines in containers.
var Messages = finding.NewCatalog("Host cluster and cluster handle")

var (
	invalidMode = Messages.Invalid("invalid_mode",
		"Found {{quote .value}}.",
		"Allowed: \""+MetalMode+"\" for physical and virtual machines, and \""+ContainerMode+"\" for pods of a Kubernetes "+
			"cluster.",
		"Choose one of these.")

	invalidTalosEndpoint = Messages.Invalid("invalid_talos_endpoint",
		"Found {{quote .value}}.",
		"Allowed: an IP address or a hostname, with or without a port, and without a scheme.",
		"Correct the address: {{.hint}}.")

	invalidHostObjectName = Messages.Invalid("invalid_host_object_name",
		"Found {{quote .value}}.",
		"Allowed in containers: lower-case letters, digits and dashes. The name begins with a letter and ends with a "+
			"letter or digit, because the objects on the host cluster contain it.",
		"Choose such a name.")

	reservedPoolName = Messages.Invalid("reserved_pool_name",
		"Found the pool name {{quote .pool}}.",
		"In containers, the control planes use this name.",
		"Choose another name for the pool.")

	hostObjectNameTooLong = Messages.Invalid("host_object_name_too_long",
		"Found {{quote .name}}, which makes the name of a machine on the host cluster {{quote .machine}}.",
		"Allowed: machine names of up to {{.limit}} characters.",
		"Choose a shorter name for the cluster or the pool.")

	invalidNamespace = Messages.Invalid("invalid_namespace",
		"Found {{quote .value}}.",
		"Allowed: up to 63 lower-case letters, digits and dashes. The name begins and ends with a letter or digit.",
		"Choose such a name.")

	invalidHostDomain = Messages.Invalid("invalid_host_domain",
		"Found {{quote .value}}.",
		"Allowed: a DNS name.",
		"Correct the name, or remove `dns_domain` for the default "+DefaultHostDomain+".")

	emptyKubeconfig = Messages.Invalid("empty_kubeconfig",
		"Found an empty value.",
		"Allowed: a kubeconfig, or null.",
		"Remove the attribute if the provider block has the kubeconfig.")

	severalHostConnections = Messages.Invalid("several_host_connections",
		"Found it together with `{{.other}}`.",
		"Allowed: one connection to the host cluster.",
		"Remove one of them.")

	contextInCluster = Messages.Invalid("context_with_in_cluster",
		"Found it together with `in_cluster`.",
		"It selects a context of a kubeconfig, and `in_cluster` uses no kubeconfig.",
		"Remove one of them.")

	invalidHostKubeconfig = Messages.Invalid("invalid_host_kubeconfig",
		"The kubeconfig is not usable: {{.cause}}.",
		"Allowed: the content of a kubeconfig, in YAML or JSON, for the host cluster.",
		"For the content of a file, write `file(\"kubeconfig\")`.")

	hostImageTag = Messages.Invalid("host_image_with_tag",
		"Found {{quote .image}}, with {{if .digest}}a digest{{else}}a tag{{end}}.",
		"Allowed: an image without tag and digest, because `talos_version` is the tag.",
		"Remove {{if .digest}}the part from `@` on{{else}}the part from the last colon on{{end}}.")

	invalidHostImage = Messages.Invalid("invalid_host_image",
		"Found {{quote .image}}.",
		"Allowed: the name of an image with its registry, such as "+DefaultHostImage+".",
		"Correct the name.")

	invalidLabelName = Messages.Invalid("invalid_label_name",
		"Found the name {{quote .name}}.",
		"Allowed: names such as `team` or `example.org/team`.",
		"Correct the name.")

	reservedLabelName = Messages.Invalid("reserved_label_name",
		"Found the name {{quote .name}}.",
		"talosop sets it to find its own objects.",
		"Choose another name.")

	invalidLabelValue = Messages.Invalid("invalid_label_value",
		"Found the value {{quote .value}}.",
		"Allowed: up to 63 letters, digits, dots, dashes and underscores.",
		"Correct the value, or make it an annotation.")

	loadBalancerClassUnused = Messages.Invalid("load_balancer_class_unused",
		"Found it for a Service that is not a load balancer.",
		"It applies to type "+ServiceLoadBalancer+" only.",
		"Set `type = \""+ServiceLoadBalancer+"\"`, or remove it.")

	talosAPINotExposed = Messages.Invalid("talos_api_of_cluster_ip",
		"Found it for a Service of type "+ServiceClusterIP+".",
		"It opens the ports of a Service to clients outside of the host cluster.",
		"Set `type = \""+ServiceLoadBalancer+"\"` or `type = \""+serviceNodePort+"\"`, or remove it.")

	invalidQuantity = Messages.Invalid("invalid_quantity",
		"Found {{quote .value}}.",
		"Allowed: a Kubernetes quantity above zero, such as {{.example}}.",
		"Write a number with a unit.")

	invalidStorageClass = Messages.Invalid("invalid_storage_class",
		"Found {{quote .value}}.",
		"Allowed: the name of a storage class.",
		"Correct the name, or remove `class` for the default of the host cluster.")

	tolerationValue = Messages.Invalid("toleration_value_with_exists",
		"Found it with operator `Exists`.",
		"It applies to operator `Equal` only.",
		"Remove the value, or set `operator = \"Equal\"`.")

	tolerationKey = Messages.Invalid("toleration_without_key",
		"Found no key.",
		"A toleration without a key needs operator `Exists`.",
		"Set the key of the taint.")

	tolerationSeconds = Messages.Invalid("toleration_seconds_without_no_execute",
		"Found it without effect `NoExecute`.",
		"Only that effect evicts pods.",
		"Set `effect = \"NoExecute\"`, or remove it.")
)
