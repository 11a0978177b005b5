package convert

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/types/cluster"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/setting"
)

// acceptedCAs are base64 in the main document.
func (c *Converter) acceptedCAs(path []string) {
	value := c.value(path)
	accepted := list()

	for _, element := range value.Content {
		certificate, err := base64.StdEncoding.DecodeString(textOf(element, "crt"))
		if err != nil || len(certificate) == 0 {
			c.mistake(path, "an element has no certificate")

			return
		}

		accepted.Content = append(accepted.Content, scalar(string(certificate), "!!str", element))
	}

	c.put(k8s.KubeAPIServerCAConfig, "", []string{"acceptedCAs"}, c.take(path), accepted)
}

// endpoint is also the issuer of service accounts, which the main document derives from it (machinery 1.14,
// v1alpha1_k8s_bridge.go).
func (c *Converter) endpoint(path []string) {
	value := c.value(path)
	c.put(k8s.KubeClusterConfig, "", []string{"endpoint"}, c.take(path), value)

	if c.controlPlane {
		issuer := text(value.Value)
		c.put(k8s.KubeServiceAccountConfig, "", []string{"issuer", "issuerURL"}, blank(), issuer)
	}
}

// podSecurity is the plugin that contracts generate.
const podSecurity = "PodSecurity"

func (c *Converter) admission(path []string) {
	value := c.value(path)

	if value.Kind != yaml.MappingNode {
		// Plugins merge by their name in both forms.
		for _, element := range value.Content {
			delete(c.seen, k8s.KubeAdmissionControlConfig+"/"+textOf(element, "name"))
		}

		c.each(path, k8s.KubeAdmissionControlConfig, func(element, document *yaml.Node) {
			if configuration := valueOf(element, "configuration"); configuration != nil {
				set(document, []string{"configuration"}, blank(), configuration)
			}
		})

		return
	}

	if !isDelete(value) {
		c.mistake(path, "it is no list")

		return
	}

	key := c.take(path)
	c.drop(k8s.KubeAdmissionControlConfig, podSecurity, key)

	for _, name := range slices.Sorted(maps.Keys(c.seen)) {
		kind, plugin, _ := strings.Cut(name, "/")
		if kind == k8s.KubeAdmissionControlConfig && plugin != podSecurity {
			c.drop(kind, plugin, blank())
			delete(c.seen, name)
		}
	}
}

// authorizers come after those of nodes and roles, which the main document has before them without naming them.
func (c *Converter) authorizers(path []string) {
	for _, element := range c.value(path).Content {
		kind, name := textOf(element, "type"), textOf(element, "name")

		switch {
		case kind == "Webhook":
			c.webhooks = true
		case c.webhooks || kind == "Node" && (name != "node" || c.rbac) || kind == "RBAC" && name != "rbac":
			c.mistake(path, "authorizers of nodes and roles are called node and rbac, and are the first ones")

			return
		default:
			c.rbac = c.rbac || kind == "RBAC"
		}
	}

	c.each(path, k8s.KubeAuthorizerConfig, func(element, document *yaml.Node) {
		for _, key := range []string{"type", "webhook"} {
			if value := valueOf(element, key); value != nil {
				set(document, []string{key}, blank(), value)
			}
		}
	})
}

// refusedArguments are those that KubeAPIServerConfig refuses, without the arguments of OIDC (machinery 1.14,
// k8s/apiserver.go).
var refusedArguments = []string{"anonymous-auth", "authentication-config", "authorization-config",
	"authorization-mode", "authorization-webhook-"}

// apiServerArgs moves arguments, and makes a KubeAuthenticationConfig of those that are about OIDC.
func (c *Converter) apiServerArgs(path []string) {
	value := c.value(path)
	rest, oidc := *value, false
	rest.Content = nil

	for i := 0; i+1 < len(value.Content); i += 2 {
		key, argument := value.Content[i], value.Content[i+1]

		switch {
		case strings.HasPrefix(key.Value, "oidc-"):
			if argument.Kind != yaml.ScalarNode {
				c.mistake(path, key.Value+" is no text")

				return
			}

			c.oidc[key.Value], oidc = argument.Value, true
		case slices.ContainsFunc(refusedArguments, func(name string) bool { return strings.HasPrefix(key.Value, name) }):
			c.mistake(path, "KubeAPIServerConfig refuses "+key.Value+": write a KubeAuthenticationConfig or "+
				"KubeAuthorizerConfig")

			return
		default:
			rest.Content = append(rest.Content, key, argument)
		}
	}

	key := c.take(path)

	if len(rest.Content) > 0 {
		c.put(k8s.KubeAPIServerConfig, "", []string{"extraArgs"}, key, &rest)
	}

	if oidc {
		c.authentication(path, key)
	}
}

// authentication writes the issuer that the arguments are about. The document is replaced as a whole by patches.
func (c *Converter) authentication(path []string, key *yaml.Node) {
	authenticator, err := setting.Authenticator(c.oidc)
	if err != nil {
		c.mistake(path, err.Error())

		return
	}

	configuration := k8s.DefaultAuthenticationConfig().AuthConfig.Object
	configuration["jwt"] = []any{authenticator}
	c.put(k8s.KubeAuthenticationConfig, "", []string{"configuration"}, key, data(configuration))
}

// discover is about the services by which members find each other. Without a document there is none.
func (c *Converter) discover(path []string) {
	value := c.value(path)
	was := c.discovery && c.discoveryService

	registries := valueOf(value, "registries")
	service := valueOf(registries, "service")

	if off := valueOf(valueOf(registries, "kubernetes"), "disabled"); off != nil && !isTrue(off) {
		c.mistake(path, "contract v1.14 has no discovery by Kubernetes nodes (registries.kubernetes)")

		return
	}

	if enabled := valueOf(value, "enabled"); enabled != nil {
		c.discovery = isTrue(enabled)
	}

	if isDelete(value) {
		c.discovery = false
	}

	if disabled := valueOf(service, "disabled"); disabled != nil {
		c.discoveryService = !isTrue(disabled)
	}

	if endpoint := textOf(service, "endpoint"); endpoint != "" {
		c.discoveryEndpoint = endpoint
	}

	key := c.take(path)

	switch on := c.discovery && c.discoveryService; {
	case on:
		c.put(cluster.DiscoveryServiceKind, "default", []string{"endpoint"}, key, text(c.discoveryEndpoint))
	case was:
		c.drop(cluster.DiscoveryServiceKind, "default", key)
	}
}

// kubePrism is on by default.
func (c *Converter) kubePrism(path []string) {
	value := c.value(path)
	was := c.prism

	if enabled := valueOf(value, "enabled"); enabled != nil {
		c.prism = isTrue(enabled)
	}

	if isDelete(value) {
		c.prism = false
	}

	if port := textOf(value, "port"); port != "" {
		c.prismPort = port
	}

	if c.prismPort == "" {
		c.prismPort = strconv.Itoa(constants.DefaultKubePrismPort)
	}

	key := c.take(path)

	switch {
	case c.prism:
		c.put(k8s.KubePrismConfig, "", []string{"port"}, key, scalar(c.prismPort, "!!int", blank()))
	case was:
		c.drop(k8s.KubePrismConfig, "", key)
	}
}

// apiAccess is off by default. Its lists are appended to, in either form.
func (c *Converter) apiAccess(path []string) {
	value := c.value(path)
	was := c.access

	if enabled := valueOf(value, "enabled"); enabled != nil {
		c.access = isTrue(enabled)
	}

	if isDelete(value) {
		c.access = false
	}

	key := c.take(path)

	for _, name := range []string{"allowedRoles", "allowedKubernetesNamespaces"} {
		var added []*yaml.Node
		if elements := valueOf(value, name); elements != nil {
			added = elements.Content
		}

		c.lists[name] = append(c.lists[name], added...)

		switch {
		case isDelete(value):
			c.lists[name] = nil
		case c.access && !was:
			added = c.lists[name]
		}

		if c.access && len(added) > 0 {
			c.put(k8s.KubeTalosAPIAccessConfig, "", []string{name}, key, list(added...))
		}
	}

	if c.access {
		c.documentOf(k8s.KubeTalosAPIAccessConfig, "", key)
	} else if was {
		c.drop(k8s.KubeTalosAPIAccessConfig, "", key)
	}
}

// cni is Flannel, which has a document, or manifests of another network.
func (c *Converter) cni(path []string) {
	value := c.value(path)
	name, flannel := textOf(value, "name"), valueOf(value, "flannel")

	switch again := c.again("cni"); {
	case isDelete(value):
		c.mistake(path, "$patch: delete of the network of pods cannot be converted: use the attribute cni")

		return
	case name == "" && !again:
		c.mistake(path, "without a name, Talos deploys no network of pods: add it")

		return
	}

	key := c.take(path)

	switch {
	case name == constants.FlannelCNI:
		c.put(k8s.KubeFlannelCNIConfig, "", []string{"backendType"}, key, text(constants.FlannelDefaultBackend))
		c.put(k8s.KubeFlannelCNIConfig, "", []string{"backendPort"}, blank(),
			scalar(strconv.Itoa(constants.FlannelDefaultBackendPort), "!!int", blank()))

		c.flannel = true
	case name != "" && c.flannel:
		c.drop(k8s.KubeFlannelCNIConfig, "", key)

		c.flannel = false
	}

	if flannel != nil && c.flannel {
		c.put(k8s.KubeFlannelCNIConfig, "", nil, key, flannel)
	}

	c.networkManifests(textsOf(valueOf(value, "urls")), key)
}

// networkManifests are those of another network of pods, which have the headers of all manifests.
func (c *Converter) networkManifests(urls []string, key *yaml.Node) {
	for _, url := range urls {
		c.manifests++

		manifest := "custom-cni"
		if c.manifests > 1 {
			manifest = fmt.Sprintf("custom-cni-%d", c.manifests)
		}

		document := c.documentOf(k8s.KubeExternalManifestConfig, manifest, key)
		set(document, []string{"url"}, blank(), text(url))

		if c.headers != nil {
			set(document, []string{"headers"}, blank(), c.headers)
		}
	}
}

// proxyFields are the fields of the configuration of kube-proxy for its arguments (Kubernetes 1.36,
// cmd/kube-proxy/app/options.go).
var proxyFields = map[string]struct{ path, tag string }{
	"cluster-cidr":           {"clusterCIDR", "!!str"},
	"conntrack-max-per-core": {"conntrack.maxPerCore", "!!int"},
	"conntrack-min":          {"conntrack.min", "!!int"},
	"detect-local-mode":      {"detectLocalMode", "!!str"},
	"healthz-bind-address":   {"healthzBindAddress", "!!str"},
	"ipvs-scheduler":         {"ipvs.scheduler", "!!str"},
	"ipvs-strict-arp":        {"ipvs.strictARP", "!!bool"},
	"metrics-bind-address":   {"metricsBindAddress", "!!str"},
	"nodeport-addresses":     {"nodePortAddresses", "!!seq"},
	"proxy-mode":             {"mode", "!!str"},
}

// stillArguments are those that kube-proxy reads beside its configuration.
var stillArguments = []string{"v", "vmodule", "hostname-override"}

func (c *Converter) proxyArgs(path []string) {
	value := c.value(path)
	configuration, arguments := mapping(), mapping()

	for i := 0; i+1 < len(value.Content); i += 2 {
		key, argument := value.Content[i], value.Content[i+1]
		field, known := proxyFields[key.Value]

		switch {
		case slices.Contains(stillArguments, key.Value):
			set(arguments, []string{key.Value}, key, argument)
		case !known || argument.Kind != yaml.ScalarNode || isDelete(argument):
			c.mistake(path, "kube-proxy reads "+key.Value+" from its configuration alone: write the field of "+
				"KubeProxyConfig config")

			return
		case field.tag == "!!seq":
			var addresses []*yaml.Node
			for address := range strings.SplitSeq(argument.Value, ",") {
				addresses = append(addresses, text(address))
			}

			set(configuration, strings.Split(field.path, "."), key, list(addresses...))
		default:
			set(configuration, strings.Split(field.path, "."), key, scalar(argument.Value, field.tag, argument))
		}
	}

	key := c.take(path)

	if len(configuration.Content) > 0 {
		c.put(k8s.KubeProxyConfig, "", []string{"config"}, key, configuration)
	}

	if len(arguments.Content) > 0 {
		c.put(k8s.KubeProxyConfig, "", []string{"extraArgs"}, key, arguments)
	}
}
